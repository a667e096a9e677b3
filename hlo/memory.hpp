// What a compiled module keeps per device for its arguments and results, as the compiler accounts
// for it (`compiled.memory_analysis()`).
//
//   argument  the arrays of the entry's parameters, in the layouts of entry_computation_layout
//   output    those of its result; of a tuple also the table of pointers to its elements
//   alias     the results that take an argument's place, by input_output_alias
//
// Layouts carry the tiles, so that padding is counted; TPU compilers also round every array up to
// 512 bytes.
#pragma once

#include "hlo/module.hpp"
#include "plan/plan.hpp"

namespace shardsim {

struct HloMemory {
  Bytes argument;
  Bytes output;
  Bytes alias;
};

[[nodiscard]] HloMemory entry_memory(const HloModule& module);
// A buffer per parameter, and one per result that takes no argument's place.
void add_entry_buffers(const HloModule& module, Plan& plan, Program& program);

}  // namespace shardsim
