// Blocks are kinds, the order of layers is a list: how layers are dealt out to kinds that are alike
// changes nothing, whatever their order.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/json.hpp"
#include "model_step.hpp"
#include "plan/fold.hpp"
#include "workloads/graph/graph_builder.hpp"
#include "workloads/step/backward.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

constexpr std::int64_t net_batch = 16, net_hidden = 64, net_ffn = 256, wide_ffn = 512;

using Kinds = std::vector<std::vector<std::int32_t>>;

// x -> (norm, up, silu, down, + x) of every layer -> head; the layers of `wide` kinds have a wider
// middle.
Workload residual_net(const Kinds& kinds, std::size_t wide = 99) {
  GraphBuilder g("net", DType::bf16);
  const Dim b{g.label("batch", net_batch, LabelRole::batch)},
      h{g.label("hidden", net_hidden, LabelRole::hidden)},
      f{g.label("ffn", net_ffn, LabelRole::width)}, w{g.label("wide", wide_ffn, LabelRole::width)};
  g.begin_block("in");
  const TensorId x = g.input("x", DType::bf16, {b, h});
  g.carry_out(g.linear("in", x, g.parameter("in.weight", {h, h}), {b, h}));
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const Dim middle = k == wide ? w : f;
    g.begin_layers("layers.{}", kinds[k]);
    const TensorId in = g.carry_in("layers.{}.input");
    const TensorId norm = g.marked(
        g.rms_norm("layers.{}.norm", in, g.parameter("layers.{}.norm.weight", {h}), h.front()),
        StreamMark::branch);
    const TensorId up = g.linear("layers.{}.up", norm,
                                 g.parameter("layers.{}.up.weight", {middle, h}), {b, middle});
    const TensorId act = g.elementwise(Function::silu, "layers.{}.act", {up});
    const TensorId down =
        g.linear("layers.{}.down", act, g.parameter("layers.{}.down.weight", {h, middle}), {b, h});
    g.carry_out(g.marked(g.elementwise(Function::add, "layers.{}.residual", {in, down}),
                         StreamMark::stream));
  }
  g.begin_block("head");
  const TensorId y = g.carry_in("head.input");
  const TensorId targets = g.input("targets", DType::i64, {b});
  Workload workload = g.finish(g.cross_entropy(g.cast("cast", y, DType::f32), targets, h.front()));
  add_backward(workload, {});
  add_optimizer(workload, {});
  return workload;
}

Plan plan_of(const Workload& workload, const std::string& strategy) {
  const Mesh mesh({{"fsdp", 2}, {"model", 2}});
  const Json json = parse_json(strategy, "strategy");
  return compile(workload, {}, mesh, read_strategy(JsonReader(json, {}), mesh)).plan;
}

// What happens, by name, with what waits for what.
auto tasks_of(const Plan& plan) {
  const Program& program = plan.programs.at(0);
  std::vector<std::tuple<std::string, int, int, std::string, std::vector<TaskId>>> tasks;
  for (const Task& task : program.tasks) {
    const auto work = static_cast<std::size_t>(task.work);
    const std::string what =
        task.kind == TaskKind::collective
            ? std::to_string(plan.collectives[work].payload.count())
            : plan.kernels[work].op + " " + std::to_string(plan.kernels[work].bytes.count());
    const auto after = program.after(task);
    tasks.emplace_back(plan.task_name(task), static_cast<int>(task.phase), task.stream, what,
                       std::vector<TaskId>(after.begin(), after.end()));
  }
  return tasks;
}

// Which buffers there are, and from when to when.
auto buffers_of(const Plan& plan) {
  const Program& program = plan.programs.at(0);
  std::vector<std::tuple<std::string, std::int32_t, std::int64_t, TaskId>> buffers;
  for (const Buffer& buffer : program.buffers) {
    buffers.emplace_back(plan.names[static_cast<std::size_t>(buffer.name)], buffer.layer,
                         buffer.bytes.count(), buffer.allocated_by);
  }
  std::sort(buffers.begin(), buffers.end());
  return buffers;
}

}  // namespace

TEST_CASE("layers dealt out to kinds that are alike make the same step") {
  const Kinds one = {{0, 1, 2, 3, 4, 5}};
  const std::vector<Kinds> dealt = {
      {{0, 1, 2}, {3, 4, 5}}, {{0, 2, 4}, {1, 3, 5}}, {{1, 5}, {0, 2, 3}, {4}}};
  for (const char* strategy :
       {R"("replicate")", R"("fsdp")", R"("fsdp+tp")",
        R"({"name": "fsdp+tp", "sequence_parallel": true, "reshard_after_forward": false})",
        R"({"name": "fsdp", "gather": "tensor", "prefetch": 3})"}) {
    INFO(strategy);
    const Plan expected = plan_of(residual_net(one), strategy);
    for (const Kinds& kinds : dealt) {
      const Plan plan = plan_of(residual_net(kinds), strategy);
      CHECK(tasks_of(plan) == tasks_of(expected));
      CHECK(buffers_of(plan) == buffers_of(expected));
    }
  }
}

TEST_CASE("kinds come in the order of their layers' numbers") {
  const Workload w = residual_net({{0, 1, 3, 4}, {2, 5}}, /*wide=*/1);
  CHECK(w.order ==
        std::vector<BlockInstance>{{0, 0}, {1, 0}, {1, 1}, {2, 0}, {1, 2}, {1, 3}, {2, 1}, {3, 0}});
  CHECK(successions(w) == std::vector<Succession>{{0, 1}, {1, 1}, {1, 2}, {2, 1}, {2, 3}});
  // A matrix before; a norm, up and down in each of four layers and of two wide ones.
  CHECK(parameter_count(w) == net_hidden * net_hidden +
                                  4 * (net_hidden + 2 * net_hidden * net_ffn) +
                                  2 * (net_hidden + 2 * net_hidden * wide_ffn));
}

// Two layers of one kind, one of the other, four times over: the repetition has three layers.
TEST_CASE("kinds that take turns are printed once") {
  const Workload w = residual_net({{0, 1, 3, 4, 6, 7, 9, 10}, {2, 5, 8, 11}}, /*wide=*/1);
  const Plan plan = plan_of(w, R"("replicate")");
  const std::vector<Section> sections = fold(plan.programs.at(0));
  const auto folded = std::count_if(sections.begin(), sections.end(),
                                    [](const Section& section) { return section.repeats >= 3; });
  CHECK(folded >= 2);  // forward and backward
  CHECK(sections.size() < 12);
}
