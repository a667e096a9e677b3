#include "strategies/parameter_passes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardsim {

std::vector<ValueId> bring_together(SpmdBuilder& builder, const std::vector<ValueId>& from,
                                    const std::vector<Sharding>& to, Stream stream,
                                    std::string_view name, const WordsOf& words,
                                    std::vector<Item>& items) {
  std::vector<ValueId> arrived;
  std::vector<std::vector<Item>> rounds;  // the k-th step of every value
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::vector<Item> own;
    arrived.push_back(builder.bring(from[i], to[i], stream, words, own));
    if (rounds.size() < own.size()) rounds.resize(own.size());
    for (std::size_t k = 0; k < own.size(); ++k) rounds[k].push_back(std::move(own[k]));
  }
  for (std::vector<Item>& round : rounds) {
    std::vector<Item> calls;
    for (Item& item : round) {
      const auto same = std::find_if(calls.begin(), calls.end(), [&](const Item& call) {
        return call.collective.kind == item.collective.kind &&
               call.collective.axes == item.collective.axes &&
               call.collective.dtype == item.collective.dtype;
      });
      if (same == calls.end()) {
        calls.push_back(std::move(item));
        calls.back().name = name;
        continue;
      }
      same->collective.payload += item.collective.payload;
      same->collective.parts.push_back(item.collective.parts.front());
      same->operands.push_back(item.operands.front());
      same->results.push_back(item.results.front());
    }
    std::move(calls.begin(), calls.end(), std::back_inserter(items));
  }
  return arrived;
}

