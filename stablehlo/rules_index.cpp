// Rules of ops that read or write at computed places.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/index.hpp"
#include "stablehlo/dimension_numbers.hpp"
#include "stablehlo/rules.hpp"

namespace shardsim::stablehlo {
namespace {

using AddFactor = std::function<void(int input, int indices, int slices, Factor factor)>;

// A dimension of the window. What is whole passes through. A scatter keeps the input where it is
// and needs the slices whole. A gather of single elements is masked and summed, as a look-up in a
// split table; of wider windows it needs the input whole.
void add_window_dim(const IndexedDimensions& access, int input_dim, int slices_dim,
                    const AddFactor& add) {
  const std::int64_t input_size = access.input[at(input_dim)];
  const std::int64_t size = access.slices[at(slices_dim)];
  if (input_size == size) {
    add(input_dim, none, slices_dim, {size});
  } else if (access.is_scatter || size == 1) {
    add(input_dim, none, none,
        {input_size, access.is_scatter ? FactorKind::pass_through : FactorKind::reduction});
    add(none, none, slices_dim, {size, FactorKind::need_replication});
  } else {
    add(input_dim, none, slices_dim, {input_size, FactorKind::need_replication, /*blocked=*/true});
  }
}

// A dimension of the slices that comes from the indices: a batch dimension of all three, or one
// that the input does not have, over which a scatter adds up.
void add_batch_dim(const OpView& op, const IndexedDimensions& access, int indices_dim,
                   int slices_dim, const AddFactor& add) {
  const auto batching = std::find(access.indices_batching.begin(), access.indices_batching.end(),
                                  static_cast<std::int64_t>(indices_dim));
  Factor factor{access.slices[at(slices_dim)]};
  int input_dim = none;
  if (batching != access.indices_batching.end()) {
    const auto pair = static_cast<std::size_t>(batching - access.indices_batching.begin());
    if (pair >= access.input_batching.size()) op.fail("batch dimensions do not pair up");
    input_dim = checked(op, access.input, access.input_batching[pair]);
  } else if (access.is_scatter) {
    factor.kind = FactorKind::reduction;
  }
  add(input_dim, indices_dim, slices_dim, factor);
}

void add_factors(const OpView& op, const IndexedDimensions& access, const AddFactor& add) {
  std::size_t input_dim = 0;
  int batch = 0;
  for (std::size_t dim = 0; dim < access.slices.size(); ++dim) {
    const int slices_dim = static_cast<int>(dim);
    if (!contains(access.window, slices_dim)) {
      const int indices_dim = batch < access.vector_dim ? batch : batch + 1;
      add_batch_dim(op, access, checked(op, access.indices, indices_dim), slices_dim, add);
      ++batch;
      continue;
    }
    while (contains(access.collapsed, static_cast<std::int64_t>(input_dim)) ||
           contains(access.input_batching, static_cast<std::int64_t>(input_dim))) {
      ++input_dim;
    }
    add_window_dim(access, checked(op, access.input, static_cast<std::int64_t>(input_dim)),
                   slices_dim, add);
    ++input_dim;
  }
  for (const std::int64_t collapsed : access.collapsed) {
    const int dim = checked(op, access.input, collapsed);
    add(dim, none, none,
        {access.input[at(dim)],
         access.is_scatter ? FactorKind::pass_through : FactorKind::reduction});
  }
  if (access.vector_dim >= 0 &&
      access.vector_dim < static_cast<std::int64_t>(access.indices.size())) {
    const int dim = static_cast<int>(access.vector_dim);
    add(none, dim, none, {op.size(access.indices, dim), FactorKind::need_replication});
  }
}

}  // namespace

std::optional<FactorRule> gather_rule(const OpView& op) {
  const IndexedDimensions access = indexed_dimensions(op);
  RuleBuilder builder(op.module(), op.function(), op.op());
  add_factors(op, access, [&](int input, int indices, int slices, Factor factor) {
    builder.add({input, indices}, {slices}, factor);
  });
  return builder.build();
}

// Operands: n inputs, the indices, n updates.
std::optional<FactorRule> scatter_rule(const OpView& op) {
  const IndexedDimensions access = indexed_dimensions(op);
  const std::size_t inputs = access.inputs;
  RuleBuilder builder(op.module(), op.function(), op.op());
  add_factors(op, access, [&](int input, int indices, int slices, Factor factor) {
    std::vector<int> operand_dims = dims(inputs, input);
    operand_dims.push_back(indices);
    operand_dims.insert(operand_dims.end(), inputs, slices);
    builder.add(operand_dims, dims(inputs, input), factor);
  });
  return builder.build();
}

// Where the update is smaller than the tensor every device writes what falls into its shard: the
// tensor may be split, the update not.
std::optional<FactorRule> dynamic_update_slice_rule(const OpView& op) {
  const std::size_t operands = op.op().operands.size();
  const Shape& shape = op.operand(0);
  const Shape& update = op.operand(1);
  if (shape.size() != update.size()) op.fail("tensor and update differ in rank");
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const int index = static_cast<int>(dim);
    std::vector<int> operand_dims = dims(operands, none);
    operand_dims[0] = index;
    if (shape[dim] == update[dim]) {
      operand_dims[1] = index;
      builder.add(operand_dims, {index}, {shape[dim]});
      continue;
    }
    builder.add(operand_dims, {index}, {shape[dim]});
    operand_dims[0] = none;
    operand_dims[1] = index;
    builder.add(operand_dims, {none}, {update[dim], FactorKind::need_replication});
  }
  return builder.build();
}

}  // namespace shardsim::stablehlo
