// The partitioner on graphs small enough to follow by hand.
#include <catch2/catch.hpp>

#include <algorithm>

#include "base/json.hpp"
#include "model_step.hpp"
#include "workloads/graph_builder.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

constexpr std::int64_t batch = 16, hidden = 64, ffn = 256;

// x -> up -> silu -> down -> loss: Megatron's MLP and nothing else.
Workload mlp() {
  GraphBuilder g("mlp", DType::bf16);
  const Dim b{g.label("batch", batch)}, h{g.label("hidden", hidden)}, f{g.label("ffn", ffn)};
  g.begin_block("net");
  const TensorId x = g.input("x", DType::bf16, {b, h});
  const TensorId targets = g.input("targets", DType::i64, {b});
  const TensorId up = g.linear("up", x, g.parameter("up.weight", {f, h}), {b, f});
  const TensorId act = g.elementwise("silu", "act", {up});
  const TensorId down = g.linear("down", act, g.parameter("down.weight", {h, f}), {b, h});
  const TensorId loss = g.cross_entropy(g.cast("cast", down, DType::f32), targets, h.front());
  Workload workload = g.finish(loss);
  add_backward(workload, {});
  add_optimizer(workload, {});
  return workload;
}

Plan plan_of(const Mesh& mesh, const std::string& strategy) {
  const Json json = parse_json(strategy, "strategy");
  return compile(mlp(), {}, mesh, read_strategy(JsonReader(json, {}), mesh)).plan;
}

std::string bytes(std::int64_t elements) { return std::to_string(2 * elements); }

}  // namespace

TEST_CASE("One device communicates nothing") {
  for (const char* strategy : {R"("dp")", R"("fsdp")"}) {
    CHECK(collectives(plan_of(Mesh({{"data", 1}}), strategy)).empty());
  }
}

TEST_CASE("tp: one all-reduce in forward; none in backward, since x needs no gradient") {
  CHECK(collectives(plan_of(Mesh({{"model", 4}}), R"("tp")")) ==
        Lines{"forward all-reduce model " + bytes(batch * hidden)});
}

TEST_CASE("dp: the gradients of the unit in one call") {
  CHECK(collectives(plan_of(Mesh({{"data", 4}}), R"("dp")")) ==
        Lines{"backward all-reduce data " + bytes(2 * hidden * ffn)});
}

TEST_CASE("fsdp: gathered, gathered again, reduce-scattered") {
  const std::string all = bytes(2 * hidden * ffn);
  CHECK(collectives(plan_of(Mesh({{"data", 4}}), R"("fsdp")")) ==
        Lines{"forward all-gather data " + all, "backward all-gather data " + all,
              "backward reduce-scatter data " + all});
}

TEST_CASE("One call per tensor where units are off") {
  const std::string one = bytes(hidden * ffn);
  // In backward only down.weight is read: up's input needs no gradient.
  CHECK(collectives(plan_of(Mesh({{"data", 4}}), R"({"name": "fsdp", "gather": "tensor"})")) ==
        Lines{"forward all-gather data " + one, "forward all-gather data " + one,
              "backward all-gather data " + one, "backward reduce-scatter data " + one,
              "backward reduce-scatter data " + one});
}

TEST_CASE("fsdp+tp: shards of the model axis are gathered over fsdp, gradients reduced over it") {
  const std::string half = bytes(2 * hidden * ffn / 2);
  CHECK(collectives(plan_of(Mesh({{"fsdp", 4}, {"model", 2}}), R"("fsdp+tp")")) ==
        Lines{"forward all-gather fsdp " + half,
              "forward all-reduce model " + bytes(batch / 4 * hidden),
              "backward all-gather fsdp " + half, "backward reduce-scatter fsdp " + half});
}

TEST_CASE("Rules alone: a row-parallel weight slices its input for nothing and sums its result") {
  // up works on the slice that down asks for, so its gradient comes in slices; it is stored whole.
  CHECK(collectives(plan_of(Mesh({{"model", 4}}), R"({"name": "rules", "batch_axes": [],
            "rules": [{"pattern": "down", "spec": [null, "model"]}]})")) ==
        Lines{"forward all-reduce model " + bytes(batch * hidden),
              "backward all-gather model " + bytes(hidden * ffn)});
}

TEST_CASE("A pinned activation is met with the collective it needs") {
  // up's result is split over ffn; pinned whole, it is gathered.
  const Lines lines = collectives(plan_of(Mesh({{"model", 4}}), R"({"name": "tp",
            "activations": [{"pattern": "^up$", "spec": []}]})"));
  REQUIRE_FALSE(lines.empty());
  CHECK(lines[0] == "forward all-gather model " + bytes(batch * ffn));
}

TEST_CASE("The same input gives the same plan") {
  const Plan a = plan_of(Mesh({{"fsdp", 4}, {"model", 2}}), R"("fsdp+tp")");
  const Plan b = plan_of(Mesh({{"fsdp", 4}, {"model", 2}}), R"("fsdp+tp")");
  CHECK(a.names == b.names);
  CHECK(a.kernels == b.kernels);
  CHECK(a.collectives == b.collectives);
  CHECK(a.programs[0].tasks == b.programs[0].tasks);
}

TEST_CASE("Gathers wait for their window: prefetch 0 overlaps nothing") {
  const auto first_gather_of_layer_two = [](int prefetch) {
    const CompiledStep step =
        compile_step("llama-3.1-8b", Mesh({{"fsdp", 8}}),
                     R"({"name": "fsdp", "prefetch": )" + std::to_string(prefetch) + "}");
    const Program& program = step.plan.programs[0];
    for (const Task& task : program.tasks) {
      if (task.kind == TaskKind::collective && step.plan.task_name(task) == "model.layers.2") {
        REQUIRE(task.dependency_count == 1);
        return program.tasks[static_cast<std::size_t>(program.dependencies[task.first_dependency])]
            .layer;
      }
    }
    return -2;
  };
  CHECK(first_gather_of_layer_two(0) == 1);
  CHECK(first_gather_of_layer_two(1) == 0);
  CHECK(first_gather_of_layer_two(2) == -1);  // the embedding, before layer 0
}
