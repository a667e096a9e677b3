// Laws that hold for every collective on every machine: whatever prices them.
#include <rapidcheck.h>
#include <algorithm>
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "experiments/collective_experiment.hpp"
#include "sim/collectives/bus_bandwidth.hpp"

namespace shardsim {
namespace {

// Calibrated times are powers of two of interpolated logarithms.
constexpr double rounding = 1 + 1e-9;

void holds(bool passed) { CHECK(passed); }

struct Group {
  const char* machine;
  std::int64_t devices;
  std::int64_t nodes;  // 0: not said
};

CollectiveExperiment arbitrary() {
  const Group group =
      *rc::gen::element(Group{"dgx-h100", 2, 0}, Group{"dgx-h100", 8, 0}, Group{"dgx-h100", 32, 0},
                        Group{"dgx-h100", 10, 10}, Group{"dgx-h100", 6, 2}, Group{"dgx-a100", 5, 0},
                        Group{"dgx-a100", 64, 0}, Group{"dgx-a100", 16, 4}, Group{"tpu-v5e", 16, 0},
                        Group{"tpu-v5e", 256, 0}, Group{"tpu-v5p", 64, 0}, Group{"tpu-v4", 8, 0});
  CollectiveExperiment experiment;
  experiment.machine = group.machine;
  experiment.devices = group.devices;
  if (group.nodes > 0) experiment.nodes = group.nodes;
  experiment.kind = static_cast<CollectiveKind>(*rc::gen::inRange(0, 5));
  for (int i = 0; i < 8; ++i) {
    experiment.sizes.emplace_back(*rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 36));
  }
  std::sort(experiment.sizes.begin(), experiment.sizes.end());
  return experiment;
}

// What a device can send at once: into its node, or all its links of a torus both ways. The
// profile's peak, not what a ring achieves of it.
double link_rate(const Profile& profile) {
  if (const auto* cluster = std::get_if<ClusterProfile>(&profile.network)) {
    return cluster->scale_up.bandwidth.value.count();
  }
  const auto& torus = std::get<TorusProfile>(profile.network);
  return 2 * torus.dimensions * torus.link.bandwidth.value.count();
}

}  // namespace

TEST_CASE("a larger collective never takes less time") {
  holds(rc::check("monotone", [] {
    const CollectivePrediction prediction = predict_collective(arbitrary());
    for (std::size_t i = 1; i < prediction.points.size(); ++i) {
      RC_ASSERT(prediction.points[i - 1].cost.total() <= prediction.points[i].cost.total());
    }
  }));
}

// In switches that add up, each device sends its payload once and receives the sum: the algorithm
// bandwidth counts. Rings send nearly twice as much, the bus bandwidth.
TEST_CASE("no device receives faster than its links carry") {
  holds(rc::check("bus bandwidth", [] {
    const CollectivePrediction prediction = predict_collective(arbitrary());
    const CollectiveExperiment& experiment = prediction.experiment;
    for (const CollectivePoint& point : prediction.points) {
      const Bandwidth rate =
          point.cost.algorithm.starts_with("NVLS")
              ? algorithm_bandwidth(point.bytes, point.cost.total())
              : bus_bandwidth(experiment.kind, experiment.devices, point.bytes, point.cost.total());
      RC_ASSERT(rate.count() > 0);
      RC_ASSERT(rate.count() <= link_rate(prediction.machine.profile) * rounding);
    }
  }));
}

TEST_CASE("across nodes no more than the NICs carry") {
  holds(rc::check("bus bandwidth across", [] {
    const CollectivePrediction prediction = predict_collective(arbitrary());
    const CollectiveExperiment& experiment = prediction.experiment;
    RC_PRE(prediction.nodes > 1);
    // A permute leaves each node by one NIC; an all-to-all stays inside for a part of it.
    RC_PRE(experiment.kind != CollectiveKind::collective_permute &&
           experiment.kind != CollectiveKind::all_to_all);
    const auto& cluster = std::get<ClusterProfile>(prediction.machine.profile.network);
    const std::int64_t on_each = experiment.devices / prediction.nodes;
    const auto nics = static_cast<double>(on_each);
    for (const CollectivePoint& point : prediction.points) {
      // Trees of two nodes send the payload once each way, rings nearly twice.
      const bool is_pair_of_trees = point.cost.algorithm.ends_with("Tree") && prediction.nodes == 2;
      const Bandwidth rate = is_pair_of_trees ? algorithm_bandwidth(point.bytes, point.cost.total())
                                              : bus_bandwidth(experiment.kind, experiment.devices,
                                                              point.bytes, point.cost.total());
      RC_ASSERT(rate.count() <= nics * cluster.scale_out->bandwidth.value.count() * rounding);
    }
  }));
}

TEST_CASE("the same experiment gives the same prediction, and its terms add up") {
  holds(rc::check("deterministic", [] {
    const CollectiveExperiment experiment = arbitrary();
    const CollectivePrediction one = predict_collective(experiment);
    const CollectivePrediction two = predict_collective(experiment);
    for (std::size_t i = 0; i < one.points.size(); ++i) {
      const CostBreakdown& cost = one.points[i].cost;
      RC_ASSERT(cost.total() == two.points[i].cost.total());
      RC_ASSERT(cost.launch + cost.latency + cost.transfer == cost.total());
      RC_ASSERT(cost.transfer > Seconds(0));
    }
  }));
}

}  // namespace shardsim
