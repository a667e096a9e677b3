// Specs for large parameter trees: what a rule system takes for 100,000 leaves and 50 rules, of
// which the last is a catch-all. Names are those of a mixture of experts with many layers.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "strategies/specs/spec_table.hpp"

#include "base/json.hpp"

using namespace shardsim;

namespace {

constexpr int layers = 100;
constexpr int experts = 250;
const std::vector<std::string> weights = {"gate_proj", "up_proj", "down_proj", "norm"};

ParameterTree large_tree() {
  ParameterTree tree{"large", {}};
  for (int layer = 0; layer < layers; ++layer) {
    for (int expert = 0; expert < experts; ++expert) {
      for (const std::string& weight : weights) {
        ParameterLeaf leaf;
        leaf.name = fmt::format("model/layers/{}/mlp/experts/{}/{}/kernel", layer, expert, weight);
        leaf.shape = {4096, 1536};
        tree.leaves.push_back(std::move(leaf));
      }
    }
  }
  return tree;
}

// 46 rules that match nothing, two expressions with alternatives, a literal, and the catch-all.
Json fifty_rules(const Json& action, bool full_match) {
  const std::string before = full_match ? ".*" : "";
  Json rules = Json::array();
  for (int i = 0; i < 46; ++i)
    rules.push_back({fmt::format("{}block_{}/attention/kernel", before, i), action});
  rules.push_back({before + "(gate|up)_proj/kernel", action});
  rules.push_back({before + "experts/\\d+/down_proj/kernel", action});
  rules.push_back({before + "norm/scale", action});
  rules.push_back({".*", action});
  return rules;
}

void specs(benchmark::State& state, const Json& strategy) {
  const ParameterTree tree = large_tree();
  const Mesh mesh({{"data", 64}, {"model", 8}});
  const Strategy options = read_strategy(JsonReader(strategy, {"bench", ""}), mesh);
  for (auto _ : state) {
    SpecTable table = tree_specs(tree, mesh, options);
    benchmark::DoNotOptimize(table);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(tree.leaves.size()));
}

void match_partition_rules(benchmark::State& state) {
  specs(state, {{"name", "match_partition_rules"},
                {"rules", fifty_rules(Json::array({"data", "model"}), /*full_match=*/false)}});
}
BENCHMARK(match_partition_rules)->Unit(benchmark::kMillisecond);

void big_vision(benchmark::State& state) {
  specs(state,
        {{"name", "big_vision"}, {"rules", fifty_rules("fsdp(axis='data')", /*full_match=*/true)}});
}
BENCHMARK(big_vision)->Unit(benchmark::kMillisecond);

}  // namespace
