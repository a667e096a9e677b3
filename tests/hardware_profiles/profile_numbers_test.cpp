// The shipped numbers against the publications that their sources name.
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "hardware_profiles/plausibility.hpp"
#include "hardware_profiles/profile_io.hpp"

using namespace shardsim;  // NOLINT(google-build-using-namespace)

namespace {

Profile shipped(const std::string& name) { return load_profile(name, {}); }

// Google publishes ICI bandwidth of all links of a chip in both directions; 0.9 of it is reached
// (jax-ml/scaling-book).
void check_torus(const Profile& profile, int dimensions, double all_links) {
  const auto& torus = std::get<TorusProfile>(profile.network);
  CHECK(torus.dimensions == dimensions);
  CHECK(torus.link.bandwidth.value.count() == Approx(0.9 * all_links / (2 * dimensions) / 2));
}

}  // namespace

// NVIDIA H100 SXM: 1979 TFLOP/s bf16 with sparsity, half of it dense; 3.35 TB/s; NVLink 900 GB/s in
// both directions over 18 links; 8 x 400 Gb/s.
TEST_CASE("dgx-h100 has NVIDIA's figures") {
  const Profile profile = shipped("dgx-h100");
  CHECK(profile.device.peak.at(DType::bf16).value.count() == Approx(1979e12 / 2).epsilon(1e-3));
  CHECK(profile.device.peak.at(DType::f16).value == profile.device.peak.at(DType::bf16).value);
  CHECK(profile.device.peak.at(DType::f8).value.count() == Approx(2 * 989.4e12).epsilon(1e-3));
  CHECK(profile.device.peak.at(DType::f32).value == FlopRate(67e12));
  CHECK(profile.device.memory_bandwidth.value == Bandwidth(3.35e12));
  const auto& cluster = std::get<ClusterProfile>(profile.network);
  CHECK(cluster.devices_per_node.value == 8);
  CHECK(cluster.scale_up.bandwidth.value == Bandwidth(900e9 / 2));
  CHECK(cluster.scale_out->bandwidth.value == parse_bandwidth("400 Gb/s", {}));
  // NCCL assumes 18 links of 20.6 GB/s: 370.8 GB/s.
  CHECK(cluster.scale_up.bandwidth.value.count() * cluster.scale_up.efficiency.value ==
        Approx(18 * 20.6e9).epsilon(1e-3));
}

// NVIDIA A100 80 GB SXM: 312 TFLOP/s bf16, 19.5 fp32, 2039 GB/s, NVLink 600 GB/s in both
// directions, 8 x 200 Gb/s.
TEST_CASE("dgx-a100 has NVIDIA's figures") {
  const Profile profile = shipped("dgx-a100");
  CHECK(profile.device.peak.at(DType::bf16).value == FlopRate(312e12));
  CHECK(profile.device.peak.at(DType::f32).value == FlopRate(19.5e12));
  CHECK(profile.device.memory_bandwidth.value == Bandwidth(2039e9));
  const auto& cluster = std::get<ClusterProfile>(profile.network);
  CHECK(cluster.scale_up.bandwidth.value == Bandwidth(600e9 / 2));
  CHECK(cluster.scale_out->bandwidth.value == parse_bandwidth("200 Gb/s", {}));
}

// docs.cloud.google.com/tpu/docs/v5e: 197 TFLOP/s bf16, 393 int8, 16 GiB at 819 GB/s, ICI 400 GB/s
// bidirectional over 4 links; jax-ml/scaling-book: 45 GB/s a link effective, 0.9 of nominal.
TEST_CASE("tpu-v5e has Google's figures") {
  const Profile profile = shipped("tpu-v5e");
  CHECK(profile.device.peak.at(DType::bf16).value == FlopRate(197e12));
  CHECK(profile.device.peak.at(DType::i8).value == FlopRate(393e12));
  CHECK(profile.device.memory_bandwidth.value == Bandwidth(819e9));
  CHECK(profile.device.memory_capacity.value == Bytes(16 * GiB - 256 * MiB));
  check_torus(profile, 2, 400e9);
}

// docs.cloud.google.com/tpu/docs/v5p: 459 TFLOP/s bf16, 2765 GB/s, ICI 1200 GB/s bidirectional over
// 6 links.
TEST_CASE("tpu-v5p has Google's figures") {
  const Profile profile = shipped("tpu-v5p");
  CHECK(profile.device.peak.at(DType::bf16).value == FlopRate(459e12));
  CHECK(profile.device.memory_bandwidth.value == Bandwidth(2765e9));
  CHECK(profile.device.memory_capacity.value == parse_bytes("95.74 GiB", {}));
  check_torus(profile, 3, 1200e9);
}

// docs.cloud.google.com/tpu/docs/v6e: 918 TFLOP/s bf16, 1638 GB/s, ICI 800 GB/s bidirectional over
// 4 links; jax-ml/scaling-book: 90 GB/s a link effective.
TEST_CASE("tpu-v6e has Google's figures") {
  const Profile profile = shipped("tpu-v6e");
  CHECK(profile.device.peak.at(DType::bf16).value == FlopRate(918e12));
  CHECK(profile.device.memory_bandwidth.value == Bandwidth(1638e9));
  check_torus(profile, 2, 800e9);
}

