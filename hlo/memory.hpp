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

#include <optional>
#include <string>

#include "hlo/module.hpp"
#include "plan/plan.hpp"

namespace shardsim {

struct HloMemory {
  Bytes argument;
  Bytes output;
  Bytes alias;
};

[[nodiscard]] HloMemory entry_memory(const HloModule& module);
// As a note of a plan.
[[nodiscard]] std::string memory_note(const HloMemory& memory);
// The order of the text is the order of execution: what GPU and TPU compilers print in the end.
[[nodiscard]] bool is_scheduled(const HloModule& module);
// A buffer per parameter, one for the results that take no argument's place, and, of a scheduled
// module or one whose `temporaries` are known, one for the heap between them (hlo/heap.hpp): XLA
// holds all three for the whole step.
void add_entry_buffers(const HloModule& module, std::optional<Bytes> temporaries, Plan& plan,
                       Program& program);

}  // namespace shardsim
