#include "strategies/compile/parameter_reasons.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"
#include "strategies/compile/reason_words.hpp"

namespace shardsim {
namespace {

std::string_view pass_of(Phase phase) { return phase == Phase::forward ? "forward" : "backward"; }

}  // namespace

ParameterReasons::ParameterReasons(const SpmdBuilder& builder, const Layout& layout,
                                   const Runtime& runtime, const Step& step)
    : builder_(builder),
      layout_(layout),
      runtime_(runtime),
      gradient_dtype_(step.optimizer.gradients),
      microbatches_(step.microbatches),
      trains_(has_backward(builder.workload())) {
  for (const ParameterLayout& a : layout.parameters) by_tensor_[a.tensor] = &a;
  for (const Tensor& tensor : builder.workload().tensors) {
    if (tensor.role == TensorRole::optimizer_state) states_[tensor.primal].push_back(tensor.dtype);
  }
}

std::string ParameterReasons::assigned_by(const std::vector<TensorId>& parameters,
                                          const AxisList& axes) const {
  std::vector<std::string> by;
  for (const TensorId parameter : parameters) {
    const ParameterLayout& a = layout_of(parameter);
    if (is_within(axes, split_axes(a.stored))) add_once(by, a.assigned_by);
  }
  return by.empty() ? "" : fmt::format(" ({})", fmt::join(by, "; "));
}

std::string ParameterReasons::names_of(const std::vector<TensorId>& parameters) const {
  std::vector<std::string> names;
  for (const TensorId parameter : parameters) add_once(names, builder_.tensor(parameter).name);
  return listed(std::move(names));
}

std::string ParameterReasons::splits_inputs(const AxisList& axes) const {
  bool sequence = false;
  bool batch = false;
  for (const AxisRef& axis : axes) {
    (overlaps_any(axis, layout_.sequence_axes) ? sequence : batch) = true;
  }
  return fmt::format("{} {} the {}", builder_.names(axes), splits(axes),
                     batch && sequence ? "batch and the sequence"
                     : sequence        ? "sequence"
                                       : "batch");
}

Bytes ParameterReasons::price_without(const std::vector<TensorId>& parameters,
                                      const AxisList& axes) const {
  Bytes more{0};
  for (const TensorId parameter : parameters) {
    const ParameterLayout& a = layout_of(parameter);
    const auto freed = [&](const Sharding& sharding) {
      return shard_elements(a.shape, without(sharding, axes)) - shard_elements(a.shape, sharding);
    };
    Bytes own = freed(a.stored) * size_of(layout_.stored_dtype);
    // ZeRO shards them over the batch axes whatever the parameter's spec says.
    const bool trains = trains_ && builder_.tensor(parameter).trained;
    if (trains && layout_.zero_stage < 2) own += freed(a.gradient) * size_of(gradient_dtype_);
    const auto states = states_.find(parameter);
    if (layout_.zero_stage < 1 && states != states_.end()) {
      for (const DType dtype : states->second) own += freed(a.optimizer) * size_of(dtype);
    }
    more += a.instances() * own;
  }
  return more;
}

Bytes ParameterReasons::gathered_bytes(const std::vector<TensorId>& parameters) const {
  Bytes bytes{0};
  for (const TensorId parameter : parameters) {
    const ParameterLayout& a = layout_of(parameter);
    bytes += a.instances() * shard_elements(a.shape, a.compute) *
             size_of(builder_.tensor(parameter).dtype);
  }
  return bytes;
}

Words ParameterReasons::words(const UnitGathered& fact, const Collective& call) const {
  const auto& [unit, parameters, is_root, from_slices, phase] = fact;
  const AxisList& axes = call.axes;
  if (from_slices) return slices_gathered(fact, axes);
  Words words;
  words.reason = fmt::format(
      "parameters of {} are stored over {}{} and read whole in the {} pass, as {}", unit,
      builder_.names(axes), assigned_by(parameters, axes), pass_of(phase), splits_inputs(axes));
  if (phase != Phase::forward) {
    words.remedy = fmt::format(
        "\"{}\": false keeps what the forward pass gathered: {} more on a "
        "device; or ",
        is_root ? "reshard_root_after_forward" : "reshard_after_forward",
        format_bytes(gathered_bytes(parameters)));
  }
  words.remedy +=
      fmt::format("take {} off their specs: a device holds {} more{}{}", builder_.names(axes),
                  format_bytes(price_without(parameters, axes)),
                  trains_ ? " (with gradients and optimizer state)" : "",
                  trains_ && layout_.zero_stage < 2 ? ", and their gradients are all-reduced" : "");
  return words;
}

Words ParameterReasons::slices_gathered(const UnitGathered& fact, const AxisList& axes) const {
  const Bytes gathered = gathered_bytes(fact.parameters);
  const Bytes more = gathered - Bytes(gathered.count() / runtime_.gathers.slices->over);
  return {
      fmt::format("parameters of {} are kept in slices over {} after the forward pass "
                  "(\"reshard_after_forward\": {}) and read whole in the backward pass, as {}",
                  fact.unit, builder_.names(axes), runtime_.gathers.slices->over,
                  splits_inputs(axes)),
      fmt::format("\"reshard_after_forward\": false keeps all that the forward pass gathered: {} "
                  "more on a device",
                  format_bytes(more))};
}

Words ParameterReasons::words(const GradientsReduced& fact, const Collective& call) const {
  const auto& [unit, parameters] = fact;
  const std::string over = builder_.names(call.axes);
  const bool scatters = call.kind == CollectiveKind::reduce_scatter;
  Words words;
  if (!scatters && call.kind != CollectiveKind::all_reduce) {
    words.reason =
        fmt::format("gradients of {} are made split over {}, their parameters are not", unit, over);
    return words;
  }
  const bool of_data = is_within(call.axes, layout_.data_axes);
  words.reason = fmt::format(
      "gradients of {} are partial sums over {}, as {}", unit, over,
      of_data ? splits_inputs(call.axes)
              : fmt::format("{} {} what they are summed over", over, splits(call.axes)));
  if (scatters) {
    const std::string by = assigned_by(parameters, call.axes);
    words.reason +=
        fmt::format("; they are kept in shards{}",
                    by.empty() ? fmt::format(" (\"zero_stage\": {})", layout_.zero_stage) : by);
  }
  if (!of_data) return words;
  const ReduceEachMicrobatch each = runtime_.reductions.each_microbatch;
  const bool repeats = microbatches_ > 1 && (each == ReduceEachMicrobatch::all ||
                                             (each == ReduceEachMicrobatch::shards && scatters));
  if (repeats) {
    words.remedy = fmt::format(
        "\"reduce_each_microbatch\": \"none\" adds up the microbatches first: one reduction for "
        "all {}, of sums that every device keeps whole until then; otherwise ",
        microbatches_);
  }
  words.remedy += fmt::format(
      "none while {}: every device sees other tokens, and a step needs the "
      "sum over all",
      splits_inputs(call.axes));
  return words;
}

Words ParameterReasons::words(const OptimizerReads& fact, const Collective& call) const {
  return {fmt::format("the optimizer keeps its state of {} over {}, as its gradient is not",
                      builder_.tensor(fact.parameter).name, builder_.names(call.axes)),
          ""};
}

Words ParameterReasons::words(const UnitUpdated& fact, const Collective& call) const {
  const auto& [unit, parameters] = fact;
  Bytes states{0};
  Bytes gradients{0};
  for (const TensorId parameter : parameters) {
    const ParameterLayout& a = layout_of(parameter);
    const auto more = [&](const Sharding& now) {
      return a.instances() * (shard_elements(a.shape, a.stored) - shard_elements(a.shape, now));
    };
    gradients += more(a.gradient) * size_of(gradient_dtype_);
    const auto found = states_.find(parameter);
    if (found == states_.end()) continue;
    for (const DType dtype : found->second) states += more(a.optimizer) * size_of(dtype);
  }
  Words words;
  words.reason = fmt::format(
      "\"zero_stage\": {}: each device updates its shard over {} of the "
      "parameters of {}, which are stored whole",
      layout_.zero_stage, builder_.names(call.axes), unit);
  words.remedy = fmt::format(
      "\"zero_stage\": 0: a device holds {} more optimizer state{}", format_bytes(states),
      gradients > Bytes{0}
          ? fmt::format(" and {} more gradients, which are all-reduced", format_bytes(gradients))
          : "");
  return words;
}

Words ParameterReasons::words(const SharedAddedUp& fact, const Collective&) const {
  const std::string& name = builder_.tensor(fact.parameter).name;
  return {fmt::format(
              "{} is in the first and in the last stage: the gradients of both are added up", name),
          "\"tie_word_embeddings\": false in the model unties them"};
}

Words ParameterReasons::words(const LossAveraged&, const Collective& call) const {
  return {fmt::format("\"reduce_loss\": the loss is averaged over {}", builder_.names(call.axes)),
          "\"reduce_loss\": false leaves each device its own loss"};
}

Words ParameterReasons::words(const MetricSummed& fact, const Collective& call) const {
  return {fmt::format("metric {} is summed over {}", fact.metric, builder_.names(call.axes)),
          fmt::format("leave {} out of \"workload.metrics\"", fact.metric)};
}

}  // namespace shardsim
