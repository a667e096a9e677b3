#include "strategies/runtime/make_calls.hpp"

#include <utility>

#include "strategies/partition/spmd_builder.hpp"
#include "strategies/runtime/gradient_reductions.hpp"
#include "strategies/runtime/optimizer_pass.hpp"
#include "strategies/runtime/parameter_gathers.hpp"
#include "strategies/runtime/scalar_sums.hpp"
#include "strategies/runtime/shared_gradients.hpp"

namespace shardsim {

SpmdStep make_calls(SpmdStep partitioned, const Workload& workload, const Mesh& mesh,
                    const Layout& layout, const Units& units, const std::string& stages_axis,
                    const Runtime& runtime, const Step& step) {
  SpmdBuilder builder(workload, mesh, std::move(partitioned));
  std::vector<BlockProgram>& blocks = builder.step.blocks;
  const std::size_t count = blocks.size();
  const bool trains = has_backward(workload);
  ParameterGathers parameters(builder, units, runtime.gathers);
  for (std::size_t b = 0; b < count; ++b) {
    parameters.gather(b, Phase::forward, blocks[b].forward);
    parameters.keep_slices(b, blocks[b].forward);
  }
  GradientReductions gradients(builder, units, layout, runtime.reductions, step);
  for (std::size_t b = count; trains && b-- > 0;) {
    parameters.gather(b, Phase::backward, blocks[b].backward);
    gradients.reduce(b, blocks[b].backward);
  }
  add_scalar_sums(builder, layout.data_axes, runtime, step,
                  !trains              ? blocks.back().forward
                  : units.has_stages() ? blocks.back().backward
                                       : blocks.front().backward);
  const SharedGradients shared(workload, mesh, stages_axis);
  OptimizerPass update(builder, units, layout, gradients, shared, step.optimizer.donate, runtime);
  for (std::size_t b = 0; b < count; ++b) update.add(b);
  return std::move(builder.step);
}

}  // namespace shardsim
