// What lies between arguments and results: the most that temporaries occupy at once, replayed from
// the order of a scheduled module.
//
// An array lives from the instruction that makes it to the last that uses it, under whatever name:
// views, tuples, the state of a loop and updates in place are the same array. Inside a loop's body
// the arrays that become the next state lie where the state lies. The entry's parameters and
// results, constants, and arrays outside main memory (TPU's VMEM) are not temporaries.
//
// A result of an elementwise operation or an all-reduce takes the place of an operand of its size
// that is needed no more.
//
// This estimates the compiler's `temp`. Its heap also has gaps between arrays and scratch space
// that the text does not show, and where results are not donated GPU compilers use their place as
// scratch: docs/hlo-import.md holds the measured error. It says nothing of a module that is not
// scheduled.
#pragma once

#include "hlo/module.hpp"

namespace shardsim {

[[nodiscard]] Bytes temporary_bytes(const HloModule& module);

}  // namespace shardsim
