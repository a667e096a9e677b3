#include "stablehlo/verify_indexed.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/index.hpp"
#include "stablehlo/dimension_numbers.hpp"
#include "stablehlo/rules.hpp"
#include "stablehlo/verify_dims.hpp"

namespace shardsim::stablehlo {
namespace {

using Dims = std::vector<std::int64_t>;

void check_lists(const OpView& op, const IndexedDimensions& access) {
  const std::size_t rank = access.input.size();
  check_dims(op, access.window, access.slices.size(), "window dimensions");
  check_dims(op, access.index_map, rank, "indexed dimensions");
  check_dims(op, access.indices_batching, access.indices.size(), "batch dimensions of the indices");
  Dims without_output = access.collapsed;
  without_output.insert(without_output.end(), access.input_batching.begin(),
                        access.input_batching.end());
  check_dims(op, without_output, rank, "dimensions that are left out");
  if (!std::is_sorted(access.window.begin(), access.window.end())) {
    op.fail("its window dimensions are not in order");
  }
  if (access.window.size() + without_output.size() != rank) {
    op.fail("its window dimensions do not fit what it indexes");
  }
  if (access.vector_dim < 0 ||
      access.vector_dim > static_cast<std::int64_t>(access.indices.size())) {
    op.fail(fmt::format("its indices have no dimension {}", access.vector_dim));
  }
  const bool has_vector = access.vector_dim < static_cast<std::int64_t>(access.indices.size());
  const std::int64_t vector = has_vector ? access.indices[at(access.vector_dim)] : 1;
  if (vector != static_cast<std::int64_t>(access.index_map.size())) {
    op.fail(
        fmt::format("an index has {} parts for {} dimensions", vector, access.index_map.size()));
  }
  if (access.indices_batching.size() != access.input_batching.size()) {
    op.fail("batch dimensions do not pair up");
  }
  for (std::size_t i = 0; i < access.input_batching.size(); ++i) {
    if (contains(access.index_map, access.input_batching[i]) ||
        access.indices_batching[i] == access.vector_dim ||
        access.input[at(access.input_batching[i])] !=
            access.indices[at(access.indices_batching[i])]) {
      op.fail("batch dimensions do not pair up");
    }
  }
  const std::size_t batch = access.indices.size() - (has_vector ? 1 : 0);
  if (access.slices.size() != access.window.size() + batch) op.fail("slices of another rank");
}

// `sizes`: of the window in each dimension of the input; of a scatter they are the slices' own.
void check_slices(const OpView& op, const IndexedDimensions& access, const Dims* sizes) {
  std::size_t window = 0;
  for (std::size_t i = 0; i < access.input.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    const bool left_out = contains(access.collapsed, dim) || contains(access.input_batching, dim);
    const std::int64_t size = left_out ? (sizes == nullptr ? 1 : (*sizes)[i])
                                       : access.slices[at(access.window[window++])];
    if (sizes != nullptr && (*sizes)[i] != size) op.fail("results are no slices of its sizes");
    if (size > access.input[i] || (left_out && size != 1)) {
      op.fail(fmt::format("a slice of {} of dimension {}, of {}", size, i, access.input[i]));
    }
  }
  std::size_t indices_dim = 0;
  for (std::size_t i = 0; i < access.slices.size(); ++i) {
    if (contains(access.window, static_cast<std::int64_t>(i))) continue;
    if (static_cast<std::int64_t>(indices_dim) == access.vector_dim) ++indices_dim;
    if (access.slices[i] != access.indices[indices_dim++]) {
      op.fail("as many slices as indices are expected");
    }
  }
}

void check_alike(const OpView& op, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    if (op.operand(i) != op.operand(begin)) op.fail("operands of different shapes");
  }
}

}  // namespace

void verify_indexed_access(const OpView& op) {
  const IndexedDimensions access = indexed_dimensions(op);
  check_lists(op, access);
  if (!access.is_scatter) {
    const Dims sizes = op.integers({"slice_sizes"});
    if (sizes.size() != access.input.size()) op.fail("slice_sizes of another rank");
    return check_slices(op, access, &sizes);
  }
  const std::size_t inputs = access.inputs;
  check_alike(op, 0, inputs);
  check_alike(op, inputs + 1, 2 * inputs + 1);
  for (std::size_t i = 0; i < inputs; ++i) {
    if (op.result(i) != op.operand(0)) op.fail("its results are of other shapes than its operands");
  }
  check_slices(op, access, nullptr);
}

}  // namespace shardsim::stablehlo
