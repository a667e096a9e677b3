#include "spmd/memory/kernels.hpp"

#include <algorithm>
#include <iterator>

#include "spmd/collective_plan.hpp"
#include "spmd/memory/builder.hpp"
#include "stablehlo/dimension_numbers.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::spmd {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

namespace {

void merge(Sources& into, const Sources& from) {
  Sources merged;
  std::set_union(into.begin(), into.end(), from.begin(), from.end(), std::back_inserter(merged));
  into = std::move(merged);
}

KernelKind kernel_kind(const Op& op) {
  if (op.name == "stablehlo.while") return KernelKind::loop;
  if (op.name == "stablehlo.reduce") return KernelKind::reduction;
  if (is_collective(op)) return KernelKind::collective;
  return is_dot(op) ? KernelKind::dot : KernelKind::other;
}

}  // namespace

KernelBuilder::KernelBuilder(const Module& module, const Function& main, MemoryTarget target,
                             bool is_tight)
    : module_(module),
      main_(main),
      target_(target),
      is_tight_(is_tight),
      fusion_(fusion_of(module, main, target, is_tight)),
      donors_(donors_of_results(module, main)),
      sources_(main.values.size()) {
  graph_.regions.resize(main.regions.size());
  if (target == MemoryTarget::gpu) layout_ = gpu_layout_copies(module, main);
}

KernelGraph KernelBuilder::build() {
  for (const ValueId argument : main_.body().arguments) {
    const BufferId buffer = add_buffer(main_.type_of(argument), no_op, 0);
    buffer_of(buffer).is_outside = true;
    buffer_of(buffer).is_kept = true;
    arguments_.push_back(buffer);
    sources(argument) = {buffer};
  }
  if (target_ == MemoryTarget::tpu && !is_tight_) copy_replaced_arguments();
  walk(0);
  place_outputs();
  if (target_ == MemoryTarget::tpu) {
    for (KernelRegion& region : graph_.regions) find_windowed(region.kernels);
  }
  return std::move(graph_);
}

BufferId KernelBuilder::add_buffer(const TensorType& type, OpId op, RegionId region) {
  Buffer buffer;
  buffer.bytes = allocated_bytes(type, target_);
  buffer.type = type;
  buffer.op = op;
  buffer.region = region;
  graph_.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(graph_.buffers.size()) - 1;
}

BufferId KernelBuilder::add_copy(BufferId from, OpId op, RegionId region) {
  const BufferId copy = add_buffer(TensorType(buffer_of(from).type), op, region);
  Kernel kernel;
  kernel.op = op;
  kernel.reads = {from};
  kernel.writes = {copy};
  kernels(region).push_back(std::move(kernel));
  return copy;
}

BufferId KernelBuilder::single(const Sources& sources) const {
  BufferId found = no_buffer;
  for (const BufferId source : sources) {
    if (graph_.buffers[at(source)].is_token) continue;
    if (found != no_buffer) return no_buffer;
    found = source;
  }
  return found;
}

void KernelBuilder::walk(RegionId region) {
  for (const OpId id : main_.regions[at(region)].ops) {
    if (fusion_.is_live[at(id)]) visit(id, region);
  }
}

void KernelBuilder::visit(OpId id, RegionId region) {
  const Op& op = main_.op(id);
  switch (fusion_.kind[at(id)]) {
    case OpKind::terminator:
      return;
    case OpKind::barrier:
      return barrier(id, region);
    case OpKind::view:
      for (std::size_t i = 0; i < op.results.size() && i < op.operands.size(); ++i) {
        sources(op.results[i]) = sources(op.operands[i]);
      }
      return;
    case OpKind::fusible:
      return fusible(id, region);
    case OpKind::update:
      return update(id, region);
    case OpKind::loop:
      return loop(id, region);
    case OpKind::branch:
      return branch(id, region);
    case OpKind::kernel:
      return add_kernel(id, region,
                        op.name == "stablehlo.all_reduce" ? InPlace::any : InPlace::never);
  }
}

// What is read through a barrier is there only after all of its operands are.
void KernelBuilder::barrier(OpId id, RegionId region) {
  const Op& op = main_.op(id);
  Buffer buffer;
  buffer.op = id;
  buffer.region = region;
  buffer.is_token = true;
  graph_.buffers.push_back(std::move(buffer));
  const auto token = static_cast<BufferId>(graph_.buffers.size()) - 1;
  Kernel kernel;
  kernel.op = id;
  kernel.reads = sources_of_operands(op);
  kernel.writes = {token};
  for (std::size_t i = 0; i < op.results.size() && i < op.operands.size(); ++i) {
    sources(op.results[i]) = sources(op.operands[i]);
    sources(op.results[i]).push_back(token);
  }
  kernels(region).push_back(std::move(kernel));
}

