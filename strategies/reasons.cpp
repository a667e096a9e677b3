#include "strategies/reasons.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"

namespace shardsim {
namespace {

constexpr std::size_t names_shown = 4;

bool is_within(const AxisList& axes, const AxisList& all) {
  return std::all_of(axes.begin(), axes.end(),
                     [&](const AxisRef& axis) { return overlaps_any(axis, all); });
}

// "a, b and 3 more"
std::string listed(std::vector<std::string> names) {
  const std::size_t count = names.size();
  if (count > names_shown) {
    names.resize(names_shown - 1);
    return fmt::format("{} and {} more", fmt::join(names, ", "), count - names.size());
  }
  if (count < 2) return count == 0 ? "" : names.front();
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::string who(const Op& op) { return fmt::format("{} ({})", op.name, op.function); }

std::string_view pass_of(Phase phase) { return phase == Phase::forward ? "forward" : "backward"; }

std::string_view splits(const AxisList& axes) { return axes.size() == 1 ? "splits" : "split"; }

}  // namespace

Reasons::Reasons(const SpmdBuilder& builder, const Assignment& assignment,
                 const StrategyOptions& strategy, const OptimizerOptions& optimizer)
    : builder_(builder),
      all_(assignment),
      strategy_(strategy),
      stored_dtype_(optimizer.parameters),
      gradient_dtype_(optimizer.gradients),
      trains_(has_backward(builder.workload())) {
  for (const ParameterAssignment& a : assignment.parameters) by_tensor_[a.tensor] = &a;
  for (const Tensor& tensor : builder.workload().tensors) {
    if (tensor.role == TensorRole::optimizer_state) states_[tensor.primal].push_back(tensor.dtype);
  }
  for (const Block& block : builder.workload().blocks) {
    for (const auto* ops : {&block.forward, &block.backward}) {
      for (const Op& op : *ops) {
        for (const Operand& result : op.results) makers_.try_emplace(result.tensor, &op);
      }
    }
  }
}

const std::string& Reasons::label_name(LabelId label) const {
  return builder_.workload().labels[static_cast<std::size_t>(label)].name;
}

std::string Reasons::assigned_by(const std::vector<TensorId>& parameters,
                                 const AxisList& axes) const {
  std::vector<std::string> by;
  for (const TensorId parameter : parameters) {
    const ParameterAssignment& a = assignment(parameter);
    if (is_within(axes, split_axes(a.stored))) add_once(by, a.assigned_by);
  }
  return by.empty() ? "" : fmt::format(" ({})", fmt::join(by, "; "));
}

std::string Reasons::names_of(const std::vector<TensorId>& parameters) const {
  std::vector<std::string> names;
  for (const TensorId parameter : parameters) add_once(names, builder_.tensor(parameter).name);
  return listed(std::move(names));
}

bool Reasons::is_model_axis(const AxisList& axes) const {
  return strategy_.splits_model() && axes.size() == 1 &&
         builder_.mesh().names_of(axes).front() == strategy_.model_axis;
}

std::string Reasons::splits_inputs(const AxisList& axes) const {
  bool sequence = false;
  bool batch = false;
  for (const std::string& name : builder_.mesh().names_of(axes)) {
    const auto& along = strategy_.sequence_axes;
    (std::find(along.begin(), along.end(), name) != along.end() ? sequence : batch) = true;
  }
  return fmt::format("{} {} the {}", builder_.names(axes), splits(axes),
                     batch && sequence ? "batch and the sequence"
                     : sequence        ? "sequence"
                                       : "batch");
}

Bytes Reasons::price_without(const std::vector<TensorId>& parameters, const AxisList& axes) const {
  Bytes more{0};
  for (const TensorId parameter : parameters) {
    const ParameterAssignment& a = assignment(parameter);
    const auto freed = [&](const Sharding& sharding) {
      return shard_elements(a.shape, without(sharding, axes)) - shard_elements(a.shape, sharding);
    };
    Bytes own = freed(a.stored) * size_of(stored_dtype_);
    // ZeRO shards them over the batch axes whatever the parameter's spec says.
    if (trains_ && strategy_.zero_stage < 2) own += freed(a.gradient) * size_of(gradient_dtype_);
    const auto states = states_.find(parameter);
    if (strategy_.zero_stage < 1 && states != states_.end()) {
      for (const DType dtype : states->second) own += freed(a.optimizer) * size_of(dtype);
    }
    more += a.instances * own;
  }
  return more;
}

Bytes Reasons::gathered_bytes(const std::vector<TensorId>& parameters) const {
  Bytes bytes{0};
  for (const TensorId parameter : parameters) {
    const ParameterAssignment& a = assignment(parameter);
    bytes += a.instances * shard_elements(a.shape, a.compute) *
             size_of(builder_.tensor(parameter).dtype);
  }
  return bytes;
}

Words Reasons::gather(const std::string& unit, bool is_root,
                      const std::vector<TensorId>& parameters, Phase phase,
                      const AxisList& axes) const {
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
  words.remedy += fmt::format(
      "take {} off their specs: a device holds {} more{}{}", builder_.names(axes),
      format_bytes(price_without(parameters, axes)),
      trains_ ? " (with gradients and optimizer state)" : "",
      trains_ && strategy_.zero_stage < 2 ? ", and their gradients are all-reduced" : "");
  return words;
}

Words Reasons::gather_slices(const std::string& unit, const std::vector<TensorId>& parameters,
                             const AxisList& axes) const {
  const Bytes gathered = gathered_bytes(parameters);
  const Bytes more = gathered - Bytes(gathered.count() / strategy_.kept_over);
  return {
      fmt::format("parameters of {} are kept in slices over {} after the forward pass "
                  "(\"reshard_after_forward\": {}) and read whole in the backward pass, as {}",
                  unit, builder_.names(axes), strategy_.kept_over, splits_inputs(axes)),
      fmt::format("\"reshard_after_forward\": false keeps all that the forward pass gathered: {} "
                  "more on a device",
                  format_bytes(more))};
}

Words Reasons::reduce(const std::string& unit, const std::vector<TensorId>& parameters,
                      const ReshardStep& step) const {
  const std::string over = builder_.names(step.axes);
  const bool scatters = step.kind == CollectiveKind::reduce_scatter;
  Words words;
  if (!scatters && step.kind != CollectiveKind::all_reduce) {
    words.reason =
        fmt::format("gradients of {} are made split over {}, their parameters are not", unit, over);
    return words;
  }
  const bool of_data = is_within(step.axes, all_.data_axes);
  words.reason = fmt::format(
      "gradients of {} are partial sums over {}, as {}", unit, over,
      of_data ? splits_inputs(step.axes)
              : fmt::format("{} {} what they are summed over", over, splits(step.axes)));
  if (scatters) {
    const std::string by = assigned_by(parameters, step.axes);
    words.reason +=
        fmt::format("; they are kept in shards{}",
                    by.empty() ? fmt::format(" (\"zero_stage\": {})", strategy_.zero_stage) : by);
  }
  if (!of_data) return words;
  const ReduceEachMicrobatch each = strategy_.reduce_each_microbatch;
  const bool repeats =
      builder_.workload().microbatches > 1 &&
      (each == ReduceEachMicrobatch::all || (each == ReduceEachMicrobatch::shards && scatters));
  if (repeats) {
    words.remedy = fmt::format(
        "\"reduce_each_microbatch\": \"none\" adds up the microbatches first: one reduction for "
        "all {}, of sums that every device keeps whole until then; otherwise ",
        builder_.workload().microbatches);
  }
  words.remedy += fmt::format(
      "none while {}: every device sees other tokens, and a step needs the "
      "sum over all",
      splits_inputs(step.axes));
  return words;
}

Words Reasons::updated(const std::string& unit, const std::vector<TensorId>& parameters,
                       const AxisList& axes) const {
  Bytes states{0};
  Bytes gradients{0};
  for (const TensorId parameter : parameters) {
    const ParameterAssignment& a = assignment(parameter);
    const auto more = [&](const Sharding& now) {
      return a.instances * (shard_elements(a.shape, a.stored) - shard_elements(a.shape, now));
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
      strategy_.zero_stage, builder_.names(axes), unit);
  words.remedy = fmt::format(
      "\"zero_stage\": 0: a device holds {} more optimizer state{}", format_bytes(states),
      gradients > Bytes{0}
          ? fmt::format(" and {} more gradients, which are all-reduced", format_bytes(gradients))
          : "");
  return words;
}

std::string Reasons::sequence_parallel_off(const Value& value, const AxisList& axes) const {
  if (!strategy_.sequence_parallel || !is_model_axis(axes)) return "";
  const std::int64_t elements =
      shard_elements(builder_.shape(value.tensor), without(value.sharding, axes));
  return fmt::format(
      "\"sequence_parallel\": false: an all-reduce in place of a reduce-scatter and "
      "an all-gather, together as many bytes; between blocks a device holds {} "
      "instead of {} of each activation like this",
      format_bytes(elements * size_of(value.dtype)), format_bytes(value.bytes));
}

std::string Reasons::sequence_axes_off(const AxisList& axes) const {
  for (const std::string& name : builder_.mesh().names_of(axes)) {
    const auto& along = strategy_.sequence_axes;
    if (std::find(along.begin(), along.end(), name) == along.end()) return "";
  }
  return fmt::format(
      "take {} off \"sequence_axes\": every device then computes and keeps {} times "
      "the tokens",
      builder_.names(axes), Mesh::size_of(axes));
}

Words Reasons::input(const Value& entering, const Sharding& read) const {
  return {fmt::format("{} enters as {}, its batch over the whole mesh, and is read as {} "
                      "(\"inputs_split_mapping\")",
                      entering.name, to_string(entering.sharding, builder_.mesh()),
                      to_string(read, builder_.mesh())),
          "\"batch_axes\" and no \"inputs_split_mapping\": inputs then enter as they are read"};
}

Words Reasons::output(TensorId tensor, const AxisList& axes) const {
  return {fmt::format("{} leaves the step whole on every device of {} (\"outputs\": \"whole\")",
                      builder_.tensor(tensor).name, builder_.names(axes)),
          "\"outputs\": \"as_made\" leaves each device its part"};
}

Words Reasons::read(const Op& op, const Value& home, const Sharding& needed,
                    const AxisList& axes) const {
  Words words;
  words.reason =
      fmt::format("{} needs {} as {}, which lies as {}", who(op), home.name,
                  to_string(needed, builder_.mesh()), to_string(home.sharding, builder_.mesh()));
  std::vector<std::string> whole;
  for (const LabelId label : op.whole) add_once(whole, label_name(label));
  if (!whole.empty()) words.reason += fmt::format("; it takes {} whole", listed(whole));
  words.remedy = gather_embedding_on(op, axes);
  if (words.remedy.empty()) words.remedy = sequence_axes_off(axes);
  if (words.remedy.empty()) words.remedy = sequence_parallel_off(home, axes);
  return words;
}

void Reasons::find_summed(const Op& op, const AxisList& axes, const PartialSums& sums,
                          std::vector<Summed>& found) const {
  bool own = false;
  for (const auto& factor : sums.factors_of(op)) {
    const LabelId label = factor.first;
    const AxisList& split = factor.second;
    const bool in_result =
        std::any_of(op.results.begin(), op.results.end(), [&](const Operand& result) {
          return std::any_of(result.dims.begin(), result.dims.end(), [&](const Dim& dim) {
            return std::find(dim.begin(), dim.end(), label) != dim.end();
          });
        });
    const bool is_split = std::any_of(
        split.begin(), split.end(), [&](const AxisRef& axis) { return overlaps_any(axis, axes); });
    if (!is_split || (in_result && op.results.size() == 1)) continue;
    own = true;
    const bool known = std::any_of(found.begin(), found.end(), [&](const Summed& summed) {
      return summed.op == &op && summed.label == label;
    });
    if (!known) found.push_back({&op, label});
  }
  if (own) return;
  for (const Operand& operand : op.operands) {  // a linear op hands on what its operands are
    const AxisList partial = sums.kept(operand.tensor);
    const auto maker = makers_.find(operand.tensor);
    if (maker == makers_.end() || !is_within(axes, partial)) continue;
    find_summed(*maker->second, axes, sums, found);
  }
}

bool Reasons::is_carried(LabelId label) const {
  for (const Block& block : builder_.workload().blocks) {
    for (const TensorId carry : block.carries_out) {
      for (const Dim& dim : builder_.tensor(carry).dims) {
        if (std::find(dim.begin(), dim.end(), label) != dim.end()) return true;
      }
    }
  }
  return false;
}

std::vector<TensorId> Reasons::splitting(LabelId label, const AxisList& axes, int block) const {
  const bool anywhere = is_carried(label);
  std::vector<TensorId> found;
  for (const ParameterAssignment& a : all_.parameters) {
    const Tensor& parameter = builder_.tensor(a.tensor);
    if (parameter.block != block && !anywhere) continue;
    for (std::size_t d = 0; d < parameter.dims.size() && d < a.compute.dims.size(); ++d) {
      const Dim& dim = parameter.dims[d];
      if (std::find(dim.begin(), dim.end(), label) == dim.end()) continue;
      if (!is_within(axes, a.compute.dims[d].axes)) continue;
      found.push_back(a.tensor);
      break;
    }
  }
  return found;
}

std::string Reasons::split_none(const std::vector<LabelId>& labels, const AxisList& axes,
                                int block) const {
  std::vector<TensorId> parameters;
  for (const LabelId label : labels) {
    for (const TensorId parameter : splitting(label, axes, block)) {
      const bool known =
          std::find(parameters.begin(), parameters.end(), parameter) != parameters.end();
      if (!known) parameters.push_back(parameter);
    }
  }
  if (parameters.empty()) return "";
  return fmt::format(
      "take {} off the specs of {}: a device holds {} more (with gradients and "
      "optimizer state) and does {} times the work of the ops that read them",
      builder_.names(axes), names_of(parameters), format_bytes(price_without(parameters, axes)),
      Mesh::size_of(axes));
}

Words Reasons::made(const Op& op, const Value& made, const Sharding& target,
                    const PartialSums& sums, const AxisList& axes) const {
  const int block = builder_.tensor(made.tensor).block;
  Words words;
  if (!is_within(axes, made.sharding.partial)) {
    const bool pinned = all_.pinned.contains(made.tensor);
    words.reason = fmt::format("{} makes {} as {}, and {} asks for {}", who(op), made.name,
                               to_string(made.sharding, builder_.mesh()),
                               !pinned ? "what reads it"
                               : strategy_.sequence_parallel && is_model_axis(axes)
                                   ? "\"sequence_parallel\""
                                   : "a rule of \"activations\"",
                               to_string(target, builder_.mesh()));
    words.remedy = sequence_parallel_off(made, axes);
    return words;
  }
  std::vector<Summed> summed;
  find_summed(op, axes, sums, summed);
  std::vector<std::string> by;
  std::vector<LabelId> labels;
  std::vector<TensorId> parameters;
  for (const Summed& one : summed) {
    add_once(by, fmt::format("{} over {}", who(*one.op), label_name(one.label)));
    if (std::find(labels.begin(), labels.end(), one.label) == labels.end())
      labels.push_back(one.label);
    for (const Operand& operand : one.op->operands) {
      const bool is_parameter = builder_.tensor(operand.tensor).role == TensorRole::parameter;
      if (is_parameter) parameters.push_back(operand.tensor);
    }
  }
  const bool own = summed.size() == 1 && summed.front().op == &op;
  const std::string what = own ? fmt::format("{} sums over {}", who(op), label_name(labels.front()))
                           : summed.empty()
                               ? fmt::format("{} makes a partial sum", who(op))
                               : fmt::format("{} adds up the sums of {}", who(op), listed(by));
  words.reason = fmt::format("{}, which {} {}{}", what, builder_.names(axes), splits(axes),
                             assigned_by(parameters, axes));
  words.remedy = gather_embedding_on(op, axes);
  if (words.remedy.empty()) words.remedy = split_none(labels, axes, block);
  if (words.remedy.empty()) words.remedy = sequence_axes_off(axes);
  if (is_model_axis(axes) && !strategy_.sequence_parallel && !words.remedy.empty()) {
    words.remedy +=
        "; \"sequence_parallel\": true makes it a reduce-scatter and an all-gather, together as "
        "many bytes, and splits the activations between blocks";
  }
  return words;
}

Words Reasons::statistic(const Op& op, const Statistic& statistic, const AxisList& axes) const {
  std::vector<std::string> over;
  for (const LabelId label : statistic.over) add_once(over, label_name(label));
  const int block = builder_.tensor(op.results.front().tensor).block;
  Words words;
  words.reason = fmt::format("{} needs the {} over all of {}, which {} {}", who(op), statistic.name,
                             listed(over), builder_.names(axes), splits(axes));
  words.remedy = split_none(statistic.over, axes, block);
  return words;
}

}  // namespace shardsim
