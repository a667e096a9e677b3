#include "strategies/compile/stage_warnings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/index.hpp"

namespace shardsim {
namespace {

// Of layers that are dealt out evenly, and do not come out even.
std::string uneven_stages(const Compilation& c) {
  if (c.strategy.pipeline->remainder != Remainder::noted) return "";
  const StagesRequest& said = c.strategy.pipeline->stages;
  if (said.layout || said.first || said.last || !said.counts.empty()) return "";
  const auto layers = std::count_if(c.workload.order.begin(), c.workload.order.end(),
                                    [&](const BlockInstance& instance) {
                                      return c.workload.blocks[at(instance.block)].is_layer;
                                    });
  const auto stages = static_cast<std::int64_t>(c.stages.size());
  if ((layers + said.embedding_counts + said.loss_counts) % stages == 0) return "";
  std::vector<std::int32_t> counts;
  for (const StageLayers& stage :
       stages_of(*c.strategy.pipeline, static_cast<std::int32_t>(layers),
                 static_cast<std::int32_t>(c.workload.further_losses.size()))) {
    counts.push_back(stage.count);
  }
  return fmt::format(
      "{} layers do not divide by {} stages, which Megatron-Core refuses: they are dealt out as "
      "[{}]; \"embedding_counts\" and \"loss_counts\", \"ends\" or \"layers\" say how they lie",
      layers, stages, fmt::join(counts, ", "));
}

// Of checkpoints where PyTorch goes back through a stage in two parts: a call of autograd for each
// group of weights, and each recomputes (torch.distributed.pipelining, _backward.py,
// stage_backward_weight).
std::string repeated_checkpoints(const Compilation& c) {
  if (!c.strategy.runtime.retains_graph ||
      c.step.rematerialization.policy == Rematerialization::Policy::none) {
    return "";
  }
  const auto is_second_part = [](const Action& action) {
    return action.kind == ActionKind::backward_weight;
  };
  const auto splits = [&](const std::vector<Action>& actions) {
    return std::any_of(actions.begin(), actions.end(), is_second_part);
  };
  const auto& ranks = c.schedule.of_rank;
  if (std::none_of(ranks.begin(), ranks.end(), splits)) return "";
  return "PyTorch computes a checkpoint again for each group of weights when it goes back in two "
         "parts, and keeps what it has computed: planned is once, so time and memory are too small";
}

}  // namespace

std::vector<std::string> stage_warnings(const Compilation& c) {
  std::vector<std::string> warnings;
  if (!c.strategy.pipeline) return warnings;
  for (std::string warning : {uneven_stages(c), repeated_checkpoints(c)}) {
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  return warnings;
}

}  // namespace shardsim
