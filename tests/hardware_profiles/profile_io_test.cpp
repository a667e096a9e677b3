#include "hardware_profiles/profile_io.hpp"

#include <catch2/catch.hpp>
#include <functional>

#include "../base/mistake.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/version.hpp"

using namespace shardsim;  // NOLINT(google-build-using-namespace)

namespace {

// Calls `visit` for every object with a "value" below `json`.
void each_number(const Json& json, const std::function<void(const Json&)>& visit) {
  if (!json.is_object()) return;
  if (json.contains("value")) return visit(json);
  for (const auto& [key, member] : json.items()) each_number(member, visit);
}

Json shipped_file(const std::string& name) {
  return load_json(std::string(SHARDSIM_SOURCE_DIR "/hardware_profiles/profiles/") + name +
                   ".json");
}

}  // namespace

TEST_CASE("every shipped number says where it comes from") {
  for (const std::string& name : shipped_profiles()) {
    const Profile profile = load_profile(name, {});
    CHECK(profile.name == name);
    CHECK(profile.path == "built in");
    CHECK_FALSE(profile.title.empty());
    int numbers = 0;
    each_number(profile_to_json(profile), [&](const Json& number) {
      ++numbers;
      CHECK(number.at("source").get<std::string>().size() > 10);
      CHECK(number.at("date").get<std::string>().size() >= 7);
      // An estimate explains itself.
      if (number.at("kind") == "estimate") CHECK(number.contains("note"));
    });
    CHECK(numbers >= 14);
  }
}

// The law of a round trip; the shipped files are already in shortest form, up to the unit chosen.
TEST_CASE("a profile that is written reads back the same") {
  for (const std::string& name : shipped_profiles()) {
    const Json written = profile_to_json(load_profile(name, {}));
    CHECK(written.at("schema") == "shardsim/profile/1");
    CHECK(written.at("shardsim") == program_version);
    CHECK(profile_to_json(read_profile(written, "again.json")) == written);
  }
}

// What a fit tells is rounded to four digits of us (fitted_numbers.hpp). No number of ns or ps
// comes to the first six, times 1e-9 or 1e-12.
TEST_CASE("durations of any size are written so that they read back the same") {
  Json profile = shipped_file("dgx-h100");
  Json& latency = profile["cluster"]["scale_up"]["latency"]["value"];
  for (const char* text : {"0.001027 us", "0.2814 us", "0.04359 us", "0.05731 us", "0.007352 us",
                           "0.008578 us", "1.234 us", "4.321e+07 us"}) {
    latency = text;
    const Json written = profile_to_json(read_profile(profile, "a.json"));
    const Json& again = written["cluster"]["scale_up"]["latency"]["value"];
    CHECK(parse_seconds(again.get<std::string>(), {}) == parse_seconds(text, {}));
  }
}

TEST_CASE("a network that reduces is read, written and read back") {
  const std::string file = SHARDSIM_SOURCE_DIR "/examples/machines/dgx-h100-sharp.json";
  const Profile profile = load_profile(file, {});
  const auto& reduction = std::get<ClusterProfile>(profile.network).scale_out->reduction;
  REQUIRE(reduction);
  CHECK(reduction->efficiency.value == 0.95);
  CHECK(reduction->all_gather->value);
  CHECK(reduction->reduce_scatter->value);
  const Json written = profile_to_json(profile);
  CHECK(profile_to_json(read_profile(written, "again.json")) == written);
  CHECK(profile_to_text(profile).find("cluster.scale_out.reduction.efficiency") !=
        std::string::npos);
  // NCCL hands switches nothing by default.
  for (const std::string& name : shipped_profiles()) {
    const Profile shipped = load_profile(name, {});
    const auto* cluster = std::get_if<ClusterProfile>(&shipped.network);
    if (cluster != nullptr && cluster->scale_out) CHECK(!cluster->scale_out->reduction);
  }
}

TEST_CASE("surfaces are read, written and read back; what is wrong with one is said") {
  Json document = profile_to_json(load_profile("dgx-h100", {}));
  const auto number = [](const Json& value) {
    return Json{{"value", value}, {"kind", "measured"}, {"date", "2026-11"}, {"source", "a table"}};
  };
  Json& surfaces = document["device"]["surfaces"];
  surfaces = {
      {"attention_backward",
       {{"bf16",
         {{"efficiency", number(0.5)}, {"depth", number(80)}, {"overhead", number("4 us")}}}}}};
  const Profile profile = read_profile(document, "mine.json");
  const EfficiencySurface& surface = profile.device.attention_backward_surfaces.at(DType::bf16);
  CHECK(surface.efficiency.value == 0.5);
  CHECK(surface.depth->value == 80);
  CHECK_FALSE(surface.side.has_value());
  CHECK(surface.overhead->value == Seconds(4e-6));
  CHECK(profile_to_json(read_profile(profile_to_json(profile), "again.json")) ==
        profile_to_json(profile));

  const auto complaint = [&](const auto& spoil) {
    Json spoilt = document;
    spoil(spoilt["device"]["surfaces"]);
    return testing::mistake_of([&] { return read_profile(spoilt, "mine.json"); });
  };
  CHECK(complaint([](Json& s) { s["attention_backwards"] = s["attention_backward"]; }) ==
        "mine.json: /device/surfaces: unknown key \"attention_backwards\", did you mean "
        "\"attention_backward\"?");
  CHECK(complaint([](Json& s) {
          s["attention_backward"]["bf15"] = s["attention_backward"]["bf16"];
        }).starts_with("mine.json: /device/surfaces/attention_backward: unknown dtype \"bf15\""));
  CHECK(complaint([](Json& s) { s["attention_backward"]["bf16"]["depth"]["value"] = -1; }) ==
        "mine.json: /device/surfaces/attention_backward/bf16/depth/value: must be at least 0");
}

