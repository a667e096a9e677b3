#include "base/index.hpp"
#include "spmd/ops/halo_exchange.hpp"
#include "spmd/ops/partition_convolution.hpp"
#include "spmd/tiling/tiling_match.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::ConvolutionDimensions;

// Feature and batch groups that are split need the ways of partition_convolution_groups.cpp.
bool splits_groups(const ConvolutionDimensions& numbers, const Sharded& lhs, const Sharded& rhs) {
  const bool outputs = rhs.tiles(numbers.kernel_output) > 1;
  return (numbers.feature_groups > 1 && (outputs || lhs.tiles(numbers.input_feature) > 1)) ||
         (numbers.batch_groups > 1 && (outputs || lhs.tiles(numbers.input_batch) > 1));
}

// Uneven dimensions that are read backwards have their padding in front: the first tile is then
// short, as the last one is otherwise.
std::optional<Sharded> padded_in_front(const Sharded& value, const Dims& dims) {
  if (dims.empty() || value.tiling.is_replicated()) return value;
  Window window(value.shape.size());
  for (const std::int64_t dim : dims) {
    window[at(dim)].low = round_up(value.shape[at(dim)], value.tiles(dim)) - value.shape[at(dim)];
  }
  Builder& builder = value.context->builder();
  const auto moved = reshard_for_window(value, window, value.tiling,
                                        builder.zero(builder.type(value.value)), Masking::none);
  if (!moved) return std::nullopt;
  return Sharded{moved->value, value.shape, value.tiling, value.context};
}

// What every device needs of one spatial dimension of the input, so that with its tile of the
// kernel it has its share of every element of the result.
//   tile i of the kernel meets [i * kernel * d - low, that + kernel * d + (results - 1) * stride)
std::optional<ValueId> input_for_tile(const Sharded& lhs, ValueId value, std::int64_t dim,
                                      const WindowDim& window, std::int64_t kernel) {
  const std::int64_t tiles = lhs.tiles(dim);
  const std::int64_t size = lhs.shape[at(dim)];
  const std::int64_t tile = ceil_div(size, tiles);
  const std::int64_t results =
      1 + (window.low + window.high + size - (1 + (window.size - 1) * window.window_dilation)) /
              window.stride;
  const std::int64_t spread = kernel * window.window_dilation;
  Builder& builder = lhs.context->builder();
  Halo halo;
  halo.dim = dim;
  halo.tiling = lhs.tiling;
  halo.left = linear(at(tiles), tile - spread, window.low);
  halo.right = linear(
      at(tiles), spread - tile,
      spread - tile + 1 - window.window_dilation + window.stride * (results - 1) - window.low);
  HaloCut cut;
  cut.size = size;
  cut.left_padding = window.low;
  cut.tile_size = window.stride * (results - 1) + (kernel - 1) * window.window_dilation + 1;
  cut.start = linear(at(tiles), 0, 0);
  cut.whole = lhs.tiling;
  cut.ordinal = linear(at(tiles), 1, 0);
  cut.padding = builder.zero(builder.type(lhs.value));
  cut.mask = false;
  return exchange_halo_and_cut(*lhs.context, value, halo, cut);
}

}  // namespace

DotAttempt split_windows(const ConvolutionAttempt& attempt) {
  const ConvolutionDimensions& numbers = attempt.convolution.numbers();
  Window window = attempt.dot.window;
  Dims backwards;
  for (std::size_t i = 0; i < window.size(); ++i) {
    if (window[i].reversed) backwards.push_back(numbers.kernel_spatial[i]);
  }
  const Dims input_dims = input_of_kernel(numbers, numbers.input_batch, numbers.input_feature);
  Sharded lhs = attempt.lhs;
  const auto in_front = padded_in_front(attempt.rhs, backwards);
  if (!in_front) return std::nullopt;
  Sharded rhs = *in_front;
  if (whole_bytes(lhs) < whole_bytes(rhs)) {
    lhs = reshard(lhs, transpose(reversed(rhs.tiling, backwards), inverse(input_dims)));
  } else {
    rhs = reshard(rhs, reversed(transpose(lhs.tiling, input_dims), backwards));
  }
  if (lhs.tiles(numbers.input_batch) != 1 || rhs.tiles(numbers.kernel_output) != 1) {
    return std::nullopt;
  }
  lhs = pad_with_zero(lhs);
  rhs = pad_with_zero(rhs, backwards);
  if (splits_groups(numbers, lhs, rhs)) return std::nullopt;
  for (const WindowDim& dim : window) {
    if (dim.base_dilation != 1) return std::nullopt;
  }
  ValueId input = lhs.value;
  for (std::size_t i = 0; i < window.size(); ++i) {
    const std::int64_t dim = numbers.input_spatial[i];
    if (lhs.tiles(dim) == 1) continue;
    const std::int64_t kernel = ceil_div(rhs.shape[at(numbers.kernel_spatial[i])], lhs.tiles(dim));
    const auto exchanged = input_for_tile(lhs, input, dim, attempt.dot.window[i], kernel);
    if (!exchanged) return std::nullopt;
    input = *exchanged;
    window[i].low = window[i].high = 0;
    window[i].size = kernel;
  }
  Context& context = *lhs.context;
  const ValueId partial = attempt.dot.make({input, lhs.shape, lhs.tiling, &context}, rhs, window);
  std::vector<int> all(at(context.devices()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  const ValueId sum = all_reduce(context, partial, {all}, "add");
  return reshard({sum, attempt.target.shape, Tiling(), &context}, attempt.target.tiling).value;
}

DotAttempt split_like_result(const ConvolutionAttempt& attempt) {
  const ConvolutionDimensions& numbers = attempt.convolution.numbers();
  const Tiling& result = attempt.target.tiling;
  if (result.tiles(numbers.output_feature) > 1) return std::nullopt;
  if (splits_groups(numbers, attempt.lhs, attempt.rhs)) return std::nullopt;
  const std::size_t rank = attempt.lhs.shape.size();
  Dims result_of_input(rank);
  Window window(rank);
  result_of_input[at(numbers.input_batch)] = numbers.output_batch;
  result_of_input[at(numbers.input_feature)] = numbers.output_feature;
  for (std::size_t i = 0; i < numbers.input_spatial.size(); ++i) {
    result_of_input[at(numbers.input_spatial[i])] = numbers.output_spatial[i];
    window[at(numbers.input_spatial[i])] = attempt.dot.window[i];
  }
  const Tiling target = transpose(result, result_of_input);
  const Sharded lhs = reshard(attempt.lhs, target);
  const Sharded rhs = replicate(attempt.rhs);
  Builder& builder = lhs.context->builder();
  const ValueId zero = builder.zero(builder.type(lhs.value));
  const auto input = reshard_for_window(lhs, window, target, zero, Masking::always);
  if (!input) return std::nullopt;
  Window left;
  for (const int dim : numbers.input_spatial) left.push_back(input->window[at(dim)]);
  const ValueId made = attempt.dot.make({input->value, lhs.shape, target, lhs.context}, rhs, left);
  if (input->result_starts.empty()) return made;
  // The starts are given for the dimensions of the input.
  std::vector<ValueId> starts(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    starts[at(result_of_input[i])] = input->result_starts[i];
  }
  return builder.dynamic_slice(made, starts, shard_shape(attempt.target.shape, result));
}

}  // namespace shardsim::spmd
