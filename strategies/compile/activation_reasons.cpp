#include "strategies/compile/activation_reasons.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/index.hpp"
#include "base/text.hpp"
#include "strategies/compile/reason_words.hpp"

namespace shardsim {
namespace {

std::string who(const Op& op) { return fmt::format("{} ({})", op.name, name_of(op.function)); }

}  // namespace

ActivationReasons::ActivationReasons(const SpmdBuilder& builder, const Layout& layout,
                                     const PartialSums& sums, const ParameterReasons& parameters)
    : builder_(builder), layout_(layout), sums_(sums), parameters_(parameters) {
  for (const Block& block : builder.workload().blocks) {
    for (const auto* ops : {&block.forward, &block.backward}) {
      for (const Op& op : *ops) {
        for (const Operand& result : op.results) makers_.try_emplace(result.tensor, &op);
      }
    }
  }
}

const std::string& ActivationReasons::label_name(LabelId label) const {
  return builder_.workload().labels[static_cast<std::size_t>(label)].name;
}

bool ActivationReasons::is_model_axis(const AxisList& axes) const {
  return axes.size() == 1 && axes == layout_.model_axes;
}

std::string ActivationReasons::sequence_parallel_off(const Value& value,
                                                     const AxisList& axes) const {
  if (!layout_.sequence_parallel || !is_model_axis(axes)) return "";
  const std::int64_t elements =
      shard_elements(builder_.shape(value.tensor), without(value.sharding, axes));
  return fmt::format(
      "\"sequence_parallel\": false: an all-reduce in place of a reduce-scatter and "
      "an all-gather, together as many bytes; between blocks a device holds {} "
      "instead of {} of each activation like this",
      format_bytes(elements * size_of(value.dtype)), format_bytes(value.bytes));
}

std::string ActivationReasons::sequence_axes_off(const AxisList& axes) const {
  for (const AxisRef& axis : axes) {
    if (!overlaps_any(axis, layout_.sequence_axes)) return "";
  }
  return fmt::format(
      "take {} off \"sequence_axes\": every device then computes and keeps {} times "
      "the tokens",
      builder_.names(axes), Mesh::size_of(axes));
}

Words ActivationReasons::words(const InputEnters& fact, const Collective&) const {
  const Value& entering = builder_.value(fact.entered);
  return {fmt::format("{} enters as {}, its batch over the whole mesh, and is read as {} "
                      "(\"inputs_split_mapping\")",
                      entering.name, to_string(entering.sharding, builder_.mesh()),
                      to_string(fact.read, builder_.mesh())),
          "\"batch_axes\" and no \"inputs_split_mapping\": inputs then enter as they are read"};
}

Words ActivationReasons::words(const RowsExchanged& fact, const Collective& call) const {
  const Operand& rows = fact.op->results.front();
  const LabelId first = rows.dims.front().front();
  const bool go = builder_.workload().labels[at(first)].role == LabelRole::experts;
  return {
      fmt::format("{}: rows of tokens {} over {}, over which experts are dealt out", who(*fact.op),
                  go ? "go to the experts that they visit" : "come back from their experts",
                  builder_.names(call.axes)),
      "\"experts\": {\"parallel\": 1} keeps all experts on every device"};
}

Words ActivationReasons::words(const RowsCounted& fact, const Collective& call) const {
  const std::string who_counts = who(*fact.op);
  const std::string axes = builder_.names(call.axes);
  if (call.kind == CollectiveKind::all_reduce) {
    return {fmt::format("{}: rows of each expert are counted over {}, for the auxiliary loss",
                        who_counts, axes),
            {}};
  }
  return {fmt::format("{}: devices of {} tell how many rows each expert gets", who_counts, axes),
          {}};
}

Words ActivationReasons::words(const KeysPassedOn& fact, const Collective& call) const {
  if (call.kind == CollectiveKind::all_gather) {
    return {fmt::format("{} computes with each part of the sequence by itself: keys and values of "
                        "all of {}",
                        who(*fact.op), builder_.names(layout_.sequence_axes)),
            "\"context\": {\"rotation\": \"messages\"} has one part under way at a time"};
  }
  return {fmt::format("{} computes with each part of the sequence as it comes round: {} of {}",
                      who(*fact.op),
                      fact.op->function == Function::attention ? "keys and values"
                                                               : "keys, values and gradients",
                      builder_.names(layout_.sequence_axes)),
          "\"context\": {\"method\": \"all-gather\"} gathers keys and values before the kernel"};
}

Words ActivationReasons::words(const HeadsExchanged& fact, const Collective& call) const {
  const std::string axes = builder_.names(call.axes);
  if (!fact.enters) {
    return {fmt::format("{} leaves each device of {} its part of the heads: the sequence is split "
                        "again in their place",
                        who(*fact.op), axes),
            {}};
  }
  return {fmt::format("a state goes along the sequence, which {} split: behind {} heads are, in "
                      "its place",
                      axes, who(*fact.op)),
          {}};
}

Words ActivationReasons::words(const OutputLeaves& fact, const Collective& call) const {
  return {fmt::format("{} leaves the step whole on every device of {} (\"outputs\": \"whole\")",
                      builder_.tensor(fact.tensor).name, builder_.names(call.axes)),
          "\"outputs\": \"as_made\" leaves each device its part"};
}

Words ActivationReasons::words(const OpReads& fact, const Collective& call) const {
  const Op& op = *fact.op;
  const Value& home = builder_.value(fact.lies);
  const AxisList& axes = call.axes;
  Words words;
  words.reason = fmt::format("{} needs {} as {}, which lies as {}", who(op), home.name,
                             to_string(fact.needed, builder_.mesh()),
                             to_string(home.sharding, builder_.mesh()));
  std::vector<std::string> whole;
  for (const LabelId label : op.whole) add_once(whole, label_name(label));
  if (!whole.empty()) words.reason += fmt::format("; it takes {} whole", listed(whole));
  words.remedy = gather_embedding_on(op, axes);
  if (words.remedy.empty()) words.remedy = sequence_axes_off(axes);
  if (words.remedy.empty()) words.remedy = sequence_parallel_off(home, axes);
  return words;
}

void ActivationReasons::find_summed(const Op& op, const AxisList& axes,
                                    std::vector<Summed>& found) const {
  bool own = false;
  for (const auto& factor : sums_.factors_of(op)) {
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
    const AxisList partial = sums_.kept(operand.tensor);
    const auto maker = makers_.find(operand.tensor);
    if (maker == makers_.end() || !is_within(axes, partial)) continue;
    find_summed(*maker->second, axes, found);
  }
}

bool ActivationReasons::is_carried(LabelId label) const {
  for (const Block& block : builder_.workload().blocks) {
    for (const TensorId carry : block.carries_out) {
      for (const Dim& dim : builder_.tensor(carry).dims) {
        if (std::find(dim.begin(), dim.end(), label) != dim.end()) return true;
      }
    }
  }
  return false;
}

std::vector<TensorId> ActivationReasons::splitting(LabelId label, const AxisList& axes,
                                                   int block) const {
  const bool anywhere = is_carried(label);
  std::vector<TensorId> found;
  for (const ParameterLayout& a : layout_.parameters) {
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

std::string ActivationReasons::split_none(const std::vector<LabelId>& labels, const AxisList& axes,
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
      builder_.names(axes), parameters_.names_of(parameters),
      format_bytes(parameters_.price_without(parameters, axes)), Mesh::size_of(axes));
}

Words ActivationReasons::words(const OpMakes& fact, const Collective& call) const {
  const Op& op = *fact.op;
  const Value& made = builder_.value(fact.made);
  const AxisList& axes = call.axes;
  const int block = builder_.tensor(made.tensor).block;
  Words words;
  if (!is_within(axes, made.sharding.partial)) {
    const bool pinned = layout_.pinned.contains(made.tensor);
    words.reason = fmt::format("{} makes {} as {}, and {} asks for {}", who(op), made.name,
                               to_string(made.sharding, builder_.mesh()),
                               !pinned ? "what reads it"
                               : layout_.sequence_parallel && is_model_axis(axes)
                                   ? "\"sequence_parallel\""
                                   : "a rule of \"activations\"",
                               to_string(fact.wanted, builder_.mesh()));
    words.remedy = sequence_parallel_off(made, axes);
    return words;
  }
  std::vector<Summed> summed;
  find_summed(op, axes, summed);
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
                             parameters_.assigned_by(parameters, axes));
  words.remedy = gather_embedding_on(op, axes);
  if (words.remedy.empty()) words.remedy = split_none(labels, axes, block);
  if (words.remedy.empty()) words.remedy = sequence_axes_off(axes);
  if (is_model_axis(axes) && !layout_.sequence_parallel && !words.remedy.empty()) {
    words.remedy +=
        "; \"sequence_parallel\": true makes it a reduce-scatter and an all-gather, together as "
        "many bytes, and splits the activations between blocks";
  }
  return words;
}

Words ActivationReasons::words(const OpNeeds& fact, const Collective& call) const {
  const Op& op = *fact.op;
  const Statistic& statistic = *fact.statistic;
  const AxisList& axes = call.axes;
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
