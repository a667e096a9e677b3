// Costs corrected by curves: by hand, and what holds for all of them.
#include "sim/collectives/calibrated_cost.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

namespace shardsim {
namespace {

const CurveKey ring_key{Region::node, "all-reduce", "Ring"};

void holds(bool passed) { CHECK(passed); }

std::vector<Calibration> calibrated(std::vector<CurvePoint> points) {
  Calibration calibration;
  calibration.curves.emplace_back();
  calibration.curves[0].key = ring_key;
  calibration.curves[0].points = std::move(points);
  return {calibration};
}

// Launch and latency of a fixed time, a transfer in proportion to the size.
CostOfSize affine(double launch, double latency, double per_byte) {
  return [=](Bytes payload) {
    CostBreakdown cost;
    cost.algorithm = "Ring";
    cost.launch = Seconds(launch);
    cost.latency = Seconds(latency);
    cost.transfer = Seconds(per_byte * static_cast<double>(payload.count()));
    cost.curve = ring_key;
    return cost;
  };
}

double corrected(const CostOfSize& cost, const std::vector<Calibration>& calibrations,
                 double bytes) {
  const Bytes payload(std::llround(bytes));
  return calibrated_cost(cost, calibrations, /*least=*/0, payload).total().count();
}

CostOfSize arbitrary_cost() {
  const double launch = *rc::gen::inRange(1, 100'000) * 1e-9;
  const double latency = *rc::gen::inRange(0, 100'000) * 1e-9;
  const double per_byte = *rc::gen::inRange(1, 100'000) * 1e-15;
  return affine(launch, latency, per_byte);
}

std::vector<Calibration> arbitrary_calibration() {
  std::vector<CurvePoint> points;
  for (int power = *rc::gen::inRange(0, 30); power < 45; power += *rc::gen::inRange(1, 12)) {
    points.push_back({Bytes(std::int64_t{1} << power), *rc::gen::inRange(1, 10'000) * 1e-3});
  }
  return calibrated(std::move(points));
}

// From 1 B to 2^43, all scales alike.
Bytes arbitrary_size() {
  const std::int64_t power = std::int64_t{1} << *rc::gen::inRange(0, 43);
  return Bytes(*rc::gen::inRange<std::int64_t>(power, 2 * power + 1));
}

}  // namespace

// 50 us and 5 us a MiB are 90 us and 130 us at 8 and 16 MiB; 1.4 and 1.2 times that 126 us and
// 156 us; half way, at 8 MiB times the root of 2, their geometric mean.
TEST_CASE("the header's example") {
  const CostOfSize cost = affine(20e-6, 30e-6, 5e-6 / MiB);
  const auto curves = calibrated({{Bytes(8 * MiB), 1.4}, {Bytes(16 * MiB), 1.2}});
  CHECK(corrected(cost, curves, 8 * MiB) == Approx(126e-6));
  CHECK(corrected(cost, curves, 16 * MiB) == Approx(156e-6));
  const double between = corrected(cost, curves, std::sqrt(2.0) * 8 * MiB);
  CHECK(between == Approx(std::sqrt(126.0 * 156.0) * 1e-6));
  CHECK(between == Approx(140e-6).epsilon(0.005));
  // All terms are stretched alike, and the factor is told.
  const CostBreakdown eight = calibrated_cost(cost, curves, 0, Bytes(8 * MiB));
  CHECK(eight.factor == Approx(1.4));
  CHECK(eight.launch.count() == Approx(1.4 * 20e-6));
  CHECK(eight.latency.count() == Approx(1.4 * 30e-6));
  CHECK(eight.transfer.count() == Approx(1.4 * 40e-6));
}

TEST_CASE("a cost without a curve is as it is") {
  const CostOfSize cost = affine(20e-6, 30e-6, 5e-6 / MiB);
  CostOfSize elsewhere = [&](Bytes payload) {
    CostBreakdown result = cost(payload);
    result.curve->region = Region::nodes;
    return result;
  };
  CostOfSize unnamed = [&](Bytes payload) {
    CostBreakdown result = cost(payload);
    result.curve.reset();
    return result;
  };
  const auto curves = calibrated({{Bytes(8 * MiB), 1.4}});
  for (const auto& [of_size, list] :
       {std::pair{cost, std::vector<Calibration>{}}, {elsewhere, curves}, {unnamed, curves}}) {
    const CostBreakdown result = calibrated_cost(of_size, list, 0.8, Bytes(3 * MiB));
    CHECK(result.factor == 1);
    CHECK(result.total() == cost(Bytes(3 * MiB)).total());
  }
}

TEST_CASE("what stands in for what has not been measured is told") {
  const auto curves = calibrated({{Bytes(8 * MiB), 1.4}});
  const auto stand_in = [&](const CurveKey& key) {
    const CostOfSize cost = [&](Bytes payload) {
      CostBreakdown result = affine(20e-6, 30e-6, 5e-6 / MiB)(payload);
      result.curve = key;
      return result;
    };
    return calibrated_cost(cost, curves, 0.8, Bytes(MiB)).stand_in;
  };
  CHECK_FALSE(stand_in(ring_key).other_algorithm);
  CHECK(stand_in(ring_key).nodes == 0);
  CHECK(stand_in({Region::node, "all-reduce", "Tree"}).other_algorithm);
  CHECK(stand_in({Region::node, "all-gather", "Ring"}).other_algorithm);
  CHECK(stand_in({Region::node, "all-reduce", "Ring", 4}).nodes == 1);
}

// A nanosecond a byte, one size measured 8 times that: 2^20 B take 2^23 ns and the sizes after it
// 2^21, 2^22, ... The first two fall and become their median, in logarithms 22; the third is not
// less. Nothing else moves.
TEST_CASE("one outlier moves no point far away") {
  const CostOfSize cost = affine(0, 0, 1e-9);
  const auto curves =
      calibrated({{Bytes(8), 1}, {Bytes(512 * KiB), 1}, {Bytes(MiB), 8}, {Bytes(2 * MiB), 1}});
  const auto factor = [&](int power) {
    return calibrated_cost(cost, curves, 0, Bytes(std::int64_t{1} << power)).factor;
  };
  for (int power = 3; power <= 43; ++power) {
    CAPTURE(power);
    CHECK(factor(power) == Approx(power == 20 ? 4 : power == 21 ? 2 : 1));
  }
}

// Below 1 MiB 4 ms, from there on a nanosecond a byte, as measured: 1.05 ms. What is modelled of
// smaller sizes does not change what has been measured, but takes no longer than it.
TEST_CASE("what has not been measured moves no point that has") {
  const CostOfSize cost = [](Bytes payload) {
    return payload < Bytes(MiB) ? affine(4e-3, 0, 1e-12)(payload) : affine(0, 0, 1e-9)(payload);
  };
  const auto curves = calibrated({{Bytes(MiB), 1}});
  for (const double bytes : {8.0, 4.0 * KiB, 256.0 * KiB, 512.0 * KiB, 1.0 * MiB}) {
    CAPTURE(bytes);
    CHECK(corrected(cost, curves, bytes) == Approx(MiB * 1e-9));
  }
  CHECK(corrected(cost, curves, 2 * MiB) == Approx(2 * MiB * 1e-9));
}

// The curve's group has 40 us of latency and 5 us a MiB, ours 10 us and 10 us a MiB: at 1 MiB as
// much transfer as latency, which the curve's has at 8 MiB.
TEST_CASE("the factor is that of the size at which the measured group has as long pieces") {
  auto curves = calibrated({{Bytes(MiB), 3}, {Bytes(8 * MiB), 2}, {Bytes(64 * MiB), 1}});
  curves[0].curves[0].key.region = Region::nodes;
  curves[0].curves[0].key.nodes = 4;
  curves[0].curves[0].members_per_node = 8;
  CostOfSize ours = affine(0, 10e-6, 10e-6 / MiB);
  const CostOfSize over_nodes = [&](Bytes payload) {
    CostBreakdown cost = ours(payload);
    cost.curve = curves[0].curves[0].key;
    return cost;
  };
  const CostWithMembers measured = [](std::int64_t members) {
    CHECK(members == 8);
    return std::optional(affine(0, 40e-6, 5e-6 / MiB));
  };
  const auto factor = [&](std::int64_t mebibytes, const CostWithMembers& with_members) {
    return calibrated_cost(over_nodes, curves, 0, Bytes(mebibytes * MiB), with_members).factor;
  };
  CHECK(factor(1, measured) == Approx(2));
  CHECK(factor(8, measured) == Approx(1));
  // Without such a group, and where it is not known, the size is what it is.
  CHECK(factor(1, {}) == Approx(3));
  CHECK(factor(8, [](std::int64_t) { return std::nullopt; }) == Approx(2));
  curves[0].curves[0].members_per_node = 0;
  CHECK(factor(8, measured) == Approx(2));
}

TEST_CASE("what is asked for never falls as sizes grow") {
  holds(rc::check("a larger size takes no less time", [] {
    const CostOfSize cost = arbitrary_cost();
    const auto curves = arbitrary_calibration();
    const double least = *rc::gen::inRange(0, 11) * 0.1;
    const auto [smaller, larger] = std::minmax({arbitrary_size(), arbitrary_size()});
    const auto time = [&](Bytes payload) {
      return calibrated_cost(cost, curves, least, payload).total().count();
    };
    RC_ASSERT(time(smaller) <= time(larger) * (1 + 1e-12));
  }));
}

// Half of what is modelled, links at 0.8 of their bandwidth. 1 KiB: 51 us, of them 1 in links: half
// is possible. 1 GiB: 1.074 s in links, which at full speed take 0.8 of that, not half.
TEST_CASE("calls may be faster than modelled, links not beyond their bandwidth") {
  const CostOfSize cost = affine(50e-6, 0, 1e-9);
  const auto curves = calibrated({{Bytes(8), 0.5}});
  const auto time = [&](std::int64_t bytes) {
    return calibrated_cost(cost, curves, /*least=*/0.8, Bytes(bytes)).total().count();
  };
  CHECK(time(KiB) == Approx(0.5 * (50e-6 + KiB * 1e-9)));
  CHECK(time(GiB) == Approx(0.8 * GiB * 1e-9));
}

// The last of a pool is never above its median: what is pooled takes as long as its largest must.
TEST_CASE("at no power of two do links carry more than their full bandwidth") {
  holds(rc::check("time >= least * transfer", [] {
    const CostOfSize cost = arbitrary_cost();
    const auto curves = arbitrary_calibration();
    const double least = *rc::gen::inRange(1, 11) * 0.1;
    for (int power = 0; power <= 45; ++power) {
      const Bytes payload(std::int64_t{1} << power);
      const CostBreakdown modelled = cost(payload);
      const double time = calibrated_cost(cost, curves, least, payload).total().count();
      RC_ASSERT(time >= least * modelled.transfer.count() * (1 - 1e-12));
    }
  }));
}

// What reports print as the factor is what the terms were multiplied with.
TEST_CASE("the factor is the time over what is modelled") {
  holds(rc::check("total == factor * modelled", [] {
    const CostOfSize cost = arbitrary_cost();
    const auto curves = arbitrary_calibration();
    const Bytes payload = arbitrary_size();
    const CostBreakdown result = calibrated_cost(cost, curves, 0, payload);
    const double expected = result.factor * cost(payload).total().count();
    RC_ASSERT(std::abs(result.total().count() - expected) <= 1e-12 * expected);
  }));
}

}  // namespace shardsim
