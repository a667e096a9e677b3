#include "spmd/memory_kernels.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "spmd/memory_fusion.hpp"
#include "spmd/memory_layout.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::spmd {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

namespace {

void merge(Sources& into, const Sources& from) {
  Sources merged;
  std::set_union(into.begin(), into.end(), from.begin(), from.end(), std::back_inserter(merged));
  into = std::move(merged);
}

class Builder {
 public:
  Builder(const Module& module, const Function& main, MemoryTarget target)
      : module_(module),
        main_(main),
        target_(target),
        fusion_(fusion_of(module, main, target)),
        sources_(main.values.size()) {
    graph_.regions.resize(main.regions.size());
    if (target == MemoryTarget::gpu) layout_ = gpu_layout_copies(module, main);
  }

  KernelGraph build() {
    const Region& body = main_.body();
    for (const ValueId argument : body.arguments) {
      const BufferId buffer = add_buffer(argument, no_op, 0);
      at(buffer).outside = true;
      at(buffer).kept = true;
      sources_[index(argument)] = {buffer};
    }
    if (target_ == MemoryTarget::tpu) copy_replaced_arguments();
    walk(0);
    place_outputs();
    return std::move(graph_);
  }

 private:
  static std::size_t index(int id) { return static_cast<std::size_t>(id); }
  Buffer& at(BufferId id) { return graph_.buffers[index(id)]; }

  BufferId add_buffer(ValueId value, OpId op, RegionId region) {
    const TensorType& type = main_.type_of(value);
    Buffer buffer;
    buffer.bytes = allocated_bytes(type, target_);
    buffer.type = text_of(type);
    buffer.type_id = type;
    buffer.op = op;
    buffer.region = region;
    graph_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(graph_.buffers.size()) - 1;
  }

  Sources sources_of_operands(const Op& op) const {
    Sources all;
    for (const ValueId operand : op.operands) merge(all, sources_[index(operand)]);
    return all;
  }

  // What an op reads. A GPU may have to turn the stack of layers that it slices, before the loop.
  Sources sources_read(OpId id, RegionId region) {
    const Op& op = main_.op(id);
    const Sources sources = sources_of_operands(op);
    if (target_ != MemoryTarget::gpu || op.name != "stablehlo.dynamic_slice") return sources;
    if (!layout_.transposes_stack[index(op.results.front())]) return sources;
    const BufferId stack = single(sources_[index(op.operands.front())]);
    if (stack == no_buffer || at(stack).region == region || !at(stack).type_id) return sources;
    return {hoist(stack, id, *at(stack).type_id, "turned")};
  }

  void walk(RegionId region) {
    for (const OpId id : main_.regions[index(region)].ops) {
      if (fusion_.is_live[index(id)]) visit(id, region);
    }
  }

  void visit(OpId id, RegionId region) {
    const Op& op = main_.op(id);
    switch (fusion_.kind[index(id)]) {
      case OpKind::nothing:
        return;
      case OpKind::barrier:
        barrier(id, region);
        return;
      case OpKind::view:
        for (std::size_t i = 0; i < op.results.size() && i < op.operands.size(); ++i) {
          sources_[index(op.results[i])] = sources_[index(op.operands[i])];
        }
        return;
      case OpKind::fusible:
        if (!fusion_.is_buffer[index(op.results.front())]) {
          sources_[index(op.results.front())] = fused_sources(id, region);
          return;
        }
        add_kernel(id, region, is_turned(op) ? InPlace::never : InPlace::any);
        return;
      case OpKind::update:
        update(id, region);
        return;
      case OpKind::loop:
        loop(id, region);
        return;
      case OpKind::branch:
        branch(id, region);
        return;
      case OpKind::kernel:
        add_kernel(id, region, op.name == "stablehlo.all_reduce" ? InPlace::any : InPlace::never);
        return;
    }
  }

  // What a GPU writes in another order than it reads cannot go over what it reads.
  bool is_turned(const Op& op) const {
    return target_ == MemoryTarget::gpu && layout_.turned[index(op.results.front())];
  }

