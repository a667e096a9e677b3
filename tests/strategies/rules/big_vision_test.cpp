// Laws of big_vision's rules and corners that the golden cases leave out; the latter's answers are
// read off google-research/big_vision sharding.py at 0127fb6.
#include "strategies/rules/big_vision.hpp"

#include <catch2/catch.hpp>

#include <rapidcheck.h>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"
#include "strategies/rules/dimension_order.hpp"

namespace shardsim {
namespace {

const Mesh mesh({{"data", 4}, {"model", 2}});

using Leaves = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

ParameterTree tree_of(const Leaves& leaves) {
  ParameterTree tree;
  for (const auto& [name, shape] : leaves) {
    ParameterLeaf leaf;
    leaf.name = name;
    leaf.shape = shape;
    tree.leaves.push_back(std::move(leaf));
  }
  return tree;
}

using Rules = std::vector<std::pair<std::string, std::string>>;

SpecAssignment infer(const ParameterTree& tree, const Rules& pairs,
                     const LogicalAxisRules& logical = {}) {
  std::vector<BigVisionRule> rules;
  for (const auto& [pattern, tactic] : pairs) {
    rules.push_back({pattern, tactic, {"a.json", "/rules/" + std::to_string(rules.size())}});
  }
  return infer_sharding(tree, rules, logical, mesh, {"a.json", "/strategy"});
}

std::string error_type(const ParameterTree& tree, const Rules& rules,
                       const LogicalAxisRules& logical = {}) {
  try {
    static_cast<void>(infer(tree, rules, logical));
  } catch (const RuleError& error) {
    return error.type();
  }
  return "none";
}

std::string spec_of_one(const std::vector<std::int64_t>& shape, const std::string& tactic) {
  return to_string(infer(tree_of({{"w", shape}}), {{".*", tactic}}).leaves[0].spec);
}

ParameterTree boxed_tree() {
  ParameterTree tree = tree_of({{"w", {8, 8}}});
  tree.leaves[0].logical_axes = LogicalAxes{"embed", "mlp"};
  return tree;
}

const LogicalAxisRules logical_rules{{"mlp", SpecEntry{"model"}, {}}};

}  // namespace

TEST_CASE("The largest dimension comes first, of equals the later") {
  // np.argsort(shape)[::-1] of numpy 1.24
  using Order = std::vector<std::size_t>;
  CHECK(largest_dimensions_first({1024, 1024}) == Order{1, 0});
  CHECK(largest_dimensions_first({768, 3072, 768}) == Order{1, 2, 0});
  CHECK(largest_dimensions_first({3, 3, 1024, 1024}) == Order{3, 2, 1, 0});
  CHECK(largest_dimensions_first({}).empty());
}

TEST_CASE("A leaf says which rule decided and why it is not sharded") {
  const SpecAssignment result =
      infer(tree_of({{"a/w", {1024, 1024}}, {"a/x", {2000001}}, {"b", {8}}, {"c", {8, 8}}}),
            {{"a/.*", "fsdp('data')"},
             {"a/w", "replicate"},
             {"b", "shard_dim('model', 1, ignore_ndim_error=True)"},
             {"none", "replicate"}});
  CHECK(result.leaves[0].rule == 0);
  CHECK(result.leaves[0].reason == "4.0 MiB is not more than min_size_to_shard_mb=4");
  CHECK(result.leaves[1].reason == "no dimension divides by 4");
  CHECK(result.leaves[2].reason == "shard_dim('model', 1) ignored at rank 1");
  CHECK_FALSE(result.leaves[3].rule.has_value());
  CHECK(result.rules[0].text == "a/.* -> fsdp('data')");
  CHECK((result.rules[0].matches == 2 && result.rules[0].decides == 2));
  CHECK((result.rules[1].matches == 1 && result.rules[1].decides == 0));
  CHECK((result.rules[3].matches == 0 && result.rules[3].decides == 0));
}

TEST_CASE("fsdp takes any collection of axes") {
  const std::string size = ", min_size_to_shard_mb=0)";
  CHECK(spec_of_one({8, 4}, "fsdp(['data']" + size) == "P(data, None)");
  CHECK(spec_of_one({8, 4}, "fsdp({'data': 1, 'model': 2}" + size) == "P((data, model), None)");
  CHECK(spec_of_one({8, 4}, "fsdp({'data'}" + size) == "P(data, None)");
  // A product over no axes is 1, and the dimension counts as taken.
  CHECK(spec_of_one({8, 4}, "fsdp(()" + size + "|fsdp('data'" + size) == "P(None, data)");
  CHECK(spec_of_one({8, 4}, "fsdp('data', -0.5)") == "P(data, None)");
  CHECK(spec_of_one({8, 4}, "fsdp('data', True)") == "P(None, None)");
}

TEST_CASE("Errors have the type that Python raises") {
  const ParameterTree tree = tree_of({{"w", {8, 8}}});
  const auto type = [&](const std::string& tactic) { return error_type(tree, {{".*", tactic}}); };
  CHECK(type("fsdp(4)") == "TypeError");
  CHECK(type("fsdp(None)") == "TypeError");
  CHECK(type("fsdp({'data', 'model'})") == "TypeError");
  CHECK(type("fsdp(b'data')") == "KeyError");
  CHECK(type("fsdp('')") == "KeyError");
  CHECK(type("fsdp(['data', ['model']])") == "TypeError");
  CHECK(type("fsdp('data', '4')") == "TypeError");
  CHECK(type("fsdp(('model', 'model'), 0)") == "DuplicateSpecError");
  CHECK(type("shard_dim('model')") == "TypeError");
  CHECK(type("shard_dim('model', 'x')") == "TypeError");
  CHECK(type("shard_dim('model', 0.5)") == "TypeError");
  CHECK(type("shard_dim('model', 2.0)") == "ValueError");
  CHECK(type("shard_dim('modle', 0)") == "ValueError");
  CHECK(type("shard_dim((('model',),), 0)") == "ValueError");
  CHECK(type("shard_dim(5, 0)") == "ValueError");
  CHECK(type("shard_dim(None, 0)|shard_dim('', 0)") == "none");
  CHECK(type("shard_dim('', 0)|shard_dim('model', 0)") == "ValueError");
  CHECK(type("replicate(1)") == "TypeError");
  CHECK(type("") == "SyntaxError");
  CHECK(error_type(tree, {{"(", "replicate"}}) == "re.error");
  CHECK(error_type({}, {{".*", "replicate"}}) == "ValueError");
  ParameterTree version = tree;
  version.leaves[0].has_shape = false;
  CHECK(error_type(version, {{".*", "nonsense"}}) == "AttributeError");
}

TEST_CASE("Errors surface entry by entry, op by op") {
  const ParameterTree tree = tree_of({{"a", {8, 8}}, {"b", {}}});
  // Patterns go first, and ops are looked up even for entries without leaves.
  CHECK(error_type(tree, {{"a", "nonsense"}, {"/b", "replicate"}}) == "AssertionError");
  CHECK(error_type(tree, {{"none", "nonsense"}, {"b", "shard_dim('data', 0)"}}) == "KeyError");
  CHECK(error_type(tree, {{"b", "shard_dim('data', 0)"}, {"a", "nonsense"}}) == "ValueError");
  CHECK(error_type(tree, {{"a", "fsdp('x')|f("}}) == "KeyError");
  // Axes are checked last.
  CHECK(error_type(tree, {{"a", "shard_dim('data', 0)|shard_dim('data', 1)|fsdp('x')"}}) ==
        "KeyError");
  CHECK_THROWS_WITH(infer(tree, {{"a", "replicate"}, {"b", "fsdp(axis='modle')"}}),
                    "a.json: /rules/1: KeyError: fsdp: the mesh has no axis 'modle', did you mean "
                    "\"model\"?");
}

TEST_CASE("A leaf with logical axes is given to every tactic") {
  const ParameterTree tree = boxed_tree();
  const SpecAssignment result = infer(
      tree, {{"none", "logical_partitioning"}, {"neither", "shard_dim('data', 0)"}}, logical_rules);
  CHECK(to_string(result.leaves[0].spec) == "P(data, model)");
  CHECK(result.leaves[0].rule == 0);
  CHECK(error_type(tree, {{"w", "replicate"}}, logical_rules) == "TypeError");
  CHECK(error_type(tree, {{"w", "shard_dim('data', 0)"}}, logical_rules) == "TypeError");
  CHECK(error_type(tree, {{"w", "fsdp('x')"}}, logical_rules) == "AttributeError");
  CHECK(error_type(tree, {{"w", "logical_partitioning|fsdp('data')"}}, logical_rules) ==
        "AttributeError");
  CHECK(error_type(tree, {{"w", "logical_partitioning|replicate"}}, logical_rules) == "ValueError");
  CHECK(error_type(tree, {{"w", "logical_partitioning|replicate"}}) == "none");
}

TEST_CASE("The system reads its own keys and has the trainer's defaults") {
  const RuleSystem* system = find_rule_system("big_vision");
  REQUIRE(system != nullptr);
  const ParameterTree tree = tree_of({{"w", {2048, 2048}}});
  const auto assign = [&](const char* text) {
    const Json json = parse_json(text, "a.json");
    return system->assign(tree, mesh, {json, {"a.json", "/strategy"}});
  };
  const SpecAssignment plain = assign(R"({"name": "big_vision", "zero_stage": 3})");
  CHECK(plain.rules[0].text == ".* -> replicate");
  CHECK(to_string(plain.leaves[0].spec) == "P(None, None)");
  const SpecAssignment sharded = assign(R"json({"rules": [[".*", "fsdp(axis='data')"]]})json");
  CHECK(to_string(sharded.leaves[0].spec) == "P(None, data)");
  CHECK(sharded.rules[0].place.pointer == "/strategy/rules/0");
  CHECK_THROWS_WITH(assign(R"({"rules": [[".*"]]})"),
                    "a.json: /strategy/rules/0: ValueError: a rule is a pair [pattern, tactic]");
  CHECK_THROWS_AS(assign(R"({"rules": []})"), RuleError);
}

TEST_CASE("fsdp shards the largest dimension that divides, and a catch-all leaves none out") {
  CHECK(rc::check([] {
    std::vector<std::int64_t> shape(*rc::gen::inRange<std::size_t>(0, 6));
    for (std::int64_t& size : shape) size = *rc::gen::inRange<std::int64_t>(1, 33);
    const SpecAssignment result =
        infer(tree_of({{"w", shape}}),
              {{"v", "replicate"}, {".*", "fsdp(axis=('data', 'model'), min_size_to_shard_mb=0)"}});
    RC_ASSERT(result.leaves[0].rule == 1U);
    const PartitionSpec& spec = result.leaves[0].spec;
    RC_ASSERT(spec.size() == shape.size());
    std::optional<std::size_t> expected;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] % 8 == 0 && (!expected || shape[d] >= shape[*expected])) expected = d;
    }
    for (std::size_t d = 0; d < shape.size(); ++d) {
      RC_ASSERT(spec[d] == (d == expected ? SpecEntry{"data", "model"} : SpecEntry{}));
    }
    RC_ASSERT(result.leaves[0].reason.empty() == expected.has_value());
  }));
}

}  // namespace shardsim
