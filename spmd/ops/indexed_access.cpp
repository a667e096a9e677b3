#include "spmd/ops/indexed_access.hpp"

#include <algorithm>
#include <string_view>

#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Op;
using stablehlo::ValueId;

// Along which dimension a value counts 0, 1, 2, ...: an iota, or an iota repeated.
std::optional<std::int64_t> counting_dim(const OpView& op, ValueId value) {
  const Op* made = op.function().definition(value);
  if (made == nullptr) return {};
  const OpView view(op.module(), op.function(), *made);
  if (made->name == "stablehlo.iota") return view.integer({"dim", "iota_dimension"}, 0);
  if (made->name != "stablehlo.broadcast_in_dim") return {};
  // Of a broadcast that only adds dimensions of one element XLA makes a reshape, and looks no
  // further.
  if (product(view.operand(0)) == product(view.result(0))) return {};
  if (op.function().type_of(value).element != "i32") return {};
  const auto dim = counting_dim(op, made->operands.front());
  if (!dim) return {};
  return view.integers({"dims", "broadcast_dimensions"})[at(*dim)];
}

}  // namespace

IndexedAccess::IndexedAccess(const OpView& op) : is_scatter_(op.op().name == "stablehlo.scatter") {
  if (is_scatter_) {
    read_scatter(op);
  } else {
    read_gather(op);
  }
  indices_rank_ = indices_shape_.size();
  batch_.output = output_dims_of(batch_.indices);
  find_counted(op);
}

void IndexedAccess::read_gather(const OpView& op) {
  op.expect_counts(2, 1);
  const auto numbers = op.fields({"dimension_numbers"});
  operand_shape_ = op.operand(0);
  indices_shape_ = op.operand(1);
  output_rank_ = op.result(0).size();
  offset_dims_ = op.integers(numbers, "offset_dims");
  collapsed_ = op.integers(numbers, "collapsed_slice_dims");
  batch_.operand = op.integers(numbers, "operand_batching_dims");
  batch_.indices = op.integers(numbers, "start_indices_batching_dims");
  index_map_ = op.integers(numbers, "start_index_map");
  const Dims vector_dim = op.integers(numbers, "index_vector_dim");
  index_vector_dim_ = vector_dim.empty() ? 0 : vector_dim.front();
  slice_sizes_ = op.integers({"slice_sizes"});
}

void IndexedAccess::read_scatter(const OpView& op) {
  inputs_ = op.op().operands.size() / 2;
  op.expect_counts(2 * inputs_ + 1, inputs_);
  const auto numbers = op.fields({"scatter_dimension_numbers"});
  operand_shape_ = op.operand(0);
  indices_shape_ = op.operand(inputs_);
  const Shape& updates = op.operand(inputs_ + 1);
  output_rank_ = updates.size();
  offset_dims_ = op.integers(numbers, "update_window_dims");
  collapsed_ = op.integers(numbers, "inserted_window_dims");
  batch_.operand = op.integers(numbers, "input_batching_dims");
  batch_.indices = op.integers(numbers, "scatter_indices_batching_dims");
  index_map_ = op.integers(numbers, "scatter_dims_to_operand_dims");
  const Dims vector_dim = op.integers(numbers, "index_vector_dim");
  index_vector_dim_ = vector_dim.empty() ? 0 : vector_dim.front();
  slice_sizes_.assign(operand_shape_.size(), 1);
  std::size_t window = 0;
  for (std::size_t i = 0; i < operand_shape_.size(); ++i) {
    if (has_no_output(static_cast<std::int64_t>(i))) continue;
    if (window >= offset_dims_.size()) op.fail("update_window_dims do not fit the operand");
    slice_sizes_[i] = updates[at(offset_dims_[window++])];
  }
}

bool IndexedAccess::has_no_output(std::int64_t operand_dim) const {
  return holds(collapsed_, operand_dim) || holds(batch_.operand, operand_dim);
}

Dims IndexedAccess::output_dims_of(const Dims& indices) const {
  const SharedDims all = connected();
  Dims result;
  for (const std::int64_t dim : indices) {
    const auto found = std::find(all.indices.begin(), all.indices.end(), dim);
    if (found != all.indices.end()) {
      result.push_back(all.output[at(found - all.indices.begin())]);
    }
  }
  return result;
}

