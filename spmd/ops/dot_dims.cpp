#include "spmd/ops/dot_dims.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "stablehlo/dimension_numbers.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::DotDimensions;
using stablehlo::OpView;

bool has(const std::vector<int>& dims, std::int64_t dim) {
  return std::find(dims.begin(), dims.end(), static_cast<int>(dim)) != dims.end();
}

std::int64_t dim_in(const DotDim& dim, DotTensor tensor) {
  return tensor == DotTensor::lhs ? dim.lhs : tensor == DotTensor::rhs ? dim.rhs : dim.output;
}

}  // namespace

DotDims dot_dims(const OpView& op) {
  DotDimensions numbers;
  if (op.op().name == "stablehlo.dot") {
    numbers.lhs_contracting = {static_cast<int>(op.operand(0).size()) - 1};
    numbers.rhs_contracting = {0};
  } else {
    numbers = stablehlo::dot_dimensions(op);
  }
  DotDims dims;
  dims.lhs_rank = op.operand(0).size();
  dims.rhs_rank = op.operand(1).size();
  dims.output_rank = op.result(0).size();
  std::int64_t output = 0;
  for (std::size_t i = 0; i < numbers.lhs_batching.size(); ++i) {
    dims.batch.push_back({numbers.lhs_batching[i], numbers.rhs_batching[i], output++, -1});
  }
  for (std::size_t i = 0; i < numbers.lhs_contracting.size(); ++i) {
    dims.contracting.push_back({numbers.lhs_contracting[i], numbers.rhs_contracting[i], -1, -1});
  }
  for (const std::int64_t dim : iota_dims(dims.lhs_rank)) {
    if (has(numbers.lhs_batching, dim) || has(numbers.lhs_contracting, dim)) continue;
    dims.lhs_free.push_back({dim, -1, output++, -1});
  }
  for (const std::int64_t dim : iota_dims(dims.rhs_rank)) {
    if (has(numbers.rhs_batching, dim) || has(numbers.rhs_contracting, dim)) continue;
    dims.rhs_free.push_back({-1, dim, output++, -1});
  }
  return dims;
}

DotMaps maps_of(const DotDims& dims) {
  DotMaps maps;
  maps.lhs_to_rhs = maps.lhs_to_output = Dims(dims.lhs_rank, -1);
  maps.rhs_to_lhs = maps.rhs_to_output = Dims(dims.rhs_rank, -1);
  maps.output_to_lhs = maps.output_to_rhs = Dims(dims.output_rank, -1);
  for (const auto* list :
       {&dims.batch, &dims.contracting, &dims.lhs_free, &dims.rhs_free, &dims.spatial}) {
    for (const DotDim& dim : *list) {
      if (dim.lhs >= 0) {
        maps.lhs_to_rhs[at(dim.lhs)] = dim.rhs;
        maps.lhs_to_output[at(dim.lhs)] = dim.output;
      }
      if (dim.rhs >= 0) {
        maps.rhs_to_lhs[at(dim.rhs)] = dim.lhs;
        maps.rhs_to_output[at(dim.rhs)] = dim.output;
      }
      if (dim.output >= 0) {
        maps.output_to_lhs[at(dim.output)] = dim.lhs;
        maps.output_to_rhs[at(dim.output)] = dim.rhs;
      }
    }
  }
  return maps;
}

Dims dims_in(const std::vector<DotDim>& dims, DotTensor tensor) {
  Dims result;
  for (const DotDim& dim : dims) {
    if (dim_in(dim, tensor) >= 0) result.push_back(dim_in(dim, tensor));
  }
  return result;
}

std::int64_t tiles_over(const Tiling& tiling, const std::vector<DotDim>& dims, DotTensor tensor) {
  std::int64_t tiles = 1;
  for (const std::int64_t dim : dims_in(dims, tensor)) tiles *= tiling.tiles(dim);
  return tiles;
}

DotTiles tiles_of(const DotDims& dims, const Tiling& lhs, const Tiling& rhs, const Tiling& output) {
  return {.lhs_batch = tiles_over(lhs, dims.batch, DotTensor::lhs),
          .rhs_batch = tiles_over(rhs, dims.batch, DotTensor::rhs),
          .output_batch = tiles_over(output, dims.batch, DotTensor::output),
          .lhs_contracting = tiles_over(lhs, dims.contracting, DotTensor::lhs),
          .rhs_contracting = tiles_over(rhs, dims.contracting, DotTensor::rhs),
          .lhs_free = tiles_over(lhs, dims.lhs_free, DotTensor::lhs),
          .output_lhs_free = tiles_over(output, dims.lhs_free, DotTensor::output),
          .rhs_free = tiles_over(rhs, dims.rhs_free, DotTensor::rhs),
          .output_rhs_free = tiles_over(output, dims.rhs_free, DotTensor::output)};
}

}  // namespace shardsim::spmd
