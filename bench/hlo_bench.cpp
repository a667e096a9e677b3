// How fast HLO text is read, and turned into a plan: megabytes per second over a module of many
// fused computations, a few hundred bytes per instruction as compilers print them.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "hlo/to_plan.hpp"

namespace shardsim {
namespace {

const std::string metadata =
    ", metadata={op_name=\"jit(step)/transpose(jvp(layer))/mlp/dot_general\" "
    "scheduling_name=\"fusion\"}, backend_config={\"operation_queue_id\":\"0\",\"sizes\":[\"16\"],"
    "\"force_earliest_schedule\":false,\"reification_cost\":[],\"device_type\":\"INVALID\"}";

std::string module_text(std::int64_t fusions) {
  std::string text = "HloModule bench, is_scheduled=true, num_partitions=8\n\n";
  std::string entry =
      "\nENTRY %main (p: bf16[512,2048]) -> bf16[512,2048] {\n"
      "  %v.0 = bf16[512,2048]{1,0:T(8,128)(2,1)} parameter(0)\n";
  for (std::int64_t i = 0; i < fusions; ++i) {
    text += fmt::format(
        "%fused.{0} (a.{0}: bf16[512,2048]) -> bf16[512,2048] {{\n"
        "  %a.{0} = bf16[512,2048]{{1,0:T(8,128)(2,1)}} parameter(0)\n"
        "  %e.{0} = bf16[512,2048]{{1,0:T(8,128)(2,1)}} exponential(%a.{0}){1}\n"
        "  ROOT %m.{0} = bf16[512,2048]{{1,0:T(8,128)(2,1)}} multiply(%a.{0}, %e.{0}){1}\n}}\n\n",
        i, metadata);
    entry += fmt::format(
        "  %v.{0} = bf16[512,2048]{{1,0:T(8,128)(2,1)}} fusion(%v.{1}), kind=kLoop, "
        "calls=%fused.{1}{2}\n",
        i + 1, i, metadata);
  }
  return text + entry + "}\n";
}

void parse(benchmark::State& state) {
  const std::string text = module_text(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(HloModule::parse(text, "bench"));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(parse)->Arg(1000)->Arg(50000)->Unit(benchmark::kMillisecond);

void parse_and_plan(benchmark::State& state) {
  const std::string text = module_text(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(plan_from_hlo(HloModule::parse(text, "bench"), {}));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(parse_and_plan)->Arg(1000)->Arg(50000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardsim
