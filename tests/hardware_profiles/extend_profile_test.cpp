#include "hardware_profiles/extend_profile.hpp"

#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "base/json.hpp"
#include "hardware_profiles/profile_io.hpp"

namespace shardsim::extend_profile_test {

namespace {

Json number(const Json& value, const std::string& source) {
  return {{"value", value}, {"kind", "vendor"}, {"date", "2026-11"}, {"source", source}};
}

Json mine() {
  return {{"schema", "shardsim/profile/1"},
          {"name", "mine"},
          {"title", "a DGX H100 of mine"},
          {"extends", "dgx-h100"}};
}

std::string error_of(const Json& document) {
  try {
    (void)read_profile(document, "mine.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("what a profile does not say it inherits, with its source") {
  Json document = mine();
  document["cluster"]["scale_out"]["nics_per_node"] = number(4, "an invoice");
  const Json base = profile_to_json(load_profile("dgx-h100", {}));
  Json written = profile_to_json(read_profile(document, "mine.json"));
  CHECK(written.at("name") == "mine");
  CHECK(written["cluster"]["scale_out"]["nics_per_node"] == number(4, "an invoice"));
  written["cluster"]["scale_out"]["nics_per_node"] = base["cluster"]["scale_out"]["nics_per_node"];
  written["name"] = base["name"];
  written["title"] = base["title"];
  CHECK(written == base);
}

// The bandwidth of dgx-h100's NICs has a note, which says nothing of another value.
TEST_CASE("a number is replaced as a whole") {
  Json document = mine();
  document["cluster"]["scale_out"]["bandwidth"] = number("25 GB/s", "an invoice");
  const Profile profile = read_profile(document, "mine.json");
  CHECK(std::get<ClusterProfile>(profile.network).scale_out->bandwidth.source.note.empty());
  document["cluster"]["scale_out"]["bandwidth"].erase("source");
  CHECK(error_of(document) == "mine.json: /cluster/scale_out/bandwidth: missing key \"source\"");
}

TEST_CASE("null takes a member away") {
  Json document = mine();
  document["cluster"]["scale_out"] = nullptr;
  document["device"]["peak"]["fp8"] = nullptr;
  const Profile profile = read_profile(document, "mine.json");
  CHECK_FALSE(std::get<ClusterProfile>(profile.network).scale_out.has_value());
  CHECK_FALSE(profile.device.peak.contains(DType::f8));
  CHECK(profile.device.peak.contains(DType::bf16));
}

TEST_CASE("a file is extended by its path beside the one that names it") {
  const std::string folder = SHARDSIM_BINARY_DIR "/tests/";
  write_file(folder + "extend_profile_base.json", mine().dump());
  Json document = mine();
  document["name"] = "other";
  document["extends"] = "extend_profile_base.json";
  write_file(folder + "extend_profile_other.json", document.dump());
  const Profile profile = load_profile(folder + "extend_profile_other.json", {});
  CHECK(profile.name == "other");
  CHECK(profile.device.name == "H100 SXM5 80 GB");
}

TEST_CASE("profiles that cannot be extended") {
  Json document = mine();
  document["extends"] = "dgx-h10";
  CHECK(error_of(document) ==
        "mine.json: /extends: unknown profile \"dgx-h10\", did you mean \"dgx-h100\"?");
  const std::string path = SHARDSIM_BINARY_DIR "/tests/extend_profile_itself.json";
  document["extends"] = "extend_profile_itself.json";
  write_file(path, document.dump());
  CHECK_THROWS_WITH(load_profile(path, {}),
                    path +
                        ": /extends: is the end of a chain of more than 8 profiles: does one "
                        "extend itself?");
  document["extends"] = "dgx-h100";
  document["device"]["memory"] = number("80 GB", "an invoice");
  CHECK_THAT(error_of(document), Catch::Contains("mine.json: /device: unknown key \"memory\""));
}

}  // namespace shardsim::extend_profile_test
