// Row "praxis" beyond its golden cases, and laws of its parts.
#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/praxis.hpp"
#include "strategies/rules/praxis_layers.hpp"
#include "strategies/rules/praxis_split_dims.hpp"
#include "strategies/rules/uneven_padding.hpp"
#include "strategies/schedule/shifting_pipeline.hpp"

namespace shardsim::praxis_test {
namespace {

const Mesh mesh({{"replica", 2}, {"data", 4}, {"mdl", 8}});

ParameterTree tree_of(const std::vector<std::pair<std::string, TensorShape>>& leaves) {
  ParameterTree tree;
  for (const auto& [name, shape] : leaves) {
    tree.leaves.emplace_back();
    tree.leaves.back().name = name;
    tree.leaves.back().shape = shape;
  }
  return tree;
}

SpecAssignment assign(const ParameterTree& tree, const std::string& strategy) {
  const Json json = parse_json(strategy, "a.json");
  return assign_praxis(tree, mesh, {json, {"a.json", ""}});
}

std::string refusal(const ParameterTree& tree, const std::string& strategy) {
  try {
    static_cast<void>(assign(tree, strategy));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Expectations: the definitions in the headers, worked out by hand.
TEST_CASE("the first pattern decides, the others count what they would match") {
  const ParameterTree tree = tree_of({{"a/w", {8, 8}}, {"b/w", {8, 8}}, {"c", {8}}});
  const SpecAssignment result =
      assign(tree, R"({"weights": [["a/", [2, null]], ["w", ["data", ["replica"]]]]})");
  CHECK(to_string(result.leaves[0].spec) == "P(mdl, None)");
  CHECK(to_string(result.leaves[1].spec) == "P(data, replica)");
  CHECK(to_string(result.leaves[2].spec) == "P(None)");
  CHECK(result.leaves[0].rule == 0U);
  CHECK(result.leaves[1].rule == 1U);
  CHECK_FALSE(result.leaves[2].rule);
  CHECK(result.rules[0].matches == 1);
  CHECK(result.rules[1].matches == 2);
  CHECK(result.rules[1].decides == 1);
  CHECK(result.rules[1].text == R"(w -> ["data",["replica"]])");
}

TEST_CASE("a prefix may stand before a weight without a mapping") {
  const SpecAssignment result = assign(tree_of({{"x/scale", {4, 16}}}),
                                       R"({"weights": [], "repeat_prefix": [["x", ["data"]]]})");
  CHECK(to_string(result.leaves[0].spec) == "P(data, None)");
}

TEST_CASE("inputs enter over the whole mesh and are read by the mapping of their rank") {
  const Json json = parse_json(
      R"({"inputs_split_mapping": {"map_1d": [["replica", "data"]], "map_2d": null}})", "a.json");
  const auto specs = [&](std::size_t rank) {
    const auto found = praxis_inputs(rank, {json, {"a.json", ""}}, mesh);
    return to_string(found->entering) + " " + to_string(found->read);
  };
  CHECK(specs(1) == "P((replica, data, mdl)) P((replica, data))");
  CHECK(specs(2) == "P((replica, data, mdl), None) P((replica, data, mdl), None)");
  CHECK_THROWS_WITH(specs(3), Catch::Contains("needs a mapping \"map_3d\""));
  CHECK_THROWS_WITH(specs(0), Catch::Contains("AssertionError: a scalar has no batch dimension"));
  CHECK_FALSE(praxis_inputs(2, {Json::object(), {"a.json", ""}}, mesh));
  CHECK(inputs_split_mapping_of({"replica", "data"}, {}).dump() ==
        R"({"map_1d":[["replica","data"]],"map_2d":[["replica","data"],null],)"
        R"("map_3d":[["replica","data"],null,null],"map_4d":[["replica","data"],null,null,null]})");
}

// praxis' to_partition_spec returns it; jax 0.10.2 refuses it as an axis that the mesh lacks, after
// axes that are used twice.
TEST_CASE("a null inside a tuple is refused where the spec meets the mesh") {
  const SpecAssignment result = assign(tree_of({{"w", {8, 8}}, {"x", {8}}}),
                                       R"({"weights": [["w", [["mdl", -1], -1]], ["x", [[-1]]]]})");
  CHECK_THROWS_WITH(
      to_sharding(result.leaves[0].spec, 2, mesh, {"a.json", "/w"}),
      "a.json: /w: ValueError: axis \"(null)\" of P((mdl, (null)), None) is not in the "
      "mesh (replica, data, mdl)");
  CHECK(to_string(result.leaves[1].spec) == "P(None)");
}

TEST_CASE("what praxis refuses is refused with its place") {
  const ParameterTree tree = tree_of({{"w", {8, 8}}});
  CHECK(refusal(tree, R"({"weights": [["w", ["modl", null]]]})") ==
        "a.json: /weights/0/1/0: AssertionError: axis \"modl\" is not in the mesh (replica, data, "
        "mdl), did you mean \"mdl\"?");
  CHECK(refusal(tree, R"({"weights": [["w", [3, null]]]})") ==
        "a.json: /weights/0/1/0: AssertionError: the mesh has no axis 3, it has 3 (replica, data, "
        "mdl)");
  CHECK(refusal(tree, R"({"weights": [["w", ["mdl"]]]})") ==
        "a.json: /weights/0: AssertionError: a mapping of 1 entries for the 2 dimensions of \"w\"");
  CHECK(refusal(tree, "{}").find("weights") != std::string::npos);
  CHECK(refusal(tree, R"({"weights": [], "repeat_prefix": [["w", null]]})") ==
        "a.json: /repeat_prefix/0/1: a prefix needs an entry for every stacked dimension, null "
        "where it is whole");
  CHECK(refusal(tree, R"({"weights": [], "repeat_prefix": [["w", [-1, -1, -1]]]})") ==
        "a.json: /repeat_prefix/0: AssertionError: \"w\" has 2 dimensions, fewer than its prefix "
        "of 3");
}

TEST_CASE("padding is the least that divides, and what shard_size counts") {
  const PartitionSpec spec = {{"mdl", "replica"}, {"data"}};
  CHECK(rc::check([&] {
    const TensorShape shape = {*rc::gen::inRange<std::int64_t>(0, 200),
                               *rc::gen::inRange<std::int64_t>(0, 200)};
    const TensorShape paddings = uneven_paddings(spec, shape, mesh, {});
    const TensorShape padded = padded_shape(shape, paddings);
    const Sharding sharding = to_sharding(spec, 2, mesh, {});
    const TensorShape parts = {16, 4};
    for (std::size_t d = 0; d < 2; ++d) {
      RC_ASSERT(paddings[d] >= 0 && paddings[d] < parts[d]);
      RC_ASSERT(shard_size(shape[d], sharding.dims[d]) * parts[d] == padded[d]);
    }
    RC_ASSERT(sliced_shape(padded, shape, {}) == shape);
  }));
}

TEST_CASE("while it works a stage sees every microbatch once for each repeat, in order") {
  CHECK(rc::check([] {
    const ShiftingPipeline pipeline{*rc::gen::inRange<std::int64_t>(1, 9),
                                    *rc::gen::inRange<std::int64_t>(1, 9),
                                    *rc::gen::inRange<std::int64_t>(1, 4)};
    for (std::int64_t s = 0; s < pipeline.stages; ++s) {
      std::int64_t step = 0;
      for (std::int64_t t = 0; t < pipeline.iterations(); ++t) {
        if (!pipeline.is_valid(t, s)) continue;
        RC_ASSERT(pipeline.microbatch(t, s, MicrobatchNumbering::praxis) ==
                  step % pipeline.microbatches);
        RC_ASSERT(pipeline.microbatch(t, s, MicrobatchNumbering::lingvo) ==
                  step % pipeline.microbatches);
        RC_ASSERT(pipeline.repeat(t, s) == step / pipeline.microbatches);
        ++step;
      }
      RC_ASSERT(step == pipeline.valid_iterations());
    }
  }));
}

// praxis/layers/pipeline.py: num_microbatches % num_stages == 0, (L - 1) % (M // L).
TEST_CASE("streamed pipelines") {
  CHECK(stream_offset({4, 8, 1}, {}) == 1);
  CHECK(stream_offset({4, 4, 1}, {}) == 0);
  CHECK_THROWS_AS(stream_offset({4, 6, 1}, {}), RuleError);
  CHECK(sends_late({4, 5, 2}, {}));
  CHECK_FALSE(sends_late({4, 4, 2}, {}));
  CHECK_THROWS_AS(sends_late({4, 3, 2}, {}), RuleError);
}

// praxis/layers/quantization/attentions.py at 0219aeb, setup and quantized_partitioned_specs, read:
// with attention_combine_dims the nulls of a mapping of three go, and the scale takes its second
// entry all the same.
TEST_CASE("fused projections of combined dimensions lose the leading null") {
  const auto split_of = [](const char* mapping, bool combine_dims) {
    const Json json = parse_json(mapping, "a.json");
    const FusedQkvSplit split = fused_qkv_split(
        read_split_dims({json, {"a.json", ""}}, axis_names(mesh)), combine_dims, {});
    return Json::array({to_json(split.weight), to_json(split.scale), to_json(split.bias)}).dump();
  };
  CHECK(split_of(R"([null, "data", "mdl"])", true) ==
        R"([[null,"data","mdl"],[null,"data"],[null,"mdl"]])");
  CHECK(split_of(R"(["data", "mdl"])", true) ==
        R"([[null,"data","mdl"],[null,"mdl"],[null,"mdl"]])");
  CHECK(split_of(R"([null, "data", "mdl"])", false) ==
        R"([[null,null,"data","mdl"],[null,"data","mdl"],[null,"data","mdl"]])");
  CHECK_THROWS_WITH(split_of(R"(["replica", "data", "mdl"])", true),
                    Catch::Contains("AssertionError: a mapping of 3 entries"));
}

// By hand: the prefix [4] comes from its rule, which is number 1 behind the one of weights.
TEST_CASE("each dimension names the rule that decided it") {
  const SpecAssignment result =
      assign(tree_of({{"x/w", {4, 16, 8}}}),
             R"({"weights": [["w", ["data", "mdl"]]], "repeat_prefix": [["x", [-1]]]})");
  CHECK(decided_by(result.leaves[0], result.rules) ==
        "dimension 0 by rule 1: x -> repeat_prefix [-1]; dimension 1 by rule 0: w -> "
        "[\"data\",\"mdl\"]; dimension 2 by rule 0: w -> [\"data\",\"mdl\"]");
}

}  // namespace
}  // namespace shardsim::praxis_test
