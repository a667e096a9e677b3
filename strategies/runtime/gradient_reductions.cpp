#include "strategies/runtime/gradient_reductions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <utility>

#include "strategies/runtime/host_shards.hpp"

namespace shardsim {

GradientReductions::GradientReductions(SpmdBuilder& builder, const Units& units,
                                       const Layout& layout, const Reductions& runtime,
                                       const Step& step, bool to_host)
    : builder_(builder),
      units_(units),
      runtime_(runtime),
      data_axes_(layout.data_axes),
      gradient_dtype_(step.optimizer.gradients),
      reduce_dtype_(step.optimizer.reduce.value_or(step.optimizer.gradients)),
      microbatches_(step.microbatches),
      to_host_(to_host) {
  for (const ParameterLayout& a : layout.parameters) targets_[a.tensor] = a.gradient;
  if (runtime.buffer) buffers_.emplace(builder, layout, *runtime.buffer, step);
}

void GradientReductions::reduce(std::size_t block, BlockPass& pass) {
  if (buffers_) {
    buffers_->add(pass);
    for (const Write& write : pass.writes) {
      gradients_[write.parameter] = builder_.add_view(write.gradient, targets_.at(write.parameter));
    }
    return;
  }
  if (runtime_.grain == Grain::tensor) {
    reduce_one_by_one(pass);
    return;
  }
  if (adds_up_as_made()) add_up_as_made(pass);
  for (const Write& write : pass.writes) of_unit_[&units_.of(write.parameter)].push_back(write);
  if (pass.inner) reduce_inner(pass);
  // A unit's last gradients come from its first block.
  for (const Unit& unit : units_.all()) {
    const auto writes = of_unit_.find(&unit);
    if (unit.first != block || writes == of_unit_.end()) continue;
    reduce_unit(writes->second, unit, block, pass);
    of_unit_.erase(writes);
  }
}

void GradientReductions::reduce_chunked(const ChunkedLoss& loss, BlockPass& pass) {
  if (pass.writes.empty()) return;
  reduce_together(pass.writes, builder_.tensor(loss.head).name, pass, pass.reductions);
}

// Behind the last item of the body that reads the unit, or makes a gradient of it.
void GradientReductions::reduce_inner(BlockPass& pass) {
  const auto unit = std::find_if(of_unit_.begin(), of_unit_.end(),
                                 [](const auto& writes) { return writes.first->is_inner; });
  if (unit == of_unit_.end()) return;
  std::size_t behind = pass.inner->closes;
  for (const Write& write : unit->second) behind = std::max(behind, write.after);
  std::vector<Item> items;
  if (adds_up_as_made()) {
    reduce_sums(unit->second, unit->first->name, pass.last_reductions);
  } else {
    reduce_together(unit->second, unit->first->name, pass, items);
  }
  pass.body.insert(pass.body.begin() + static_cast<std::ptrdiff_t>(behind),
                   std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
  of_unit_.erase(unit);
}

// By the devices that hold other tokens for them; that of the module's first parameter at last, as
// gathers come back.
std::vector<std::vector<Write>> GradientReductions::groups_of(const std::vector<Write>& writes,
                                                              const Unit& unit) const {
  const auto axes_of = [&](const Write& write) {
    AxisList axes = builder_.value(write.gradient).sharding.partial;
    std::erase_if(axes, [&](const AxisRef& axis) { return !overlaps_any(axis, data_axes_); });
    return axes;
  };
  std::vector<std::vector<Write>> groups;
  for (const Write& write : writes) {
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return axes_of(group.front()) == axes_of(write) &&
             units_.are_together(group.front().parameter, write.parameter);
    });
    if (known == groups.end()) {
      groups.push_back({write});
    } else {
      known->push_back(write);
    }
  }
  if (groups.size() == 1) return groups;
  std::stable_partition(groups.begin(), groups.end(), [&](const auto& group) {
    return std::none_of(group.begin(), group.end(), [&](const Write& write) {
      return write.parameter == unit.parameters.front();
    });
  });
  return groups;
}

