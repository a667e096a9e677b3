// Floating-point operations of a program before it is partitioned.
//
//   dot_general   2 * elements of the result * product of the contracted dimensions
//   convolution   2 * batch * features of the output * features of the input per group * for each
//                 spatial dimension the pairs of output and window position that meet the input
//                 (a position in the padding, or between dilated elements, costs nothing)
//   elementwise   1 per element of the result; transcendental functions are counted apart
//   reduce        one application of its reducer per element that goes away
//   reduce_window one per element of the result and position of the window but the first
//   sort, fft, matrix decompositions: flops_algorithms.hpp
//
// Example: bf16[1024,512] x bf16[512,2048]: 2 * 1024 * 2048 * 512 = 2.147 GFLOP.
// The conventions are those of XLA's cost analysis (xla/service/hlo_cost_analysis.cc), so that
// counts can be compared with Compiled.cost_analysis(); data movement costs no operations.
#pragma once

#include <map>
#include <string>

#include "base/units.hpp"
#include "stablehlo/module.hpp"

namespace shardsim::stablehlo {

struct Work {
  Flops matmul{0};          // dots and convolutions
  Flops elementwise{0};     // and reductions, sorts, transforms, decompositions
  Flops transcendental{0};  // exp, log, tanh, sqrt, random numbers, ...

  Work& operator+=(const Work& other);
  friend Work operator*(const Work& work, double times);
  friend bool operator==(const Work&, const Work&) = default;
};

// Of one op without the ops in its regions; 0 for what moves data. Throws InputError where types
// and attributes of the op contradict each other.
[[nodiscard]] Work work_of(const Module& module, const Function& function, const Op& op);

// How many devices each do what a manual computation says: the product of its manual axes.
[[nodiscard]] double manual_devices(const Module& module, const Op& op);

struct ProgramWork {
  Work work;
  // Loops whose trip count is not known, counted as one round; calls whose target is not known.
  int unknown_loops = 0;
  std::map<std::string, int> unknown_calls;
};

// Of a function with everything that it calls: loops times their trip count, of branches the
// dearest, of manual computations what all devices along their manual axes do. Throws InputError
// for functions that call themselves.
[[nodiscard]] ProgramWork work_of(const Module& module, const Function& function);

}  // namespace shardsim::stablehlo