// jax-ml/scaling-book tpus.md: 140 TFLOP/s bf16, 32 GB at 900 GB/s, 100 GB/s a link; only a
// dimension of the whole pod is a ring.
TEST_CASE("tpu-v3 has the scaling book's figures") {
  const Profile profile = shipped("tpu-v3");
  CHECK(profile.device.peak.at(DType::bf16).value == FlopRate(140e12));
  CHECK(profile.device.memory_bandwidth.value == Bandwidth(900e9));
  CHECK(std::get<TorusProfile>(profile.network).link.bandwidth.value == Bandwidth(100e9));
  const auto wraps = [&](std::int64_t devices) {
    return make_machine(profile, devices, std::nullopt, {}).torus->wraps;
  };
  CHECK(wraps(512) == std::vector<bool>{false, true});  // 16x32
  CHECK(wraps(16) == std::vector<bool>{false, false});
}

// docs.cloud.google.com/tpu/docs/v4: 275 TFLOP/s bf16 and int8, 32 GiB at 1200 GB/s; 1.1 PB/s of
// all-reduce in a Pod of 4096 chips with 6 links each, 45 GB/s a link (jax-ml/scaling-book).
TEST_CASE("tpu-v4 has Google's figures") {
  const Profile profile = shipped("tpu-v4");
  CHECK(profile.device.peak.at(DType::bf16).value == FlopRate(275e12));
  CHECK(profile.device.peak.at(DType::i8).value == FlopRate(275e12));
  CHECK(profile.device.memory_bandwidth.value == Bandwidth(1200e9));
  CHECK(profile.device.memory_capacity.value == Bytes(32 * GiB));
  const auto& torus = std::get<TorusProfile>(profile.network);
  CHECK(torus.dimensions == 3);
  CHECK(torus.link.bandwidth.value.count() == Approx(1.1e15 / 4096 / 6).epsilon(0.01));
}

// What CUDA shows of 80 GB parts is more than 80e9 bytes and less than 80 GiB.
TEST_CASE("GPU capacity is what CUDA shows") {
  for (const char* name : {"dgx-h100", "dgx-a100"}) {
    const Bytes capacity = shipped(name).device.memory_capacity.value;
    CHECK(capacity > Bytes(80'000'000'000));
    CHECK(capacity < Bytes(80 * GiB));
  }
}

// cuDNN's rows: 3.5 times the causal half of 4 x heads x sequence^2 x head_dim, in forward and
// backward time, over H100's peak.
TEST_CASE("H100's attention efficiency follows from its source") {
  const double operations = 3.5 * 4 * 64 * 8192.0 * 8192.0 * 128 / 2;
  const double achieved = operations / (1.708e-3 + 5.083e-3);
  CHECK(shipped("dgx-h100").device.attention_efficiency.value ==
        Approx(achieved / 989.4e12).margin(5e-4));
}

// 400 Gb/s are 50 GB/s: the fastest NIC of the machines with H100s that are shipped.
TEST_CASE("numbers far from those of known hardware are told") {
  const auto with = [](const char* bandwidth) {
    return read_profile({{"schema", "shardsim/profile/1"},
                         {"name", "mine"},
                         {"title", "ours"},
                         {"extends", "dgx-h100"},
                         {"cluster", {{"scale_out", {{"bandwidth", bandwidth}}}}}},
                        "mine.json");
  };
  CHECK(implausible_numbers(with("25 GB/s")).empty());
  CHECK(implausible_numbers(with("200 Gb/s")).empty());
  const auto odd = implausible_numbers(with("200 GB/s"));
  REQUIRE(odd.size() == 1);
  CHECK_THAT(odd[0], Catch::StartsWith("cluster.scale_out.bandwidth is 200 GB/s; of shipped "
                                       "profiles with H100 SXM5 80 GB it is "));
  CHECK_THAT(odd[0], Catch::EndsWith("50 GB/s: was 200 Gb/s meant, which are 25.0 GB/s?"));
  // Nothing is asked where an eighth is no likelier, and of what no bits are counted of.
  const auto slow = implausible_numbers(with("1 GB/s"));
  REQUIRE(slow.size() == 1);
  CHECK_THAT(slow[0], Catch::EndsWith("50 GB/s"));
  Profile large = with("50 GB/s");
  large.device.memory_capacity.value = 8 * large.device.memory_capacity.value;
  const auto eight = implausible_numbers(large);
  REQUIRE(eight.size() == 1);
  CHECK_THAT(eight[0],
             Catch::StartsWith("device.memory_capacity is ") && !Catch::Contains("meant"));
}

TEST_CASE("no shipped profile assumes a number") {
  for (const std::string& name : shipped_profiles()) {
    CAPTURE(name);
    CHECK(assumed_numbers(shipped(name)).empty());
  }
}

TEST_CASE("a bare number is assumed, said so, and written back") {
  const Json document = {
      {"schema", "shardsim/profile/1"},
      {"name", "mine"},
      {"title", "ours"},
      {"extends", "dgx-h100"},
      {"cluster", {{"devices_per_node", 4}, {"scale_out", {{"nics_per_node", 4}}}}}};
  const Profile profile = read_profile(document, "mine.json");
  CHECK(std::get<ClusterProfile>(profile.network).devices_per_node.value == 4);
  CHECK(assumed_numbers(profile) ==
        "assumed, given without a source: cluster.devices_per_node 4, "
        "cluster.scale_out.nics_per_node 4");
  const Json written = profile_to_json(profile);
  CHECK(written["cluster"]["devices_per_node"] == Json{{"value", 4}, {"kind", "assumed"}});
  CHECK(profile_to_json(read_profile(written, "mine.json")) == written);
}
