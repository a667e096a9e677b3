#include "strategies/runtime/parameter_gathers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "strategies/runtime/host_shards.hpp"

namespace shardsim {

// Those of its parameters that differ from their stored form.
std::vector<TensorId> ParameterGathers::gathered_of(const Unit& unit) const {
  std::vector<TensorId> parameters;
  for (const TensorId parameter : unit.parameters) {
    const auto found = builder_.step.parameters.find(parameter);
    if (found == builder_.step.parameters.end()) continue;
    if (found->second.computed != found->second.stored) parameters.push_back(parameter);
  }
  return parameters;
}

bool ParameterGathers::keeps_gathered(const Unit& unit) const {
  if (!has_backward(builder_.workload())) return false;  // nothing that it would be kept for
  if (chunked_ && &units_.of(chunked_->head) == &unit) return false;
  return (unit.kept_as_root ? runtime_.kept_root : runtime_.kept) == Kept::backward;
}

void ParameterGathers::gather(std::size_t block, Phase phase, BlockPass& pass) const {
  const bool forward = phase == Phase::forward;
  if (forward) gather_tables(block, pass.gathers);
  if (runtime_.grain == Grain::tensor) {
    for (const TensorId parameter : pass.reads) {
      if (!forward && keeps_gathered(units_.of(parameter))) continue;
      gather_together({whole(parameter, phase)}, builder_.tensor(parameter).name, phase, block,
                      pass.gathers);
    }
    return;
  }
  for (const Unit& unit : units_.all()) gather_unit(unit, block, phase, pass);
}

// A unit is gathered by the block that runs first and given back by the one that runs last.
void ParameterGathers::gather_unit(const Unit& unit, std::size_t block, Phase phase,
                                   BlockPass& pass) const {
  const bool forward = phase == Phase::forward;
  const bool runs = std::count(unit.runs.begin(), unit.runs.end(), block) > 0;
  const bool takes = runs || (forward ? unit.first : unit.last) == block;
  const bool gives_back = runs || (forward ? unit.last : unit.first) == block;
  if (!takes && !gives_back) return;
  const std::vector<TensorId> parameters = gathered_of(unit);
  if (unit.is_inner) {
    pass.inner = BlockPass::Inner{.gathers = pass.gathers.size(), .held = pass.held.size()};
  }
  if (takes && (forward || !keeps_gathered(unit))) {
    std::vector<Gathered> all;
    for (const TensorId parameter : parameters) all.push_back(whole(parameter, phase));
    if (!forward) put_other_groups_first(all);
    gather_together(all, unit.name, phase, block, pass.gathers);
  }
  const bool has_chunks = forward && chunked_ && chunked_->block == block;
  if (has_chunks && &units_.of(chunked_->head) == &unit) {
    gather_for_chunks(parameters, unit, block, pass);
  }
  if (gives_back && !(forward && keeps_gathered(unit))) {
    for (const TensorId parameter : parameters) pass.held.push_back(values_of(parameter).computed);
  }
}

// The chunks' parameters are the unit within for which this is asked.
void ParameterGathers::gather_for_chunks(const std::vector<TensorId>& parameters, const Unit& unit,
                                         std::size_t block, BlockPass& pass) const {
  const auto begin = pass.body.begin();
  const auto chunks = begin + static_cast<std::ptrdiff_t>(pass.inner->needed);
  const bool is_read = std::any_of(begin, chunks, [&](const Item& item) {
    return std::any_of(parameters.begin(), parameters.end(), [&](TensorId parameter) {
      const ValueId value = values_of(parameter).computed;
      return std::count(item.operands.begin(), item.operands.end(), value) > 0;
    });
  });
  pass.inner->gathers = pass.gathers.size();
  if (!is_read && unit.first == block) return;
  std::vector<Gathered> all;
  for (const TensorId parameter : parameters) all.push_back(whole(parameter, Phase::forward));
  gather_together(all, unit.name, Phase::forward, block, pass.gathers);
}

void ParameterGathers::find_inner(std::size_t block, BlockPass& pass) const {
  if (!pass.inner) return;
  const auto unit = std::find_if(units_.all().begin(), units_.all().end(), [&](const Unit& one) {
    return one.is_inner && one.first == block;
  });
  if (unit == units_.all().end()) return;  // the loss in chunks, which knows
  std::set<ValueId> values;
  for (const TensorId parameter : unit->parameters) values.insert(values_of(parameter).computed);
  BlockPass::Inner& inner = *pass.inner;
  inner.needed = inner.opens = inner.closes = pass.body.size();
  for (std::size_t i = pass.body.size(); i-- > 0;) {
    const std::vector<ValueId>& operands = pass.body[i].operands;
    const bool reads = std::any_of(operands.begin(), operands.end(),
                                   [&](ValueId operand) { return values.contains(operand); });
    if (!reads) continue;
    if (inner.needed == pass.body.size()) inner.closes = i + 1;
    inner.needed = i;
    if (!pass.body[i].recompute) inner.opens = i;
  }
}

// Parameters of a module that lie over several groups (experts beside the rest) are gathered group
// by group, in backward the other way round (torch.distributed.fsdp, _fsdp_state.py).
void ParameterGathers::put_other_groups_first(std::vector<Gathered>& all) const {
  if (all.empty()) return;
  const auto axes_of = [&](const Gathered& one) {
    AxisList group = split_axes(builder_.value(one.from).sharding);
    const AxisList left = split_axes(builder_.value(one.to).sharding);
    std::erase_if(group, [&](const AxisRef& axis) { return contains(left, axis); });
    return group;
  };
  const Gathered first = all.front();
  const AxisList axes = axes_of(first);
  std::stable_partition(all.begin(), all.end(), [&](const Gathered& one) {
    return axes_of(one) != axes || !units_.are_together(one.parameter, first.parameter);
  });
}

ParameterGathers::Gathered ParameterGathers::whole(TensorId parameter, Phase phase) const {
  const auto slice = slices_.find(parameter);
  const bool from_slices = phase == Phase::backward && slice != slices_.end();
  const ParameterValues& values = values_of(parameter);
  return {parameter, from_slices ? slice->second : values.stored, values.computed};
}

// Neighbours hold the slices: the minor part of the axis, as FSDP2's post-forward mesh is the shard
// mesh in rows of so many (torch.distributed.fsdp, _get_post_forward_mesh_info).
void ParameterGathers::keep_slices(std::size_t block, BlockPass& pass) {
  if (!runtime_.slices || !has_backward(builder_.workload())) return;
  const auto unit = std::find_if(units_.all().begin(), units_.all().end(), [&](const Unit& one) {
    return one.is_layer && one.first == block;
  });
  if (unit == units_.all().end()) return;
  const AxisRef axis = builder_.mesh().whole(*builder_.mesh().find(runtime_.slices->axis));
  const AxisRef part = {axis.axis, axis.size / runtime_.slices->over, runtime_.slices->over};
  std::vector<ValueId> from, to;
  for (const TensorId parameter : gathered_of(*unit)) {
    const Sharding& stored = builder_.value(values_of(parameter).stored).sharding;
    Sharding slice = stored;
    for (DimSharding& dim : slice.dims) std::replace(dim.axes.begin(), dim.axes.end(), axis, part);
    if (slice == stored) continue;
    const ValueId whole = values_of(parameter).computed;
    slices_[parameter] = builder_.add_value(parameter, slice, builder_.value(whole).dtype,
                                            BufferCategory::gathered_parameters);
    from.push_back(whole);
    to.push_back(slices_[parameter]);
  }
  if (!to.empty()) {
    pass.body.push_back(
        builder_.slice(fmt::format("{} slices", unit->name), from, to, Stream::compute));
  }
}

void ParameterGathers::gather_tables(std::size_t block, std::vector<Item>& items) const {
  for (const auto& [parameter, values] : builder_.step.parameters) {
    const Tensor& tensor = builder_.tensor(parameter);
    const bool here = static_cast<std::size_t>(tensor.block) == block;
    const bool apart = values.looked_up != values.stored && values.looked_up != values.computed;
    if (!here || !apart) continue;
    gather_together({{parameter, values.stored, values.looked_up}}, tensor.name, Phase::forward,
                    block, items);
  }
}

void ParameterGathers::gather_together(const std::vector<Gathered>& wanted, const std::string& unit,
                                       Phase phase, std::size_t block,
                                       std::vector<Item>& items) const {
  if (wanted.empty()) return;
  const std::size_t begin = items.size();
  // Where the compute dtype travels shards are converted first, else what was gathered of them.
  std::vector<ValueId> first_from, first_to, then_from, then_to, sources, targets;
  std::vector<Sharding> shardings;
  std::vector<TensorId> moved;
  std::vector<ValueId> stored;
  for (const Gathered& one : wanted) stored.push_back(one.from);
  const std::vector<ValueId> here = bring_from_host(builder_, stored, unit, items);
  for (std::size_t w = 0; w < wanted.size(); ++w) {
    const auto& [parameter, there, gathered] = wanted[w];
    const ValueId from = here[w];
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
  const bool from_slices = wanted.front().from != values_of(wanted.front().parameter).stored;
  const UnitGathered reason{unit, moved, units_.of(wanted.front().parameter).kept_as_root,
                            from_slices, phase};
  const std::vector<ValueId> arrived =
      builder_.bring_together(sources, shardings, Stream::gathers, unit, reason, items,
                              [&](TensorId a, TensorId b) { return units_.are_together(a, b); });
  fulfil(targets, arrived, unit, items);
  if (runtime_.copied_out) {
    for (std::size_t i = begin; i < items.size(); ++i) builder_.hold_padding(items[i]);
  }
  add_cast(then_from, then_to);
  if (runtime_.copied_out && !targets.empty()) {
    items.push_back(builder_.copy(fmt::format("{} copies out", unit), targets, Stream::compute));
  }
  for (std::size_t i = begin; i < items.size(); ++i) builder_.count_instances(items[i], block);
}

// The values that are read have been promised already: the last step makes them, or a device cuts
// its part out of what that made.
void ParameterGathers::fulfil(const std::vector<ValueId>& promised,
                              const std::vector<ValueId>& arrived, const std::string& unit,
                              std::vector<Item>& items) const {
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
