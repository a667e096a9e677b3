// Row "fsdp_tutorial" beyond its golden cases, and laws of its parts.
#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include <algorithm>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/dimension_order.hpp"
#include "strategies/rules/fsdp_tutorial_step.hpp"

namespace shardsim::fsdp_tutorial_test {
namespace {

using Shape = std::vector<std::int64_t>;

const Mesh mesh({{"data", 8}, {"pipe", 2}});

// The classifier of the tutorial: data_parallel_fsdp.ipynb.
ParameterTree classifier() {
  const auto leaf = [](const std::string& name, const Shape& shape) {
    ParameterLeaf result;
    result.name = name;
    result.shape = shape;
    return result;
  };
  return {"classifier",
          {leaf("input_dense/bias", {512}), leaf("input_dense/kernel", {784, 512}),
           leaf("output_dense/bias", {10}), leaf("output_dense/kernel", {512, 10})}};
}

SpecAssignment assign(const std::string& strategy) {
  const Json json = parse_json(strategy, "a.json");
  return assign_fsdp_tutorial(classifier(), mesh, {json, {"a.json", ""}});
}

// Specs and local shapes that the notebook prints for min_weight_size 16 over 8 devices.
TEST_CASE("the tutorial's classifier") {
  const SpecAssignment small = assign(R"({"axis": "data", "min_weight_size": 16})");
  CHECK(to_string(small.leaves[0].spec) == "P(data)");
  CHECK(to_string(small.leaves[1].spec) == "P(data, None)");
  CHECK(to_string(small.leaves[2].spec) == "P()");
  CHECK(to_string(small.leaves[3].spec) == "P(data, None)");
  CHECK(small.leaves[2].reason == "10 elements are not more than min_weight_size=16");
  CHECK(small.rules.empty());
  const SpecAssignment usual = assign(R"({"axis": "data"})");  // 2^18 = 262144
  CHECK(to_string(usual.leaves[1].spec) == "P(data, None)");
  CHECK(usual.leaves[3].spec.empty());
}

// shard_params sees a box over pipe: [784, 512] is [392, 512] on a device, dimension 1 is free and
// the largest. Of [10] nothing divides, which the tutorial logs.
TEST_CASE("boxes that are partitioned before") {
  const SpecAssignment result = assign(R"({"axis": "data", "min_weight_size": 6,
      "partitioned": [["input_dense/kernel", ["pipe", null]], ["output_dense/kernel", ["data", null]]]})");
  CHECK(to_string(result.leaves[1].spec) == "P(pipe, data)");
  CHECK(result.leaves[1].tactic == "shard_params: dimension 1 over data, on top of P(pipe, None)");
  CHECK(to_string(result.leaves[3].spec) == "P(data, None)");
  CHECK(result.leaves[3].tactic == "shard_params: as it was, partitioned P(data, None)");
  CHECK(result.warnings ==
        std::vector<std::string>{
            "output_dense/bias: could not shard (10,) with names (None,) on axis data, no suitable "
            "axis found",
            "output_dense/kernel: parameter (64, 10) with names ('data', None) already sharded on "
            "axis data"});
  CHECK(result.rules[0].text == R"(partitioned input_dense/kernel -> ["pipe",null])");
  CHECK_THROWS_WITH(
      assign(R"({"axis": "data", "partitioned": [["input_dense/kernel", ["pipe"]]]})"),
      "a.json: /partitioned/0: ValueError: 1 names for the 2 dimensions of "
      "\"input_dense/kernel\"");
}

// shard_module_params wraps what it is told to wrap: parameters of other modules stay plain.
TEST_CASE("only wrapped modules are sharded") {
  const SpecAssignment result =
      assign(R"({"axis": "data", "min_weight_size": 16, "modules": ["^input_dense", "nowhere"]})");
  CHECK(to_string(result.leaves[1].spec) == "P(data, None)");
  CHECK(to_string(result.leaves[3].spec) == "P()");
  CHECK(result.leaves[3].tactic == "not wrapped by shard_module_params");
  CHECK(result.rules[0].decides == 2);
  CHECK(result.rules[1].matches == 0);
}

// 784 = 16 * 49 is the largest dimension, and 16 = 8 * 2 divides it.
TEST_CASE("an axis of several is one entry") {
  const SpecAssignment result = assign(R"({"axis": ["data", "pipe"], "min_weight_size": 16})");
  CHECK(to_string(result.leaves[1].spec) == "P((data, pipe), None)");
}

TEST_CASE("an axis that the mesh lacks, and none") {
  CHECK_THROWS_WITH(assign(R"({"axis": "dat"})"),
                    "a.json: /axis: NameError: axis \"dat\" is not in the mesh (data, pipe), did "
                    "you mean \"data\"?");
  CHECK_THROWS_AS(assign(R"({"min_weight_size": 16})"), InputError);
}

// By the tutorial's train step: a box over data alone still needs its mean over pipe.
TEST_CASE("gradients are averaged over the axes that no name holds") {
  const FsdpTutorial options{{{"data"}, false}, 16};
  const auto step = [&](const SyncAxes& axes) {
    return step_collectives(classifier(), mesh, options, axes, 4, tutorial_metric_scalars, {});
  };
  CHECK(step({{"data"}, false}).pmeans == 1);
  CHECK(step({{"data", "pipe"}, false}).pmeans == 4);
  // 10 numbers whole, and 1/8 of 512 + 784 * 512 + 512 * 10 of the others, in float32.
  CHECK(step({{"data", "pipe"}, false}).averaged.count() ==
        4 * (10 + (512 + 784 * 512 + 5120) / 8));
}

// sync_gradients iterates a string letter by letter for boxes; pmean takes it whole.
TEST_CASE("axes as a bare string") {
  const BoxNames names = {BoxName{{"data"}, false}};
  CHECK_THROWS_AS(sync_gradients(names, {{"data"}, true}, {}), RuleError);
  CHECK(sync_gradients(std::nullopt, {{"data"}, true}, {}) == std::vector<std::string>{"data"});
  CHECK(sync_gradients(names, {{"x"}, true}, {}) == std::vector<std::string>{"x"});
}

TEST_CASE("a parameter that is sharded and gathered is what it was") {
  CHECK(rc::check([] {
    const auto shape = *rc::gen::container<Shape>(static_cast<std::size_t>(*rc::gen::inRange(0, 5)),
                                                  rc::gen::inRange<std::int64_t>(0, 40));
    const std::int64_t size = *rc::gen::inRange<std::int64_t>(1, 9);
    const BoxName axis{{"data"}, false};
    const BoxedArray array{shape, std::nullopt};
    const ShardedParameter sharded = shard_params(array, axis, size, 1);
    const GatheredArray gathered = gather_params(sharded.array, axis, size);
    RC_ASSERT(gathered.array == array);
    RC_ASSERT(gathered.dimension == sharded.dimension);
    if (!sharded.dimension) return;
    for (std::size_t d = 0; d < shape.size(); ++d) {  // none that divides is larger
      RC_ASSERT(shape[d] % size != 0 || shape[d] <= shape[*sharded.dimension]);
    }
    RC_ASSERT(shard_params(sharded.array, axis, size, 1).outcome == ShardOutcome::already_sharded);
  }));
}

TEST_CASE("dimensions come largest first, of equal ones the later first") {
  CHECK(largest_dimensions_first({1024, 1024}) == std::vector<std::size_t>{1, 0});
  CHECK(largest_dimensions_first({3, 3, 1024, 1024}) == std::vector<std::size_t>{3, 2, 1, 0});
  CHECK(rc::check([](const std::vector<std::int64_t>& shape) {
    const std::vector<std::size_t> order = largest_dimensions_first(shape);
    RC_ASSERT(order.size() == shape.size());
    RC_ASSERT(std::is_sorted(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(shape[a], a) > std::pair(shape[b], b);
    }));
  }));
}