void GradientReductions::reduce_unit(const std::vector<Write>& writes, const Unit& unit,
                                     std::size_t block, BlockPass& pass) {
  const std::array lists = {&pass.reductions, &pass.additions, &pass.last_reductions};
  std::array<std::size_t, lists.size()> begins{};
  for (std::size_t i = 0; i < lists.size(); ++i) begins[i] = lists[i]->size();
  for (const std::vector<Write>& group : groups_of(writes, unit)) {
    if (adds_up_as_made()) {
      reduce_sums(group, unit.name, pass.last_reductions);
    } else {
      reduce_together(group, unit.name, pass, pass.reductions);
    }
  }
  for (std::size_t i = 0; i < lists.size(); ++i) {
    for (std::size_t k = begins[i]; k < lists[i]->size(); ++k) {
      builder_.count_instances((*lists[i])[k], block);
    }
  }
}

void GradientReductions::reduce_one_by_one(BlockPass& pass) {
  std::vector<Item> made = std::move(pass.body);
  std::vector<Item> body;
  auto write = pass.writes.begin();
  for (std::size_t i = 0; i <= made.size(); ++i) {
    for (; write != pass.writes.end() && write->after == i; ++write) {
      reduce_together({*write}, builder_.tensor(write->parameter).name, pass, body);
    }
    if (i < made.size()) body.push_back(std::move(made[i]));
  }
  pass.body = std::move(body);
}

bool GradientReductions::reduces_now() const {
  return microbatches_ == 1 || runtime_.each_microbatch != ReduceEachMicrobatch::none;
}

Sharding GradientReductions::reduced_each_time(const Sharding& made, const Sharding& target) const {
  if (!reduces_now()) return made;
  if (microbatches_ == 1 || runtime_.each_microbatch == ReduceEachMicrobatch::all) return target;
  const AxisList shards = split_axes(target);
  const auto scatters = [&](const AxisRef& axis) { return overlaps_any(axis, shards); };
  if (std::none_of(made.partial.begin(), made.partial.end(), scatters)) return made;
  Sharding scattered = target;
  scattered.partial = made.partial;
  std::erase_if(scattered.partial, scatters);
  return scattered;
}

std::vector<ValueId> GradientReductions::accumulate(const std::vector<ValueId>& summands,
                                                    std::string_view unit, BlockPass& pass) {
  if (microbatches_ == 1) return summands;
  bool on_host = false;
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
    builder_.value(sum).on_host = added.on_host;
    on_host |= added.on_host;
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
  if (on_host) addition.kernel.kernel_class = KernelClass::host;
  addition.kernel.bytes = bytes;
  pass.additions.push_back(std::move(addition));
  return sums;
}

// One by one, as the unit's modules have registered their parameters.
void GradientReductions::add_over_model(std::vector<ValueId>& gradients,
                                        const std::vector<Sharding>& to,
                                        const GradientsReduced& reason, std::vector<Item>& items) {
  std::vector<std::size_t> order(gradients.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::vector<TensorId>& owners = reason.parameters;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    return units_.place_of(owners[one]) < units_.place_of(owners[other]);
  });
  for (const std::size_t i : order) {
    Sharding summed = builder_.value(gradients[i]).sharding;
    if (summed == to[i]) continue;
    std::erase_if(summed.partial,
                  [&](const AxisRef& axis) { return !overlaps_any(axis, data_axes_); });
    gradients[i] =
        builder_.bring(gradients[i], summed, Stream::reductions,
                       GradientsReduced{builder_.tensor(owners[i]).name, {owners[i]}}, items);
  }
}

std::vector<ValueId> GradientReductions::bring_home(std::vector<ValueId> gradients,
                                                    const std::vector<Sharding>& to,
                                                    const GradientsReduced& reason,
                                                    std::vector<Item>& items) {
  if (runtime_.model_sums == ModelSums::apart) add_over_model(gradients, to, reason, items);
  const std::size_t begin = items.size();
  std::vector<ValueId> home =
      builder_.bring_together(gradients, to, Stream::reductions, reason.unit, reason, items);
  if (runtime_.copies == GradientCopies::chunks) {
    for (std::size_t i = begin; i < items.size(); ++i) builder_.hold_padding(items[i]);
  }
  return home;
}

