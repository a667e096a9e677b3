// Small plans for machines of one byte and one flop per picosecond (machines.hpp): a kernel of n
// flops takes n ps, an all-gather over an axis of 2 with a payload of 2 n bytes takes n ps.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/plan.hpp"

namespace shardsim::testing {

class PlanBuilder {
 public:
  explicit PlanBuilder(std::vector<MeshAxis> axes = {{"x", 2}}) {
    plan.mesh = Mesh(std::move(axes));
    add_program("all", {});
  }

  Program& add_program(const std::string& name, std::vector<std::int64_t> devices) {
    Program program;
    program.name = name;
    program.devices = std::move(devices);
    program.streams = {"compute", "gather", "scatter"};
    plan.programs.push_back(std::move(program));
    return plan.programs.back();
  }

  TaskId kernel(std::int64_t picoseconds, const std::vector<TaskId>& after = {}, int stream = 0) {
    plan.kernels.push_back({"op", KernelClass::matmul, DType::bf16,
                            Flops(static_cast<double>(picoseconds)), Bytes(0)});
    return add(TaskKind::kernel, plan.kernels.size(), stream, after);
  }

  TaskId gather(std::int64_t picoseconds, const std::vector<TaskId>& after = {}, int stream = 1,
                int axis = 0, const std::string& reason = "weights") {
    Collective collective;
    collective.kind = CollectiveKind::all_gather;
    collective.axes = {plan.mesh.whole(axis)};
    collective.payload = Bytes(2 * picoseconds);
    collective.reason = reason;
    plan.collectives.push_back(std::move(collective));
    return add(TaskKind::collective, plan.collectives.size(), stream, after);
  }

  TaskId transfer(bool sends, int peer, std::int64_t picoseconds,
                  const std::vector<TaskId>& after = {}, int stream = 1) {
    plan.transfers.push_back({peer, sends, DType::bf16, Bytes(picoseconds), "activations"});
    return add(TaskKind::transfer, plan.transfers.size(), stream, after);
  }

  TaskId host_copy(TaskKind kind, std::int64_t bytes, const std::vector<TaskId>& after = {},
                   int stream = 1) {
    plan.kernels.push_back({"copy", KernelClass::memory, DType::bf16, Flops(0), Bytes(bytes)});
    return add(kind, plan.kernels.size(), stream, after);
  }

  void buffer(const std::string& name, std::int64_t bytes, TaskId allocated_by,
              const std::vector<TaskId>& freed_after,
              BufferCategory category = BufferCategory::temporaries) {
    Buffer buffer;
    buffer.name = name_index(name);
    buffer.category = category;
    buffer.bytes = Bytes(bytes);
    buffer.allocated_by = allocated_by;
    plan.programs[current].add_buffer(buffer, freed_after);
  }

  Plan plan;
  std::size_t current = 0;  // the program that tasks are added to

 private:
  TaskId add(TaskKind kind, std::size_t works, int stream, const std::vector<TaskId>& after) {
    Task task;
    task.kind = kind;
    task.stream = static_cast<std::uint8_t>(stream);
    task.work = static_cast<std::int32_t>(works) - 1;
    task.name = name_index("task " + std::to_string(plan.programs[current].tasks.size()));
    return plan.programs[current].add_task(task, after);
  }

  std::int32_t name_index(const std::string& name) {
    for (std::size_t i = 0; i < plan.names.size(); ++i) {
      if (plan.names[i] == name) return static_cast<std::int32_t>(i);
    }
    plan.names.push_back(name);
    return static_cast<std::int32_t>(plan.names.size() - 1);
  }
};

}  // namespace shardsim::testing
