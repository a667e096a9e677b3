// Which dimension of a dot, a convolution, a gather or a scatter plays which part, from either
// spelling of the op.
//
//   batching_dims = [0] x [0], contracting_dims = [2] x [1]
//   dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
#pragma once

#include <cstdint>
#include <vector>

#include "stablehlo/op_view.hpp"

namespace shardsim::stablehlo {

struct DotDimensions {
  std::vector<int> lhs_batching;
  std::vector<int> rhs_batching;
  std::vector<int> lhs_contracting;
  std::vector<int> rhs_contracting;
};

// `batch` products of [m, k] x [k, n].
struct DotSizes {
  std::int64_t batch = 1;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
};

struct ConvolutionDimensions {
  int input_batch = 0;
  int input_feature = 0;
  int kernel_input = 0;
  int kernel_output = 0;
  int output_batch = 0;
  int output_feature = 0;
  std::vector<int> input_spatial;  // in the order of the spatial numbers 0, 1, ...
  std::vector<int> kernel_spatial;
  std::vector<int> output_spatial;
  std::int64_t feature_groups = 1;
  std::int64_t batch_groups = 1;
};

// A gather takes slices out of `input`; a scatter, which may have several inputs and slices that
// are alike, puts them there.
struct IndexedDimensions {
  bool is_scatter = false;
  std::size_t inputs = 1;
  Shape input;
  Shape indices;
  Shape slices;                                // results of a gather, updates of a scatter
  std::vector<std::int64_t> window;            // of the slices: offset_dims, update_window_dims
  std::vector<std::int64_t> collapsed;         // of the input: windows of size 1, left out
  std::vector<std::int64_t> input_batching;    // batch dimensions of the input ...
  std::vector<std::int64_t> indices_batching;  // ... and of the indices, pairwise
  std::vector<std::int64_t> index_map;         // of the input: what the parts of an index count
  std::int64_t vector_dim = 0;                 // of the indices: one index; their rank when scalar
};

// Throw InputError: missing, of unequal length, no dimensions of the operands.
[[nodiscard]] DotDimensions dot_dimensions(const OpView& op);
[[nodiscard]] DotSizes dot_sizes(const OpView& op);  // of a dot_general or a dot
[[nodiscard]] ConvolutionDimensions convolution_dimensions(const OpView& op);
// As they are written: verify_indexed_access() checks them. Throws InputError: no such attribute,
// another number of operands.
[[nodiscard]] IndexedDimensions indexed_dimensions(const OpView& op);

// The dimension that a sort orders: one below zero counts from the last.
[[nodiscard]] std::int64_t sorted_dim(const OpView& op);

}  // namespace shardsim::stablehlo
