// The dimensions of a dot or a convolution by the part they play, as the partitioner takes both.
//
//   [B,M,K] x [B,K,N] -> [B,M,N]
//     batch {lhs 0, rhs 0, output 0}   contracting {2, 1, -1}   lhs_free {1, -1, 1}
//     rhs_free {-1, 2, 2}
//
// A convolution's batch is free on the left, its features contract, its output features are free on
// the right. A spatial dimension is one of these too where its window makes it one (as wide as the
// input: contracting; of size 1: free on the left), and else of `spatial`. Source: openxla/xla
// xla/service/dot_as_convolution_util.h.
#pragma once

#include <vector>

#include "spmd/tiling/tiling.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::spmd {

struct DotDim {
  std::int64_t lhs = -1;
  std::int64_t rhs = -1;
  std::int64_t output = -1;
  std::int64_t spatial = -1;  // number among the spatial dimensions of a convolution
};

struct DotDims {
  std::vector<DotDim> batch;
  std::vector<DotDim> contracting;
  std::vector<DotDim> lhs_free;
  std::vector<DotDim> rhs_free;
  std::vector<DotDim> spatial;
  std::size_t lhs_rank = 0;
  std::size_t rhs_rank = 0;
  std::size_t output_rank = 0;
};

[[nodiscard]] DotDims dot_dims(const stablehlo::OpView& op);

// For each dimension of one tensor that of another, or -1.
struct DotMaps {
  Dims lhs_to_rhs, lhs_to_output;
  Dims rhs_to_lhs, rhs_to_output;
  Dims output_to_lhs, output_to_rhs;
};
[[nodiscard]] DotMaps maps_of(const DotDims& dims);

// The dimensions of one list in one tensor, those that are there.
enum class DotTensor { lhs, rhs, output };
[[nodiscard]] Dims dims_in(const std::vector<DotDim>& dims, DotTensor tensor);
// Into how many tiles they split it.
[[nodiscard]] std::int64_t tiles_over(const Tiling& tiling, const std::vector<DotDim>& dims,
                                      DotTensor tensor);

// Tiles of all three tensors over all parts.
struct DotTiles {
  std::int64_t lhs_batch, rhs_batch, output_batch;
  std::int64_t lhs_contracting, rhs_contracting;
  std::int64_t lhs_free, output_lhs_free;
  std::int64_t rhs_free, output_rhs_free;
};
[[nodiscard]] DotTiles tiles_of(const DotDims& dims, const Tiling& lhs, const Tiling& rhs,
                                const Tiling& output);

}  // namespace shardsim::spmd
