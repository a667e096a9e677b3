#include "strategies/runtime/parameter_gathers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardsim {

ParameterGathers::ParameterGathers(SpmdBuilder& builder, const Layout& layout,
                                   const Gathers& runtime, const OptimizerOptions& optimizer,
                                   const ParameterReasons& reasons)
    : builder_(builder), runtime_(runtime), reasons_(reasons) {
  for (const ParameterLayout& a : layout.parameters) {
    by_tensor_[a.tensor] = &a;
    const ValueId stored =
        builder.add_value(a.tensor, a.stored, optimizer.parameters, BufferCategory::parameters);
    builder.value(stored).persistent = true;
    stored_[a.tensor] = stored;
    const DType compute_dtype = builder.tensor(a.tensor).dtype;
    const DType look_up_dtype = look_up_type(a.tensor);
    if (a.look_up != a.compute || look_up_dtype != compute_dtype) {
      const bool as_stored = a.look_up == a.stored && look_up_dtype == optimizer.parameters;
      looked_up_[a.tensor] = as_stored ? stored
                                       : builder.add_value(a.tensor, a.look_up, look_up_dtype,
                                                           BufferCategory::gathered_parameters);
      if (!is_read_whole(a.tensor)) continue;
    }
    if (a.stored != a.compute || optimizer.parameters != compute_dtype) {
      gathered_[a.tensor] = builder.add_value(a.tensor, a.compute, compute_dtype,
                                              BufferCategory::gathered_parameters);
    }
  }
}

DType ParameterGathers::look_up_type(TensorId parameter) const {
  for (const Block& block : builder_.workload().blocks) {
    for (const Op& op : block.forward) {
      if (kind_of(op) != OpKind::lookup || op.operands[1].tensor != parameter) continue;
      return op.weight_dtype.value_or(builder_.tensor(parameter).dtype);
    }
  }
  return builder_.tensor(parameter).dtype;
}

bool ParameterGathers::looks_up(const Op& op, TensorId parameter) const {
  return kind_of(op) == OpKind::lookup && looked_up_.contains(parameter);
}

bool ParameterGathers::is_read_whole(TensorId parameter) const {
  for (const Block& block : builder_.workload().blocks) {
    for (const std::vector<Op>* ops : {&block.forward, &block.backward}) {
      for (const Op& op : *ops) {
        if (looks_up(op, parameter)) continue;
        for (const Operand& operand : op.operands) {
          if (operand.tensor == parameter) return true;
        }
      }
    }
  }
  return false;
}

ValueId ParameterGathers::readable(const Op& op, TensorId parameter) const {
  if (looks_up(op, parameter)) return looked_up_.at(parameter);
  const auto gathered = gathered_.find(parameter);
  return gathered != gathered_.end() ? gathered->second : stored_.at(parameter);
}

// Parameters that differ from their stored form and that ops of this pass read, in order.
std::vector<TensorId> ParameterGathers::read_in(std::size_t block, Phase phase) const {
  const Block& b = builder_.workload().blocks[block];
  std::vector<TensorId> read;
  for (const Op& op : phase == Phase::forward ? b.forward : b.backward) {
    for (const Operand& operand : op.operands) {
      const bool known = std::count(read.begin(), read.end(), operand.tensor) > 0;
      if (known || looks_up(op, operand.tensor)) continue;
      if (gathered_.contains(operand.tensor)) read.push_back(operand.tensor);
    }
  }
  return read;
}

// All parameters of the block's unit that differ from their stored form.
std::vector<TensorId> ParameterGathers::unit_parameters(std::size_t block) const {
  std::vector<TensorId> unit;
  for (const auto& [parameter, gathered] : gathered_) {
    const auto owner = static_cast<std::size_t>(builder_.tensor(parameter).block);
    if (owner == block || (builder_.is_root(owner) && builder_.is_root(block)))
      unit.push_back(parameter);
  }
  return unit;
}

bool ParameterGathers::keeps_gathered(std::size_t block) const {
  if (!has_backward(builder_.workload())) return false;  // nothing that it would be kept for
  return (builder_.is_root(block) ? runtime_.kept_root : runtime_.kept) == Kept::backward;
}

void ParameterGathers::gather(std::size_t block, Phase phase, BlockPass& pass) {
  const std::vector<BlockInstance>& order = builder_.workload().order;
  const auto first = static_cast<std::size_t>(order.front().block);
  const auto last = static_cast<std::size_t>(order.back().block);
  const bool forward = phase == Phase::forward;
  if (forward) gather_tables(block, pass.gathers);
  if (runtime_.grain == Grain::tensor) {
    if (!forward && keeps_gathered(block)) return;
    for (const TensorId parameter : read_in(block, phase)) {
      gather_together({whole(parameter, phase)}, builder_.tensor(parameter).name, phase,
                      pass.gathers);
    }
    return;
  }
  const std::vector<TensorId> unit = unit_parameters(block);
  std::vector<Gathered> all;
  for (const TensorId parameter : unit) all.push_back(whole(parameter, phase));
  // The root is gathered by the block that runs first and given back by the one that runs last.
  const bool takes = !builder_.is_root(block) || block == (forward ? first : last);
  const bool gives_back = !builder_.is_root(block) || block == (forward ? last : first);
  if (takes && (forward || !keeps_gathered(block)))
    gather_together(all, builder_.unit_name(block), phase, pass.gathers);
  if (gives_back && !(forward && keeps_gathered(block))) {
    for (const TensorId parameter : unit) pass.held.push_back(gathered_.at(parameter));
  }
}

