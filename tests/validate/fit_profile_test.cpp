// Profiles of sweeps that were made up from known numbers.
#include "validate/fit/fit_profile.hpp"
#include "validate/fit/collective_terms.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "../base/mistake.hpp"
#include "base/json.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "tests/validate/made_up_sweep.hpp"
#include "validate/fit/collective_terms.hpp"

namespace shardsim {
namespace {

constexpr double launch = 3e-6;
constexpr double latency = 2e-6;
constexpr double bandwidth = 2e9;
constexpr double kernel_launch = 5e-7;
constexpr double flop_rate = 20e9;
constexpr double memory_bandwidth = 8e9;

// Steps and bytes of a device by plan.hpp and cluster_cost.hpp.
double collective_time(CollectiveKind kind, std::int64_t members, Bytes payload) {
  const auto n = static_cast<double>(members);
  double steps = n - 1;
  if (kind == CollectiveKind::all_reduce) steps *= 2;
  if (kind == CollectiveKind::collective_permute) steps = 1;
  const auto wire = static_cast<double>(wire_bytes_per_device(kind, members, payload).count());
  return launch + steps * latency + wire / bandwidth;
}

// Every time is off by a factor of its own: exp of a normal number with that deviation.
DeviceSweep made_up(double deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 1);
  const auto around = [&](double time) {
    const double seconds = time * std::exp(deviation * normal(random));
    return MeasuredTime{Seconds(seconds), Seconds(seconds), Seconds(seconds), 10};
  };
  DeviceSweep sweep = testing::sweep_without_records(4);
  for (const std::int64_t members : {2, 4}) {
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
          CollectiveKind::all_to_all, CollectiveKind::collective_permute}) {
      for (std::int64_t bytes = KiB; bytes <= 64 * MiB; bytes *= 4) {
        sweep.collectives.push_back({kind, members, 4 / members, Bytes(bytes),
                                     around(collective_time(kind, members, Bytes(bytes)))});
      }
    }
  }
  for (double flops = 1e4; flops <= 1e9; flops *= 10) {
    sweep.kernels.push_back({{"einsum", KernelClass::matmul, DType::f32, Flops(flops), Bytes(64)},
                             around(kernel_launch + flops / flop_rate)});
  }
  for (std::int64_t bytes = 16 * KiB; bytes <= 64 * MiB; bytes *= 4) {
    const double time = kernel_launch + static_cast<double>(bytes) / memory_bandwidth;
    sweep.kernels.push_back(
        {{"copy", KernelClass::memory, DType::f32, Flops(0), Bytes(bytes)}, around(time)});
  }
  return sweep;
}

struct Numbers {
  double launch, latency, bandwidth, kernel_launch, flop_rate, memory_bandwidth;
};

Numbers told_by(const Profile& profile) {
  const auto& scale_up = std::get<ClusterProfile>(profile.network).scale_up;
  const DeviceProfile& device = profile.device;
  return {profile.collective_launch.value.count(),
          scale_up.latency.value.count(),
          scale_up.bandwidth.value.count() * scale_up.efficiency.value,
          device.kernel_launch.value.count(),
          device.peak.at(DType::f32).value.count() * device.matmul_efficiency.value,
          device.memory_bandwidth.value.count() * device.memory_efficiency.value};
}

}  // namespace

TEST_CASE("what times were made of is found in them") {
  const FittedProfile fitted = fit_profile(made_up(0, 1), "mine");
  const Numbers numbers = told_by(fitted.profile);
  // Times are written with four digits, efficiencies with all.
  CHECK(numbers.launch == Approx(launch).epsilon(5e-4));
  CHECK(numbers.latency == Approx(latency).epsilon(5e-4));
  CHECK(numbers.bandwidth == Approx(bandwidth));
  CHECK(numbers.kernel_launch == Approx(kernel_launch).epsilon(5e-4));
  CHECK(numbers.flop_rate == Approx(flop_rate));
  CHECK(numbers.memory_bandwidth == Approx(memory_bandwidth));
  // Factors have three digits behind the point.
  REQUIRE(fitted.collectives.has_value());
  CHECK(fitted.collectives->percentile_90 < 1e-3);
  REQUIRE(fitted.left_out_collectives.has_value());
  CHECK(fitted.left_out_collectives->percentile_90 < 1e-3);
  REQUIRE(fitted.kernels.has_value());
  CHECK(fitted.kernels->percentile_90 < 1e-3);
}

// Of 5 % noise on 80 collectives and 13 kernels. Rates are told by those rows in which they are
// most of the time, 40 and 7: their mean errs by 5 % / sqrt(7) = 2 %, and four times that never.
TEST_CASE("noise moves numbers by little, and left-out sizes err by the noise") {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U}) {
    CAPTURE(seed);
    const FittedProfile fitted = fit_profile(made_up(0.05, seed), "mine");
    const Numbers numbers = told_by(fitted.profile);
    CHECK(numbers.bandwidth == Approx(bandwidth).epsilon(0.08));
    CHECK(numbers.flop_rate == Approx(flop_rate).epsilon(0.08));
    CHECK(numbers.memory_bandwidth == Approx(memory_bandwidth).epsilon(0.08));
    REQUIRE(fitted.left_out_collectives.has_value());
    CHECK(fitted.left_out_collectives->median < 2 * 0.05);
  }
}

