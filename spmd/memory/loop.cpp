// Loops: their state, and what XLA makes once before them.
#include <algorithm>
#include <iterator>

#include "spmd/memory/builder.hpp"

namespace shardsim::spmd {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

namespace {

void insert(Sources& sources, BufferId buffer) {
  const auto at = std::lower_bound(sources.begin(), sources.end(), buffer);
  if (at == sources.end() || *at != buffer) sources.insert(at, buffer);
}

}  // namespace

void KernelBuilder::loop(OpId id, RegionId region) {
  const Op& op = main_.op(id);
  const RegionId body = op.regions.back();
  Kernel kernel;
  kernel.op = id;
  kernel.kind = KernelKind::loop;
  kernel.inner = {body};
  kernel.in_place = InPlace::initial;
  enter_loop(op, region, kernel);
  walk(body);
  leave_loop(op, region, kernel);
  kernels(region).push_back(std::move(kernel));
}

void KernelBuilder::enter_loop(const Op& op, RegionId region, Kernel& kernel) {
  const RegionId body = op.regions.back();
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    const ValueId inside = main_.regions[at(body)].arguments[i];
    const Sources& initial = sources(op.operands[i]);
    if (fusion_.is_invariant(main_, op, i)) {
      sources(inside) = initial;
      sources(op.results[i]) = initial;
      continue;
    }
    for (const BufferId buffer : initial) insert(kernel.reads, buffer);
    const bool is_reordered = target_ == MemoryTarget::gpu && layout_.reordered_state[at(inside)];
    kernel.initial.push_back(is_reordered ? no_buffer : single(initial));
    const BufferId around = add_buffer(main_.type_of(op.results[i]), kernel.op, region);
    buffer_of(around).needs_own_place = is_reordered;
    buffer_of(around).is_foreign =
        target_ == MemoryTarget::gpu && layout_.foreign_result[at(op.results[i])];
    kernel.writes.push_back(around);
    sources(op.results[i]) = {around};
    const BufferId state = add_buffer(main_.type_of(inside), kernel.op, body);
    buffer_of(state).is_outside = true;
    buffer_of(state).is_kept = true;
    sources(inside) = {state};
  }
}

void KernelBuilder::leave_loop(const Op& op, RegionId region, Kernel& kernel) {
  const RegionId body = op.regions.back();
  const Region& inside = main_.regions[at(body)];
  const Op& terminator = main_.op(inside.ops.back());
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    if (fusion_.is_invariant(main_, op, i)) continue;
    // The next state takes the place of this one where that is free.
    for (const BufferId id : sources(terminator.operands[i])) {
      Buffer& buffer = buffer_of(id);
      if (buffer.region != body || buffer.is_outside || buffer.is_token) continue;
      buffer.is_kept = true;
      if (buffer.home == no_buffer && !buffer.needs_own_place) {
        buffer.home = sources(inside.arguments[i]).front();
      }
    }
  }
  for (const Kernel& reader : kernels(body)) {
    for (const BufferId buffer : reader.reads) {
      if (buffer_of(buffer).region != body) insert(kernel.reads, buffer);
    }
  }
  // What was hoisted out of the body is made here or still further out.
  for (auto buffer = wanted_.begin(); buffer != wanted_.end();) {
    insert(kernel.reads, *buffer);
    buffer = buffer_of(*buffer).region == region ? wanted_.erase(buffer) : std::next(buffer);
  }
  for (auto hoisted = hoists_.begin(); hoisted != hoists_.end();) {
    if (buffer_of(hoisted->writes.front()).region != region) {
      ++hoisted;
      continue;
    }
    kernels(region).push_back(std::move(*hoisted));
    hoisted = hoists_.erase(hoisted);
  }
}

// A TPU casts a stack that no round of the loop changes as a whole, before the loop.
Sources KernelBuilder::cast_sources(OpId id, RegionId region) {
  const Op& op = main_.op(id);
  Sources read = sources_of_operands(op);
  const BufferId source = single(read);
  if (target_ != MemoryTarget::tpu || source == no_buffer || buffer_of(source).region == region) {
    return read;
  }
  const auto stack = fusion_.sliced_stack(main_, op.operands.front());
  const TensorType& to = main_.type_of(op.results.front());
  if (!stack || !is_narrower(to, main_.type_of(op.operands.front()))) return read;
  TensorType whole = main_.type_of(*stack);
  whole.dtype = to.dtype;
  whole.element = to.element;
  return {hoist(source, id, whole, "cast to " + to.element)};
}

// A GPU may have to turn the stack of layers that is sliced, before the loop.
Sources KernelBuilder::slice_sources(OpId id, RegionId region) {
  const Op& op = main_.op(id);
  Sources read = sources_of_operands(op);
  const BufferId stack = single(read);
  if (target_ != MemoryTarget::gpu || stack == no_buffer || buffer_of(stack).region == region)
    return read;
  if (!layout_.turns_stack[at(op.results.front())] && !buffer_of(stack).is_foreign) return read;
  return {hoist(stack, id, TensorType(buffer_of(stack).type), "turned")};
}

BufferId KernelBuilder::hoist(BufferId source, OpId op, const TensorType& type,
                              const std::string& what) {
  const auto [entry, is_new] = hoisted_.emplace(std::make_pair(source, what), no_buffer);
  if (is_new) {
    entry->second = add_buffer(type, op, buffer_of(source).region);
    Kernel kernel;
    kernel.op = op;
    kernel.reads = {source};
    kernel.writes = {entry->second};
    hoists_.push_back(std::move(kernel));
  }
  wanted_.insert(entry->second);
  return entry->second;
}

}  // namespace shardsim::spmd
