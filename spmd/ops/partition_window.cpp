// Windows that slide over split dimensions: every device gets what its own results read.
#include <algorithm>

#include "base/index.hpp"
#include "spmd/ops/halo_exchange.hpp"
#include "spmd/ops/windowed.hpp"
#include "spmd/partitioner.hpp"

namespace shardsim::spmd {
namespace {

Shape windows_of(const Shape& shape, const Window& window) {
  Shape result = shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    result[i] = stablehlo::positions(window[i], shape[i]);
  }
  return result;
}

// The op with the padding of `window` in place of its own.
std::vector<ValueId> with_padding(Partitioner& p, const OpView& op, const Window& window,
                                  const std::vector<ValueId>& operands,
                                  const std::vector<TensorType>& types) {
  AttributeList attributes;
  for (const auto& attribute : op.op().attributes) {
    if (attribute.name.rfind("sdy.", 0) != 0 && attribute.name != "padding") {
      attributes.push_back(attribute);
    }
  }
  std::vector<std::int64_t> padding;
  for (const WindowDim& dim : window) {
    padding.push_back(dim.low);
    padding.push_back(dim.high);
  }
  attributes.push_back({"padding", integers_attribute(padding)});
  std::vector<RegionId> regions;
  for (const RegionId region : op.op().regions) {
    regions.push_back(p.builder().copy_region(op.function(), region));
  }
  return p.builder().add_many(op.op().name, operands, types, std::move(attributes),
                              std::move(regions));
}

// What a select compares with so that padding is never chosen: "GE" and "GT" of the arguments in
// their order prefer large values. Nothing for other selects.
std::optional<std::string> never_selected(const OpView& op) {
  const stablehlo::Function& function = op.function();
  const auto& select = function.regions[at(op.op().regions.front())];
  if (select.ops.size() != 2 || select.arguments.size() != 2) return {};
  const Op& compare = function.op(select.ops.front());
  if (compare.name != "stablehlo.compare") return {};
  const std::string direction = stablehlo::comparison_direction(compare);
  const bool in_order = compare.operands == select.arguments;
  const bool in_reverse =
      compare.operands[0] == select.arguments[1] && compare.operands[1] == select.arguments[0];
  const bool wants_large = direction.starts_with('G');
  const bool wants_small = direction.starts_with('L');
  if ((!in_order && !in_reverse) || (!wants_large && !wants_small)) return {};
  return wants_large == in_order ? "-inf" : "inf";
}

// One dimension of a select_and_scatter: windows that meet the tile, sources and data they need.
struct ScatterDim {
  PerTile first;  // window of each tile
  Halo sources;
  Halo data;
  HaloCut source_cut;
  HaloCut data_cut;
};

ScatterDim plan_scatter(const WindowDim& given, std::int64_t dim, const Tiling& tiling,
                        const Shape& data, const Shape& sources) {
  // Gaps between windows that do not touch are kept.
  WindowDim window = given;
  window.size = std::max(window.size, window.stride);
  const std::int64_t tiles = tiling.tiles(dim);
  const std::size_t count = at(tiles);
  const std::int64_t tile = ceil_div(data[at(dim)], tiles);
  const std::int64_t source_tile = ceil_div(sources[at(dim)], tiles);
  ScatterDim plan;
  plan.first = linear(count, tile, window.low - window.size + window.stride, window.stride);
  const PerTile limit = linear(count, tile, tile + window.low + window.stride - 1, window.stride);
  PerTile first_data = plan.first;
  PerTile limit_data = limit;
  for (std::int64_t& place : first_data) place *= window.stride;
  for (std::int64_t& place : limit_data) place *= window.stride;
  plan.sources = {dim, tiling, linear(count, source_tile, 0) - plan.first,
                  limit - linear(count, source_tile, source_tile)};
  plan.data = {dim, tiling, linear(count, tile, window.low) - first_data,
               limit_data - linear(count, tile, tile + window.stride + window.low - window.size)};
  const std::int64_t most_windows = max_in(limit - plan.first, 0, tiles);
  HaloCut& source_cut = plan.source_cut;
  source_cut.size = sources[at(dim)];
  source_cut.padded_size = limit.back();
  source_cut.tile_size = most_windows;
  source_cut.start = plan.first;
  source_cut.whole = tiling;
  source_cut.ordinal = linear(count, 1, 0);
  HaloCut& data_cut = plan.data_cut;
  data_cut = source_cut;
  data_cut.size = data[at(dim)];
  data_cut.left_padding = window.low;
  data_cut.padded_size = (limit.back() - 1) * window.stride + window.size;
  data_cut.tile_size = (most_windows - 1) * window.stride + window.size;
  data_cut.start = first_data;
  return plan;
}

}  // namespace