TEST_CASE("a fitted profile is one that programs read, with the source of every number") {
  const FittedProfile fitted = fit_profile(made_up(0.05, 7), "mine");
  const Json document = profile_to_json(fitted.profile);
  const Profile read = read_profile(document, "mine.json");
  CHECK(profile_to_json(read) == document);
  CHECK(read.name == "mine");
  const Source& source = read.collective_launch.source;
  CHECK(source.kind == "measured");
  CHECK(source.date == "2026-11-22");
  CHECK(source.reference == "sweep.json: 4 processes on none, made up");
  CHECK(source.note.starts_with("95 % interval "));
  REQUIRE(read.calibrations.size() == 1);
  // The curve goes by two groups' medians: noise of one is not all of it.
  const SweptCollective swept = made_up(0.05, 7).collectives[6];
  SweptCosts costs(read, 4, collective_models::simulated);
  CHECK(costs.of(swept).total().count() == Approx(swept.time.median.count()).epsilon(0.2));
}

// A H200 whose products reach 70 % of the published peak in bf16 and half of it in fp32, 90 % of
// the memory's bandwidth and 3 us of a launch, and whose collectives take a fourth longer than the
// profile says. Published numbers stay; fp32's rate is told, and no efficiency of the profile's.
TEST_CASE("of a published profile efficiencies are fitted, and what is left of collectives") {
  const Profile base = load_profile("dgx-h200", {"test", ""});
  constexpr double launch = 3e-6;
  const auto exactly = [](double seconds) {
    return MeasuredTime{Seconds(seconds), Seconds(seconds), Seconds(seconds), 10};
  };
  DeviceSweep sweep = testing::sweep_without_records(8, "dgx-h200");
  for (const auto& [dtype, part] : {std::pair{DType::bf16, 0.7}, std::pair{DType::f32, 0.5}}) {
    const double rate = part * base.device.peak.at(dtype).value.count();
    for (double flops = 1e7; flops <= 1e13; flops *= 10) {
      sweep.kernels.push_back({{"einsum", KernelClass::matmul, dtype, Flops(flops), Bytes(64)},
                               exactly(launch + flops / rate)});
    }
  }
  const double bandwidth = 0.9 * base.device.memory_bandwidth.value.count();
  for (std::int64_t bytes = MiB; bytes <= GiB; bytes *= 4) {
    sweep.kernels.push_back({{"copy", KernelClass::memory, DType::f32, Flops(0), Bytes(bytes)},
                             exactly(launch + static_cast<double>(bytes) / bandwidth)});
  }
  SweptCosts by_base(base, 8, collective_models::simulated);
  for (std::int64_t bytes = 64 * KiB; bytes <= GiB; bytes *= 4) {
    SweptCollective swept{CollectiveKind::all_reduce, 8, 1, Bytes(bytes), {}};
    swept.time = exactly(1.25 * by_base.of(swept).total().count());
    sweep.collectives.push_back(swept);
  }
  const FittedProfile fitted = fit_profile(sweep, "mine");
  const DeviceProfile& device = fitted.profile.device;
  CHECK(device.peak.at(DType::bf16).value == base.device.peak.at(DType::bf16).value);
  CHECK(device.peak.at(DType::f8).source.reference ==
        base.device.peak.at(DType::f8).source.reference);
  CHECK(device.matmul_efficiency.value == Approx(0.7).epsilon(1e-3));
  CHECK(device.memory_bandwidth.value == base.device.memory_bandwidth.value);
  CHECK(device.memory_efficiency.value == Approx(0.9).epsilon(1e-3));
  CHECK(device.attention_efficiency.value == base.device.attention_efficiency.value);
  CHECK(device.kernel_launch.value.count() == Approx(launch).epsilon(1e-3));
  const auto is_of_fp32 = [](const FittedNumber& number) {
    return number.quantity == "device.peak.fp32";
  };
  CHECK(std::count_if(fitted.numbers.begin(), fitted.numbers.end(), is_of_fp32) == 1);
  SweptCosts by_fitted(fitted.profile, 8, collective_models::simulated);
  for (const SweptCollective& swept : sweep.collectives) {
    CAPTURE(swept.payload.count());
    CHECK(by_fitted.of(swept).total().count() == Approx(swept.time.median.count()).epsilon(0.05));
  }
}