// gather_array_with_mean_grads: psum_scatter / n is the device's chunk of the mean.
TEST_CASE("scattered means put together are the mean") {
  CHECK(rc::check([] {
    const auto devices = static_cast<std::size_t>(*rc::gen::inRange(1, 5));
    const Shape shape = {*rc::gen::inRange<std::int64_t>(1, 4),
                         static_cast<std::int64_t>(devices) * *rc::gen::inRange<std::int64_t>(1, 4),
                         *rc::gen::inRange<std::int64_t>(1, 4)};
    const auto count = static_cast<std::size_t>(shape[0] * shape[1] * shape[2]);
    DeviceValues values(devices);
    for (auto& row : values) {
      for (std::size_t i = 0; i < count; ++i) row.push_back(*rc::gen::inRange(-99, 99));
    }
    const std::vector<double> mean = pmean(values);
    const DeviceValues shards = mean_scatter(values, shape, 1, {});
    const auto inner = static_cast<std::size_t>(shape[2]);
    const std::size_t width = static_cast<std::size_t>(shape[1]);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t column = i / inner % width;
      const std::size_t chunk = width / devices;
      const std::size_t within = (i / (inner * width) * chunk + column % chunk) * inner + i % inner;
      RC_ASSERT(shards[column / chunk][within] == mean[i]);
    }
  }));
  CHECK_THROWS_AS(mean_scatter({{1, 2, 3}, {1, 2, 3}}, {3}, 0, {}), RuleError);
}

// 7 examples in 2 minibatches: 3 each, the last is dropped; (1 + ... + 6) / 6 = 3.5.
TEST_CASE("accumulation drops what no minibatch holds") {
  const AccumulatedBatch batch = accumulate_gradients({1, 2, 3, 4, 5, 6, 99}, 2, {});
  CHECK(batch.minibatch == 3);
  CHECK(batch.dropped == 1);
  CHECK(*batch.loss == Approx(3.5));
  CHECK(batch.metric_sum == 21);
  CHECK_FALSE(accumulate_gradients({1}, 2, {}).loss);
  CHECK_THROWS_AS(accumulate_gradients({1}, 0, {}), RuleError);
}

// Expectations printed by Python: ' tt '.center(11, '=').
TEST_CASE("titles are centred as Python centres them") {
  CHECK(metrics_text({{"a", {1, 2}}}, "t") == "==== t ====\na: 0.500000");
  CHECK(metrics_text({{"a", {1, 2}}}, "tt") == "==== tt ===\na: 0.500000");
  CHECK(metrics_text({{"a", {0, 0}}}, "") == "a: nan");
}

}  // namespace
}  // namespace shardsim::fsdp_tutorial_test
