#include "fixture.hpp"

#include "base/json.hpp"

namespace shardsim::fixture {
namespace {

using Category = BufferCategory;

Bytes& of(std::array<Bytes, buffer_categories>& sizes, Category category) {
  return sizes[static_cast<std::size_t>(category)];
}

SimTime& of(TimeByPart& parts, TimePart part) { return parts[static_cast<std::size_t>(part)]; }

// What both have in common.
Prediction common(const std::string& name) {
  Prediction p;
  p.experiment.name = name;
  p.experiment.subject = ModelStep{.model = OwnedJson("toy")};
  *p.experiment.resolved = {{"name", name}, {"machine", "toy-machine"}};
  p.machine.profile.name = "toy-machine";
  p.machine.profile.device.name = "Toy 10 GiB";
  p.machine.devices = 2;
  p.machine.nodes = 1;
  PlanSubject& subject = p.step.plan.subject;
  subject.model = "toy";
  subject.strategy = name;
  subject.parameters = 1'000'000;
  subject.tokens_per_step = 2000;
  p.step.plan.mesh = Mesh({{"data", 2}});
  p.step.plan.notes = {"attention counted without its mask"};
  p.result.capacity = gib(10);
  p.result.notes = {"links of one node are not shared"};
  return p;
}

ProgramResult common_program() {
  ProgramResult program;
  program.name = "all";
  program.devices = 2;
  program.compute_time = ms(800);
  program.idle_time = ms(50);
  of(program.parts, TimePart::forward) = ms(400);
  of(program.parts, TimePart::backward) = ms(400);
  of(program.parts, TimePart::host) = ms(50);
  return program;
}

}  // namespace

Prediction dp() {
  Prediction p = common("dp");
  p.step.warnings = {"large tensor replicated: embed.weight"};
  Result& result = p.result;
  result.step_time = ms(1000);
  // 2000 tokens in 1 s on 2 devices.
  result.tokens_per_second_per_device = 1000;
  result.mfu = 0.5;
  result.mfu_full_attention = 0.75;
  ProgramResult program = common_program();
  program.communication_time = ms(500);
  program.exposed_time = ms(150);
  of(program.parts, TimePart::data) = ms(150);
  program.peak = gib(12);
  program.peak_time = ms(600);
  program.peak_task = "layers.1.mlp";
  of(program.peak_by_category, Category::parameters) = gib(2);
  of(program.peak_by_category, Category::gradients) = gib(1);
  of(program.peak_by_category, Category::optimizer) = gib(6);
  of(program.peak_by_category, Category::activations) = gib(3);
  program.peak_buffers = {{"moments", Category::optimizer, 2, gib(6)},
                          {"layers.{}.mlp.out", Category::activations, 2, gib(3)},
                          {"layers.{}.mlp.weight", Category::parameters, 2, gib(2)},
                          {"layers.{}.mlp.weight.gradient", Category::gradients, 2, gib(1)}};
  result.programs = {program};
  result.communication = {{.kind = "all-reduce",
                           .axes = {"data"},
                           .group_size = 2,
                           .count = 4,
                           .payload = gib(2),
                           .wire_bytes_per_device = gib(2),
                           .time = ms(500),
                           .exposed = ms(150),
                           .what = "gradients of layers.{}",
                           .algorithms = {"ring in the node"}}};
  return p;
}

namespace {

// The five tasks of the header, and what they hold.
void add_program(Prediction& p) {
  Plan& plan = p.step.plan;
  plan.names = {"layers.{}", "layers.{}.weight"};
  plan.kernels.resize(1);
  plan.collectives.resize(2);
  plan.collectives[0].kind = CollectiveKind::all_gather;
  plan.collectives[1].kind = CollectiveKind::reduce_scatter;
  Program program;
  program.name = "all";
  program.streams = {"compute", "communication"};
  const auto add = [&](Task task, SimTime start, SimTime end) {
    (void)program.add_task(task, {});
    p.result.programs[0].tasks.push_back({start, end});
  };
  add({.phase = Phase::forward, .layer = 0}, ms(0), ms(200));
  add({.phase = Phase::forward, .layer = 1}, ms(200), ms(400));
  add({.kind = TaskKind::collective, .phase = Phase::backward, .stream = 1, .work = 0, .name = 1},
      ms(400), ms(800));
  add({.phase = Phase::backward, .layer = 0}, ms(800), ms(1200));
  add({.kind = TaskKind::collective, .phase = Phase::backward, .stream = 1, .work = 1, .name = 1},
      ms(900), ms(1250));
  plan.programs = {program};
  MemorySample sample;
  of(sample.by_category, Category::parameters) = gib(1);
  of(sample.by_category, Category::optimizer) = gib(3);
  auto& curve = p.result.programs[0].memory_curve;
  curve.push_back(sample);
  sample.time = ms(800);
  of(sample.by_category, Category::activations) = gib(3);
  curve.push_back(sample);
  sample.time = ms(1200);
  of(sample.by_category, Category::activations) = gib(0);
  curve.push_back(sample);
}

}  // namespace

Prediction fsdp() {
  Prediction p = common("fsdp");
  p.step.plan.padding = {{.tensor = "embed.weight",
                          .dimension = 0,
                          .size = 5,
                          .shards = 2,
                          .padded_size = 6,
                          .instances = 1,
                          .wasted_per_device = Bytes(1024)}};
  Result& result = p.result;
  result.step_time = ms(1250);
  // 2000 tokens in 1.25 s on 2 devices.
  result.tokens_per_second_per_device = 800;
  result.mfu = 0.4;
  result.mfu_full_attention = 0.6;
  ProgramResult program = common_program();
  program.communication_time = ms(750);
  program.exposed_time = ms(400);
  of(program.parts, TimePart::data) = ms(400);
  program.peak = gib(7);
  program.peak_time = ms(800);
  program.peak_task = "layers.0";
  of(program.peak_by_category, Category::parameters) = gib(1);
  of(program.peak_by_category, Category::optimizer) = gib(3);
  of(program.peak_by_category, Category::activations) = gib(3);
  program.peak_buffers = {{"moments", Category::optimizer, 2, gib(3)},
                          {"layers.{}.mlp.out", Category::activations, 2, gib(3)},
                          {"layers.{}.weight", Category::parameters, 2, gib(1)}};
  result.programs = {program};
  result.communication = {{.kind = "all-gather",
                           .axes = {"data"},
                           .group_size = 2,
                           .count = 4,
                           .payload = gib(4),
                           .wire_bytes_per_device = gib(2),
                           .time = ms(400),
                           .exposed = ms(350),
                           .what = "parameters of layers.{}",
                           .algorithms = {"NVLS Simple", "Ring LL"}},
                          {.kind = "reduce-scatter",
                           .axes = {"data"},
                           .group_size = 2,
                           .count = 2,
                           .payload = gib(2),
                           .wire_bytes_per_device = gib(1),
                           .time = ms(350),
                           .exposed = ms(50),
                           .what = "gradients of layers.{}",
                           .algorithms = {"Ring Simple"}}};
  add_program(p);
  return p;
}

}  // namespace shardsim::fixture
