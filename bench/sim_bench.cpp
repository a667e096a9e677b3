// How long simulate() takes on a step of FSDP: per layer a gather, eight kernels, a scatter, with
// prefetch by one layer and three buffers.
#include <benchmark/benchmark.h>

#include "sim/step/simulate.hpp"

namespace shardsim {
namespace {

LinkProfile link(double bytes_per_second, double latency_seconds) {
  LinkProfile profile;
  profile.bandwidth.value = Bandwidth(bytes_per_second);
  profile.efficiency.value = 0.8;
  profile.latency.value = Seconds(latency_seconds);
  return profile;
}

Machine machine(std::int64_t devices) {
  ClusterProfile network;
  network.devices_per_node.value = 8;
  network.scale_up = {link(450e9, 2e-6), {Fabric::nvswitch, {}}};
  network.scale_out = {link(50e9, 10e-6), {8, {}}, {}};
  Machine result;
  DeviceProfile& device = result.profile.device;
  device.memory_bandwidth.value = Bandwidth(3e12);
  device.peak[DType::bf16].value = FlopRate(989e12);
  device.matmul_efficiency.value = 0.8;
  device.attention_efficiency.value = 0.5;
  device.memory_efficiency.value = 0.9;
  device.kernel_launch.value = Seconds(1e-6);
  result.profile.collective_launch.value = Seconds(5e-6);
  result.profile.network = network;
  result.devices = devices;
  return result;
}

Task task_of(TaskKind kind, std::uint8_t stream) {
  Task task;
  task.kind = kind;
  task.stream = stream;
  return task;
}

Plan fsdp(std::int64_t devices, std::int64_t tasks) {
  Plan plan;
  plan.mesh = Mesh({{"fsdp", devices}});
  plan.names = {"layers.{}"};
  plan.kernels = {{"einsum", KernelClass::matmul, DType::bf16, Flops(1e11), Bytes(100'000'000)}};
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    Collective collective;
    collective.kind = kind;
    collective.axes = {plan.mesh.whole(0)};
    collective.payload = Bytes(400'000'000);
    plan.collectives.push_back(collective);
  }
  Program program;
  program.name = "all";
  program.streams = {"compute", "gather", "scatter"};
  Task scatter = task_of(TaskKind::collective, 2);
  scatter.work = 1;
  TaskId last = before_the_step;
  TaskId window = before_the_step;
  while (static_cast<std::int64_t>(program.tasks.size()) < tasks) {
    const auto after = [](TaskId id) {
      return id == before_the_step ? std::vector<TaskId>{} : std::vector<TaskId>{id};
    };
    const TaskId gather = program.add_task(task_of(TaskKind::collective, 1), after(window));
    window = last;
    last = program.add_task(task_of(TaskKind::kernel, 0), {gather});
    for (int i = 1; i < 8; ++i) last = program.add_task(task_of(TaskKind::kernel, 0), {last});
    const TaskId reduce = program.add_task(scatter, {last});
    for (const TaskId until : {last, reduce, reduce}) {
      Buffer buffer;
      buffer.bytes = Bytes(1'000'000);
      buffer.allocated_by = gather;
      program.add_buffer(buffer, {until});
    }
  }
  plan.programs.push_back(std::move(program));
  return plan;
}

void simulate_fsdp(benchmark::State& state) {
  const Plan plan = fsdp(state.range(0), state.range(1));
  const Machine on = machine(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(simulate(plan, on, {}));
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(plan.programs[0].tasks.size()));
}
// A node with a short step and with a long one, a hundred times as many tasks; and the long one on
// 2048 nodes, where time should hardly differ, as all devices run one program.
BENCHMARK(simulate_fsdp)
    ->ArgNames({"devices", "tasks"})
    ->Args({8, 1'000})
    ->Args({8, 100'000})
    ->Args({16'384, 100'000})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardsim
