#include "arbitrary_plan.hpp"

#include <rapidcheck.h>

namespace shardsim {
namespace {

std::int64_t any(std::int64_t from, std::int64_t below) { return *rc::gen::inRange(from, below); }

template <class Enum>
Enum any_up_to(Enum last) {
  return static_cast<Enum>(any(0, static_cast<std::int64_t>(last) + 1));
}

std::string any_text() {
  return *rc::gen::element<std::string>("", "w", "model.layers.{}.q", "a \"quoted\"\n\xc3\xa9");
}

Mesh any_mesh() {
  std::vector<MeshAxis> axes;
  const std::int64_t rank = any(0, 4);
  for (std::int64_t i = 0; i < rank; ++i) axes.push_back({"a" + std::to_string(i), any(1, 7)});
  return Mesh(axes);
}

Collective any_collective(const Mesh& mesh) {
  Collective collective;
  collective.kind = any_up_to(CollectiveKind::broadcast);
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
    if (any(0, 2) == 1) collective.axes.push_back(mesh.whole(axis));
  }
  // A part, where the axis has one.
  for (AxisRef& part : collective.axes) {
    if (part.size == 6 && any(0, 2) == 1) part = {part.axis, 2, 3};
  }
  if (collective.axes.empty()) collective.groups = {{0}};
  if (collective.kind == CollectiveKind::collective_permute) {
    collective.source_targets = {{0, mesh.devices() - 1}};
  }
  collective.dtype = any_up_to(DType::boolean);
  const std::int64_t parts = any(0, 3);
  for (std::int64_t i = 0; i < parts; ++i) {
    collective.parts.push_back({any_text(), Bytes{any(0, std::int64_t{1} << 50)}});
    collective.payload += collective.parts.back().payload;
  }
  collective.reason = any_text();
  if (collective.kind == CollectiveKind::all_to_all && any(0, 2) == 1) {
    collective.visits = RowVisits{any(8, 1024),
                                  any(1, 8),
                                  static_cast<std::int32_t>(any(1, 64)),
                                  any_up_to(RowKernels::hybridep),
                                  any(0, 2) == 1,
                                  Bytes{any(1, 1 << 20)}};
  }
  collective.awaited = any(0, 2) == 1;
  return collective;
}

Task any_task(const Plan& plan, const Program& program) {
  Task task;
  task.kind = any_up_to(TaskKind::from_host);
  task.phase = any_up_to(Phase::optimizer);
  task.recompute = any(0, 2) == 1;
  task.stream =
      static_cast<std::uint8_t>(any(0, static_cast<std::int64_t>(program.streams.size())));
  const std::size_t works = task.kind == TaskKind::collective ? plan.collectives.size()
                            : task.kind == TaskKind::transfer ? plan.transfers.size()
                                                              : plan.kernels.size();
  task.work = static_cast<std::int32_t>(any(0, static_cast<std::int64_t>(works)));
  task.name = static_cast<std::int32_t>(any(0, static_cast<std::int64_t>(plan.names.size())));
  task.layer = static_cast<std::int32_t>(any(-1, 5));
  task.microbatch = static_cast<std::int32_t>(any(0, 3));
  return task;
}

std::vector<TaskId> any_tasks(std::int64_t from, std::int64_t below) {
  std::vector<TaskId> tasks;
  for (std::int64_t i = from < below ? any(0, 3) : 0; i > 0; --i) {
    tasks.push_back(static_cast<TaskId>(any(from, below)));
  }
  return tasks;
}

Program any_program(const Plan& plan) {
  Program program;
  program.name = any_text();
  program.devices = any(0, 2) == 1 ? std::vector<std::int64_t>{0} : std::vector<std::int64_t>{};
  program.streams = {"compute", "network"};
  const std::int64_t tasks = any(0, 12);
  for (std::int64_t i = 0; i < tasks; ++i) {
    (void)program.add_task(any_task(plan, program), any_tasks(0, i));
  }
  const std::int64_t buffers = any(0, 6);
  for (std::int64_t i = 0; i < buffers; ++i) {
    Buffer buffer;
    buffer.name = static_cast<std::int32_t>(any(0, static_cast<std::int64_t>(plan.names.size())));
    buffer.layer = static_cast<std::int32_t>(any(-1, 5));
    buffer.category = any_up_to(BufferCategory::inputs);
    buffer.bytes = Bytes{any(0, std::int64_t{1} << 60)};
    buffer.allocated_by = static_cast<TaskId>(any(-1, tasks));
    program.add_buffer(buffer, any_tasks(std::max<std::int64_t>(0, buffer.allocated_by), tasks));
  }
  return program;
}

}  // namespace

