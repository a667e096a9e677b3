// Which parameters a step trains. The others are frozen: no gradient, no optimizer state. Where
// nothing before an op is trained its input has no gradient either, and the backward
// pass ends there:
//
//   trained: the last two of 32 layers and the head    backward: head, layer 31, layer 30
//
// Layers that differ in what is trained, or in whether anything before them is, become kinds of
// their own: under LoRA the first layer's input has no gradient, the others' have one.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// `expressions`: regular expressions (search) on names of parameters; what none of them finds is
// frozen. The workload has its forward pass alone. Throws InputError at `place`/i: an expression
// that is none or that finds nothing.
void train_only(Workload& workload, const std::vector<std::string>& expressions,
                const Place& place);

}  // namespace shardsim
