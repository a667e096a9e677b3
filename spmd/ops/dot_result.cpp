#include "spmd/ops/dot_result.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::AxisPart;
using stablehlo::OpView;

using Axes = std::vector<AxisPart>;

const Axes& axes_of(const OpView& op, ValueId value, std::int64_t dim) {
  static const Axes none;
  const auto& sharding = op.function().values[at(value)].sharding.axes;
  return sharding ? sharding->dimensions[at(dim)].axes : none;
}

bool overlap(const AxisPart& a, const AxisPart& b) {
  if (a.axis != b.axis) return false;
  if (a.size == 0 || b.size == 0) return true;
  return a.pre_size < b.pre_size * b.size && b.pre_size < a.pre_size * a.size;
}

bool overlap(const Axes& a, const Axes& b) {
  return std::any_of(a.begin(), a.end(), [&](const AxisPart& of_a) {
    return std::any_of(b.begin(), b.end(),
                       [&](const AxisPart& of_b) { return overlap(of_a, of_b); });
  });
}

// The one dimension in which result and operand differ, if the conditions hold.
std::optional<DotDim> conflicting_dim(const OpView& op, const DotDims& dims) {
  const ValueId lhs = op.op().operands[0];
  const ValueId rhs = op.op().operands[1];
  const ValueId result = op.op().results[0];
  if (!op.function().values[at(result)].sharding.axes) return std::nullopt;

  Axes summed;
  for (const DotDim& dim : dims.contracting) {
    const Axes& axes = axes_of(op, lhs, dim.lhs);
    if (axes != axes_of(op, rhs, dim.rhs)) return std::nullopt;
    summed.insert(summed.end(), axes.begin(), axes.end());
  }
  for (const DotDim& left : dims.lhs_free) {
    for (const DotDim& right : dims.rhs_free) {
      if (overlap(axes_of(op, lhs, left.lhs), axes_of(op, rhs, right.rhs))) return std::nullopt;
    }
  }
  std::optional<DotDim> found;
  for (const auto* list : {&dims.batch, &dims.lhs_free, &dims.rhs_free}) {
    for (const DotDim& dim : *list) {
      const Axes& axes = dim.lhs >= 0 ? axes_of(op, lhs, dim.lhs) : axes_of(op, rhs, dim.rhs);
      if (list == &dims.batch && axes != axes_of(op, rhs, dim.rhs)) return std::nullopt;
      if (axes == axes_of(op, result, dim.output)) continue;
      if (axes.empty() || found.has_value()) return std::nullopt;
      const std::int64_t operand = std::max(dim.lhs >= 0 ? product(op.operand(0)) : 0,
                                            dim.rhs >= 0 ? product(op.operand(1)) : 0);
      if (product(op.result(0)) > operand) return std::nullopt;
      found = dim;
    }
  }
  if (!found || summed.empty() || axes_of(op, result, found->output) != summed) return std::nullopt;
  return found;
}

}  // namespace

std::optional<Tiling> finer_result(const OpView& op, const DotDims& dims, const Tiling& lhs,
                                   const Tiling& rhs, const Tiling& result) {
  const std::optional<DotDim> dim = conflicting_dim(op, dims);
  if (!dim.has_value() || result.is_replicated()) return std::nullopt;
  const Tiling& operand = dim->lhs >= 0 ? lhs : rhs;
  const std::size_t operand_dim = at(dim->lhs >= 0 ? dim->lhs : dim->rhs);
  if (operand.is_replicated()) return std::nullopt;

  std::vector<std::int64_t> place(result.devices().size());
  operand.each([&](const Dims& index, int device) { place[at(device)] = index[operand_dim]; });
  Shape tiles = result.tiles();
  tiles[at(dim->output)] = operand.tiles()[operand_dim];
  std::vector<std::vector<int>> devices(at(product(tiles)));
  result.each([&](const Dims& index, int device) {
    std::int64_t tile = 0;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      tile = tile * tiles[i] + (i == at(dim->output) ? place[at(device)] : index[i]);
    }
    devices[at(tile)].push_back(device);
  });
  std::vector<int> order;
  for (const std::vector<int>& tile : devices) {
    if (tile.size() != devices.front().size()) return std::nullopt;
    order.insert(order.end(), tile.begin(), tile.end());
  }
  return Tiling::tiled(std::move(tiles), std::move(order));
}

}  // namespace shardsim::spmd