  // A GPU gathers along the major dimension; along another the result has to be transposed.
  bool gathers_across(const Op& op) const {
    if (op.name != "stablehlo.all_gather") return false;
    if (target_ == MemoryTarget::tpu) return false;
    const auto dim = OpView(module_, main_, op).integer({"all_gather_dim"}, 0);
    const auto& dims = main_.type_of(op.results.front()).dims;
    return std::any_of(dims.begin(), dims.begin() + dim,
                       [](std::int64_t size) { return size > 1; });
  }

  // What is read through a barrier is there only after all of its operands are.
  void barrier(OpId id, RegionId region) {
    const Op& op = main_.op(id);
    Buffer token;
    token.op = id;
    token.region = region;
    token.is_token = true;
    graph_.buffers.push_back(std::move(token));
    const auto written = static_cast<BufferId>(graph_.buffers.size()) - 1;
    Kernel kernel;
    kernel.op = id;
    kernel.reads = sources_of_operands(op);
    kernel.writes = {written};
    for (std::size_t i = 0; i < op.results.size() && i < op.operands.size(); ++i) {
      sources_[index(op.results[i])] = sources_[index(op.operands[i])];
      sources_[index(op.results[i])].push_back(written);
    }
    graph_.regions[index(region)].kernels.push_back(std::move(kernel));
  }

  // The one buffer among sources, tokens aside.
  BufferId single(const Sources& sources) const {
    BufferId found = no_buffer;
    for (const BufferId source : sources) {
      if (graph_.buffers[index(source)].is_token) continue;
      if (found != no_buffer) return no_buffer;
      found = source;
    }
    return found;
  }

  void add_kernel(OpId id, RegionId region, InPlace in_place) {
    const Op& op = main_.op(id);
    Kernel kernel;
    kernel.op = id;
    kernel.in_place = in_place;
    kernel.reads = sources_read(id, region);
    for (const ValueId result : op.results) {
      const BufferId buffer = add_buffer(result, id, region);
      at(buffer).needs_own_place = gathers_across(op);
      kernel.writes.push_back(buffer);
      sources_[index(result)] = {buffer};
    }
    graph_.regions[index(region)].kernels.push_back(std::move(kernel));
  }

  // A cast of a slice of a stack that no round of the loop changes is made once for the whole stack
  // before the loop.
  Sources fused_sources(OpId id, RegionId region) {
    const Op& op = main_.op(id);
    const Sources sources = sources_read(id, region);
    const BufferId source = single(sources);
    if (op.name != "stablehlo.convert" || source == no_buffer) return sources;
    const auto stack = fusion_.sliced_stack(main_, op.operands.front());
    if (!stack || at(source).region == region || target_ != MemoryTarget::tpu) return sources;
    const TensorType& to = main_.type_of(op.results.front());
    const TensorType& from = main_.type_of(op.operands.front());
    if (!to.dtype || !from.dtype || bits_of(*to.dtype) >= bits_of(*from.dtype)) return sources;
    TensorType whole = main_.type_of(*stack);
    whole.dtype = to.dtype;
    whole.element = to.element;
    return {hoist(source, id, whole, to.element)};
  }

  BufferId hoist(BufferId source, OpId op, const TensorType& type, const std::string& key) {
    const auto [entry, fresh] = hoisted_.emplace(std::make_pair(source, key), no_buffer);
    if (fresh) {
      Buffer buffer;
      buffer.bytes = allocated_bytes(type, target_);
      buffer.type = text_of(type);
      buffer.op = op;
      buffer.region = at(source).region;
      graph_.buffers.push_back(std::move(buffer));
      entry->second = static_cast<BufferId>(graph_.buffers.size()) - 1;
      Kernel kernel;
      kernel.op = op;
      kernel.reads = {source};
      kernel.writes = {entry->second};
      hoists_.push_back(std::move(kernel));
    }
    wanted_.insert(entry->second);
    return entry->second;
  }