Plan arbitrary_plan() {
  Plan plan;
  plan.subject = {any_text(), any_text(), any(0, 1000), any(0, 1000),
                  Flops{static_cast<double>(any(0, 1 << 30)) / 3}};
  plan.mesh = any_mesh();
  plan.names = {"one", "layers.{}.two", ""};
  for (std::int64_t i = any(1, 3); i > 0; --i) {
    plan.kernels.push_back({any_text(), any_up_to(KernelClass::memory), any_up_to(DType::boolean),
                            Flops{static_cast<double>(any(0, 1 << 30)) / 7}, Bytes{any(0, 99)}});
    if (any(0, 2) == 1) {
      plan.kernels.back().product = {any(1, 9), any(1, 99), any(1, 99), any(1, 99)};
    }
  }
  for (std::int64_t i = any(1, 4); i > 0; --i) {
    plan.collectives.push_back(any_collective(plan.mesh));
  }
  plan.transfers = {{0, any(0, 2) == 1, any_up_to(DType::boolean), Bytes{any(0, 9)}, any_text(),
                     static_cast<std::int32_t>(any(0, 2))}};
  for (std::int64_t i = any(1, 3); i > 0; --i) plan.programs.push_back(any_program(plan));
  if (any(0, 2) == 1) plan.padding = {{any_text(), 1, any(1, 6), 2, 6, 3, Bytes{12}}};
  if (any(0, 2) == 1) plan.notes = {any_text()};
  return plan;
}

Plan layered_plan(std::int32_t layers) {
  enum Name : std::int32_t { unit, proj, loss };
  enum Work : std::int32_t { gather, reduce };
  Plan plan;
  plan.subject.model = "toy";
  plan.subject.strategy = "fsdp";
  plan.mesh = Mesh({{"fsdp", 4}});
  plan.names = {"layers.{}", "layers.{}.proj", "loss"};
  plan.kernels = {{"einsum", KernelClass::matmul, DType::bf16, Flops{8}, Bytes{6}}};
  for (CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    plan.collectives.push_back(
        {kind, {plan.mesh.whole(0)}, {}, {}, DType::bf16, Bytes{1024}, {}, ""});
  }
  Program program;
  program.name = "all";
  program.streams = {"compute", "fsdp"};
  const auto add = [&](TaskKind kind, Phase phase, std::int32_t name, std::int32_t work,
                       std::int32_t layer, const std::vector<TaskId>& after) {
    Task task{kind, phase};
    task.stream = kind == TaskKind::collective ? 1 : 0;
    task.name = name;
    task.work = work;
    task.layer = layer;
    return program.add_task(task, after);
  };
  std::vector<TaskId> forward;
  for (std::int32_t layer = 0; layer < layers; ++layer) {
    const TaskId gathered = add(TaskKind::collective, Phase::forward, unit, gather, layer, {});
    forward.push_back(add(TaskKind::kernel, Phase::forward, proj, 0, layer, {gathered}));
  }
  TaskId last = add(TaskKind::kernel, Phase::forward, loss, 0, -1, {forward.back()});
  for (std::int32_t layer = layers - 1; layer >= 0; --layer) {
    const TaskId gathered = add(TaskKind::collective, Phase::backward, unit, gather, layer, {});
    last = add(TaskKind::kernel, Phase::backward, proj, 0, layer,
               {gathered, forward[static_cast<std::size_t>(layer)], last});
    (void)add(TaskKind::collective, Phase::backward, unit, reduce, layer, {last});
  }
  plan.programs = {program};
  return plan;
}

}  // namespace shardsim
