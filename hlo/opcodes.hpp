// What an instruction does, by its opcode (xla/hlo/ir/hlo_opcode.h of openxla/xla).
#pragma once

#include <cstdint>
#include <string_view>

namespace shardsim {

enum class OpcodeClass : std::uint8_t {
  free,            // no work at all: tuples, views, parameters, what only orders others, the end of
                   // what began elsewhere
  moving,          // moves values, or bits, and computes nothing
  elementwise,     // an operation per result element, of the elements at the same place
  transcendental,  // likewise, a transcendental one
  other,           // has a rule of its own: dots, reductions, calls, collectives
  unknown          // none of these: nothing is known of its operations
};

// Of "copy", and of "transpose-start" and "transpose-done" as instructions are printed that run
// asynchronously.
[[nodiscard]] OpcodeClass class_of(std::string_view opcode);
[[nodiscard]] inline bool is_free(std::string_view opcode) {
  return class_of(opcode) == OpcodeClass::free;
}
[[nodiscard]] inline bool is_elementwise(std::string_view opcode) {
  const OpcodeClass kind = class_of(opcode);
  return kind == OpcodeClass::elementwise || kind == OpcodeClass::transcendental;
}

}  // namespace shardsim