void KernelBuilder::fusible(OpId id, RegionId region) {
  const ValueId result = main_.op(id).results.front();
  if (!fusion_.is_buffer[at(result)]) {
    sources(result) = sources_read(id, region);
    return;
  }
  // What is written in another order than it is read cannot go over what is read.
  const bool is_turned = target_ == MemoryTarget::gpu && layout_.turned[at(result)];
  add_kernel(id, region, is_turned ? InPlace::never : InPlace::any);
  if (!fusion_.in_two_orders[at(result)]) return;
  const BufferId other = add_buffer(main_.type_of(result), id, region);
  other_order_.emplace(sources(result).front(), other);
  kernels(region).back().writes.push_back(other);
}

// dynamic_update_slice and scatter write into their first operand where that may be overwritten.
void KernelBuilder::update(OpId id, RegionId region) {
  const Op& op = main_.op(id);
  const BufferId target = single(sources(op.operands.front()));
  const bool is_ours = target != no_buffer && buffer_of(target).region == region &&
                       (region != 0 || !buffer_of(target).is_outside);
  if (!is_ours || !fusion_.is_buffer[at(op.operands.front())] || op.results.size() != 1) {
    add_kernel(id, region, InPlace::any);
    return;
  }
  Kernel kernel;
  kernel.op = id;
  kernel.reads = sources_of_operands(op);
  kernel.updates = target;
  sources(op.results.front()) = {target};
  kernels(region).push_back(std::move(kernel));
}

void KernelBuilder::branch(OpId id, RegionId region) {
  const Op& op = main_.op(id);
  for (const RegionId inner : op.regions) walk(inner);
  add_kernel(id, region, InPlace::never);
  Kernel& kernel = kernels(region).back();
  kernel.inner = op.regions;
  for (const RegionId inner : op.regions) {
    for (const Kernel& inside : kernels(inner)) {
      for (const BufferId buffer : inside.reads) {
        if (buffer_of(buffer).region != inner) merge(kernel.reads, {buffer});
      }
    }
  }
}

void KernelBuilder::add_kernel(OpId id, RegionId region, InPlace in_place) {
  const Op& op = main_.op(id);
  Kernel kernel;
  kernel.op = id;
  kernel.kind = kernel_kind(op);
  kernel.in_place = in_place;
  kernel.reads = sources_read(id, region);
  for (const ValueId result : op.results) {
    const BufferId buffer = add_buffer(main_.type_of(result), id, region);
    buffer_of(buffer).needs_own_place = needs_own_place(op);
    kernel.writes.push_back(buffer);
    sources(result) = {buffer};
  }
  kernels(region).push_back(std::move(kernel));
}

// A GPU gathers along the major dimension; along another the result has to be transposed.
bool KernelBuilder::gathers_across(const Op& op) const {
  if (op.name != "stablehlo.all_gather" || target_ != MemoryTarget::gpu) return false;
  const OpView view(module_, main_, op);
  const auto dim = view.integer({"all_gather_dim"}, 0);
  (void)view.size(view.result(0), dim);
  const auto& dims = view.result(0);
  return std::any_of(dims.begin(), dims.begin() + dim, [](std::int64_t size) { return size > 1; });
}

bool KernelBuilder::needs_own_place(const Op& op) const {
  const bool waits = target_ == MemoryTarget::tpu && is_tight_ && op.name == "stablehlo.all_gather";
  return waits || gathers_across(op);
}

// The positions that slices and updates take are scalars and left out.
Sources KernelBuilder::sources_of_operands(const Op& op) {
  std::size_t count = op.operands.size();
  if (op.name == "stablehlo.dynamic_slice") count = 1;
  if (op.name == "stablehlo.dynamic_update_slice") count = 2;
  Sources all;
  for (std::size_t i = 0; i < count; ++i) merge(all, sources(op.operands[i]));
  return all;
}

Sources KernelBuilder::sources_read(OpId id, RegionId region) {
  const Op& op = main_.op(id);
  if (op.name == "stablehlo.dot_general") return dot_sources(op);
  if (op.name == "stablehlo.convert") return cast_sources(id, region);
  if (op.name == "stablehlo.dynamic_slice") return slice_sources(id, region);
  return sources_of_operands(op);
}