// All devices copy at once: on dgx-a100 two over one link, 4 us + 2 bytes / 24 GB/s, both ways. A
// profile without the link has what the records say: 4 us + bytes / 12 GB/s.
TEST_CASE("copies tell the link to the host") {
  constexpr double first = 4e-6;
  constexpr double rate = 24e9;
  DeviceSweep sweep = testing::sweep_without_records(8, "dgx-a100");
  for (std::int64_t bytes = 16 * KiB; bytes <= GiB; bytes *= 4) {
    const Seconds time(first + 2 * static_cast<double>(bytes) / rate);
    for (const TaskKind direction : {TaskKind::to_host, TaskKind::from_host}) {
      sweep.copies.push_back({direction, Bytes(bytes), {time, time, time, 10}});
    }
  }
  const FittedProfile fitted = fit_profile(sweep, "mine");
  const HostLinkProfile& link = fitted.profile.device.host_link.value();
  CHECK(link.bandwidth.value == Bandwidth(31.5e9));  // published
  CHECK(link.bandwidth.value.count() * link.efficiency.value == Approx(rate).epsilon(1e-3));
  CHECK(link.latency.value.count() == Approx(first).epsilon(1e-3));
  CHECK(link.devices->value == 2);
  CHECK(link.efficiency.source.kind == "measured");
  CHECK(fitted.copies.value().rows == 2 * 9);
  CHECK(fitted.copies->percentile_90 < 1e-3);

  sweep.profile = "tpu-v3";
  const Profile bare = fit_profile(sweep, "mine").profile;
  const HostLinkProfile& alone = bare.device.host_link.value();
  CHECK(alone.bandwidth.value.count() * alone.efficiency.value == Approx(rate / 2).epsilon(1e-3));
  CHECK_FALSE(alone.devices);

  sweep.copies.resize(1);  // one size tells no rate: the profile's stays
  sweep.profile = "dgx-a100";
  CHECK(fit_profile(sweep, "mine").profile.device.host_link->efficiency.value ==
        load_profile("dgx-a100", {"test", ""}).device.host_link->efficiency.value);
}

// A table of kernels tells of the device, and nothing of its network.
TEST_CASE("of kernels alone a device is made, of any machine") {
  for (const char* machine : {"dgx-h200", "tpu-v5p"}) {
    CAPTURE(machine);
    const Profile base = load_profile(machine, {"test", ""});
    DeviceSweep sweep = testing::sweep_without_records(1, machine);
    sweep.source = "somebody's table";
    const double rate = 0.6 * base.device.peak.at(DType::bf16).value.count();
    for (std::int64_t side = 256; side <= 16384; side *= 2) {
      const double flops = 2.0 * std::pow(static_cast<double>(side), 3);
      const Seconds time = base.device.kernel_launch.value + Seconds(flops / rate);
      sweep.kernels.push_back({{"einsum", KernelClass::matmul, DType::bf16, Flops(flops), Bytes(64),
                                Product{1, side, side, side}},
                               {time, time, time, 0}});
    }
    const Profile fitted = fit_profile(sweep, "mine").profile;
    CHECK(fitted.device.matmul_efficiency.value == Approx(0.6).epsilon(1e-3));
    const EfficiencySurface& surface = fitted.device.matmul_surfaces.at(DType::bf16);
    CHECK(surface.efficiency.value == Approx(0.6).epsilon(1e-3));
    CHECK(surface.efficiency.source.reference == "somebody's table");
    CHECK(fitted.device.memory_bandwidth.source.reference ==
          base.device.memory_bandwidth.source.reference);
    CHECK(fitted.calibrations.size() == base.calibrations.size());
    CHECK(profile_to_json(fitted).at("collective_launch") ==
          profile_to_json(base).at("collective_launch"));
  }
}

TEST_CASE("what a sweep does not tell is said") {
  DeviceSweep hosts = made_up(0, 1);
  hosts.on.hosts = {"a", "b"};
  CHECK(testing::mistake_of([&] { return fit_profile(hosts, "mine"); }) ==
        "sweep.json: /backend/host_of_rank: is not there: on which of the 2 hosts the 4 processes "
        "were is not known; measure anew");

  DeviceSweep crowd = made_up(0, 1);
  crowd.on.processes = 300;
  CHECK(testing::mistake_of([&] { return fit_profile(crowd, "mine"); }) ==
        "sweep.json: /backend/processes: a node of cpu-host has 256 at most");

  DeviceSweep empty = made_up(0, 1);
  empty.collectives.clear();
  empty.kernels.clear();
  CHECK(testing::mistake_of([&] { return fit_profile(empty, "mine"); }) ==
        "sweep.json: has no records to fit a profile to");

  DeviceSweep unknown = made_up(0, 1);
  unknown.profile = "cpu-hots";
  CHECK(testing::mistake_of([&] {
          return fit_profile(unknown, "mine");
        }).starts_with("sweep.json: /profile: "));

  DeviceSweep torus = made_up(0, 1);
  torus.profile = "tpu-v5p";
  CHECK(testing::mistake_of([&] { return fit_profile(torus, "mine"); }) ==
        "sweep.json: /profile: tpu-v5p has no nodes to fit");

  // Launches alone: no product is long enough to be told from them.
  DeviceSweep short_products = made_up(0, 1);
  for (SweptKernel& swept : short_products.kernels) {
    if (swept.kernel.kernel_class == KernelClass::matmul) swept.time.median = Seconds(1e-7);
  }
  CHECK(testing::mistake_of([&] { return fit_profile(short_products, "mine"); }) ==
        "sweep.json: /kernels: they do not tell the rate of matmuls: larger sizes would");
}

}  // namespace shardsim
