// Profiles of sweeps over several hosts that were made up from known numbers.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "../base/mistake.hpp"
#include "base/json.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "tests/validate/made_up_sweep.hpp"
#include "validate/fit/collective_terms.hpp"
#include "validate/fit/fit_profile.hpp"

namespace shardsim {
namespace {

struct Truth {
  double launch = 3e-6;
  double step_inside = 2e-6;
  double rate_inside = 2e9;
  double step_across = 20e-6;
  double rate_across = 3e8;
};

// By the table of cluster_cost.hpp, of n members with m on each of k hosts, a NIC each: rings whose
// members all send through it; peers of an all-to-all, of which each has its share of it; a permute
// in which one message leaves each host.
double time_over_hosts(const Truth& truth, CollectiveKind kind, std::int64_t members,
                       std::int64_t per_host, Bytes payload) {
  const auto n = static_cast<double>(members);
  const auto m = static_cast<double>(std::min(members, per_host));
  const double k = n / m;
  const auto bytes = static_cast<double>(payload.count());
  const auto wire = static_cast<double>(wire_bytes_per_device(kind, members, payload).count());
  double inside = 0;
  double across = 0;
  double latency = 0;
  if (kind == CollectiveKind::all_to_all) {
    inside = bytes / n * (m - 1);
    across = bytes / n * (n - m) * m;
    latency = (m - 1) * truth.step_inside + (n - m) * truth.step_across;
  } else if (kind == CollectiveKind::collective_permute) {
    inside = m > 1 ? bytes : 0;
    across = k > 1 ? bytes : 0;
    latency = k > 1 ? truth.step_across : truth.step_inside;
  } else {
    const double rounds = kind == CollectiveKind::all_reduce ? 2 : 1;
    const bool comes_back = m > 1 && k > 1 && kind != CollectiveKind::broadcast;
    const double steps = comes_back ? k : k - 1;
    inside = m > 1 ? wire : 0;
    across = k > 1 ? wire : 0;
    latency = rounds * (steps * truth.step_across + (n - 1 - steps) * truth.step_inside);
  }
  return truth.launch + latency + std::max(inside / truth.rate_inside, across / truth.rate_across);
}

// Every time is off by a factor of its own: exp of a normal number with that deviation.
DeviceSweep over_hosts(std::int64_t hosts, std::int64_t per_host, double deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 1);
  const std::int64_t processes = hosts * per_host;
  DeviceSweep sweep = testing::sweep_without_records(processes);
  sweep.on.hosts.clear();
  for (std::int64_t host = 0; host < hosts; ++host) {
    sweep.on.hosts.push_back("host" + std::to_string(host));
    sweep.host_of_rank.insert(sweep.host_of_rank.end(), static_cast<std::size_t>(per_host), host);
  }
  for (std::int64_t members = 2; members <= processes; members *= 2) {
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
          CollectiveKind::all_to_all, CollectiveKind::broadcast,
          CollectiveKind::collective_permute}) {
      for (std::int64_t bytes = KiB; bytes <= 16 * MiB; bytes *= 4) {
        const double time = time_over_hosts(Truth(), kind, members, per_host, Bytes(bytes)) *
                            std::exp(deviation * normal(random));
        sweep.collectives.push_back({kind,
                                     members,
                                     processes / members,
                                     Bytes(bytes),
                                     {Seconds(time), Seconds(time), Seconds(time), 10}});
      }
    }
  }
  return sweep;
}

const FittedNumber& number_of(const FittedProfile& fitted, const std::string& quantity) {
  const auto found =
      std::find_if(fitted.numbers.begin(), fitted.numbers.end(),
                   [&](const FittedNumber& number) { return number.quantity == quantity; });
  REQUIRE(found != fitted.numbers.end());
  return *found;
}

double rate_of(const LinkProfile& link) {
  return link.bandwidth.value.count() * link.efficiency.value;
}