GradientReductions::Together GradientReductions::together(const std::vector<Write>& writes) {
  Together all;
  for (const Write& write : writes) {
    all.gradients.push_back(write.gradient);
    all.targets.push_back(targets_.at(write.parameter));
    all.parameters.push_back(write.parameter);
    for (const AxisRef& axis : builder_.value(write.gradient).sharding.partial) {
      if (!overlaps_any(axis, data_axes_)) model_axes_[write.parameter].push_back(axis);
    }
  }
  return all;
}

AxisList GradientReductions::model_axes(TensorId parameter) const {
  const auto found = model_axes_.find(parameter);
  return found != model_axes_.end() ? found->second : AxisList{};
}

void GradientReductions::keep(const std::vector<TensorId>& owners,
                              const std::vector<ValueId>& gradients) {
  for (std::size_t i = 0; i < owners.size(); ++i) {
    ValueId stored = gradients[i];  // a sum over replicas lies where its summand was
    while (builder_.value(stored).storage != no_value) stored = builder_.value(stored).storage;
    builder_.value(stored).category = BufferCategory::gradients;
    gradients_[owners[i]] = gradients[i];
  }
}

std::vector<ValueId> GradientReductions::kept(std::vector<ValueId> gradients,
                                              const std::string& unit, std::vector<Item>& items) {
  const std::vector<BufferCategory> categories(gradients.size(), BufferCategory::gradients);
  gradients = cast_gradients(std::move(gradients), gradient_dtype_, categories, unit, items);
  return to_host_ ? send_to_host(builder_, gradients, unit, items) : gradients;
}

// Of a tied table that the loss in chunks has had a gradient of, and now the look-ups: each is
// reduced (FSDP2 adds to the shard's gradient, _fsdp_collectives.py, foreach_reduce).
void GradientReductions::add_to_kept(std::vector<TensorId>& owners, std::vector<ValueId>& reduced,
                                     std::string_view unit, std::vector<Item>& items) {
  for (std::size_t i = owners.size(); i-- > 0;) {
    const auto earlier = gradients_.find(owners[i]);
    if (earlier == gradients_.end()) continue;
    const Value sum = builder_.value(earlier->second);
    Item addition;
    addition.stream = Stream::reductions;
    addition.name = fmt::format("{} gradients added up", unit);
    addition.operands = {earlier->second, reduced[i]};
    addition.results = {builder_.add_view(earlier->second, sum.sharding)};
    addition.kernel.op = "add";
    addition.kernel.dtype = sum.dtype;
    addition.kernel.bytes = 3 * sum.bytes;  // two read, one written
    const std::int64_t elements = sum.bytes.count() / size_of(sum.dtype).count();
    addition.kernel.flops = Flops(static_cast<double>(elements));
    earlier->second = addition.results.front();
    items.push_back(std::move(addition));
    owners.erase(owners.begin() + static_cast<std::ptrdiff_t>(i));
    reduced.erase(reduced.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void GradientReductions::reduce_together(const std::vector<Write>& writes, const std::string& unit,
                                         BlockPass& pass, std::vector<Item>& items) {
  auto [made, shardings, parameters] = together(writes);
  std::vector<ValueId> sources = cast_to_reduce(std::move(made), shardings, unit, items);
  const GradientsReduced reason{unit, parameters};
  // Reduced, then added up; what is not reduced in each microbatch is when it is added up.
  std::vector<Sharding> each_time;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    each_time.push_back(reduced_each_time(builder_.value(sources[i]).sharding, shardings[i]));
  }
  copy_to_sum(sources, each_time, unit, items);
  const std::vector<ValueId> summands = bring_home(sources, each_time, reason, items);
  std::vector<ValueId> early_summands, late_summands;
  std::vector<Sharding> late_targets;
  std::vector<TensorId> early, late;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const bool is_done = each_time[i] == shardings[i];
    (is_done ? early_summands : late_summands).push_back(summands[i]);
    if (!is_done) late_targets.push_back(shardings[i]);
    (is_done ? early : late).push_back(writes[i].parameter);
  }
  std::vector<ValueId> reduced = kept(early_summands, unit, items);
  add_to_kept(early, reduced, unit, items);
  keep(early, accumulate(reduced, unit, pass));
  const std::vector<ValueId> sums = accumulate(late_summands, unit, pass);
  std::vector<Item>& last = pass.last_reductions;
  keep(late, kept(bring_home(sums, late_targets, {unit, late}, last), unit, last));
}

}  // namespace shardsim
