#include "spmd/memory/kernel_work.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/index.hpp"
#include "spmd/collective_plan.hpp"

namespace shardsim::spmd {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::int64_t not_needed = -1;

// Known to the compiler, or not data.
bool is_free(const Op& op) {
  constexpr std::array<std::string_view, 5> names = {"stablehlo.constant", "spmd.offset",
                                                     "stablehlo.after_all", "stablehlo.tuple",
                                                     "stablehlo.get_tuple_element"};
  return std::find(names.begin(), names.end(), op.name) != names.end();
}

std::int64_t elements_of(const TensorType& type) { return type.is_tensor ? type.elements() : 0; }

}  // namespace

FusedProgram::FusedProgram(const Module& module, const Function& main, MemoryTarget target)
    : module_(module),
      main_(main),
      target_(target),
      fusion_(fusion_of(module, main, target)),
      fills_(main.values.size()),
      needed_(main.values.size(), not_needed) {
  for (std::size_t value = 0; value < main.values.size(); ++value) {
    computed_as_.push_back(static_cast<ValueId>(value));
  }
  find_loop_states();
  if (target == MemoryTarget::gpu) keep_what_is_dear(0);
}

void FusedProgram::find_loop_states() {
  for (std::size_t id = 0; id < main_.ops.size(); ++id) {
    const Op& loop = main_.ops[id];
    if (fusion_.kind[id] != OpKind::loop || !fusion_.is_live[id]) continue;
    for (std::size_t i = 0; i < loop.operands.size(); ++i) {
      const ValueId initial = fusion_.viewed(main_, loop.operands[i]);
      if (fusion_.is_buffer[at(initial)]) continue;
      if (target_ == MemoryTarget::gpu || !fusion_.is_invariant(main_, loop, i)) {
        if (!is_overwritten(loop, i)) ++fills_[at(initial)];
        continue;
      }
      for (const RegionId region : loop.regions) {
        computed_as_[at(main_.regions[at(region)].arguments[i])] = initial;
      }
    }
  }
}

// What several kernels read is written once where that moves less than computing it in each.
void FusedProgram::keep_what_is_dear(RegionId region) {
  for (const OpId id : main_.regions[at(region)].ops) {
    const Op& op = main_.op(id);
    if (fusion_.kind[at(id)] == OpKind::loop || fusion_.kind[at(id)] == OpKind::branch) {
      for (const RegionId inner : op.regions) keep_what_is_dear(inner);
    }
    if (fusion_.kind[at(id)] != OpKind::fusible || !fusion_.is_live[at(id)]) continue;
    const ValueId made = op.results.front();
    const std::int64_t readers = fusion_.readers[at(made)];
    if (fusion_.is_buffer[at(made)] || readers < 2) continue;
    const Bytes own = allocated_bytes(main_.type_of(made), target_);
    const Bytes sources = work_of(id).bytes - own;
    if (sources * readers > sources + own * (readers + 1)) fusion_.is_buffer[at(made)] = true;
  }
}

// A TPU does not fill a stack whose slices the loop writes from the first to the last.
bool FusedProgram::is_overwritten(const Op& loop, std::size_t i) const {
  if (target_ != MemoryTarget::tpu) return false;
  const Region& body = main_.regions[at(loop.regions.back())];
  const Op& end = main_.op(body.ops.back());
  const Op* update = main_.definition(fusion_.viewed(main_, end.operands[i]));
  if (update == nullptr || update->name != "stablehlo.dynamic_update_slice") return false;
  if (fusion_.viewed(main_, update->operands.front()) != body.arguments[i]) return false;
  for (std::size_t k = 0; k < body.arguments.size(); ++k) {
    const ValueId counter = body.arguments[k];
    const Op* step = main_.definition(fusion_.viewed(main_, end.operands[k]));
    const auto is_counter = [&](ValueId value) { return fusion_.viewed(main_, value) == counter; };
    if (step != nullptr && step->name == "stablehlo.add" &&
        std::any_of(step->operands.begin(), step->operands.end(), is_counter) &&
        std::any_of(update->operands.begin() + 2, update->operands.end(), is_counter)) {
      return true;
    }
  }
  return false;
}

bool FusedProgram::is_kernel(OpId id) const {
  const Op& op = main_.op(id);
  if (op.results.empty() || !fusion_.is_live[at(id)]) return false;
  if (is_collective(op) || is_free(op)) return false;
  switch (fusion_.kind[at(id)]) {
    case OpKind::kernel:
    case OpKind::update:
      return true;
    case OpKind::fusible:
      return fusion_.is_buffer[at(op.results.front())] || fills_[at(op.results.front())] > 0;
    default:
      return false;
  }
}

