// Compiles one training step of a shipped model: what most tests of this room begin with.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "strategies/compile/compile.hpp"

namespace shardsim::test {

// What tests here ask of a step that they do not change.
inline Step usual_step() { return {.batch = 8, .sequence = 8192}; }

inline Workload training_workload(const std::string& model, const Step& step) {
  return build_step(load_model_config(model, "", {}), step);
}

inline CompiledStep compile_step(const std::string& model, const Mesh& mesh,
                                 const std::string& strategy, const Step& step = usual_step()) {
  const Json json = parse_json(strategy, "strategy");
  return compile(training_workload(model, step), step, mesh,
                 read_strategy(JsonReader(json, {"strategy", ""}), mesh));
}

// "forward all-gather data 4096": the collectives of a plan in order, with axes and payload; "fp32"
// and the like behind those that are not in bf16.
using Lines = std::vector<std::string>;
inline Lines collectives(const Plan& plan) {
  Lines list;
  for (const Task& task : plan.programs[0].tasks) {
    if (task.kind != TaskKind::collective) continue;
    const Collective& c = plan.collectives[static_cast<std::size_t>(task.work)];
    std::string axes;
    for (const std::string& name : plan.mesh.names_of(c.axes)) axes += " " + name;
    list.push_back(std::string(name_of(task.phase)) + " " + std::string(name_of(c.kind)) + axes +
                   " " + std::to_string(c.payload.count()) +
                   (c.dtype == DType::bf16 ? "" : " " + std::string(name_of(c.dtype))));
  }
  return list;
}

// Of the first program, forward and backward.
inline double attention_flops(const Plan& plan) {
  double flops = 0;
  for (const Task& task : plan.programs[0].tasks) {
    if (task.kind != TaskKind::kernel) continue;
    const Kernel& kernel = plan.kernels[static_cast<std::size_t>(task.work)];
    if (kernel.op.starts_with("attention")) flops += kernel.flops.count();
  }
  return flops;
}

// Payload of all executions of the collectives that `selects` chooses.
template <class Predicate>
std::int64_t payload(const Plan& plan, const Predicate& selects) {
  const std::vector<std::int64_t> counts = executions(plan);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (selects(plan.collectives[i])) bytes += counts[i] * plan.collectives[i].payload.count();
  }
  return bytes;
}

template <class Predicate>
std::int64_t count(const Plan& plan, const Predicate& selects) {
  const std::vector<std::int64_t> counts = executions(plan);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (selects(plan.collectives[i])) total += counts[i];
  }
  return total;
}

inline std::int64_t wire_bytes(const Plan& plan) {
  const std::vector<std::int64_t> counts = executions(plan);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Collective& c = plan.collectives[i];
    bytes += counts[i] * wire_bytes_per_device(c.kind, group_size(plan, c), c.payload).count();
  }
  return bytes;
}

}  // namespace shardsim::test
