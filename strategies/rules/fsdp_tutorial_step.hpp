// A training step of the FSDP tutorial (fsdp_tutorial.hpp): its collectives, and the arithmetic of
// its gradients and metrics.
//
//   each minibatch   every sharded parameter: all-gather forward, psum-scatter backward
//   once a step      every parameter whole along an axis: pmean of its gradient, after accumulation
//                    every metric: psum of its sum and of its count
//
// Example: kernels [784, 512], [512, 10] and biases [512], [10] over data=8 with min_weight_size 16
// and 4 minibatches: 3 sharded parameters, 12 all-gathers, 12 psum-scatters, 1 pmean (of 10
// numbers), 4 psums for loss and accuracy.
//
// A module may run twice and gather twice, and XLA may merge the gathers of a loop that it unrolls;
// neither is counted.
//
// Source: phlippe/uvadlc_notebooks scaling/JAX/data_parallel.py, single_gpu.py at 0da8037.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "strategies/rules/fsdp_tutorial.hpp"

namespace shardsim {

// The tutorial's metrics, loss and accuracy, are each a pair of sum and count.
inline constexpr std::int64_t tutorial_metric_scalars = 4;

struct StepCollectives {
  std::int64_t minibatches = 1;
  std::int64_t all_gathers = 0;   // per minibatch; as many psum-scatters
  std::int64_t pmeans = 0;        // per step
  std::int64_t metric_psums = 0;  // per step
  Bytes gathered{0};              // per minibatch, what the all-gathers return
  Bytes averaged{0};              // per step, what the pmeans return on one device
};

// `sync_axes` are those given to sync_gradients.
[[nodiscard]] StepCollectives step_collectives(const ParameterTree& tree, const Mesh& mesh,
                                               const FsdpTutorial& options,
                                               const SyncAxes& sync_axes, std::int64_t minibatches,
                                               std::int64_t metric_scalars, const Place& place);

// Rows of numbers of `shape`, one row for each device.
using DeviceValues = std::vector<std::vector<double>>;

// The mean over the devices: what pmean leaves on each of them.
[[nodiscard]] std::vector<double> pmean(const DeviceValues& values);
// The gradient of gather_array_with_mean_grads: device i of n keeps chunk i of the mean along
// `dimension`. Throws RuleError (ValueError) when n does not divide it.
[[nodiscard]] DeviceValues mean_scatter(const DeviceValues& values,
                                        const std::vector<std::int64_t>& shape,
                                        std::size_t dimension, const Place& place);

struct AccumulatedBatch {
  std::int64_t minibatch = 0;  // examples in each
  std::int64_t dropped = 0;    // examples at the end that no minibatch holds
  std::optional<double> loss;  // mean of the minibatches' means; none when they are empty (NaN)
  double metric_sum = 0;
  std::int64_t metric_count = 0;
};

// accumulate_gradients with a loss for every example. Throws RuleError (ZeroDivisionError) for no
// minibatches.
[[nodiscard]] AccumulatedBatch accumulate_gradients(const std::vector<double>& losses,
                                                    std::int64_t minibatches, const Place& place);

// print_metrics: "loss: 0.003343" a line, ordered by name as jax orders dictionaries, below the
// title if it is not empty, centred among "=".
[[nodiscard]] std::string metrics_text(
    const std::map<std::string, std::pair<double, double>>& metrics, const std::string& title);

}  // namespace shardsim
