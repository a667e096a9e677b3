#include "hlo/host_copy.hpp"

#include <algorithm>

#include "hlo/opcodes.hpp"

namespace shardsim {
namespace {

bool is_on_host(const HloShape& array) { return array.layout.memory_space == host_memory_space; }

bool has_any_on_host(const HloShape& shape) {
  const auto arrays = arrays_of(shape);
  return std::any_of(arrays.begin(), arrays.end(),
                     [](const HloShape* array) { return is_on_host(*array); });
}

}  // namespace

// Of a copy-start the first of (made, copied, context), of others the second of ((operands), made,
// context).
const HloShape& HostCopies::made_by_start(HloId id) {
  const HloShape& shape = shapes_.of(id);
  const std::size_t index = !shape.elements.empty() && shape.elements[0].is_tuple ? 1 : 0;
  if (index >= shape.elements.size()) {
    module_.source().fail(module_.instruction(id).name, "a start that makes nothing");
  }
  return shape.elements[index];
}

std::optional<HostCopy> HostCopies::copy_of(std::string_view opcode, HloId id, bool starts) {
  const bool updates = opcode == "dynamic-update-slice";
  if (!updates && opcode != "copy" && opcode != "slice" && opcode != "dynamic-slice") return {};
  const HloShape& made = starts ? made_by_start(id) : shapes_.of(id);
  // An update stays in the array that it goes into.
  const HloShape& read = shapes_.of(module_.operand(id, updates ? 1 : 0));
  if (is_on_host(made) == is_on_host(read)) return {};
  const HloShape& moved = updates ? read : made;
  return HostCopy{is_on_host(made), starts, moved.dtype.value_or(DType::f32), moved.bytes()};
}

// Beside it there may be views and copies on the device.
std::optional<HostCopy> HostCopies::only_copy_of(HloComputationId fused) {
  const HloComputation& body = module_.computation(fused);
  std::optional<HostCopy> only;
  for (HloId id = body.first; id < body.end; ++id) {
    const std::string_view opcode = module_.instruction(id).opcode;
    const OpcodeClass work = class_of(opcode);
    if (work != OpcodeClass::free && work != OpcodeClass::moving) return {};
    const std::optional<HostCopy> copy = copy_of(opcode, id, false);
    if (copy && only) return {};
    if (copy) only = copy;
  }
  return only;
}

std::optional<HostCopy> HostCopies::find(HloId id) {
  constexpr std::string_view start = "-start";
  std::string_view opcode = module_.instruction(id).opcode;
  const bool starts = opcode.ends_with(start);
  if (starts) opcode.remove_suffix(start.size());
  if (opcode != "fusion") return copy_of(opcode, id, starts);
  const auto [found, is_new] = fusions_.try_emplace(id);
  if (is_new) {
    found->second = only_copy_of(module_.callee(id, "calls"));
    if (found->second) found->second->asynchronous = starts;
  }
  return found->second;
}

bool HostCopies::touches_host(HloId id) {
  if (has_any_on_host(shapes_.of(id))) return true;
  const auto operands = module_.operands(id);
  return std::any_of(operands.begin(), operands.end(),
                     [&](HloId operand) { return has_any_on_host(shapes_.of(operand)); });
}

}  // namespace shardsim
