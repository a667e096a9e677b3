// Slices of tori: how they close, chips that are several devices, and the shipped TPUs that have
// them.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "hardware_profiles/machine.hpp"

namespace shardsim::slices_test {

namespace {

TorusShape slice(const std::string& profile, std::int64_t devices, const std::string& topology) {
  return *make_machine(load_profile(profile, {}), devices, topology, {"a.json", "/topology"}).torus;
}

std::string mistake(const std::string& profile, std::int64_t devices, const std::string& topology) {
  try {
    (void)slice(profile, devices, topology);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

using Wraps = std::vector<bool>;

}  // namespace

// The 2-D slices of https://docs.cloud.google.com/tpu/docs/v5e and v2. Chips of tpu7x are two
// devices: its 2x4x4 has 64 and 4x4x4, the next, 128.
TEST_CASE("the largest slice is the largest of those that are allowed") {
  const auto largest = [](const char* profile, std::int64_t most) {
    return largest_slice(std::get<TorusProfile>(load_profile(profile, {}).network), most);
  };
  CHECK(largest("tpu-v5e", 64) == 64);
  CHECK(largest("tpu-v5e", 127) == 64);
  CHECK(largest("tpu-v5e", 128) == 128);
  CHECK(largest("tpu-v5e", 3) == 1);
  CHECK(largest("tpu-v5e", 1'000'000) == 256);
  CHECK(largest("tpu-v2", 3) == 0);
  CHECK(largest("tpu7x", 127) == 64);
  CHECK(largest("tpu7x", 128) == 128);
}

TEST_CASE("a slice closes as its topology says") {
  CHECK(slice("tpu-v4", 64, "4x4x4").wraps == Wraps{true, true, true});
  CHECK(slice("tpu-v4", 64, "4x4x4_closed").wraps == Wraps{true, true, true});
  CHECK(slice("tpu-v4", 64, "4x4x4_open").wraps == Wraps{false, false, false});
  CHECK(slice("tpu-v5e", 256, "16x16_closed").wraps == Wraps{true, true});
  CHECK(slice("tpu-v2", 128, "8x16").wraps == Wraps{false, true});
  const TorusShape twisted = slice("tpu-v4", 128, "4x4x8_twisted");
  CHECK(twisted.wraps == Wraps{true, true, true});
  CHECK(twisted.text() == "4x4x8_twisted");
  CHECK(twisted.twists(0));
  CHECK(twisted.twists(1));
  CHECK_FALSE(twisted.twists(2));
  CHECK(slice("tpu-v4", 256, "4x8x8_twisted").twists(0));
  CHECK_FALSE(slice("tpu-v4", 256, "4x8x8_twisted").twists(1));
  CHECK_FALSE(slice("tpu-v4", 128, "4x4x8").twists(0));
}

TEST_CASE("a slice that cannot close as it should is an error") {
  CHECK(mistake("tpu-v5e", 64, "8x8_closed") ==
        "a.json: /topology: tpu-v5e cannot close all dimensions of 8x8: a dimension closes where "
        "it has 16 chips");
  CHECK(mistake("tpu-v5p", 16, "2x2x4_twisted") ==
        "a.json: /topology: tpu-v5p cannot close all dimensions of 2x2x4: all dimensions close "
        "where all are multiples of 4");
  CHECK(mistake("tpu-v4", 64, "4x4x4_twisted") ==
        "a.json: /topology: 4x4x4 cannot be twisted: twisted tori are k x k x 2k or k x 2k x 2k, "
        "as 4x4x8 and 4x8x8");
  CHECK(mistake("tpu-v4", 128, "4x4x8_twisd") ==
        "a.json: /topology: unknown \"twisd\" behind a shape; known are open, closed, twisted, "
        "did you mean \"twisted\"?");
}

TEST_CASE("a chip of tpu7x is two devices") {
  CHECK(slice("tpu7x", 16, "2x2x2").device_sizes() == std::vector<std::int64_t>{2, 2, 2, 2});
  const Machine machine = make_machine(load_profile("tpu7x", {}), 128, std::nullopt, {});
  CHECK(machine.torus->sizes == std::vector<std::int64_t>{4, 4, 4});
  CHECK(machine.torus->wraps == Wraps{true, true, true});
  CHECK(mistake("tpu7x", 8, "2x2x2") ==
        "a.json: /topology: topology 2x2x2 has 16 devices, but the mesh has 8");
  CHECK(mistake("tpu7x", 16, "1x2x4") ==
        "a.json: /topology: tpu7x has no slice 1x2x4; of 16 devices it has 2x2x2");
  // The devices of a chip are the fourth dimension, which an axis of two takes whole.
  const auto spans = assign_mesh(*machine.torus, {64, 2}, {});
  CHECK(spans[1] == std::vector<TorusSpan>{{3, 2, 1}});
  CHECK(spans[0] == std::vector<TorusSpan>{{0, 4, 1}, {1, 4, 1}, {2, 4, 1}});
}

// docs.cloud.google.com/tpu/docs/tpu7x, of a chip: 2307 TFLOP/s bf16, 4614 fp8, 192 GiB at 7380
// GB/s, 1200 GB/s over six links both ways, 0.9 of it effective.
TEST_CASE("tpu7x has half of Google's figures of a chip") {
  const Profile profile = load_profile("tpu7x", {});
  CHECK(2 * profile.device.peak.at(DType::bf16).value.count() == Approx(2307e12));
  CHECK(2 * profile.device.peak.at(DType::f8).value.count() == Approx(4614e12));
  CHECK(2 * profile.device.memory_capacity.value.count() == 192 * GiB);
  CHECK(2 * profile.device.memory_bandwidth.value.count() == Approx(7380e9));
  const auto& torus = std::get<TorusProfile>(profile.network);
  CHECK(torus.link.bandwidth.value.count() == Approx(0.9 * 1200e9 / 12));
}

// jax-ml/jax tpu_info.py: 46 TFLOP/s and 716 GB/s of a chip; CACM 63 (7): 496 Gbit/s a link.
TEST_CASE("tpu-v2 has its published figures") {
  const Profile profile = load_profile("tpu-v2", {});
  CHECK(profile.device.peak.at(DType::bf16).value == FlopRate(46e12));
  CHECK(profile.device.memory_bandwidth.value == Bandwidth(716e9));
  CHECK(std::get<TorusProfile>(profile.network).link.bandwidth.value.count() == Approx(496e9 / 8));
}

TEST_CASE("several slices are as many of one shape, where there is a network between them") {
  const auto make = [](const std::string& profile, std::int64_t devices, std::int64_t slices) {
    return make_machine(load_profile(profile, {}), devices, std::nullopt, {"a.json", "/slices"},
                        slices);
  };
  const Machine machine = make("tpu-v5p", 128, 2);
  CHECK(machine.torus->text() == "4x4x4");
  CHECK(machine.topology() == "2 slices of 4x4x4");
  CHECK(machine.devices == 128);
  CHECK_THROWS_WITH(make("tpu-v5p", 128, 3), "a.json: /slices: 128 devices do not fill 3 slices");
  CHECK_THROWS_WITH(make("tpu-v3", 64, 2),
                    "a.json: /slices: 2 slices of tpu-v3, whose profile has "
                    "no network \"dcn\" between slices");
  CHECK_THROWS_WITH(make("dgx-h100", 16, 2),
                    "a.json: /slices: 2 slices: only TPUs come in slices, "
                    "dgx-h100 does not");
}

// jax-ml/scaling-book, chapter on TPUs: 6.25e9 bytes/s of DCN egress per TPU, 12.5e9 of v6e and
// 3.125e9 of v5e.
TEST_CASE("what a chip sends to the data centre's network") {
  const auto dcn = [](const std::string& profile) {
    const Profile loaded = load_profile(profile, {});
    return std::get<TorusProfile>(loaded.network).dcn->bandwidth.value.count();
  };
  CHECK(dcn("tpu-v4") == 6.25e9);
  CHECK(dcn("tpu-v5p") == 6.25e9);
  CHECK(dcn("tpu-v5e") == 3.125e9);
  CHECK(dcn("tpu-v6e") == 12.5e9);
}

}  // namespace shardsim::slices_test