void partition_reduce_window(Partitioner& p, const OpView& op) {
  const std::size_t count = op.op().operands.size() / 2;
  const Window window = stablehlo::reduction_window(op);
  std::vector<ValueId> operands;
  std::vector<ValueId> inits;
  std::optional<WindowedInput> input;
  for (std::size_t i = 0; i < count; ++i) {
    const Tiling wanted = p.tiling_of_result(op, i);
    if (wanted.is_replicated()) return p.replicated(op);
    inits.push_back(replicate(p.operand(op, count + i)).value);
    input = reshard_for_window(p.operand(op, i), window, wanted, inits.back(), Masking::always);
    if (!input) return p.replicated(op);
    operands.push_back(input->value);
  }
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < count; ++i) {
    TensorType type = op.function().type_of(op.op().results[i]);
    type.dims = windows_of(p.builder().shape(operands[i]), input->window);
    types.push_back(std::move(type));
  }
  operands.insert(operands.end(), inits.begin(), inits.end());
  std::vector<ValueId> made = with_padding(p, op, input->window, operands, types);
  for (std::size_t i = 0; i < count; ++i) {
    const Tiling wanted = p.tiling_of_result(op, i);
    if (!input->result_starts.empty()) {
      made[i] = p.builder().dynamic_slice(made[i], input->result_starts,
                                          shard_shape(op.result(i), wanted));
    }
    p.set_result(op, i, {made[i], op.result(i), wanted, &p.context()});
  }
}

void partition_select_and_scatter(Partitioner& p, const OpView& op) {
  const Tiling tiling = p.tiling_of_result(op, 0);
  const TensorType& type = op.function().type_of(op.op().results.front());
  const auto unselected = never_selected(op);
  const bool has_infinity = type.dtype == DType::f32 || type.dtype == DType::bf16;
  if (tiling.is_replicated() || !unselected || !has_infinity) return p.replicated(op);
  Builder& builder = p.builder();
  Context& context = p.context();
  const Sharded data = reshard(p.operand(op, 0), tiling);
  const Sharded sources = reshard(p.operand(op, 1), tiling);
  const ValueId init = replicate(p.operand(op, 2)).value;
  TensorType scalar = type;
  scalar.dims.clear();
  const ValueId padding = builder.constant(*unselected, scalar);
  Window window = stablehlo::reduction_window(op);
  ValueId data_value = data.value;
  ValueId source_value = sources.value;
  std::vector<ValueId> starts(window.size(),
                              builder.constant("0", {true, {}, "i32", DType::i32, ""}));
  for (std::size_t i = 0; i < window.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    if (tiling.tiles(dim) == 1) continue;
    ScatterDim plan = plan_scatter(window[i], dim, tiling, data.shape, sources.shape);
    plan.source_cut.padding = init;
    plan.data_cut.padding = padding;
    const auto near_sources =
        exchange_halo_and_cut(context, source_value, plan.sources, plan.source_cut);
    if (!near_sources) return p.replicated(op);
    const auto near_data = exchange_halo_and_cut(context, data_value, plan.data, plan.data_cut);
    if (!near_data) return p.replicated(op);
    source_value = *near_sources;
    data_value = *near_data;
    PerTile own = plan.data.left;
    own.front() = window[i].low;
    starts[i] = scalar_by_tile(context, tiling, dim, own);
    window[i].low = 0;
    window[i].high = 0;
  }
  const TensorType made_type = builder.type(data_value);
  ValueId made = with_padding(p, op, window, {data_value, source_value, init}, {made_type}).front();
  const Shape local = shard_shape(data.shape, tiling);
  if (made_type.dims != local) made = builder.dynamic_slice(made, starts, local);
  p.set_result(op, 0, {made, data.shape, tiling, &context});
}

}  // namespace shardsim::spmd