// The indices are put together along their vector, or are one piece.
void IndexedAccess::find_counted(const OpView& op) {
  const ValueId indices = op.op().operands[inputs_];
  const Op* made = op.function().definition(indices);
  std::vector<std::optional<std::int64_t>> counting(index_map_.size());
  const auto note = [&](std::size_t first, std::size_t count, std::optional<std::int64_t> dim) {
    if (!dim || *dim == index_vector_dim_) return;
    for (std::size_t i = first; i < std::min(first + count, counting.size()); ++i) {
      counting[i] = dim;
    }
  };
  const bool is_concatenated =
      made != nullptr && made->name == "stablehlo.concatenate" &&
      OpView(op.module(), op.function(), *made).integer({"dim", "dimension"}, 0) ==
          index_vector_dim_;
  if (is_concatenated) {
    std::size_t first = 0;
    for (const ValueId piece : made->operands) {
      const std::size_t count = at(op.function().type_of(piece).dims[at(index_vector_dim_)]);
      note(first, count, counting_dim(op, piece));
      first += count;
    }
  } else {
    note(0, has_index_vector() ? at(indices_shape_[at(index_vector_dim_)]) : 1,
         counting_dim(op, indices));
  }
  SharedDims found;
  for (std::size_t i = 0; i < counting.size(); ++i) {
    if (!counting[i]) continue;
    if (holds(found.indices, *counting[i])) return;
    const std::int64_t operand_dim = index_map_[i];
    if (slice_sizes_[at(operand_dim)] != 1 || holds(batch_.indices, *counting[i])) continue;
    if (operand_shape_[at(operand_dim)] != indices_shape_[at(*counting[i])]) return;
    found.indices.push_back(*counting[i]);
    found.operand.push_back(operand_dim);
  }
  found.output = output_dims_of(found.indices);
  counted_ = std::move(found);
}

SharedDims IndexedAccess::whole_slices(const Shape& operand_shape, const Shape& slices) const {
  SharedDims result;
  std::size_t window = 0;
  for (std::size_t i = 0; i < operand_shape.size(); ++i) {
    if (has_no_output(static_cast<std::int64_t>(i))) continue;
    const std::int64_t output = offset_dims_[window++];
    if (slices[i] != operand_shape[i]) continue;
    result.operand.push_back(static_cast<std::int64_t>(i));
    result.output.push_back(output);
  }
  return result;
}

SharedDims IndexedAccess::connected(const Dims& but) const {
  SharedDims result;
  std::int64_t indices_dim = 0;
  for (std::size_t i = 0; i < output_rank_; ++i) {
    const auto output = static_cast<std::int64_t>(i);
    if (holds(offset_dims_, output)) continue;
    if (indices_dim == index_vector_dim_) ++indices_dim;
    if (!holds(but, indices_dim)) {
      result.indices.push_back(indices_dim);
      result.output.push_back(output);
    }
    ++indices_dim;
  }
  return result;
}

SharedDims IndexedAccess::passing() const {
  Dims batch = batch_.indices;
  batch.insert(batch.end(), counted_.indices.begin(), counted_.indices.end());
  return connected(batch);
}

Dims IndexedAccess::operand_by_priority(const Tiling& operand, const Shape& slices) const {
  Dims result = split_lookups(operand, slices).value_or(Dims{});
  const Dims whole = whole_slices(slices).operand;
  result.insert(result.end(), whole.begin(), whole.end());
  return result;
}

Dims IndexedAccess::indices_by_priority() const {
  Dims result;
  if (has_index_vector()) result.push_back(index_vector_dim_);
  for (std::size_t i = 0; i < indices_rank_; ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    if (dim != index_vector_dim_ && !holds(batch_.indices, dim)) result.push_back(dim);
  }
  result.insert(result.end(), batch_.indices.begin(), batch_.indices.end());
  return result;
}

Dims IndexedAccess::output_by_priority(const Shape& slices) const {
  const Dims whole = whole_slices(slices).output;
  Dims result;
  for (std::size_t i = 0; i < output_rank_; ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    if (!holds(whole, dim)) result.push_back(dim);
  }
  result.insert(result.end(), whole.begin(), whole.end());
  return result;
}

std::optional<Dims> IndexedAccess::split_lookups(const Tiling& operand, const Shape& slices) const {
  if (operand.is_replicated()) return {};
  Dims dims;
  std::int64_t tiles = 1;
  for (const std::int64_t dim : index_map_) {
    if (slices[at(dim)] != 1) continue;
    tiles *= operand.tiles(dim);
    dims.push_back(dim);
  }
  if (tiles == 1) return {};
  return dims;
}

}  // namespace shardsim::spmd