std::string mistake_in(const DeviceSweep& sweep) {
  return testing::mistake_of([&] { return fit_profile(sweep, "mine"); });
}

}  // namespace

TEST_CASE("what is inside hosts and what is between them are found apart") {
  for (const std::int64_t per_host : {2, 4}) {
    CAPTURE(per_host);
    const FittedProfile fitted = fit_profile(over_hosts(2, per_host, 0, 1), "mine");
    const auto& cluster = std::get<ClusterProfile>(fitted.profile.network);
    CHECK(cluster.devices_per_node.value == per_host);
    REQUIRE(cluster.scale_out.has_value());
    CHECK(cluster.scale_out->nics_per_node.value == 1);
    // Times are written with four digits, efficiencies with all.
    const double digits = 5e-4;
    CHECK(fitted.profile.collective_launch.value.count() == Approx(Truth().launch).epsilon(digits));
    CHECK(cluster.scale_up.latency.value.count() == Approx(Truth().step_inside).epsilon(digits));
    CHECK(cluster.scale_out->latency.value.count() == Approx(Truth().step_across).epsilon(digits));
    CHECK(rate_of(cluster.scale_up) == Approx(Truth().rate_inside));
    CHECK(rate_of(*cluster.scale_out) == Approx(Truth().rate_across));
    // Factors have three digits behind the point.
    REQUIRE(fitted.left_out_collectives.has_value());
    CHECK(fitted.left_out_collectives->percentile_90 < 2e-3);
  }
}

TEST_CASE("a process on each host tells nothing of what is inside one") {
  const FittedProfile fitted = fit_profile(over_hosts(4, 1, 0, 1), "mine");
  const auto& cluster = std::get<ClusterProfile>(fitted.profile.network);
  CHECK(cluster.devices_per_node.value == 1);
  CHECK(rate_of(*cluster.scale_out) == Approx(Truth().rate_across));
  for (const std::string part : {"latency", "bandwidth"}) {
    CHECK_FALSE(number_of(fitted, "cluster.scale_up." + part).determined);
    CHECK(number_of(fitted, "cluster.scale_out." + part).determined);
  }
  const Profile base = load_profile("cpu-host", {});
  const auto& before = std::get<ClusterProfile>(base.network).scale_up;
  CHECK(cluster.scale_up.bandwidth.value == before.bandwidth.value);
  CHECK(cluster.scale_up.latency.value == before.latency.value);
  CHECK(cluster.scale_up.latency.source.kind == "estimate");
  CHECK(cluster.scale_up.latency.source.note == "as in cpu-host: sweep.json does not tell it");
}

// 95 % of 5 numbers in 40 sweeps. Those of a sweep hang together; were they as one, 38 of 40 would
// lie within, with a deviation of sqrt(40 * 0.95 * 0.05) = 1.4, and four of these below is 32.5.
TEST_CASE("numbers lie in their intervals as often as these say") {
  int within = 0;
  constexpr int sweeps = 40;
  Profile start = load_profile("cpu-host", {});
  auto& cluster = std::get<ClusterProfile>(start.network);
  cluster.devices_per_node.value = 2;
  cluster.scale_out.emplace();
  cluster.scale_out->bandwidth.value = Bandwidth(1e9);
  cluster.scale_out->efficiency.value = 1;
  cluster.scale_out->latency.value = Seconds(1e-5);
  cluster.scale_out->nics_per_node.value = 1;
  for (unsigned seed = 1; seed <= sweeps; ++seed) {
    const DeviceSweep sweep = over_hosts(4, 2, 0.1, seed);
    const CollectiveFit fit = fit_terms(start, sweep.collectives, sweep.on.processes);
    REQUIRE(fit.across.has_value());
    const auto count = [&](const FittedTerm& term, double truth) {
      if (term.low <= truth && truth <= term.high) ++within;
    };
    count(fit.launch, Truth().launch);
    count(fit.inside.step, Truth().step_inside);
    count(fit.inside.byte, 1 / Truth().rate_inside);
    count(fit.across->step, Truth().step_across);
    count(fit.across->byte, 1 / Truth().rate_across);
  }
  CHECK(within >= 5 * sweeps * 82 / 100);
}

