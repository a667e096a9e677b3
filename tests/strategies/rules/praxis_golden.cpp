#include <fmt/format.h>

#include "base/json.hpp"
#include "golden.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/logical_axes.hpp"
#include "strategies/rules/praxis_layers.hpp"
#include "strategies/rules/praxis_split_dims.hpp"
#include "strategies/rules/uneven_padding.hpp"
#include "strategies/schedule/shifting_pipeline.hpp"

namespace shardsim::test {
namespace {

using Integers = std::vector<std::int64_t>;

constexpr std::int64_t most = std::int64_t{1} << 40;

Integers integers(const JsonReader& json) {
  Integers values;
  for (const JsonReader& value : json.elements()) values.push_back(value.integer(0, most));
  return values;
}

std::vector<std::string> strings(const JsonReader& json) {
  std::vector<std::string> values;
  for (const JsonReader& value : json.elements()) values.push_back(value.string());
  return values;
}

// "raw_spec" is what the original hands to PartitionSpec, "spec" what that keeps of it.
Json specs(const SplitDims& dims, const JsonReader& input) {
  return {{"raw_spec", to_json(dims)}, {"spec", to_json(canonical(dims, input.place()))}};
}

Json to_spec(const JsonReader& input) {
  return specs(
      read_split_dims(input.at("split_dims_mapping"), strings(input.at("mesh_axis_names"))), input);
}

Json batch_spec(const JsonReader& input) {
  return specs(batch_split_dims(input.at("shape").elements().size(),
                                strings(input.at("mesh_axis_names")), input.place()),
               input);
}

Json rank_spec(const JsonReader& input) {
  const auto dims =
      split_dims_by_rank(input.at("mapping_dict"), input.at("shape").elements().size(),
                         strings(input.at("mesh_axis_names")));
  return dims ? specs(*dims, input) : Json{{"spec", nullptr}};
}

Json weight_spec(const JsonReader& input) {
  const std::vector<std::string> mesh_axes = strings(input.at("mesh_axis_names"));
  if (mesh_axes.size() != input.at("mesh_shape").elements().size()) {
    throw RuleError("AssertionError", input.place(), "the mesh has more sizes than names, or less");
  }
  WeightSplit weight{"w", input.at("shape").elements().size(), {}, 0, {}};
  if (const auto mapping = input.find("tensor_split_dims_mapping")) {
    weight.tensor = read_split_dims(*mapping, mesh_axes);
  }
  if (const auto prefix = input.find("repeat_prefix")) {
    weight.prefix_rank = prefix->elements().size();
    if (const auto mapping = input.find("repeat_prefix_split_dims_mapping")) {
      weight.prefix = read_split_dims(*mapping, mesh_axes);
    }
  }
  return specs(weight_split_dims(weight, input.place()), input);
}

// Names that no mesh is given for stand for themselves.
SplitDims named(const JsonReader& mapping) {
  SplitDims dims;
  for (const JsonReader& entry : mapping.elements()) {
    dims.push_back({entry.is_null() ? "" : entry.string(), false, {}});
  }
  return dims;
}

Json quantized(const JsonReader& input) {
  const FusedQkvSplit split = fused_qkv_split(named(input.at("weight_split_dims_mapping")),
                                              /*combine_dims=*/false, input.place());
  return {{"w", to_json(split.weight)},
          {"w_quantized_scale", to_json(split.scale)},
          {"b", to_json(split.bias)}};
}

Json grouped_query(const JsonReader& input) {
  const auto mapping = input.find("dnh");
  const auto sequence = input.find("seq_shard");
  // The axes of the upstream test.
  const SplitDims q_weight = mapping ? named(*mapping) : SplitDims{{}, {"y", false, {}}, {}};
  const JsonReader heads = input.at("k");
  const GroupedQuerySplit split =
      grouped_query_split(q_weight, heads.is_number() && heads.integer(1, most) == 1, "x",
                          sequence && sequence->boolean(), input.place());
  return {{"dnh", to_json(split.q_weight)},
          {"dkh", to_json(split.kv_weight)},
          {"btnh", to_json(split.queries)},
          {"bskh", to_json(split.keys_values)}};
}

Json flax_rules(const JsonReader& input) {
  LogicalAxes axes;
  for (const JsonReader& axis : input.at("axes").elements()) {
    axes.push_back(axis.is_null() ? std::nullopt : std::optional(axis.string()));
  }
  const PartitionSpec spec = logical_to_mesh_axes(
      axes, read_logical_axis_rules(input.at("logical_axes_rules")), input.place());
  const auto rank = static_cast<std::size_t>(input.at("unannotated_param_rank").integer(0, 8));
  return {{"w", to_json(spec)}, {"b", to_json(PartitionSpec(rank))}};
}

GoldenFunction stacked(bool is_circular) {
  return [is_circular](const JsonReader& input) -> Json {
    const RepeatPrefix prefix =
        pipeline_prefix(input.at("stages").integer(1, most),
                        input.at("circular_repeat").integer(1, most), is_circular, "stage");
    Integers shape = prefix.sizes;
    const Integers own = integers(input.at("w_in"));
    shape.insert(shape.end(), own.begin(), own.end());
    return {{"shape", shape},
            {"repeat_prefix", prefix.sizes},
            {"repeat_prefix_split_dims_mapping", to_json(prefix.split)}};
  };
}

Json paddings(const JsonReader& input) {
  const Integers shape = integers(input.at("shape"));
  const Integers padding =
      uneven_paddings(read_partition_spec(input.at("spec")), shape,
                      read_golden_mesh(input.at("mesh")), input.at("spec").place());
  const Integers padded = padded_shape(shape, padding);
  return {{"paddings", padding},
          {"padded_shape", padded},
          {"pads_anything", padded != shape},
          {"upstream_padded_shape_zip_truncated", padded_state_shape(shape, padding)}};
}

Json slices(const JsonReader& input) {
  const Integers shape = sliced_shape(integers(input.at("padded_shape")),
                                      integers(input.at("unpadded_shape")), input.place());
  return {{"result_shape", shape}, {"start_indices", Integers(shape.size(), 0)}};
}

ShiftingPipeline read_pipeline(const JsonReader& input) {
  ShiftingPipeline pipeline;
  pipeline.stages = input.at("num_stages").integer(1, most);
  pipeline.microbatches = input.at("num_microbatches").integer(1, most);
  if (const auto repeats = input.find("circular_repeat")) {
    pipeline.repeats = repeats->integer(1, most);
  }
  return pipeline;
}

Json microbatches(const JsonReader& input) {
  const ShiftingPipeline pipeline = read_pipeline(input);
  const std::string formula = input.at("formula").choice(
      {"(loop_iter - arange(L) + M) % M", "max(loop_iter - arange(L), 0) % M"});
  const auto numbering =
      formula.starts_with("max") ? MicrobatchNumbering::praxis : MicrobatchNumbering::lingvo;
  Json ids = Json::array();
  Json valid = Json::array();
  for (std::int64_t t = 0; t < pipeline.iterations(); ++t) {
    Json id_row = Json::array();
    Json valid_row = Json::array();
    for (std::int64_t s = 0; s < pipeline.stages; ++s) {
      id_row.push_back(pipeline.microbatch(t, s, numbering));
      valid_row.push_back(pipeline.is_valid(t, s));
    }
    ids.push_back(id_row);
    valid.push_back(valid_row);
  }
  return {{"total_iterations", pipeline.iterations()},
          {"microbatch_ids", ids},
          {"valid_mask", valid},
          {"bubble_fraction", pipeline.bubble_fraction()}};
}

Json circular_iterations(const JsonReader& input) {
  const ShiftingPipeline pipeline = read_pipeline(input);
  const auto enabled = input.find("enable_async_circular_transfer");
  return {{"total_iterations", pipeline.iterations()},
          {"valid_iterations", pipeline.valid_iterations()},
          {"async_circular_transfer",
           (!enabled || enabled->boolean()) && sends_late(pipeline, input.place())},
          {"bubble_fraction", pipeline.bubble_fraction()}};
}

}  // namespace

void add_praxis(GoldenFunctions& functions) {
  functions.add("to_partition_spec", to_spec);
  functions.add("shard_on_batch_dim_partition_spec", batch_spec);
  functions.add("infer_partition_spec_based_on_rank_fn", rank_spec, {"meaning"});
  functions.add("var_partition_specs", weight_spec);
  functions.add("quantized_partition_specs", quantized);
  functions.add("flax logical rules in praxis", flax_rules);
  functions.add("LayerwiseShardablePipelined", stacked(/*is_circular=*/false));
  functions.add("CircularLayerwiseShardablePipelined", stacked(/*is_circular=*/true));
  functions.add("grouped query attention sharding", grouped_query);
  functions.add("_get_uneven_sharding_paddings", paddings);
  functions.add("_maybe_slice_uneven_sharding", slices);
  functions.add("pipeline microbatch_ids", microbatches);
  functions.add("CircularLayerwiseShardablePipelined.num_total_iterations", circular_iterations);
}

}  // namespace shardsim::test
