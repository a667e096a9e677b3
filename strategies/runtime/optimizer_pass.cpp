#include "strategies/runtime/optimizer_pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace shardsim {

OptimizerPass::OptimizerPass(SpmdBuilder& builder, const Units& units, const Layout& layout,
                             const GradientReductions& gradients, const SharedGradients& shared,
                             bool donates, const Runtime& runtime, bool clips)
    : builder_(builder),
      units_(units),
      layout_(layout),
      gradients_(gradients),
      shared_(shared),
      donates_(donates),
      runtime_(runtime),
      clips_(clips) {
  for (const ParameterLayout& a : layout.parameters) layouts_[a.tensor] = &a;
  const std::vector<Block>& blocks = builder.workload().blocks;
  const bool updates = std::any_of(blocks.begin(), blocks.end(),
                                   [](const Block& b) { return !b.optimizer.empty(); });
  if (runtime.flat_optimizer && !updates && has_backward(builder.workload())) {
    throw InputError({"", "/workload/optimizer"},
                     "\"none\" is not supported with the flat optimizer of gradient buffers");
  }
}

void OptimizerPass::add(std::size_t b) {
  const Block& block = builder_.workload().blocks[b];
  if (block.optimizer.empty()) return;
  if (runtime_.flat_optimizer) require_flat_states(block);
  const bool has_buffer = runtime_.reductions.buffer.has_value();
  if (has_buffer || clips_) add_up_shared(block, builder_.step.blocks[b].shared);
  if (clips_ && !has_buffer) clip(block, builder_.step.blocks[b].clipped);
  if (runtime_.flat_optimizer) return;
  BlockPass& pass = builder_.step.blocks[b].optimizer;
  Item update;
  update.name = fmt::format("{} optimizer", block.name);
  update.kernel = {std::string(name_of(block.optimizer.front().function)),
                   is_on_host() ? KernelClass::host : KernelClass::memory, DType::f32, Flops(0),
                   Bytes(0)};
  std::vector<ValueId> updated;
  std::vector<Sharding> stored;
  std::vector<ValueId> homes;
  for (const Op& op : block.optimizer) {
    const TensorId parameter = parameter_of(op);
    const ParameterLayout& a = *layouts_.at(parameter);
    const std::int64_t elements = shard_elements(a.shape, a.optimizer);
    for (const Operand& operand : op.operands)
      update.operands.push_back(read(operand.tensor, a, pass));
    update.kernel.flops +=
        Flops(static_cast<double>(elements) * traits(op.function).flops * op.work_fraction);
    const ValueId home = new_state(builder_.step.parameters.at(parameter).stored);
    const ValueId shard = builder_.add_view(home, a.optimizer);
    update.results.push_back(shard);
    if (a.optimizer == a.stored) continue;
    updated.push_back(shard);
    stored.push_back(a.stored);
    homes.push_back(home);
  }
  // Read: everything; written: all but the gradients, in place.
  for (const ValueId v : update.operands) {
    const bool gradient =
        builder_.tensor(builder_.value(v).tensor).role == TensorRole::parameter_gradient;
    update.kernel.bytes += (gradient ? 1 : 2) * builder_.value(v).bytes;
  }
  pass.body.push_back(std::move(update));
  gather_updated(units_.name(b), updated, stored, homes, pass);
}

// A flat optimizer has as many numbers of each state as of its parameters.
void OptimizerPass::require_flat_states(const Block& block) const {
  for (const Op& op : block.optimizer) {
    const TensorId parameter = parameter_of(op);
    for (const Operand& operand : op.operands) {
      const bool is_state = builder_.tensor(operand.tensor).role == TensorRole::optimizer_state;
      if (!is_state || builder_.shape(operand.tensor) == builder_.shape(parameter)) continue;
      throw InputError(
          {"", "/workload/optimizer"},
          fmt::format("{} keeps states of other shapes than its parameters', which the "
                      "flat optimizer of gradient buffers has not",
                      name_of(op.function)));
    }
  }
}

void OptimizerPass::add_up_shared(const Block& block, std::vector<Item>& items) {
  for (const Op& op : block.optimizer) {
    const TensorId parameter = parameter_of(op);
    if (!shared_.is_shared(parameter)) continue;
    added_up_[parameter] =
        shared_.add_up(builder_, parameter, gradients_.gradient(parameter), items);
  }
}

