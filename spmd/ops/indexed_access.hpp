// Which dimensions of a gather or a scatter belong together.
//
//   gather table[V, D] by ids[B, S] -> [B, S, D]: slices [1, D], offset_dims [2], index_vector_dim
//   2
//     passing over the operand   D: operand 1, output 2 (whole slices)
//     passing over the indices   B, S: indices 0 1, output 0 1
//     looked up                  V: operand 0, slices of one element
//
// The words of gather are used for both; of a scatter "output" is the updates. Source: openxla/xla
// xla/hlo/utils/hlo_sharding_util.h (GatherScatterDims).
#pragma once

#include <optional>

#include "spmd/tiling/tiling.hpp"
#include "stablehlo/dimension_numbers.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::spmd {

using stablehlo::OpView;

// Dimensions of the three tensors that are the same, entry by entry; a list that plays no part in
// the question is empty.
struct SharedDims {
  Dims operand;
  Dims indices;
  Dims output;
};

class IndexedAccess {
 public:
  // Of a stablehlo.gather or stablehlo.scatter. Throws InputError: attributes that are missing.
  explicit IndexedAccess(const OpView& op);

  // How many tensors are written into; 1 for a gather.
  [[nodiscard]] std::size_t inputs() const { return dims_.inputs; }
  [[nodiscard]] std::size_t operand_rank() const { return dims_.input.size(); }
  [[nodiscard]] std::size_t indices_rank() const { return dims_.indices.size(); }
  [[nodiscard]] std::size_t output_rank() const { return dims_.slices.size(); }
  [[nodiscard]] bool has_index_vector() const {
    return index_vector_dim() < static_cast<std::int64_t>(indices_rank());
  }
  [[nodiscard]] std::int64_t index_vector_dim() const { return dims_.vector_dim; }
  [[nodiscard]] const Dims& index_map() const {
    return dims_.index_map;
  }  // operand dims of an index
  // The slice of the operand that one index stands for.
  [[nodiscard]] const Shape& slice_sizes() const { return slice_sizes_; }

  // Batch dimensions of operand and indices, as the op names them.
  [[nodiscard]] const SharedDims& batch() const { return batch_; }
  // Those that only its indices tell: they count up along a dimension (an iota). Empty lists: none.
  [[nodiscard]] const SharedDims& counted() const { return counted_; }
  // Dimensions of the operand that slices of these sizes take whole, and of the output.
  [[nodiscard]] SharedDims whole_slices(const Shape& operand_shape, const Shape& slices) const;
  [[nodiscard]] SharedDims whole_slices(const Shape& slices) const {
    return whole_slices(dims_.input, slices);
  }
  // Of indices and output; `but` these of the indices.
  [[nodiscard]] SharedDims connected(const Dims& but = {}) const;
  // Those that are no batch dimensions of either kind.
  [[nodiscard]] SharedDims passing() const;

  // Dimensions in the order in which they are made whole, if replicas are needed.
  [[nodiscard]] Dims operand_by_priority(const Tiling& operand, const Shape& slices) const;
  [[nodiscard]] Dims indices_by_priority() const;
  [[nodiscard]] Dims output_by_priority(const Shape& slices) const;

  // Dimensions of the operand that are split and of which a slice has one element.
  [[nodiscard]] std::optional<Dims> split_lookups(const Tiling& operand, const Shape& slices) const;

 private:
  void read_window(const OpView& op);
  void find_counted(const OpView& op);
  [[nodiscard]] Dims output_dims_of(const Dims& indices) const;
  [[nodiscard]] bool has_no_output(std::int64_t operand_dim) const;

  stablehlo::IndexedDimensions dims_;
  Shape slice_sizes_;
  SharedDims batch_;
  SharedDims counted_;
};

}  // namespace shardsim::spmd
