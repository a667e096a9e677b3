// How fast HLO text is read, and turned into a plan, and what that takes: megabytes per second and
// heap per byte of text (the text included) over a module of many fused computations, a few hundred
// bytes per instruction as compilers print them. The largest has 210 MB.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "hlo/to_plan.hpp"

namespace {
std::int64_t heap_now = 0;
std::int64_t heap_peak = 0;
}  // namespace

// Every allocation of the program is counted.
void* operator new(std::size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  heap_now += static_cast<std::int64_t>(malloc_usable_size(memory));
  heap_peak = std::max(heap_peak, heap_now);
  return memory;
}

void operator delete(void* memory) noexcept {
  if (memory != nullptr) heap_now -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

void operator delete(void* memory, std::size_t /*size*/) noexcept { operator delete(memory); }

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

// Fusions, of four instructions and 1 kB each: 1 MB of text, which a cache holds, and 50 and 210
// MB, which none does. Heap per byte should hardly differ, nor the speed of the two large ones.
void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("fusions")->Arg(1'000)->Arg(50'000)->Arg(200'000);
}

// Runs `read` on a copy of the text, again and again.
template <class Read>
void measure(benchmark::State& state, Read read) {
  const std::string text = module_text(state.range(0));
  std::int64_t most = 0;
  for (auto _ : state) {
    const std::int64_t before = heap_now;
    heap_peak = heap_now;
    read(text);
    most = std::max(most, heap_peak - before);
  }
  const auto size = static_cast<std::int64_t>(text.size());
  state.SetBytesProcessed(state.iterations() * size);
  state.counters["heap_per_byte"] = static_cast<double>(most) / static_cast<double>(size);
}

void parse(benchmark::State& state) {
  measure(state, [](const std::string& text) {
    benchmark::DoNotOptimize(HloModule::parse(text, "bench"));
  });
}
BENCHMARK(parse)->Apply(sizes)->Unit(benchmark::kMillisecond);

void parse_and_plan(benchmark::State& state) {
  measure(state, [](const std::string& text) {
    benchmark::DoNotOptimize(plan_from_hlo(HloModule::parse(text, "bench"), {}));
  });
}
BENCHMARK(parse_and_plan)->Apply(sizes)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardsim
