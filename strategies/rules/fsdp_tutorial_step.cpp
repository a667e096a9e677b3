#include "strategies/rules/fsdp_tutorial_step.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <numeric>

#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

// Characters, not bytes, as Python counts them.
std::size_t length_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

// str.center: an odd rest goes left when the width is odd, else right.
std::string centred(const std::string& text, std::size_t width) {
  const std::size_t rest = width - length_of(text);
  const std::size_t left = rest / 2 + (rest & width & 1U);
  return std::string(left, '=') + text + std::string(rest - left, '=');
}

std::string quotient_text(double sum, double count) {
  const double value = sum / count;
  return std::isnan(value) ? "nan" : fmt::format("{:.6f}", value);
}

}  // namespace

StepCollectives step_collectives(const ParameterTree& tree, const Mesh& mesh,
                                 const FsdpTutorial& options, const SyncAxes& sync_axes,
                                 std::int64_t minibatches, std::int64_t metric_scalars,
                                 const Place& place) {
  const std::int64_t size = axis_size(options.axis, mesh, place);
  StepCollectives step;
  step.minibatches = minibatches;
  step.metric_psums = metric_scalars;
  for (const ParameterLeaf& leaf : tree.leaves) {
    if (!leaf.has_shape) continue;
    const ShardedParameter sharded = after_sharding(leaf, options, mesh, place);
    const BoxedArray local = before_sharding(leaf, options, mesh);
    const Bytes bytes =
        size_of(leaf.dtype) * std::accumulate(local.shape.begin(), local.shape.end(),
                                              std::int64_t{1}, std::multiplies<>());
    const bool is_gathered = sharded.outcome == ShardOutcome::sharded;
    if (is_gathered) {
      ++step.all_gathers;
      step.gathered += bytes;
    }
    if (sync_gradients(sharded.array.names, sync_axes, place).empty()) continue;
    ++step.pmeans;
    step.averaged += Bytes(bytes.count() / (is_gathered ? size : 1));
  }
  return step;
}

std::vector<double> pmean(const DeviceValues& values) {
  assert(!values.empty());
  std::vector<double> mean(values[0].size(), 0.0);
  for (const std::vector<double>& row : values) {
    std::transform(mean.begin(), mean.end(), row.begin(), mean.begin(), std::plus<>());
  }
  const auto devices = static_cast<double>(values.size());
  std::transform(mean.begin(), mean.end(), mean.begin(), [&](double sum) { return sum / devices; });
  return mean;
}

DeviceValues mean_scatter(const DeviceValues& values, const std::vector<std::int64_t>& shape,
                          std::size_t dimension, const Place& place) {
  const std::size_t devices = values.size();
  const auto size = static_cast<std::size_t>(shape.at(dimension));
  if (size % devices != 0) {
    throw RuleError("ValueError", place,
                    fmt::format("dimension {} of [{}] cannot be scattered over {} devices",
                                dimension, fmt::join(shape, ", "), devices));
  }
  const auto inner = static_cast<std::size_t>(
      std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(dimension) + 1, shape.end(),
                      std::int64_t{1}, std::multiplies<>()));
  const std::vector<double> mean = pmean(values);
  const std::size_t chunk = size / devices * inner;
  DeviceValues shards(devices);
  for (std::size_t start = 0; start < mean.size(); start += chunk) {
    std::vector<double>& shard = shards[start / chunk % devices];
    const auto from = mean.begin() + static_cast<std::ptrdiff_t>(start);
    shard.insert(shard.end(), from, from + static_cast<std::ptrdiff_t>(chunk));
  }
  return shards;
}

AccumulatedBatch accumulate_gradients(const std::vector<double>& losses, std::int64_t minibatches,
                                      const Place& place) {
  if (minibatches == 0) {
    throw RuleError("ZeroDivisionError", place, "a batch has at least one minibatch");
  }
  AccumulatedBatch batch;
  const auto examples = static_cast<std::int64_t>(losses.size());
  batch.minibatch = examples / minibatches;
  batch.metric_count = batch.minibatch * minibatches;
  batch.dropped = examples - batch.metric_count;
  batch.metric_sum = std::accumulate(
      losses.begin(), losses.end() - static_cast<std::ptrdiff_t>(batch.dropped), 0.0);
  // Minibatches are equally large: the mean of their means is the mean of their examples.
  if (batch.metric_count > 0) {
    batch.loss = batch.metric_sum / static_cast<double>(batch.metric_count);
  }
  return batch;
}

std::string metrics_text(const std::map<std::string, std::pair<double, double>>& metrics,
                         const std::string& title) {
  std::vector<std::string> lines;
  std::size_t width = 0;
  for (const auto& [name, value] : metrics) {
    lines.push_back(fmt::format("{}: {}", name, quotient_text(value.first, value.second)));
    width = std::max(width, length_of(lines.back()));
  }
  if (!title.empty()) {
    const std::string spaced = fmt::format(" {} ", title);
    lines.insert(lines.begin(), centred(spaced, std::max(width, length_of(spaced))));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace shardsim
