#include "strategies/runtime/gradient_buffers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace shardsim {

GradientBuffers::GradientBuffers(SpmdBuilder& builder, const Layout& layout,
                                 const GradientBuffer& runtime, const Step& step)
    : builder_(builder), layout_(layout), runtime_(runtime), dtype_(step.optimizer.gradients) {
  for (const Block& block : builder.workload().blocks) {
    for (const Op& op : block.optimizer) {
      for (const Operand& operand : op.operands) {
        if (builder.tensor(operand.tensor).role == TensorRole::parameter) {
          updates_[operand.tensor] = &op;
        }
      }
    }
  }
}

void GradientBuffers::add(BlockPass& pass) {
  std::vector<Item> made = std::move(pass.body);
  std::vector<Item> body;
  auto write = pass.writes.begin();
  for (std::size_t i = 0; i <= made.size(); ++i) {
    for (; write != pass.writes.end() && write->after == i; ++write) {
      const ValueId main = add_main(*write);
      const bool is_added = !body.empty() && adds_up(body.back(), *write, main);
      if (!is_added) body.push_back(addition(*write, main));
      if (!is_added && runtime_.behind_ddp) pass.made.push_back(write->gradient);
      write->after = body.size();
      write->gradient = main;
    }
    if (i < made.size()) body.push_back(std::move(made[i]));
  }
  pass.body = std::move(body);
}

ValueId GradientBuffers::add_main(const Write& write) {
  const Value made = builder_.value(write.gradient);
  const ValueId main =
      builder_.add_value(made.tensor, made.sharding, dtype_, BufferCategory::gradients);
  BufferedGradient gradient;
  gradient.main = main;
  gradient.elements = builder_.value(main).bytes.count() / size_of(dtype_).count();
  // What holds the same experts may be of the model axis, too.
  const bool of_experts = is_of_routed_experts(builder_.workload(), write.parameter);
  gradient.dealt_out = of_experts && layout_.experts && !layout_.experts->parallel.empty();
  if (gradient.dealt_out || (of_experts && runtime_.order == BufferOrder::registered)) {
    gradient.experts = shard_size(builder_.shape(write.parameter).front(), made.sharding.dims[0]);
    gradient.one_by_one = layout_.experts && !layout_.experts->grouped;
  }
  for (const AxisRef& axis : made.sharding.partial) {
    const bool is_data = gradient.dealt_out || overlaps_any(axis, layout_.data_axes);
    (is_data ? gradient.axes : gradient.model_axes).push_back(axis);
  }
  if (const auto update = updates_.find(write.parameter); update != updates_.end()) {
    for (const Operand& operand : update->second->operands) {
      const Tensor& tensor = builder_.tensor(operand.tensor);
      if (tensor.role == TensorRole::optimizer_state) {
        gradient.state_bytes += size_of(tensor.dtype).count();
      }
    }
    gradient.update_flops = traits(update->second->function).flops;
  }
  builder_.step.buffered[write.parameter] = std::move(gradient);
  return main;
}

bool GradientBuffers::adds_up(Item& item, const Write& write, ValueId main) {
  const bool makes_it = item.results.size() == 1 && item.results.front() == write.gradient;
  if (makes_it && is_alone(write.gradient, main)) {
    const ValueId first = item.operands.front();
    const bool in_place = item.kernel.op == "add" && item.operands.size() == 2 &&
                          builder_.value(write.gradient).storage == first;
    builder_.value(write.gradient).storage = main;
    if (in_place) builder_.step.buffered.at(write.parameter).first = first;
    return true;
  }
  const bool is_product =
      item.kind == TaskKind::kernel && item.kernel.kernel_class == KernelClass::matmul;
  if (!runtime_.adds_in_products || !makes_it || !is_product) return false;
  Value& made = builder_.value(write.gradient);
  const Bytes added = 2 * builder_.value(main).bytes - made.bytes;
  item.kernel.bytes += added;
  item.kernel.added = added;
  made.storage = main;
  made.dtype = dtype_;
  made.bytes = builder_.value(main).bytes;
  return true;
}

bool GradientBuffers::copies() const {
  return runtime_.kept == BufferKept::shards || runtime_.kept == BufferKept::room;
}

bool GradientBuffers::is_alone(ValueId made, ValueId main) const {
  const Value& gradient = builder_.value(made);
  const std::int64_t elements = gradient.bytes.count() / size_of(gradient.dtype).count();
  return copies() && runtime_.closes == BucketCloses::before && runtime_.bucket_elements > 0 &&
         elements > runtime_.bucket_elements && gradient.dtype == builder_.value(main).dtype;
}

Item GradientBuffers::addition(const Write& write, ValueId main) {
  const Bytes added = builder_.value(write.gradient).bytes;
  const Value sum = builder_.value(main);
  Item item;
  item.name = fmt::format("{} gradient accumulation", builder_.tensor(write.parameter).name);
  if (lies_beside(runtime_.kept)) return sum_apart(std::move(item), write.gradient, main);
  item.operands = {write.gradient, main};
  item.results = {builder_.add_view(main, sum.sharding)};
  item.kernel.dtype = dtype_;
  if (copies()) {
    if (runtime_.kept == BufferKept::room && runtime_.overlaps) item.stream = Stream::reductions;
    item.kernel.op = "copy";
    item.kernel.bytes = added + sum.bytes;
    return item;
  }
  item.kernel.op = "add";
  item.kernel.bytes = added + 2 * sum.bytes;
  const std::int64_t elements = sum.bytes.count() / size_of(dtype_).count();
  item.kernel.flops = Flops(static_cast<double>(elements));
  return item;
}

// The first is the sum, or cast to it; others are added in its place (autograd's AccumulateGrad).
Item GradientBuffers::sum_apart(Item item, ValueId made, ValueId main) {
  Value& gradient = builder_.value(made);
  const Value sum = builder_.value(main);
  if (gradient.dtype == sum.dtype) gradient.category = BufferCategory::gradients;
  item.adds_up = true;
  item.operands = {made};
  item.results = {main};
  item.kernel.op = "add";
  item.kernel.bytes = gradient.bytes + 2 * sum.bytes;
  const std::int64_t elements = sum.bytes.count() / size_of(sum.dtype).count();
  item.kernel.flops = Flops(static_cast<double>(elements));
  return item;
}

}  // namespace shardsim
