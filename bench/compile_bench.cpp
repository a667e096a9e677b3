// From a model to its plan: what the op graph of a step takes, and what each pass after it takes,
// by model, strategy and microbatches. Only the last passes unroll layers and microbatches.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/json.hpp"
#include "strategies/compile/compile.hpp"
#include "workloads/step/step.hpp"

using namespace shardsim;

namespace {

struct Case {
  const char* model;
  const char* strategy;
  std::int64_t microbatches;
};
constexpr std::int64_t most_microbatches = 16;
constexpr Case cases[] = {{"llama-3.1-8b", "fsdp", 1},
                          {"llama-3.1-8b", "tp", 1},
                          {"llama-3.1-405b", "fsdp+tp", 1},
                          {"llama-3.1-405b", "fsdp+tp", most_microbatches},
                          {"vit-b16", "dp", 1}};

constexpr std::int64_t shards = 128;
constexpr std::int64_t split = 8;
constexpr std::int64_t batch = 2 * shards * most_microbatches;
constexpr std::int64_t tokens = 8192;  // of a sequence

Step step_of(const Case& one) {
  Step step{.batch = batch, .microbatches = one.microbatches};
  if (reads_tokens(load_model_config(one.model, "", {}))) step.sequence = tokens;
  return step;
}

Workload graph_of(const Case& one) {
  return build_step(load_model_config(one.model, "", {}), step_of(one));
}

void graph(benchmark::State& state) {
  const Case& one = cases[state.range(0)];
  for (auto _ : state) benchmark::DoNotOptimize(graph_of(one).tensors.size());
  state.SetLabel(one.model);
}
BENCHMARK(graph)->Arg(0)->Arg(2)->Arg(4);

void compile_all(benchmark::State& state) {
  const Case& one = cases[state.range(0)];
  const Mesh mesh({{"fsdp", shards}, {"model", split}});
  const Json json = one.strategy;
  const Strategy strategy = read_strategy(JsonReader(json, {"bench", ""}), mesh);
  const Step asked = step_of(one);
  const Workload workload = graph_of(one);
  std::vector<PassTime> sums;
  for (auto _ : state) {
    const CompiledStep step = compile(workload, asked, mesh, strategy);
    sums.resize(step.times.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] = {step.times[i].pass, sums[i].time + step.times[i].time};
    }
  }
  for (const PassTime& sum : sums) {
    constexpr double microseconds = 1e6;  // in a second
    state.counters[std::string(sum.pass) + " us"] =
        sum.time.count() * microseconds / static_cast<double>(state.iterations());
  }
  state.SetLabel(fmt::format("{}, {}, {}", one.model, one.strategy, one.microbatches));
}
BENCHMARK(compile_all)->DenseRange(0, std::size(cases) - 1)->Unit(benchmark::kMillisecond);

}  // namespace
