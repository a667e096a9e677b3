// Laws of rule lists.
#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "strategies/specs/coverage.hpp"

#include "base/json.hpp"

using namespace shardsim;

namespace {

const std::vector<std::string> words = {"layers", "attn", "mlp", "kernel", "bias", "norm"};

ParameterTree arbitrary_tree() {
  ParameterTree tree{"arbitrary", {}};
  const int leaves = *rc::gen::inRange(1, 20);
  for (int i = 0; i < leaves; ++i) {
    ParameterLeaf leaf;
    leaf.name =
        *rc::gen::elementOf(words) + "/" + std::to_string(i) + "/" + *rc::gen::elementOf(words);
    leaf.shape = {*rc::gen::inRange<std::int64_t>(1, 300), 8};
    tree.leaves.push_back(leaf);
  }
  return tree;
}

// Some rules, then a catch-all; `action` is what a rule does.
Json arbitrary_rules(const Json& action) {
  Json rules = Json::array();
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i)
    rules.push_back({".*" + *rc::gen::elementOf(words) + ".*", action});
  rules.push_back({".*", action});
  return rules;
}

}  // namespace

TEST_CASE("a catch-all leaves nothing unmatched, and every leaf has one rule", "[property]") {
  CHECK(rc::check("for systems of ordered patterns", [] {
    const Mesh mesh({{"data", 2}});
    const bool big_vision = *rc::gen::arbitrary<bool>();
    const Json strategy = {
        {"name", big_vision ? "big_vision" : "match_partition_rules"},
        {"rules", arbitrary_rules(big_vision ? Json("fsdp('data')") : Json::array({"data"}))}};
    const SpecTable table =
        tree_specs(arbitrary_tree(), mesh, read_strategy({strategy, {"a.json", ""}}, mesh));
    RC_ASSERT(coverage_of(table).unmatched.empty());
    std::int64_t decided = 0;
    for (const RuleUse& rule : table.rules) {
      RC_ASSERT(rule.decides <= rule.matches);
      decided += rule.decides;
    }
    RC_ASSERT(decided == static_cast<std::int64_t>(table.parameters.size()));
  }));
}