KernelWork FusedProgram::work_of(OpId id) {
  const Op& op = main_.op(id);
  for (const ValueId value : touched_) needed_[at(value)] = not_needed;
  touched_.clear();
  KernelWork done;
  done.work = stablehlo::work_of(module_, main_, op);
  done.bytes = written(id);
  need_operands(id);
  while (!open_.empty()) {
    const auto [value, elements] = open_.back();
    open_.pop_back();
    // A path that needs more of the value is open, too.
    if (needed_[at(value)] == elements && !is_read(value)) {
      compute(main_.values[at(value)].defined_by, elements);
    }
  }
  for (const ValueId value : touched_) {
    const std::int64_t elements = needed_[at(value)];
    const TensorType& type = main_.type_of(value);
    if (is_read(value)) {
      done.bytes += bytes_of(type, elements);
    } else if (const Op* made = main_.definition(value); made != nullptr && elements > 0) {
      done.work += stablehlo::work_of(module_, main_, *made) *
                   (static_cast<double>(elements) / static_cast<double>(type.elements()));
    }
  }
  return done;
}

// A part has its share of the padding.
Bytes FusedProgram::bytes_of(const TensorType& type, std::int64_t elements) const {
  const Bytes all = allocated_bytes(type, target_);
  const std::int64_t count = elements_of(type);
  if (elements >= count) return all;
  return Bytes(std::llround(static_cast<double>(all.count()) * static_cast<double>(elements) /
                            static_cast<double>(count)));
}

bool FusedProgram::is_read(ValueId value) const {
  if (fusion_.is_buffer[at(value)]) return true;
  const Op* op = main_.definition(value);
  return op == nullptr || is_collective(*op);
}

// A kernel reads its operands whole, but of an array that it gathers from no more than it makes, of
// one that it updates in place nothing.
void FusedProgram::need_operands(OpId id) {
  const Op& op = main_.op(id);
  const std::int64_t made = elements_of(main_.type_of(op.results.front()));
  if (fusion_.kind[at(id)] == OpKind::fusible) return compute(id, made);
  const std::size_t targets = fusion_.kind[at(id)] == OpKind::update ? op.results.size() : 0;
  for (std::size_t i = targets; i < op.operands.size(); ++i) {
    const std::int64_t all = elements_of(main_.type_of(op.operands[i]));
    need(op.operands[i], i == 0 && op.name == "stablehlo.gather" ? std::min(all, made) : all);
  }
}

// An array in memory has many names: views of it, and the state that no round of a loop changes.
void FusedProgram::need(ValueId value, std::int64_t elements) {
  const bool is_whole = elements >= elements_of(main_.type_of(value));
  ValueId source = fusion_.viewed(main_, value);
  for (; computed_as_[at(source)] != source; source = fusion_.viewed(main_, source)) {
    source = computed_as_[at(source)];
  }
  const std::int64_t all = elements_of(main_.type_of(source));
  elements = is_whole ? all : std::min(elements, all);
  std::int64_t& known = needed_[at(source)];
  if (known >= elements) return;
  if (known == not_needed) touched_.push_back(source);
  known = elements;
  open_.emplace_back(source, elements);
}

// For each element of its result a fused op reads one of each operand: of what is sliced a part, of
// what is broadcast all.
void FusedProgram::compute(OpId id, std::int64_t elements) {
  for (const ValueId operand : main_.op(id).operands) {
    need(operand, std::min(elements, elements_of(main_.type_of(operand))));
  }
}

Bytes FusedProgram::written(OpId id) const {
  const Op& op = main_.op(id);
  Bytes bytes{0};
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    ValueId made = op.results[i];
    if (fusion_.kind[at(id)] == OpKind::update && fusion_.is_buffer[at(op.operands[i])]) {
      // The updates of a scatter come last, after its indices.
      const bool is_scatter = op.name == "stablehlo.scatter";
      made = op.operands[is_scatter ? op.operands.size() - op.results.size() + i : 1];
    }
    const int copies =
        std::max(fusion_.in_two_orders[at(op.results[i])] ? 2 : 1, fills_[at(op.results[i])]);
    bytes += allocated_bytes(main_.type_of(made), target_) * copies;
  }
  return bytes;
}

}  // namespace shardsim::spmd
