#include "hlo/host_copy.hpp"

#include <algorithm>

namespace shardsim {
namespace {

bool is_on_host(const HloShape& array) { return array.layout.memory_space == host_memory_space; }

bool has_any_on_host(const HloShape& shape) {
  const auto arrays = arrays_of(shape);
  return std::any_of(arrays.begin(), arrays.end(),
                     [](const HloShape* array) { return is_on_host(*array); });
}

// What is made: of a copy-start the first of (made, copied, context), of others the second of
// ((operands), made, context).
const HloShape& made_by_start(const HloModule& module, HloId id, const HloShape& shape) {
  const std::size_t index = !shape.elements.empty() && shape.elements[0].is_tuple ? 1 : 0;
  if (index >= shape.elements.size()) {
    module.source().fail(module.instruction(id).name, "a start that makes nothing");
  }
  return shape.elements[index];
}

}  // namespace

std::optional<HostCopy> host_copy(const HloModule& module, HloShapes& shapes, HloId id) {
  constexpr std::string_view start = "-start";
  std::string_view opcode = module.instruction(id).opcode;
  HostCopy copy;
  copy.asynchronous = opcode.ends_with(start);
  if (copy.asynchronous) opcode.remove_suffix(start.size());
  const bool updates = opcode == "dynamic-update-slice";
  if (!updates && opcode != "copy" && opcode != "slice" && opcode != "dynamic-slice") return {};
  const HloShape& result = shapes.of(id);
  const HloShape& made = copy.asynchronous ? made_by_start(module, id, result) : result;
  // An update stays in the array that it goes into.
  const HloShape& read = shapes.of(module.operand(id, updates ? 1 : 0));
  copy.to_host = is_on_host(made);
  if (copy.to_host == is_on_host(read)) return {};
  const HloShape& moved = updates ? read : made;
  copy.dtype = moved.dtype.value_or(DType::f32);
  copy.bytes = moved.bytes();
  return copy;
}

bool touches_host(const HloModule& module, HloShapes& shapes, HloId id) {
  if (has_any_on_host(shapes.of(id))) return true;
  const auto operands = module.operands(id);
  return std::any_of(operands.begin(), operands.end(),
                     [&](HloId operand) { return has_any_on_host(shapes.of(operand)); });
}

}  // namespace shardsim