  // dynamic_update_slice and scatter write into their first operand where that is a buffer that may
  // be overwritten.
  void update(OpId id, RegionId region) {
    const Op& op = main_.op(id);
    const BufferId target = single(sources_[index(op.operands.front())]);
    const bool is_buffer = fusion_.is_buffer[index(op.operands.front())] && target != no_buffer;
    if (!is_buffer || op.results.size() != 1 || !may_overwrite(target, region)) {
      add_kernel(id, region, InPlace::any);
      return;
    }
    Kernel kernel;
    kernel.op = id;
    kernel.reads = sources_of_operands(op);
    kernel.updates = target;
    sources_[index(op.results.front())] = {target};
    graph_.regions[index(region)].kernels.push_back(std::move(kernel));
  }

  bool may_overwrite(BufferId buffer, RegionId region) {
    if (at(buffer).region != region) return false;
    return !at(buffer).outside || region != 0;
  }

  // Stacks that an earlier loop wrote in a foreign order are copied before this one reads them.
  void copy_foreign(const Op& loop, RegionId region) {
    for (const ValueId operand : loop.operands) {
      if (!layout_.foreign_result[index(operand)]) continue;
      const BufferId from = single(sources_[index(operand)]);
      if (from == no_buffer) continue;
      const BufferId copy = add_buffer(operand, main_.values[index(operand)].defined_by, region);
      Kernel kernel;
      kernel.op = main_.values[index(operand)].defined_by;
      kernel.reads = {from};
      kernel.writes = {copy};
      graph_.regions[index(region)].kernels.push_back(std::move(kernel));
      sources_[index(operand)] = {copy};
    }
  }

