// Whether a program means something: what the parser takes may still contradict itself.
//
//   every op with a factor rule   its types and attributes fit each other (op_rules.hpp)
//   regions                       end in a return and, but for those of loops, branches and named
//                                 or manual computations, read nothing of what is around them;
//                                 reducers take and give scalars; loops carry what they are given;
//                                 branches give what their op gives
//   functions                     return what they say
//
// What follows (propagation, partitioning, memory) relies on it.
#pragma once

#include "stablehlo/module.hpp"

namespace shardsim::stablehlo {

// Throws InputError with the line of the first contradiction.
void verify(const Module& module);

}  // namespace shardsim::stablehlo
