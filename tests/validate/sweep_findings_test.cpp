// What sweeps that were made up hold beside their profile.
#include "validate/sweep/sweep_findings.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "base/json.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "tests/validate/made_up_sweep.hpp"

namespace shardsim {
namespace {

using testing::sweep_without_records;

SweptCollective record(std::int64_t group_size, std::int64_t groups, std::int64_t bytes,
                       double time, const std::string& algorithm = "") {
  return {CollectiveKind::all_reduce,
          group_size,
          groups,
          Bytes(bytes),
          {Seconds(time), Seconds(time), Seconds(time), 10},
          algorithm};
}

// cpu-host, as if its hosts had three processes each and one NIC.
Profile of_hosts_of_three() {
  Profile profile = load_profile("cpu-host", {});
  auto& cluster = std::get<ClusterProfile>(profile.network);
  cluster.devices_per_node.value = 3;
  ScaleOutProfile& network = cluster.scale_out.emplace();
  network.bandwidth.value = Bandwidth(1e8);
  network.efficiency.value = 1;
  network.latency.value = Seconds(1e-5);
  network.nics_per_node.value = 1;
  return profile;
}

constexpr double start_of_ring = 40e-6;
constexpr double byte_of_ring = 1e-9;
constexpr double start_of_doubling = 10e-6;
constexpr double byte_of_doubling = 2e-9;

// The library rings always. Even at (40 - 10) us / (2 - 1) ns = 30 kB.
DeviceSweep of_two_algorithms() {
  DeviceSweep sweep = sweep_without_records(4);
  for (std::int64_t bytes = KiB; bytes <= MiB; bytes *= 4) {
    const auto payload = static_cast<double>(bytes);
    const double ring = start_of_ring + byte_of_ring * payload;
    const double doubling = start_of_doubling + byte_of_doubling * payload;
    sweep.collectives.push_back(record(4, 1, bytes, 1.1 * ring));
    sweep.collectives.push_back(record(4, 1, bytes, ring, "ring"));
    sweep.collectives.push_back(record(4, 1, bytes, doubling, "doubling"));
  }
  return sweep;
}

}  // namespace

TEST_CASE("groups at once are compared with one alone, size by size") {
  DeviceSweep sweep = sweep_without_records(4);
  // Ratios 1, 3 and 1.5: the median is 1.5. What has no counterpart counts for nothing, nor do
  // algorithms by name.
  sweep.collectives = {
      record(2, 2, KiB, 1e-5),     record(2, 1, KiB, 1e-5),     record(2, 2, 2 * KiB, 6e-5),
      record(2, 1, 2 * KiB, 2e-5), record(2, 2, 4 * KiB, 3e-5), record(2, 1, 4 * KiB, 2e-5),
      record(2, 1, 8 * KiB, 1e-3), record(4, 1, KiB, 1),        record(2, 2, KiB, 1e-7, "ring")};
  const SweepFindings findings = find_in_sweep(sweep, load_profile("cpu-host", {}));
  REQUIRE(findings.contention.size() == 1);
  const Contention& row = findings.contention.front();
  CHECK(row.group_size == 2);
  CHECK(row.groups == 2);
  CHECK(row.sizes == 3);
  CHECK(row.ratio == Approx(1.5));
  CHECK(row.low == Approx(1));
  CHECK(row.high == Approx(3));
  CHECK(row.predicted == Approx(1));  // inside a host nothing is shared
}

// Groups of two among six ranks on hosts of three: the first is inside its host, 256 MiB at 5 GB/s;
// of all at once the second crosses. By cluster_rates.hpp one of three devices at work on a host
// has a third of its NIC: 1e8 / 3 B/s, 150 times slower. Steps are 1e-5 of that.
TEST_CASE("the profile says what it knows of groups at once") {
  DeviceSweep sweep = sweep_without_records(6);
  sweep.collectives = {record(2, 3, 256 * MiB, 7), record(2, 1, 256 * MiB, 4)};
  const SweepFindings findings = find_in_sweep(sweep, of_hosts_of_three());
  REQUIRE(findings.contention.size() == 1);
  CHECK(findings.contention.front().groups == 3);
  CHECK(findings.contention.front().ratio == Approx(7.0 / 4));
  CHECK(findings.contention.front().predicted == Approx(150).epsilon(1e-3));
}

TEST_CASE("algorithms are fitted, and the fastest of each size is told") {
  const SweepFindings findings = find_in_sweep(of_two_algorithms(), load_profile("cpu-host", {}));
  CHECK(findings.contention.empty());
  REQUIRE(findings.algorithms.size() == 1);
  const ComparedAlgorithms& compared = findings.algorithms.front();
  REQUIRE(compared.fits.size() == 3);
  CHECK(compared.fits[0].algorithm.empty());
  CHECK(compared.fits[0].start.value == Approx(1.1 * start_of_ring));
  CHECK(compared.fits[1].algorithm == "doubling");
  CHECK(compared.fits[1].start.value == Approx(start_of_doubling));
  CHECK(compared.fits[1].byte.value == Approx(byte_of_doubling));
  CHECK(compared.fits[2].algorithm == "ring");
  CHECK(compared.fits[2].start.value == Approx(start_of_ring));
  CHECK(compared.fits[2].byte.value == Approx(byte_of_ring));
  CHECK(compared.fits[2].sizes == 6);
  REQUIRE(compared.fastest.size() == 6);
  for (const FastestAlgorithm& best : compared.fastest) {
    CAPTURE(best.payload.count());
    CHECK(best.algorithm == (best.payload < Bytes(30'000) ? "doubling" : "ring"));
    CHECK(best.time < best.next);
  }
}

// exp of a normal number of deviation 0.05, of 21 sizes: 95 % of 2 * 100 values lie within. Were
// both of a sweep one, 95 of 100 would, with a deviation of 2.2: 86 are four of them below.
TEST_CASE("starts and bytes lie in their intervals") {
  int within = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, 0.05);
    DeviceSweep sweep = sweep_without_records(2);
    for (std::int64_t bytes = KiB; bytes <= KiB << 20; bytes *= 2) {
      const double time = start_of_ring + byte_of_ring * static_cast<double>(bytes);
      sweep.collectives.push_back(record(2, 1, bytes, time * std::exp(normal(random)), "ring"));
    }
    const SweepFindings findings = find_in_sweep(sweep, load_profile("cpu-host", {}));
    const AlgorithmFit& fit = findings.algorithms.at(0).fits.at(0);
    if (fit.start.low <= start_of_ring && start_of_ring <= fit.start.high) ++within;
    if (fit.byte.low <= byte_of_ring && byte_of_ring <= fit.byte.high) ++within;
  }
  CHECK(within >= 2 * 86);
}

TEST_CASE("the order of records does not matter to what is found") {
  DeviceSweep sweep = of_two_algorithms();
  const Profile profile = load_profile("cpu-host", {});
  Json before = Json::object();
  add_findings(before, find_in_sweep(sweep, profile));
  std::mt19937 random(1);
  std::shuffle(sweep.collectives.begin(), sweep.collectives.end(), random);
  Json after = Json::object();
  add_findings(after, find_in_sweep(sweep, profile));
  CHECK(after == before);
}

TEST_CASE("a profile with findings beside it is one that programs read") {
  DeviceSweep sweep = of_two_algorithms();
  sweep.collectives.push_back(record(2, 2, KiB, 2e-5));
  sweep.collectives.push_back(record(2, 1, KiB, 1e-5));
  const Profile profile = load_profile("cpu-host", {});
  const Json plain = profile_to_json(profile);
  Json document = plain;
  add_findings(document, find_in_sweep(sweep, profile));
  CHECK(profile_to_json(read_profile(document, "mine.json")) == plain);

  const Json& contention = document["contention"][0];
  CHECK(contention["kind"] == "all-reduce");
  CHECK(contention["ratio"].get<double>() == Approx(2));
  // By group size: one size of groups of 2 does not tell a start from bytes.
  const Json& pairs = document["algorithms"][0];
  CHECK(pairs["group_size"] == 2);
  CHECK(pairs["fits"][0]["start"].is_null());
  CHECK(pairs["fits"][0]["byte"].is_null());
  CHECK_FALSE(pairs["fits"][0].contains("algorithm"));
  CHECK(pairs["fastest"].empty());
  const Json& fours = document["algorithms"][1];
  CHECK(fours["fits"][2]["algorithm"] == "ring");
  CHECK(fours["fits"][2]["byte"]["time_s"].get<double>() == Approx(byte_of_ring));
  CHECK(fours["fastest"][0]["algorithm"] == "doubling");
}

}  // namespace shardsim