ParameterGathers::Gathered ParameterGathers::whole(TensorId parameter, Phase phase) const {
  const auto slice = slices_.find(parameter);
  const bool from_slices = phase == Phase::backward && slice != slices_.end();
  return {parameter, from_slices ? slice->second : stored_.at(parameter), gathered_.at(parameter)};
}

// Neighbours hold the slices: the minor part of the axis, as FSDP2's post-forward mesh is the shard
// mesh in rows of so many (torch.distributed.fsdp, _get_post_forward_mesh_info).
void ParameterGathers::keep_slices(std::size_t block, BlockPass& pass) {
  if (!runtime_.slices || builder_.is_root(block) || !has_backward(builder_.workload())) return;
  const AxisRef axis = builder_.mesh().whole(*builder_.mesh().find(runtime_.slices->axis));
  const AxisRef part = {axis.axis, axis.size / runtime_.slices->over, runtime_.slices->over};
  std::vector<ValueId> from, to;
  for (const TensorId parameter : unit_parameters(block)) {
    Sharding slice = layout_of(parameter).stored;
    for (DimSharding& dim : slice.dims) std::replace(dim.axes.begin(), dim.axes.end(), axis, part);
    if (slice == layout_of(parameter).stored) continue;
    const ValueId whole = gathered_.at(parameter);
    slices_[parameter] = builder_.add_value(parameter, slice, builder_.value(whole).dtype,
                                            BufferCategory::gathered_parameters);
    from.push_back(whole);
    to.push_back(slices_[parameter]);
  }
  if (!to.empty()) {
    pass.body.push_back(builder_.slice(fmt::format("{} slices", builder_.unit_name(block)), from,
                                       to, Stream::compute));
  }
}

void ParameterGathers::gather_tables(std::size_t block, std::vector<Item>& items) {
  for (const auto& [parameter, table] : looked_up_) {
    const Tensor& tensor = builder_.tensor(parameter);
    const bool here = static_cast<std::size_t>(tensor.block) == block;
    if (!here || table == stored_.at(parameter)) continue;
    gather_together({{parameter, stored_.at(parameter), table}}, tensor.name, Phase::forward,
                    items);
  }
}

void ParameterGathers::gather_together(const std::vector<Gathered>& wanted, const std::string& unit,
                                       Phase phase, std::vector<Item>& items) {
  // Where the compute dtype travels shards are converted first, else what was gathered of them.
  std::vector<ValueId> first_from, first_to, then_from, then_to, sources, targets;
  std::vector<Sharding> shardings;
  std::vector<TensorId> moved;
  for (const auto& [parameter, from, gathered] : wanted) {
    const Sharding shard = builder_.value(from).sharding;
    const Sharding sharding = builder_.value(gathered).sharding;
    ValueId source = from;
    ValueId target = gathered;
    const DType stored_dtype = builder_.value(from).dtype;
    const DType dtype = builder_.value(gathered).dtype;
    const bool moves = shard != sharding;
    const bool converts_last =
        moves && stored_dtype != dtype && runtime_.dtype == GatherDType::stored;
    if (converts_last) {
      target = builder_.add_value(parameter, sharding, stored_dtype, BufferCategory::communication);
      then_from.push_back(target);
      then_to.push_back(gathered);
    } else if (stored_dtype != dtype) {
      const ValueId converted =
          moves ? builder_.add_value(parameter, shard, dtype, BufferCategory::communication)
                : gathered;
      first_from.push_back(from);
      first_to.push_back(converted);
      source = converted;
    }
    if (!moves) continue;
    sources.push_back(source);
    targets.push_back(target);
    shardings.push_back(sharding);
    moved.push_back(parameter);
  }
  const auto add_cast = [&](const std::vector<ValueId>& from, const std::vector<ValueId>& to) {
    if (from.empty()) return;
    items.push_back(builder_.cast(fmt::format("{} cast", unit), from, to, Stream::gathers));
  };
  add_cast(first_from, first_to);
  const auto words = [&](const ReshardStep& step) {
    if (wanted.front().from != stored_.at(wanted.front().parameter)) {
      return reasons_.gather_slices(unit, moved, step.axes);
    }
    const bool root =
        builder_.is_root(static_cast<std::size_t>(builder_.tensor(moved.front()).block));
    return reasons_.gather(unit, root, moved, phase, step.axes);
  };
  const std::vector<ValueId> arrived =
      builder_.bring_together(sources, shardings, Stream::gathers, unit, words, items);
  fulfil(targets, arrived, unit, items);
  add_cast(then_from, then_to);
}

// The values that are read have been promised already: the last step makes them, or a device cuts
// its part out of what that made.
void ParameterGathers::fulfil(const std::vector<ValueId>& promised,
                              const std::vector<ValueId>& arrived, const std::string& unit,
                              std::vector<Item>& items) {
  std::vector<ValueId> cut_from, cut_to;
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    bool is_made = false;
    for (Item& item : items) {
      is_made |= std::count(item.results.begin(), item.results.end(), arrived[i]) > 0;
      std::replace(item.results.begin(), item.results.end(), arrived[i], promised[i]);
    }
    if (is_made) continue;
    cut_from.push_back(arrived[i]);
    cut_to.push_back(promised[i]);
  }
  if (cut_to.empty()) return;
  items.push_back(
      builder_.slice(fmt::format("{} slices", unit), cut_from, cut_to, Stream::gathers));
}

}  // namespace shardsim