TEST_CASE("the order of rows and of hosts does not matter") {
  DeviceSweep sweep = over_hosts(4, 2, 0.1, 3);
  const Json before = profile_to_json(fit_profile(sweep, "mine").profile);
  std::mt19937 random(1);
  std::shuffle(sweep.collectives.begin(), sweep.collectives.end(), random);
  sweep.host_of_rank = {2, 2, 0, 0, 3, 3, 1, 1};
  CHECK(profile_to_json(fit_profile(sweep, "mine").profile) == before);
}

TEST_CASE("a profile of hosts is one that programs read") {
  const FittedProfile fitted = fit_profile(over_hosts(2, 2, 0.05, 7), "mine");
  const Json document = profile_to_json(fitted.profile);
  const Profile read = read_profile(document, "mine.json");
  CHECK(profile_to_json(read) == document);
  const auto& cluster = std::get<ClusterProfile>(read.network);
  CHECK(cluster.devices_per_node.source.reference ==
        "sweep.json: 4 processes on 2 hosts on none, made up");
  CHECK(cluster.scale_out->latency.source.note.starts_with("95 % interval "));
}

TEST_CASE("hosts that ranks do not fill one after the other are refused") {
  DeviceSweep sweep = over_hosts(2, 2, 0, 1);
  CHECK(processes_per_host(sweep) == 2);
  const std::string message =
      "sweep.json: /backend/host_of_rank: ranks do not fill one host after the other, as many on "
      "each; start them so (mpirun --map-by slot)";
  sweep.host_of_rank = {0, 1, 0, 1};
  CHECK(mistake_in(sweep) == message);
  sweep.host_of_rank = {0, 1, 1, 1};
  CHECK(mistake_in(sweep) == message);
  DeviceSweep uneven = over_hosts(2, 2, 0, 1);
  uneven.on.hosts = {"a", "b", "c"};
  uneven.host_of_rank = {0, 1, 2, 2};
  CHECK(mistake_in(uneven) == message);

  // Files from before host_of_rank: two processes on two hosts can be on one each only.
  DeviceSweep old = over_hosts(2, 1, 0, 1);
  old.host_of_rank.clear();
  CHECK(processes_per_host(old) == 1);
  old.on.hosts = {"a"};
  CHECK(processes_per_host(old) == 2);
}

TEST_CASE("what is between hosts is told by the records or nowhere") {
  DeviceSweep inside = over_hosts(2, 2, 0, 1);
  std::erase_if(inside.collectives,
                [](const SweptCollective& swept) { return swept.group_size == 4; });
  CHECK(mistake_in(inside) ==
        "sweep.json: /collectives: they do not tell the bandwidth between hosts: larger sizes "
        "would");

  // A launch and a step in each: which is which nobody knows.
  DeviceSweep alike = over_hosts(2, 1, 0, 1);
  std::erase_if(alike.collectives, [](const SweptCollective& swept) {
    return swept.kind != CollectiveKind::collective_permute;
  });
  CHECK(mistake_in(alike) ==
        "sweep.json: /collectives: they do not tell a step's latency between hosts: more kinds and "
        "sizes would");

  DeviceSweep gpus = over_hosts(2, 2, 0, 1);
  gpus.profile = "dgx-h100";
  CHECK(mistake_in(gpus) ==
        "sweep.json: /backend/processes: over several hosts all devices of each take part: "
        "dgx-h100 has 8 on a host, the sweep 2");
}

// Two DGX H100 whose collectives take a fifth longer inside nodes and twice as long between them,
// by the model without calibrations. NCCL's algorithm changes between sizes, and with it the curve.
TEST_CASE("over hosts of GPUs the network stays, and factors are told by region") {
  DeviceSweep sweep = over_hosts(2, 8, 0, 1);
  sweep.profile = "dgx-h100";
  sweep.on.backend = "nccl";
  const Profile base = load_profile("dgx-h100", {"test", ""});
  SweptCosts modelled(base, 16, collective_models::uncalibrated);
  for (SweptCollective& swept : sweep.collectives) {
    const double factor = swept.group_size > 8 ? 2 : 1.2;
    swept.time.median = modelled.of(swept).total() * factor;
  }
  const Profile fitted = fit_profile(sweep, "mine").profile;
  CHECK(profile_to_json(fitted).at("cluster") == profile_to_json(base).at("cluster"));
  REQUIRE(fitted.calibrations.size() == 1 + base.calibrations.size());
  bool is_over_nodes = false;
  for (const CalibrationCurve& curve : fitted.calibrations.front().curves) {
    CAPTURE(curve.key.collective, curve.key.algorithm);
    is_over_nodes = is_over_nodes || curve.key.region == Region::nodes;
    for (const CurvePoint& point : curve.points) {
      CHECK(point.factor == Approx(curve.key.region == Region::nodes ? 2 : 1.2).epsilon(2e-3));
    }
  }
  CHECK(is_over_nodes);
  // Nothing was measured with a device on each node: what the class's tables say of rails stays.
  const CurveKey rail{Region::rail, "all-reduce", "Ring", 2};
  CHECK(find_curves(fitted.calibrations, rail)->factor_at(Bytes(GiB)) ==
        find_curves(base.calibrations, rail)->factor_at(Bytes(GiB)));
}

// On two hosts of two processes each; a node of dgx-h100 has 8 devices.
TEST_CASE("of kernels alone the network stays, whatever hosts they were on") {
  for (const std::string machine : {"cpu-host", "dgx-h100"}) {
    CAPTURE(machine);
    const Profile base = load_profile(machine, {"test", ""});
    DeviceSweep sweep = over_hosts(2, 2, 0, 1);
    sweep.profile = machine;
    sweep.collectives.clear();
    const double bandwidth = 0.5 * base.device.memory_bandwidth.value.count();
    for (std::int64_t bytes = MiB; bytes <= GiB; bytes *= 4) {
      const Seconds time = base.device.kernel_launch.value + Bytes(bytes) / Bandwidth(bandwidth);
      sweep.kernels.push_back({{"copy", KernelClass::memory, DType::f32, Flops(0), Bytes(bytes)},
                               {time, time, time, 10}});
    }
    const Profile fitted = fit_profile(sweep, "mine").profile;
    CHECK(profile_to_json(fitted).at("cluster") == profile_to_json(base).at("cluster"));
    CHECK(fitted.device.memory_bandwidth.value.count() * fitted.device.memory_efficiency.value ==
          Approx(bandwidth).epsilon(1e-3));
  }
}

TEST_CASE("which rank is on which host is in the file") {
  const DeviceSweep sweep = over_hosts(2, 2, 0, 1);
  Json document = parse_json(sweep_text(sweep), "sweep.json");
  CHECK(document["backend"]["host_of_rank"] == Json({0, 0, 1, 1}));
  CHECK(read_sweep(document, "sweep.json").host_of_rank == sweep.host_of_rank);
  const auto mistake_of_hosts = [&](const Json& hosts) {
    document["backend"]["host_of_rank"] = hosts;
    return testing::mistake_of([&] { return read_sweep(document, "sweep.json"); });
  };
  CHECK(mistake_of_hosts({0, 0, 1}) ==
        "sweep.json: /backend/host_of_rank: of 4 processes it has 3");
  CHECK(mistake_of_hosts({0, 0, 0, 0}) ==
        "sweep.json: /backend/host_of_rank: a host has no process");
  CHECK(mistake_of_hosts({0, 0, 1, 2}).starts_with("sweep.json: /backend/host_of_rank/3: "));
}

}  // namespace shardsim
