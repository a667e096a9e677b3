// Programs from strangers, all the way: StableHLO text is prepared, propagated and partitioned, in
// both modes, and becomes a plan that keeps its promises, with its memory on either compiler.
#include <string>

#include "base/error.hpp"
#include "plan/plan.hpp"
#include "spmd/partition.hpp"
#include "spmd/propagation/prepare.hpp"
#include "spmd/propagation/propagate.hpp"
#include "spmd/to_plan.hpp"
#include "stablehlo/module.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardsim;  // NOLINT(google-build-using-namespace)
  try {
    const std::string text(reinterpret_cast<const char*>(data), size);
    stablehlo::Module program = spmd::prepare(stablehlo::parse_module(text, "input.mlir"));
    spmd::propagate(program);
    verify(spmd::plan_of(spmd::partition(program, {.like_xla = true}), spmd::MemoryTarget::tpu));
    verify(spmd::plan_of(spmd::partition(program), spmd::MemoryTarget::gpu));
  } catch (const InputError&) {
    // What it is for.
  }
  return 0;
}
