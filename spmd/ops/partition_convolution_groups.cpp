#include <algorithm>

#include "base/index.hpp"
#include "spmd/ops/partition_convolution.hpp"
#include "spmd/tiling/tiling_match.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::ConvolutionDimensions;

Dims listed(std::int64_t first, std::int64_t second, const std::vector<int>& spatial) {
  Dims dims{first, second};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return dims;
}

// result[keys[i]] = values[i]
Dims by_dim(const Dims& keys, const Dims& values) {
  Dims result(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) result[at(keys[i])] = values[i];
  return result;
}

DotAttempt split_over(const ConvolutionAttempt& attempt, std::int64_t group_dim,
                      std::int64_t other_dim) {
  const ConvolutionDimensions& numbers = attempt.convolution.numbers();
  const int devices = attempt.lhs.context->devices();
  const bool by_lhs = attempt.lhs.tiles(group_dim) == devices;
  if (!by_lhs && attempt.rhs.tiles(numbers.kernel_output) != devices) return std::nullopt;
  const Dims from = input_of_kernel(numbers, group_dim, other_dim);
  Sharded lhs = attempt.lhs;
  Sharded rhs = attempt.rhs;
  if (by_lhs) {
    rhs = reshard(rhs, transpose(lhs.tiling, from));
  } else {
    lhs = reshard(lhs, transpose(rhs.tiling, inverse(from)));
  }
  const Tiling made_in = transpose(lhs.tiling, input_of_result(numbers, group_dim, other_dim));
  const ValueId made = attempt.dot.make(lhs, rhs, attempt.dot.window);
  return reshard({made, attempt.target.shape, made_in, lhs.context}, attempt.target.tiling).value;
}

// The groups as a batch dimension of a dot.
DotDims with_groups(const DotDims& dims, const ConvolutionDimensions& numbers) {
  DotDims result = dims;
  const bool features = numbers.feature_groups > 1;
  const std::int64_t group_dim = features ? numbers.input_feature : numbers.input_batch;
  result.batch.push_back({group_dim, numbers.kernel_output, numbers.output_feature, -1});
  result.lhs_free.clear();
  result.rhs_free.clear();
  if (features) {
    result.contracting.clear();
    result.lhs_free.push_back({numbers.input_batch, -1, -1, -1});
    result.rhs_free.push_back({-1, numbers.kernel_input, -1, -1});
  }
  return result;
}

// Whole groups on each device need equal numbers of features on both sides, or tiles that divide
// the groups.
bool groups_divide(const ConvolutionAttempt& attempt) {
  const ConvolutionDimensions& numbers = attempt.convolution.numbers();
  const bool features = numbers.batch_groups == 1;
  const std::int64_t groups = features ? numbers.feature_groups : numbers.batch_groups;
  const std::int64_t dim = features ? numbers.input_feature : numbers.input_batch;
  return attempt.lhs.shape[at(dim)] == attempt.rhs.shape[at(numbers.kernel_output)] ||
         (!attempt.lhs.tiling.is_replicated() && groups % attempt.lhs.tiles(dim) == 0);
}

// Only the groups are split, as finely as in any of the three tensors.
ValueId split_groups_only(const ConvolutionAttempt& attempt, const DotDims& dims,
                          const DotTiles& tiles) {
  const DotMaps maps = maps_of(dims);
  const DotDim& group = dims.batch.back();
  const std::int64_t most = std::max({tiles.lhs_batch, tiles.rhs_batch, tiles.output_batch});
  Tiling for_lhs;
  Tiling for_rhs;
  Tiling for_result;
  if (most == tiles.lhs_batch) {
    for_lhs = replicate_all_but(attempt.lhs.tiling, {group.lhs});
    for_rhs = *match_dims(for_lhs, maps.lhs_to_rhs, maps.rhs_to_lhs);
    for_result = *match_dims(for_lhs, maps.lhs_to_output, maps.output_to_lhs);
  } else if (most == tiles.rhs_batch) {
    for_rhs = replicate_all_but(attempt.rhs.tiling, {group.rhs});
    for_lhs = *match_dims(for_rhs, maps.rhs_to_lhs, maps.lhs_to_rhs);
    for_result = *match_dims(for_rhs, maps.rhs_to_output, maps.output_to_rhs);
  } else {
    for_result = replicate_all_but(attempt.target.tiling, {group.output});
    for_lhs = *match_dims(for_result, maps.output_to_lhs, maps.lhs_to_output);
    for_rhs = *match_dims(for_result, maps.output_to_rhs, maps.rhs_to_output);
  }
  const Sharded lhs = reshard(attempt.lhs, for_lhs);
  const Sharded rhs = reshard(attempt.rhs, for_rhs);
  const ValueId made = attempt.dot.make(lhs, rhs, attempt.dot.window);
  return reshard({made, attempt.target.shape, for_result, lhs.context}, attempt.target.tiling)
      .value;
}

}  // namespace

Dims input_of_kernel(const ConvolutionDimensions& numbers, std::int64_t group_dim,
                     std::int64_t other_dim) {
  return by_dim(listed(numbers.kernel_output, numbers.kernel_input, numbers.kernel_spatial),
                listed(group_dim, other_dim, numbers.input_spatial));
}

Dims input_of_result(const ConvolutionDimensions& numbers, std::int64_t group_dim,
                     std::int64_t other_dim) {
  return by_dim(listed(numbers.output_feature, numbers.output_batch, numbers.output_spatial),
                listed(group_dim, other_dim, numbers.input_spatial));
}

Dims inverse(const Dims& permutation) { return by_dim(permutation, iota_dims(permutation.size())); }

DotAttempt split_groups(const ConvolutionAttempt& attempt) {
  const ConvolutionDimensions& numbers = attempt.convolution.numbers();
  const std::int64_t batch = attempt.lhs.shape[at(numbers.input_batch)];
  const std::int64_t features = attempt.lhs.shape[at(numbers.input_feature)];
  const std::int64_t outputs = attempt.rhs.shape[at(numbers.kernel_output)];
  const int devices = attempt.lhs.context->devices();
  if (numbers.batch_groups > 1 && numbers.batch_groups % devices == 0 && batch == outputs &&
      numbers.batch_groups == batch) {
    if (const auto made = split_over(attempt, numbers.input_batch, numbers.input_feature)) {
      return made;
    }
  }
  if (numbers.feature_groups > 1 && numbers.feature_groups % devices == 0 &&
      outputs % numbers.feature_groups == 0 && features % numbers.feature_groups == 0) {
    return split_over(attempt, numbers.input_feature, numbers.input_batch);
  }
  return std::nullopt;
}

std::optional<DotAttempt> group_on_groups(const ConvolutionAttempt& attempt, bool keep_groups) {
  if (!attempt.convolution.is_grouped()) return std::nullopt;
  if (!groups_divide(attempt)) return DotAttempt();
  const ConvolutionDimensions& numbers = attempt.convolution.numbers();
  Dot dot = attempt.dot;
  dot.dims = with_groups(attempt.dot.dims, numbers);
  if (const auto made =
          group_on_batch(dot, attempt.lhs, attempt.rhs, attempt.target, keep_groups)) {
    return made;
  }
  const DotTiles tiles =
      tiles_of(dot.dims, attempt.lhs.tiling, attempt.rhs.tiling, attempt.target.tiling);
  const std::int64_t most = std::max({tiles.lhs_batch, tiles.rhs_batch, tiles.output_batch});
  const auto divides = [&](std::int64_t groups) { return groups > 1 && groups % most == 0; };
  if (keep_groups || most == 1 ||
      (!divides(numbers.batch_groups) && !divides(numbers.feature_groups))) {
    return DotAttempt();
  }
  return split_groups_only(attempt, dot.dims, tiles);
}

}  // namespace shardsim::spmd
