#include "strategies/compile/compile.hpp"

#include <cassert>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/json.hpp"
#include "strategies/compile/passes.hpp"
#include "strategies/partition/state_exchange.hpp"
#include "strategies/runtime/module_order.hpp"

namespace shardsim {

namespace {

// As the strategy has it; `changed` holds one that is not as it was given.
const Workload& as_planned(const Workload& workload, const Step& step, const Mesh& mesh,
                           const Strategy& strategy, std::optional<Workload>& changed) {
  std::int64_t devices = 1;
  for (const std::string& axis : strategy.sequence_axes) {
    devices *= mesh.whole(*mesh.find(axis)).size;
  }
  const Workload* planned = &workload;
  if (devices > 1 && strategy.context.states == StateMethod::heads) {
    planned = &changed.emplace(with_heads_exchanged(*planned, devices));
  }
  if (strategy.shifting) {
    changed = with_layers_of_a_stage(*planned, *strategy.shifting, step.microbatches);
    planned = &*changed;
  }
  if (follows_modules(strategy.runtime)) {
    if (std::optional<Workload> other = with_norms_behind_products(*planned)) {
      planned = &(changed = std::move(other)).value();
    }
  }
  return *planned;
}

}  // namespace

CompiledStep compile(const Workload& workload, const Step& step, const Mesh& mesh,
                     const Strategy& strategy) {
  using Clock = std::chrono::steady_clock;
  std::optional<Workload> changed;
  Compilation compilation{as_planned(workload, step, mesh, strategy, changed), step, mesh, strategy,
                          workload};
  std::vector<PassTime> times;
  for (const Pass& pass : passes()) {
    const auto begin = Clock::now();
    pass.run(compilation);
    times.push_back(
        {pass.name, Seconds(std::chrono::duration<double>(Clock::now() - begin).count())});
  }
  compilation.compiled.times = std::move(times);
  return std::move(compilation.compiled);
}

Json compile_until(std::string_view last, const Workload& workload, const Step& step,
                   const Mesh& mesh, const Strategy& strategy) {
  std::optional<Workload> changed;
  Compilation compilation{as_planned(workload, step, mesh, strategy, changed), step, mesh, strategy,
                          workload};
  for (const Pass& pass : passes()) {
    pass.run(compilation);
    if (pass.name == last) return pass.station(compilation);
  }
  assert(false && "no such pass");
  return {};
}

}  // namespace shardsim