// Of what is kept in two orders, a dot that does not contract the last dimension reads the other.
Sources KernelBuilder::dot_sources(const Op& op) {
  const DotDimensions dims = dot_dimensions(OpView(module_, main_, op));
  Sources all;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const auto& contracted = i == 0 ? dims.lhs_contracting : dims.rhs_contracting;
    const int last = static_cast<int>(main_.type_of(op.operands[i]).rank()) - 1;
    const auto other = other_order_.find(single(sources(op.operands[i])));
    const bool is_last = std::find(contracted.begin(), contracted.end(), last) != contracted.end();
    if (other != other_order_.end() && !is_last) {
      merge(all, {other->second});
    } else {
      merge(all, sources(op.operands[i]));
    }
  }
  return all;
}

// A TPU gathers straight into the place of a donated argument; what the step still reads of the
// argument it reads from a copy made at the start.
void KernelBuilder::copy_replaced_arguments() {
  const Op& terminator = main_.op(main_.body().ops.back());
  for (std::size_t i = 0; i < terminator.operands.size(); ++i) {
    if (donors_[i] < 0) continue;
    const ValueId made = fusion_.viewed(main_, terminator.operands[i]);
    const OpId op = main_.values[at(made)].defined_by;
    if (op == no_op || main_.op(op).name != "stablehlo.all_gather") continue;
    const auto argument = at(donors_[i]);
    sources(main_.body().arguments[argument]) = {add_copy(arguments_[argument], op, 0)};
  }
}

void KernelBuilder::place_outputs() {
  const Op& terminator = main_.op(main_.body().ops.back());
  for (std::size_t i = 0; i < terminator.operands.size(); ++i) {
    for (const BufferId id : sources(terminator.operands[i])) {
      Buffer& buffer = buffer_of(id);
      if (buffer.is_outside || buffer.is_token) continue;
      if (is_tight_ && target_ == MemoryTarget::gpu && buffer.needs_own_place && donors_[i] >= 0) {
        const BufferId turned = add_copy(id, buffer.op, 0);
        buffer_of(turned).is_kept = true;
        buffer_of(turned).home = arguments_[at(donors_[i])];
        continue;
      }
      buffer.is_kept = true;
      if (donors_[i] < 0) {
        buffer.is_outside = true;  // has a place of its own
      } else if (buffer.home == no_buffer && !buffer.needs_own_place) {
        buffer.home = arguments_[at(donors_[i])];
      }
    }
  }
}

// A TPU runs a dot and the reduce_scatter of its result as one ring when the group is large enough.
// With an all_reduce over other devices behind it (hsdp) there is no ring: the reduce_scatter runs
// right after the dot, so that the dot need not wait either (llama3-8b hsdp 2x16 on v5p, mistral-7b
// 2x32 and qwen3-1.7b 4x4 on v5e). In groups of 64 and more the dot waits in both cases (llama3-8b
// hsdp 4x64 on v6e, llama3-70b fsdp 128 on v5p).
void KernelBuilder::find_windowed(std::vector<Kernel>& kernels) const {
  constexpr std::size_t smallest_ring = 4;
  constexpr std::size_t always_late = 64;
  std::map<BufferId, Kernel*> dots;
  std::map<BufferId, int> readers;
  std::set<BufferId> is_all_reduced;
  for (Kernel& kernel : kernels) {
    if (kernel.kind == KernelKind::dot) dots.emplace(kernel.writes.front(), &kernel);
    for (const BufferId read : kernel.reads) ++readers[read];
    if (main_.op(kernel.op).name != "stablehlo.all_reduce") continue;
    is_all_reduced.insert(kernel.reads.begin(), kernel.reads.end());
  }
  for (const Kernel& kernel : kernels) {
    const Op& op = main_.op(kernel.op);
    if (op.name != "stablehlo.reduce_scatter") continue;
    const BufferId shard = kernel.writes.front();
    const std::size_t devices = group_size(op);
    const bool is_ring = devices >= (is_all_reduced.count(shard) > 0 ? always_late : smallest_ring);
    for (const BufferId read : kernel.reads) {
      const auto dot = dots.find(read);
      if (dot == dots.end()) continue;
      dot->second->is_windowed = is_ring;
      if (!is_ring && readers[read] == 1) dot->second->reduced = shard;
    }
  }
}

std::size_t KernelBuilder::group_size(const Op& op) const {
  const Attribute* groups = find(op.attributes, "replica_groups");
  if (groups == nullptr || groups->items.empty()) return 0;
  return groups->items.front().items.size();
}

KernelGraph kernels_of(const Module& module, const Function& main, MemoryTarget target,
                       bool is_tight) {
  return KernelBuilder(module, main, target, is_tight).build();
}

}  // namespace shardsim::spmd