TEST_CASE("a profile that is written holds what the file holds") {
  for (const std::string& name : shipped_profiles()) {
    Json written = profile_to_json(load_profile(name, {}));
    written.erase("shardsim");
    const Json file = shipped_file(name);
    const nlohmann::json patch =
        nlohmann::json::diff(nlohmann::json(file), nlohmann::json(written));
    // Only the spelling of a value may differ: "1978.9 TFLOP/s", "2039 GB/s" or "2.039 TB/s".
    // What is inherited is added, what is taken away was null.
    const bool extends = file.contains("extends");
    for (const auto& change : patch) {
      const auto path = change.at("path").get<std::string>();
      CAPTURE(name, path);
      if (extends && (change.at("op") == "add" || path == "/extends")) continue;
      if (change.at("op") == "remove") {
        CHECK(file.at(Json::json_pointer(path)).is_null());
      } else {
        CHECK(change.at("op") == "replace");
        CHECK(path.ends_with("/value"));
      }
    }
  }
}

// Exactness: the shortest of all units wins, and what no unit shortens stays exact.
TEST_CASE("values are written in the shortest exact unit") {
  Profile profile = load_profile("dgx-h100", {});
  const auto capacity = [&](std::int64_t bytes) {
    profile.device.memory_capacity.value = Bytes(bytes);
    return profile_to_json(profile)
        .at("device")
        .at("memory_capacity")
        .at("value")
        .get<std::string>();
  };
  CHECK(capacity(80'000'000'000) == "80 GB");
  CHECK(capacity(16 * GiB) == "16 GiB");
  CHECK(capacity(1) == "1 B");
  profile.device.kernel_launch.value = parse_seconds("3.4 us", {});
  CHECK(profile_to_json(profile).at("device").at("kernel_launch").at("value") == "3.4 us");
  profile.device.kernel_launch.value = Seconds(0);
  CHECK(profile_to_json(profile).at("device").at("kernel_launch").at("value") == "0 s");
  profile.device.memory_bandwidth.value = Bandwidth(1e12 / 3);
  const Profile again = read_profile(profile_to_json(profile), "again.json");
  CHECK(again.device.memory_bandwidth.value == profile.device.memory_bandwidth.value);
}

TEST_CASE("a user's file is loaded by its path") {
  const std::string path = SHARDSIM_BINARY_DIR "/tests/profile_io_test_machine.json";
  Json document = shipped_file("dgx-a100");
  document["name"] = "mine";
  write_file(path, document.dump());
  const Profile profile = load_profile(path, {});
  CHECK(profile.name == "mine");
  CHECK(profile.path == path);
}

TEST_CASE("the table has a row for every number, under its place in the file") {
  const std::string text = profile_to_text(load_profile("tpu-v5p", {}));
  CHECK(text.find("tpu-v5p: Google TPU v5p, 3-D torus of up to 16x20x28 chips (built in)\n") == 0);
  CHECK(text.find("device.peak.bf16") != std::string::npos);
  CHECK(text.find("459 TFLOP/s") != std::string::npos);
  CHECK(text.find("torus.link.latency") != std::string::npos);
  CHECK(text.find("2x2x1 2x2x2 2x2x4 2x4x4, multiples of 4 up to 16x20x28") != std::string::npos);
  CHECK(text.find("multiples_of_4") != std::string::npos);
  CHECK(text.find("\n [1] https://openxla.org/xla/errors/error_1000") != std::string::npos);
  CHECK(text.find("\n     Note: an older text of the page used 0.5 us\n") != std::string::npos);
}

TEST_CASE("the list names every profile") {
  const std::vector<Profile> profiles{load_profile("dgx-a100", {}), load_profile("tpu-v5e", {})};
  CHECK(profile_list_text(profiles) ==
        "machine   what\n"
        "--------  -------------------------------------------------------------------\n"
        "dgx-a100  NVIDIA DGX A100, 8 x A100 SXM4 80 GB, rail-optimized HDR InfiniBand\n"
        "tpu-v5e   Google TPU v5e, 2-D torus of up to 16x16 chips\n");
  const Json list = profile_list_json(profiles);
  CHECK(list.at("schema") == "shardsim/profiles/1");
  CHECK(list.at("profiles").size() == 2);
  CHECK(list.at("profiles")[1].at("name") == "tpu-v5e");
}
