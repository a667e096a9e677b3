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
  // XLA makes a reshape of a broadcast that only adds dimensions of one element, and looks no
  // further.
  if (product(view.operand(0)) == product(view.result(0))) return {};
  if (op.function().type_of(value).element != "i32") return {};
  const auto dim = counting_dim(op, made->operands.front());
  if (!dim) return {};
  return view.integers({"dims", "broadcast_dimensions"})[at(*dim)];
}

}  // namespace

IndexedAccess::IndexedAccess(const OpView& op)
    : dims_(stablehlo::indexed_dimensions(op)),
      batch_{dims_.input_batching, dims_.indices_batching, {}} {
  if (dims_.is_scatter) {
    read_window(op);
  } else {
    slice_sizes_ = op.integers({"slice_sizes"});
  }
  batch_.output = output_dims_of(batch_.indices);
  find_counted(op);
}

void IndexedAccess::read_window(const OpView& op) {
  slice_sizes_.assign(operand_rank(), 1);
  std::size_t window = 0;
  for (std::size_t i = 0; i < operand_rank(); ++i) {
    if (has_no_output(static_cast<std::int64_t>(i))) continue;
    if (window >= dims_.window.size()) op.fail("update_window_dims do not fit the operand");
    slice_sizes_[i] = dims_.slices[at(dims_.window[window++])];
  }
}

bool IndexedAccess::has_no_output(std::int64_t operand_dim) const {
  return holds(dims_.collapsed, operand_dim) || holds(batch_.operand, operand_dim);
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
  const ValueId indices = op.op().operands[dims_.inputs];
  const Op* made = op.function().definition(indices);
  std::vector<std::optional<std::int64_t>> counting(dims_.index_map.size());
  const auto note = [&](std::size_t first, std::size_t count, std::optional<std::int64_t> dim) {
    if (!dim || *dim == dims_.vector_dim) return;
    for (std::size_t i = first; i < std::min(first + count, counting.size()); ++i) {
      counting[i] = dim;
    }
  };
  const bool is_concatenated =
      made != nullptr && made->name == "stablehlo.concatenate" &&
      OpView(op.module(), op.function(), *made).integer({"dim", "dimension"}, 0) ==
          dims_.vector_dim;
  if (is_concatenated) {
    std::size_t first = 0;
    for (const ValueId piece : made->operands) {
      const std::size_t count = at(op.function().type_of(piece).dims[at(dims_.vector_dim)]);
      note(first, count, counting_dim(op, piece));
      first += count;
    }
  } else {
    note(0, has_index_vector() ? at(dims_.indices[at(dims_.vector_dim)]) : 1,
         counting_dim(op, indices));
  }
  SharedDims found;
  for (std::size_t i = 0; i < counting.size(); ++i) {
    if (!counting[i]) continue;
    if (holds(found.indices, *counting[i])) return;
    const std::int64_t operand_dim = dims_.index_map[i];
    if (slice_sizes_[at(operand_dim)] != 1 || holds(batch_.indices, *counting[i])) continue;
    if (dims_.input[at(operand_dim)] != dims_.indices[at(*counting[i])]) return;
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
    const std::int64_t output = dims_.window[window++];
    if (slices[i] != operand_shape[i]) continue;
    result.operand.push_back(static_cast<std::int64_t>(i));
    result.output.push_back(output);
  }
  return result;
}

SharedDims IndexedAccess::connected(const Dims& but) const {
  SharedDims result;
  std::int64_t indices_dim = 0;
  for (std::size_t i = 0; i < output_rank(); ++i) {
    const auto output = static_cast<std::int64_t>(i);
    if (holds(dims_.window, output)) continue;
    if (indices_dim == dims_.vector_dim) ++indices_dim;
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
  if (has_index_vector()) result.push_back(dims_.vector_dim);
  for (std::size_t i = 0; i < indices_rank(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    if (dim != dims_.vector_dim && !holds(batch_.indices, dim)) result.push_back(dim);
  }
  result.insert(result.end(), batch_.indices.begin(), batch_.indices.end());
  return result;
}

Dims IndexedAccess::output_by_priority(const Shape& slices) const {
  const Dims whole = whole_slices(slices).output;
  Dims result;
  for (std::size_t i = 0; i < output_rank(); ++i) {
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
  for (const std::int64_t dim : dims_.index_map) {
    if (slices[at(dim)] != 1) continue;
    tiles *= operand.tiles(dim);
    dims.push_back(dim);
  }
  if (tiles == 1) return {};
  return dims;
}

}  // namespace shardsim::spmd