ParameterPasses::ParameterPasses(SpmdBuilder& builder, const Assignment& assignment,
                                 const StrategyOptions& strategy, const OptimizerOptions& optimizer,
                                 const Reasons& reasons)
    : builder_(builder),
      strategy_(strategy),
      reasons_(reasons),
      gradient_dtype_(optimizer.gradients) {
  for (const ParameterAssignment& a : assignment.parameters) {
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

bool ParameterPasses::is_root(std::size_t block) const {
  return builder_.workload().blocks[block].count == 1;
}

std::string ParameterPasses::unit_name(std::size_t block) const {
  return is_root(block) ? "root" : builder_.workload().blocks[block].name;
}

DType ParameterPasses::look_up_type(TensorId parameter) const {
  for (const Block& block : builder_.workload().blocks) {
    for (const Op& op : block.forward) {
      if (op.kind != OpKind::lookup || op.operands[1].tensor != parameter) continue;
      return op.weight_dtype.value_or(builder_.tensor(parameter).dtype);
    }
  }
  return builder_.tensor(parameter).dtype;
}

bool ParameterPasses::looks_up(const Op& op, TensorId parameter) const {
  return op.kind == OpKind::lookup && looked_up_.contains(parameter);
}

bool ParameterPasses::is_read_whole(TensorId parameter) const {
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

ValueId ParameterPasses::readable(const Op& op, TensorId parameter) const {
  if (looks_up(op, parameter)) return looked_up_.at(parameter);
  const auto gathered = gathered_.find(parameter);
  return gathered != gathered_.end() ? gathered->second : stored_.at(parameter);
}

// Parameters that differ from their stored form and that ops of this pass read, in order.
std::vector<TensorId> ParameterPasses::read_in(std::size_t block, Phase phase) const {
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
std::vector<TensorId> ParameterPasses::unit_parameters(std::size_t block) const {
  std::vector<TensorId> unit;
  for (const auto& [parameter, gathered] : gathered_) {
    const auto owner = static_cast<std::size_t>(builder_.tensor(parameter).block);
    if (owner == block || (is_root(owner) && is_root(block))) unit.push_back(parameter);
  }
  return unit;
}

bool ParameterPasses::keeps_gathered(std::size_t block) const {
  if (!has_backward(builder_.workload())) return false;  // nothing that it would be kept for
  return !(is_root(block) ? strategy_.reshard_root_after_forward : strategy_.reshard_after_forward);
}

void ParameterPasses::gather(std::size_t block, Phase phase, BlockPass& pass) {
  const std::size_t last = builder_.workload().blocks.size() - 1;
  const bool forward = phase == Phase::forward;
  if (forward) gather_tables(block, pass.gathers);
  if (!strategy_.gather_units) {
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
  const bool takes = !is_root(block) || block == (forward ? 0 : last);
  const bool gives_back = !is_root(block) || block == (forward ? last : 0);
  if (takes && (forward || !keeps_gathered(block)))
    gather_together(all, unit_name(block), phase, pass.gathers);
  if (gives_back && !(forward && keeps_gathered(block))) {
    for (const TensorId parameter : unit) pass.held.push_back(gathered_.at(parameter));
  }
}

ParameterPasses::Gathered ParameterPasses::whole(TensorId parameter, Phase phase) const {
  const auto slice = slices_.find(parameter);
  const bool from_slices = phase == Phase::backward && slice != slices_.end();
  return {parameter, from_slices ? slice->second : stored_.at(parameter), gathered_.at(parameter)};
}

// Neighbours hold the slices: the minor part of the axis, as FSDP2's post-forward mesh is the shard
// mesh in rows of so many (torch.distributed.fsdp, _get_post_forward_mesh_info).
void ParameterPasses::keep_slices(std::size_t block, BlockPass& pass) {
  if (strategy_.kept_over == 0 || is_root(block) || !has_backward(builder_.workload())) return;
  const AxisRef axis = builder_.mesh().whole(*builder_.mesh().find(strategy_.shard_axis));
  const AxisRef part = {axis.axis, axis.size / strategy_.kept_over, strategy_.kept_over};
  std::vector<ValueId> from, to;
  for (const TensorId parameter : unit_parameters(block)) {
    Sharding slice = assignment(parameter).stored;
    for (DimSharding& dim : slice.dims) std::replace(dim.axes.begin(), dim.axes.end(), axis, part);
    if (slice == assignment(parameter).stored) continue;
    const ValueId whole = gathered_.at(parameter);
    slices_[parameter] = builder_.add_value(parameter, slice, builder_.value(whole).dtype,
                                            BufferCategory::gathered_parameters);
    from.push_back(whole);
    to.push_back(slices_[parameter]);
  }
  if (!to.empty()) {
    pass.body.push_back(
        builder_.slice(fmt::format("{} slices", unit_name(block)), from, to, Stream::compute));
  }
}

void ParameterPasses::gather_tables(std::size_t block, std::vector<Item>& items) {
  for (const auto& [parameter, table] : looked_up_) {
    const Tensor& tensor = builder_.tensor(parameter);
    const bool here = static_cast<std::size_t>(tensor.block) == block;
    if (!here || table == stored_.at(parameter)) continue;
    gather_together({{parameter, stored_.at(parameter), table}}, tensor.name, Phase::forward,
                    items);
  }
}

void ParameterPasses::gather_together(const std::vector<Gathered>& wanted, const std::string& unit,
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
    const bool converts_last = moves && stored_dtype != dtype && strategy_.gather_stored_dtype;
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
    const bool root = is_root(static_cast<std::size_t>(builder_.tensor(moved.front()).block));
    return reasons_.gather(unit, root, moved, phase, step.axes);
  };
  const std::vector<ValueId> arrived =
      bring_together(builder_, sources, shardings, Stream::gathers, unit, words, items);
  fulfil(targets, arrived, unit, items);
  add_cast(then_from, then_to);
}

// The values that are read have been promised already: the last step makes them, or a device cuts
// its part out of what that made.
void ParameterPasses::fulfil(const std::vector<ValueId>& promised,
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

void ParameterPasses::reduce_later(TensorId parameter, ValueId gradient, BlockPass& pass) {
  if (!strategy_.gather_units) {
    reduce_together({{parameter, gradient}}, builder_.tensor(parameter).name, pass, pass.body);
    return;
  }
  const auto block = static_cast<std::size_t>(builder_.tensor(parameter).block);
  (is_root(block) ? pending_root_ : pending_block_).push_back({parameter, gradient});
}

void ParameterPasses::reduce_unit(std::size_t block, BlockPass& pass) {
  if (is_root(block) && block != 0) return;  // the root's last gradients come from the first block
  std::vector<Pending>& pending = is_root(block) ? pending_root_ : pending_block_;
  reduce_together(pending, unit_name(block), pass, pass.reductions);
  pending.clear();
}

Sharding ParameterPasses::reduced_each_time(const Sharding& made, const Sharding& target) const {
  const bool all = strategy_.reduce_each_microbatch == ReduceEachMicrobatch::all;
  if (builder_.workload().microbatches == 1 || all) return target;
  if (strategy_.reduce_each_microbatch == ReduceEachMicrobatch::none) return made;
  const AxisList shards = split_axes(target);
  const auto scatters = [&](const AxisRef& axis) { return overlaps_any(axis, shards); };
  if (std::none_of(made.partial.begin(), made.partial.end(), scatters)) return made;
  Sharding scattered = target;
  scattered.partial = made.partial;
  std::erase_if(scattered.partial, scatters);
  return scattered;
}

std::vector<ValueId> ParameterPasses::accumulate(const std::vector<ValueId>& summands,
                                                 std::string_view unit, BlockPass& pass) {
  if (builder_.workload().microbatches == 1) return summands;
  Item addition;
  addition.stream = Stream::reductions;
  addition.name = fmt::format("{} gradient accumulation", unit);
  std::vector<ValueId> sums;
  Bytes bytes{0};
  for (const ValueId summand : summands) {
    const Value added = builder_.value(summand);
    const ValueId sum =
        builder_.add_value(added.tensor, added.sharding, added.dtype, BufferCategory::gradients);
    builder_.value(summand).category = BufferCategory::gradients;
    pass.sums.push_back({sum, summand});
    addition.operands.insert(addition.operands.end(), {sum, summand});
    addition.results.push_back(builder_.add_view(sum, added.sharding));
    bytes += 3 * added.bytes;  // two read, one written
    const std::int64_t elements = added.bytes.count() / size_of(added.dtype).count();
    addition.kernel.flops += Flops(static_cast<double>(elements));
    sums.push_back(sum);
  }
  if (sums.empty()) return sums;
  addition.kernel.op = "add";
  addition.kernel.dtype = gradient_dtype_;
  addition.kernel.bytes = bytes;
  pass.additions.push_back(std::move(addition));
  return sums;
}

bool ParameterPasses::is_wide(ValueId gradient) const {
  const Value& value = builder_.value(gradient);
  const DType compute_dtype = builder_.tensor(builder_.tensor(value.tensor).primal).dtype;
  return size_of(value.dtype) > size_of(gradient_dtype_) &&
         size_of(value.dtype) > size_of(compute_dtype);
}

std::vector<ValueId> ParameterPasses::cast_gradients(std::vector<ValueId> gradients,
                                                     const std::vector<Sharding>& to, bool wide,
                                                     std::string_view unit,
                                                     std::vector<Item>& items) {
  std::vector<ValueId> cast_from, cast_to;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Value from = builder_.value(gradients[i]);
    if (from.dtype == gradient_dtype_ || is_wide(gradients[i]) != wide) continue;
    cast_from.push_back(gradients[i]);
    gradients[i] = builder_.add_value(
        from.tensor, from.sharding, gradient_dtype_,
        from.sharding != to[i] ? BufferCategory::communication : BufferCategory::gradients);
    cast_to.push_back(gradients[i]);
  }
  if (!cast_from.empty()) {
    items.push_back(builder_.cast(fmt::format("{} gradient cast", unit), cast_from, cast_to,
                                  Stream::reductions));
  }
  return gradients;
}

void ParameterPasses::reduce_together(const std::vector<Pending>& pending, const std::string& unit,
                                      BlockPass& pass, std::vector<Item>& items) {
  std::vector<ValueId> made;
  std::vector<Sharding> shardings;
  std::vector<TensorId> parameters;
  for (const auto& [parameter, gradient] : pending) {
    made.push_back(gradient);
    shardings.push_back(assignment(parameter).gradient);
    parameters.push_back(parameter);
  }
  const std::vector<ValueId> sources =
      cast_gradients(std::move(made), shardings, /*wide=*/false, unit, items);
  const auto words = [&](const ReshardStep& step) {
    return reasons_.reduce(unit, parameters, step);
  };
  // Reduced, then added up; what is not reduced in each microbatch is when it is added up.
  std::vector<Sharding> each_time;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    each_time.push_back(reduced_each_time(builder_.value(sources[i]).sharding, shardings[i]));
  }
  const std::vector<ValueId> summands =
      bring_together(builder_, sources, each_time, Stream::reductions, unit, words, items);
  std::vector<ValueId> early_summands, late_summands;
  std::vector<Sharding> early_targets, late_targets;
  std::vector<TensorId> early, late;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const bool is_done = each_time[i] == shardings[i];
    (is_done ? early_summands : late_summands).push_back(summands[i]);
    (is_done ? early_targets : late_targets).push_back(shardings[i]);
    (is_done ? early : late).push_back(pending[i].parameter);
  }
  const auto settle = [&](const std::vector<TensorId>& owners,
                          const std::vector<ValueId>& gradients) {
    for (std::size_t i = 0; i < owners.size(); ++i) {
      builder_.value(gradients[i]).category = BufferCategory::gradients;
      gradients_[owners[i]] = gradients[i];
    }
  };
  const std::vector<ValueId> reduced =
      cast_gradients(early_summands, early_targets, /*wide=*/true, unit, items);
  settle(early, accumulate(reduced, unit, pass));
  const std::vector<ValueId> sums = accumulate(late_summands, unit, pass);
  std::vector<Item>& last = pass.last_reductions;
  settle(late, cast_gradients(bring_together(builder_, sums, late_targets, Stream::reductions, unit,
                                             words, last),
                              late_targets, /*wide=*/true, unit, last));
}

}  // namespace shardsim
