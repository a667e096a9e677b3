#include "strategies/specs/uneven_shards.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"

namespace shardsim::uneven_shards_test {
namespace {

const Mesh mesh({{"data", 8}, {"model", 4}});

Strategy strategy(const std::string& text) {
  const Json json = parse_json(text, "a.json");
  return read_strategy(JsonReader(json, {"a.json", "/strategy"}), mesh);
}

std::vector<std::string> check(const std::string& text, bool allow_uneven) {
  ParameterTree tree{"toy", {}};
  for (const auto& [name, shape] : std::vector<std::pair<std::string, std::vector<std::int64_t>>>{
           {"even", {32, 8}}, {"vocab", {50257, 8}}, {"odd", {3}}}) {
    ParameterLeaf& leaf = tree.leaves.emplace_back();
    leaf.name = name;
    leaf.shape = shape;
  }
  const Strategy options = strategy(text);
  const SpecTable table = tree_specs(tree, mesh, options);
  return check_even_parameters(table.parameters, table.rules, options, allow_uneven);
}

const std::string rules = R"({"name": "match_partition_rules", "min_size": 0,
    "rules": [["even", ["data"]], [".*", ["model"]]]})";

// 50257 = 4 * 12564 + 1, and 3 over 4: JAX names the first of them.
TEST_CASE("parameters that jit refuses") {
  const std::string uneven =
      "vocab: dimension 0 has 50257 elements, which its 4 shards do not divide (and 1 more): jit "
      "refuses such parameters; ";
  CHECK_THROWS_WITH(check(rules, false),
                    "a.json: /strategy/rules/1: IndivisibleError: " + uneven +
                        "--allow-uneven, \"allow_uneven\": true in an experiment, prices it with "
                        "padding");
  CHECK(check(rules, true) == std::vector<std::string>{uneven + "priced as if padded"});
}

// praxis pads what enters its programs; FSDP2 pads its shards.
TEST_CASE("systems that pad refuse nothing") {
  CHECK(check(R"({"name": "praxis", "weights": [["vocab", ["model", null]]]})", false).empty());
  CHECK(check(R"({"name": "fsdp", "batch_axes": ["data"]})", false).empty());
}

// The box says that equal shards lie on the devices of model: of 3 elements none do.
TEST_CASE("shard_map refuses uneven boxes") {
  CHECK_THROWS_WITH(
      check(R"({"name": "fsdp_tutorial", "axis": "data", "partitioned": [["odd", ["model"]]]})",
            false),
      Catch::Contains("odd: dimension 0 has 3 elements, which its 4 shards do not divide: "
                      "shard_map refuses"));
}

EnteringBatch enter(std::int64_t batch, std::int64_t microbatches, bool allow_uneven,
                    const std::string& text) {
  const Step step{.batch = batch, .microbatches = microbatches};
  return entering_batch(step, {"a.json", "/workload"}, strategy(text), mesh, allow_uneven);
}

const std::string tutorial = R"({"name": "fsdp_tutorial", "axis": "data", "batch_axes": ["data"]})";

// accumulate_gradients: minibatch_size = batch_size // num_minibatches of each device's examples.
// 136 / 8 = 17 = 4 * 4 + 1.
TEST_CASE("the tutorial drops what its minibatches leave over") {
  const EnteringBatch entering = enter(136, 4, false, tutorial);
  CHECK(entering.examples == 128);
  CHECK(entering.warnings ==
        std::vector<std::string>{"each device drops 1 of its 17 examples, as the tutorial does: 4 "
                                 "minibatches of 4 = 17 // 4; a step computes with 128 of 136"});
  CHECK(enter(128, 4, false, tutorial).warnings.empty());
  CHECK_THROWS_WITH(enter(24, 4, false, tutorial),
                    "a.json: /workload/microbatches: 4 minibatches of the 3 examples of a device "
                    "have none each: their loss is not a number");
}

TEST_CASE("inputs that do not divide are refused, by whom the system uses") {
  CHECK_THROWS_WITH(
      enter(130, 1, false, tutorial),
      Catch::Contains("a.json: /workload/batch: IndivisibleError: a batch of 130 does not divide "
                      "over the 8 devices of data: shard_map refuses such inputs; --allow-uneven"));
  CHECK_THROWS_WITH(enter(130, 1, false, rules), Catch::Contains("jit refuses such inputs"));
  // 17 on the fullest device.
  CHECK(enter(130, 1, true, rules).examples == 130);
  CHECK(enter(130, 1, true, rules).warnings ==
        std::vector<std::string>{"a batch of 130 does not divide over the 8 devices of data: jit "
                                 "refuses such inputs; priced as 17 on each"});
  CHECK(enter(130, 1, false, R"({"name": "fsdp", "batch_axes": ["data"]})").warnings.empty());
}

// shard_on_batch_dim: dimension 0 over all 8 * 4 devices, and nothing else; what is read over fewer
// of them divides, or lies inside of the program.
TEST_CASE("praxis' inputs enter over the whole mesh") {
  const std::string praxis = R"({"name": "praxis", "weights": [], "inputs_split_mapping":
      {"map_2d": ["data", "model"]}})";
  CHECK_THROWS_WITH(
      enter(40, 1, false, praxis),
      Catch::Contains(
          "a.json: /workload/batch: IndivisibleError: a batch of 40 does not divide "
          "over the 32 devices of data, model: jit refuses such inputs; --allow-uneven"));
  CHECK(enter(40, 1, true, praxis).warnings ==
        std::vector<std::string>{"a batch of 40 does not divide over the 32 devices of data, "
                                 "model: jit refuses such inputs; priced as 2 on each"});
  const Step odd{.batch = 64, .sequence = 31};
  CHECK(entering_batch(odd, {}, strategy(praxis), mesh, false).warnings.empty());
}

}  // namespace
}  // namespace shardsim::uneven_shards_test
