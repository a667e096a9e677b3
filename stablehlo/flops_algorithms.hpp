// Operations of ops that run an algorithm of a library, by the usual operation counts:
//
//   fft               5 N log2(N) for N complex points, half of that for a real transform
//                     (the convention of FFTW, fftw.org/speed/method.html)
//   cholesky          n^3 / 3 for a matrix of n x n
//   triangular_solve  n^2 m for n x n and m right-hand sides
//                     (both: LAPACK Working Note 41, appendix C)
//   sort, top_k       n ceil(log2(n)) comparisons per row of n: merging
//
// Example: fft of complex<f32>[8,1024] along the last dimension: 8 * 5 * 1024 * 10 = 409,600.
#pragma once

#include "stablehlo/op_view.hpp"

namespace shardsim::stablehlo {

// 0 for other ops. Throws InputError where types and attributes contradict each other.
[[nodiscard]] double algorithm_flops(const OpView& op);

// How often a sort compares two elements of a row; 0 for other ops.
[[nodiscard]] double comparisons(const OpView& op);

}  // namespace shardsim::stablehlo