void OptimizerPass::clip(const Block& block, std::vector<ClippedGradient>& clipped) const {
  for (const Op& op : block.optimizer) {
    const TensorId parameter = parameter_of(op);
    const auto added = added_up_.find(parameter);
    const ValueId gradient =
        added != added_up_.end() ? added->second : gradients_.gradient(parameter);
    AxisList axes = gradients_.model_axes(parameter);
    // DTensors are of a mesh with the model axis, those that are whole over it, too.
    if (layout_.input_gradients == InputGradients::late && sums_of(parameter, axes).empty()) {
      axes.insert(axes.end(), layout_.model_axes.begin(), layout_.model_axes.end());
    }
    for (const AxisRef& axis : split_axes(builder_.value(gradient).sharding)) {
      if (!contains(axes, axis)) axes.push_back(axis);
    }
    std::sort(axes.begin(), axes.end());
    axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
    std::vector<AxisList> sums = sums_of(parameter, axes);
    clipped.push_back({gradient, std::move(axes), std::move(sums)});
  }
}

// Experts have a mesh of their own, shards and what they are dealt out over; one call where these
// together are what the loss is added up over, which is a mesh axis, too
// (torchtitan/distributed/parallel_dims.py, "loss_mesh").
std::vector<AxisList> OptimizerPass::sums_of(TensorId parameter, const AxisList& axes) const {
  if (!layout_.experts || layout_.experts->parallel.empty() ||
      !is_of_routed_experts(builder_.workload(), parameter)) {
    return {};
  }
  const AxisList all = merged(axes);
  if (all == merged(layout_.data_axes)) return {all};
  const AxisList& dealt_out = layout_.experts->parallel;
  AxisList shards = axes;
  std::erase_if(shards, [&](const AxisRef& axis) { return contains(dealt_out, axis); });
  if (shards.empty()) return {dealt_out};
  return {shards, dealt_out};
}

ValueId OptimizerPass::new_state(ValueId old) {
  if (donates_) return old;
  Value made = builder_.value(old);
  made.name += " (new)";
  builder_.step.values.push_back(std::move(made));
  return static_cast<ValueId>(builder_.step.values.size()) - 1;
}

TensorId OptimizerPass::parameter_of(const Op& op) const {
  const auto found =
      std::find_if(op.operands.begin(), op.operands.end(), [&](const Operand& operand) {
        return builder_.tensor(operand.tensor).role == TensorRole::parameter;
      });
  return found->tensor;
}

ValueId OptimizerPass::read(TensorId tensor, const ParameterLayout& a, BlockPass& pass) {
  const TensorRole role = builder_.tensor(tensor).role;
  if (role == TensorRole::optimizer_state) {
    const ValueId state =
        builder_.add_value(tensor, sharding_of_state(tensor, a), builder_.tensor(tensor).dtype,
                           BufferCategory::optimizer);
    builder_.value(state).persistent = true;
    builder_.value(state).on_host = is_on_host();
    new_state(state);
    return state;
  }
  if (is_on_host() && shared_.is_shared(a.tensor)) {
    throw InputError({"", "/strategy/offload/parameters"},
                     fmt::format("{} is of two stages, whose gradients are not added up on the "
                                 "host: \"tie_word_embeddings\": false in the model unties them",
                                 builder_.tensor(a.tensor).name));
  }
  ValueId whole = role == TensorRole::parameter ? builder_.step.parameters.at(tensor).stored
                                                : gradients_.gradient(a.tensor);
  const bool is_gradient = role != TensorRole::parameter;
  const auto added = added_up_.find(a.tensor);
  const bool has_buffer = runtime_.reductions.buffer.has_value();
  if (is_gradient && !has_buffer && added != added_up_.end()) {
    whole = added->second;
  } else if (is_gradient && !has_buffer && shared_.is_shared(a.tensor)) {
    whole = shared_.add_up(builder_, a.tensor, whole, pass.body);
  }
  return builder_.bring(whole, a.optimizer, Stream::reductions, OptimizerReads{a.tensor},
                        pass.body);
}

Sharding OptimizerPass::sharding_of_state(TensorId state, const ParameterLayout& a) const {
  const std::vector<Dim>& kept = builder_.tensor(state).dims;
  const std::vector<Dim>& all = builder_.tensor(a.tensor).dims;
  if (kept.size() == all.size()) return a.optimizer;
  Sharding sharding = a.optimizer;
  sharding.dims.clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t next = sharding.dims.size();
    if (next < kept.size() && kept[next] == all[i]) sharding.dims.push_back(a.optimizer.dims[i]);
  }
  return sharding;
}

void OptimizerPass::gather_updated(const std::string& unit, const std::vector<ValueId>& updated,
                                   const std::vector<Sharding>& stored,
                                   const std::vector<ValueId>& homes, BlockPass& pass) {
  if (updated.empty()) return;
  std::vector<TensorId> parameters;
  for (const ValueId shard : updated) parameters.push_back(builder_.value(shard).tensor);
  const std::vector<ValueId> arrived = builder_.bring_together(
      updated, stored, Stream::gathers, unit, UnitUpdated{unit, parameters}, pass.reductions);
  for (std::size_t i = 0; i < arrived.size(); ++i) builder_.value(arrived[i]).storage = homes[i];
}

}  // namespace shardsim
