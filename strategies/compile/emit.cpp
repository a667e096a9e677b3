#include "strategies/compile/emit.hpp"

#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"
#include "strategies/compile/plan_tables.hpp"
#include "strategies/compile/value_buffers.hpp"
#include "strategies/schedule/acknowledged.hpp"
#include "strategies/schedule/messages.hpp"
#include "strategies/schedule/unshards.hpp"

namespace shardsim {
namespace {

constexpr double most_tasks = 1 << 23;

// The devices of each rank, in the order of the mesh.
std::vector<std::vector<std::int64_t>> devices_of_ranks(const Mesh& mesh, const std::string& axis) {
  const int stages = *mesh.find(axis);
  std::int64_t inner = 1;  // devices that lie between neighbours of the axis
  for (std::size_t i = at(stages) + 1; i < mesh.axes().size(); ++i) inner *= mesh.axes()[i].size;
  const std::int64_t ranks = mesh.axes()[at(stages)].size;
  std::vector<std::vector<std::int64_t>> devices(at(ranks));
  for (std::int64_t device = 0; device < mesh.devices(); ++device) {
    devices[at(device / inner % ranks)].push_back(device);
  }
  return devices;
}

// What each rank does, in order. Where gradients are reduced once their stage is through, a runtime
// of lists says when a stage is gathered, given back and reduced; one that loops over microbatches
// reduces when it is through with all of them.
CallLists calls_of(const EmitInput& input) {
  const PipelineSchedule& schedule = input.schedule;
  if (input.stages_axis.empty()) return computations(schedule);
  const bool in_shards =
      has_backward(input.workload) && input.runtime.reductions.after_last_backward;
  const bool loops = input.receives == Receives::when_needed;
  // They take turns in PyTorch's lists whether there are shards or not.
  const bool has_turns = has_backward(input.workload) && input.sends == Sends::own_backward;
  CallLists lists = with_messages(
      (in_shards || has_turns) && !loops ? with_unshards(schedule) : computations(schedule),
      schedule.shape, input.receives);
  if (!in_shards) {
    for (std::vector<Call>& calls : lists) {
      std::erase_if(calls, [](const Call& call) { return call.kind >= Call::Kind::unshard; });
    }
  }
  if (!in_shards || !loops) return lists;
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    for (const std::int16_t stage : schedule.shape.stages_of(static_cast<std::int32_t>(rank))) {
      lists[rank].push_back({Call::Kind::reduce, Action{.stage = stage}});
    }
  }
  return lists;
}

}  // namespace

void check_task_count(const SpmdStep& step, const Workload& workload, std::int64_t microbatches,
                      const Place& place) {
  const auto count_of = [](auto number) { return static_cast<double>(number); };
  double tasks = 0;
  for (std::size_t b = 0; b < step.blocks.size(); ++b) {
    const BlockProgram& block = step.blocks[b];
    const double layers = count_of(workload.blocks[b].instances());
    for (const BlockPass* pass : {&block.forward, &block.backward, &block.optimizer}) {
      const double times = pass == &block.optimizer ? 1 : count_of(microbatches);
      tasks += layers * (times * (count_of(pass->gathers.size()) + count_of(pass->body.size()) +
                                  count_of(pass->reductions.size())) +
                         (times - 1) * count_of(pass->additions.size()) +
                         count_of(pass->last_reductions.size()));
    }
  }
  if (tasks <= most_tasks) return;
  throw InputError(place, fmt::format("a step in {} microbatches has {:.3g} tasks, more than "
                                      "{:.3g} are not planned",
                                      microbatches, tasks, most_tasks));
}

Plan emit(const EmitInput& input) {
  assert(input.schedule.shape.stages() == input.stages.size());
  Plan plan;
  plan.mesh = input.mesh;
  PlanTables tables(input.step, plan);
  const bool has_stages = !input.stages_axis.empty();
  const std::vector<bool> of_step =
      values_of_step(input.step, input.schedule.shape.microbatches, has_stages);
  const CallLists calls = calls_of(input);
  const auto acknowledged = input.sends == Sends::own_backward
                                ? sends_until_backward(calls)
                                : acknowledged_sends(calls, input.schedule.shape);
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    const auto number = static_cast<std::int32_t>(rank);
    ProgramEmitter emitter(input, of_step, number, tables);
    plan.programs.push_back(emitter.run(calls[rank], acknowledged[rank]));
  }
  if (!has_stages) return plan;
  auto devices = devices_of_ranks(input.mesh, input.stages_axis);
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    plan.programs[rank].devices = std::move(devices[rank]);
  }
  return plan;
}

}  // namespace shardsim
