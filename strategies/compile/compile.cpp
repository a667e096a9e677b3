#include "strategies/compile/compile.hpp"

#include <cassert>
#include <chrono>
#include <utility>

#include "base/json.hpp"
#include "strategies/compile/passes.hpp"

namespace shardsim {

CompiledStep compile(const Workload& workload, const Step& step, const Mesh& mesh,
                     const Strategy& strategy) {
  using Clock = std::chrono::steady_clock;
  Compilation compilation{workload, step, mesh, strategy};
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
  Compilation compilation{workload, step, mesh, strategy};
  for (const Pass& pass : passes()) {
    pass.run(compilation);
    if (pass.name == last) return pass.station(compilation);
  }
  assert(false && "no such pass");
  return {};
}

}  // namespace shardsim