  void loop(OpId id, RegionId region) {
    const Op& op = main_.op(id);
    const RegionId body_id = op.regions.back();
    const Region& body = main_.regions[index(body_id)];
    const Region& condition = main_.regions[index(op.regions.front())];
    const Op& terminator = main_.op(body.ops.back());
    Kernel kernel;
    kernel.op = id;
    kernel.body = body_id;
    kernel.in_place = InPlace::initial;
    if (target_ == MemoryTarget::gpu) copy_foreign(op, region);
    std::vector<BufferId> states(op.results.size(), no_buffer);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const ValueId inside = body.arguments[i];
      if (fusion_.is_invariant(main_, op, i)) {
        sources_[index(inside)] = sources_[index(op.operands[i])];
        sources_[index(op.results[i])] = sources_[index(op.operands[i])];
        continue;
      }
      merge(kernel.reads, sources_[index(op.operands[i])]);
      const BufferId outer = add_buffer(op.results[i], id, region);
      kernel.writes.push_back(outer);
      kernel.initial.push_back(fusion_.is_buffer[index(op.operands[i])]
                                   ? single(sources_[index(op.operands[i])])
                                   : no_buffer);
      if (target_ == MemoryTarget::gpu && layout_.reordered_state[index(inside)]) {
        kernel.initial.back() = no_buffer;
        at(outer).needs_own_place = true;
      }
      sources_[index(op.results[i])] = {outer};
      states[i] = add_buffer(inside, id, body_id);
      at(states[i]).outside = true;
      at(states[i]).kept = true;
      sources_[index(inside)] = {states[i]};
      sources_[index(condition.arguments[i])] = {states[i]};
    }
    walk(body_id);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      if (states[i] == no_buffer) continue;
      keep(terminator.operands[i], states[i], body_id);
    }
    for (const Kernel& inside : graph_.regions[index(body_id)].kernels) {
      for (const BufferId buffer : inside.reads) {
        if (at(buffer).region != body_id) merge(kernel.reads, {buffer});
      }
    }
    // What was hoisted out of the body: made here, or still further out.
    std::set<BufferId> wanted = std::move(wanted_);
    wanted_.clear();
    for (const BufferId buffer : wanted) {
      merge(kernel.reads, {buffer});
      if (at(buffer).region == region) continue;
      wanted_.insert(buffer);
    }
    auto& kernels = graph_.regions[index(region)].kernels;
    for (auto hoisted = hoists_.begin(); hoisted != hoists_.end();) {
      if (at(hoisted->writes.front()).region != region) {
        ++hoisted;
        continue;
      }
      kernels.push_back(std::move(*hoisted));
      hoisted = hoists_.erase(hoisted);
    }
    kernels.push_back(std::move(kernel));
  }

  // The next state of a loop takes the place of the old one where that is free.
  void keep(ValueId value, BufferId home, RegionId region) {
    for (const BufferId buffer : sources_[index(value)]) {
      if (at(buffer).region != region || at(buffer).outside || at(buffer).is_token) continue;
      at(buffer).kept = true;
      if (at(buffer).home == no_buffer && !at(buffer).needs_own_place) at(buffer).home = home;
    }
  }

  void branch(OpId id, RegionId region) {
    const Op& op = main_.op(id);
    for (const RegionId inner : op.regions) walk(inner);
    add_kernel(id, region, InPlace::never);
    graph_.regions[index(region)].kernels.back().body = op.regions.front();
  }

  // A TPU gathers straight into the place of a donated argument; what the step still reads of the
  // argument it reads from a copy made at the start.
  void copy_replaced_arguments() {
    const Op& terminator = main_.op(main_.body().ops.back());
    const std::vector<int> donors = donors_of_results(module_, main_);
    for (std::size_t i = 0; i < terminator.operands.size(); ++i) {
      const Op* made_by = main_.definition(terminator.operands[i]);
      while (made_by != nullptr &&
             fusion_.kind[index(main_.values[index(made_by->results.front())].defined_by)] ==
                 OpKind::view) {
        made_by = main_.definition(made_by->operands.front());
      }
      if (donors[i] < 0 || made_by == nullptr || made_by->name != "stablehlo.all_gather") continue;
      const ValueId argument = main_.body().arguments[index(donors[i])];
      const BufferId from = sources_[index(argument)].front();
      const OpId op = main_.values[index(made_by->results.front())].defined_by;
      const BufferId copy = add_buffer(argument, op, 0);
      Kernel kernel;
      kernel.op = op;
      kernel.reads = {from};
      kernel.writes = {copy};
      graph_.regions[0].kernels.push_back(std::move(kernel));
      sources_[index(argument)] = {copy};
      argument_buffers_[argument] = from;
    }
  }

  void place_outputs() {
    const Op& terminator = main_.op(main_.body().ops.back());
    const std::vector<int> donors = donors_of_results(module_, main_);
    for (std::size_t i = 0; i < terminator.operands.size(); ++i) {
      for (const BufferId buffer : sources_[index(terminator.operands[i])]) {
        if (at(buffer).outside || at(buffer).is_token) continue;
        at(buffer).kept = true;
        if (donors[i] < 0) {
          at(buffer).outside = true;  // has a place of its own
        } else if (at(buffer).home == no_buffer && !at(buffer).needs_own_place) {
          const ValueId argument = main_.body().arguments[index(donors[i])];
          const auto copied = argument_buffers_.find(argument);
          at(buffer).home = copied != argument_buffers_.end() ? copied->second
                                                              : sources_[index(argument)].front();
        }
      }
    }
  }

  const Module& module_;
  const Function& main_;
  MemoryTarget target_;
  Fusion fusion_;
  LayoutCopies layout_;  // empty of a TPU
  std::vector<Sources> sources_;
  std::map<std::pair<BufferId, std::string>, BufferId> hoisted_;
  std::map<ValueId, BufferId> argument_buffers_;  // of arguments that are copied first
  std::vector<Kernel> hoists_;                    // not yet placed
  std::set<BufferId> wanted_;                     // hoisted buffers that the current body reads
  KernelGraph graph_;
};

}  // namespace

KernelGraph kernels_of(const Module& module, const Function& main, MemoryTarget target) {
  return Builder(module, main, target).build();
}

}  // namespace shardsim::spmd
