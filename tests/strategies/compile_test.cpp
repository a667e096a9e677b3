// The partitioner on graphs small enough to follow by hand.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/json.hpp"
#include "model_step.hpp"
#include "plan/plan_io.hpp"
#include "workloads/graph/graph_builder.hpp"
#include "workloads/step/backward.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

constexpr std::int64_t batch = 16, hidden = 64, ffn = 256;

// x -> up -> silu -> down -> loss: Megatron's MLP and nothing else.
Workload mlp() {
  GraphBuilder g("mlp", DType::bf16);
  const Dim b{g.label("batch", batch, LabelRole::batch)},
      h{g.label("hidden", hidden, LabelRole::hidden)}, f{g.label("ffn", ffn, LabelRole::width)};
  g.begin_block("net");
  const TensorId x = g.input("x", DType::bf16, {b, h});
  const TensorId targets = g.input("targets", DType::i64, {b});
  const TensorId up = g.linear("up", x, g.parameter("up.weight", {f, h}), {b, f});
  const TensorId act = g.elementwise(Function::silu, "act", {up});
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

// What is there before the step and after it.
Bytes kept_bytes(const Plan& plan) {
  Bytes bytes{0};
  for (const Program& program : plan.programs) {
    for (const Buffer& buffer : program.buffers) {
      if (buffer.free_count == 0 && buffer.category != BufferCategory::inputs)
        bytes += buffer.bytes;
    }
  }
  return bytes;
}

// Parameters in bf16, a master copy and two moments in fp32: 14 bytes for each of two matrices. Not
// donated, all of it is there twice: jit has memory for its results from the start of the program.
TEST_CASE("state that is not donated stands beside the new one") {
  const std::int64_t elements = 2 * hidden * ffn;
  const std::map<std::string, std::int64_t> states = {
      {R"("dp")", 14 * elements},
      {R"("fsdp")", 14 * elements / 4},
      {R"({"name": "dp", "zero_stage": 1})", 2 * elements + 12 * elements / 4}};
  for (const auto& [strategy, state] : states) {
    INFO(strategy);
    const Mesh mesh({{"data", 4}});
    Step step;
    const Json json = parse_json(strategy, "strategy");
    const auto plan = [&] {
      return compile(mlp(), step, mesh, read_strategy(JsonReader(json, {}), mesh)).plan;
    };
    const Plan donated = plan();
    CHECK(kept_bytes(donated) == Bytes(state));
    step.optimizer.donate = false;
    CHECK(kept_bytes(plan()) == Bytes(2 * state));
    CHECK(collectives(plan()) == collectives(donated));
  }
}

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

TEST_CASE("A weight that nothing reads in backward is gathered there as the rest of its unit") {
  CHECK(collectives(plan_of(Mesh({{"data", 4}}), R"({"name": "rules",
            "rules": [{"pattern": "up", "spec": ["data"]}]})")) ==
        Lines{"forward all-gather data " + bytes(hidden * ffn),
              "backward all-gather data " + bytes(hidden * ffn),
              "backward all-reduce data " + bytes(hidden * ffn),
              "backward reduce-scatter data " + bytes(hidden * ffn)});
}

TEST_CASE("A weight that is gathered over more than its reader leaves whole is cut first") {
  // Slices d * 4 + m of eight are stored, slice m of four is read: 2m and 2m + 1, which others
  // along both axes have.
  const Plan plan = plan_of(Mesh({{"data", 2}, {"model", 4}}), R"({"name": "rules",
            "batch_axes": ["data"], "rules": [{"pattern": "up", "spec": [["data", "model"]]},
                                              {"pattern": "down", "spec": [null, "model"]}]})");
  CHECK(collectives(plan).front() == "forward all-gather data model " + bytes(hidden * ffn));
  const Program& program = plan.programs[0];
  const auto first = [&](const char* name) {
    const auto found =
        std::find_if(program.tasks.begin(), program.tasks.end(), [&](const Task& task) {
          return task.kind == TaskKind::kernel && plan.names.at(task.name) == name;
        });
    REQUIRE(found != program.tasks.end());
    return static_cast<std::size_t>(found - program.tasks.begin());
  };
  const std::size_t cut = first("root slices");
  CHECK(plan.kernels.at(program.tasks.at(cut).work).op == "copy");
  CHECK(plan.kernels.at(program.tasks.at(cut).work).bytes == Bytes(2 * 2 * hidden * ffn / 4));
  CHECK(program.after(program.tasks.at(cut)).front() == 0);
  CHECK(program.after(program.tasks.at(first("up"))).front() == static_cast<TaskId>(cut));
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

namespace {

// The last kernels of all segments: stretches of one block in one pass of one microbatch. A task
// that begins a segment is in the one behind those that have ended.
class Segments {
 public:
  using Key = std::tuple<std::int32_t, Phase, std::int32_t>;
  static Key key_of(const Task& task) { return {task.microbatch, task.phase, task.layer}; }

  explicit Segments(const Program& program) {
    for (std::size_t i = 0; i < program.tasks.size(); ++i) {
      const Task& task = program.tasks[i];
      if (task.stream != 0) continue;
      if (keys.empty() || keys.back() != key_of(task)) {
        keys.push_back(key_of(task));
        ends.push_back(before_the_step);
      }
      ends.back() = static_cast<TaskId>(i);
    }
  }

  // Of a repeated block's pass: there is one.
  [[nodiscard]] std::size_t of(const Task& task) const {
    const auto found = std::find(keys.begin(), keys.end(), key_of(task));
    REQUIRE(found != keys.end());
    return static_cast<std::size_t>(found - keys.begin());
  }
  // The last of a microbatch's pass.
  [[nodiscard]] TaskId end_of_pass(std::int32_t microbatch, Phase phase) const {
    TaskId end = before_the_step;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool inside = std::get<0>(keys[i]) == microbatch && std::get<1>(keys[i]) == phase;
      if (inside) end = ends[i];
    }
    return end;
  }

  std::vector<Key> keys;
  std::vector<TaskId> ends;
};

CompiledStep fsdp_step(const std::string& more) {
  Step step = usual_step();
  step.batch = 16;
  step.microbatches = 2;
  return compile_step("llama-3.1-8b", Mesh({{"fsdp", 8}}), R"({"name": "fsdp")" + more + "}", step);
}

}  // namespace

// "prefetch" of strategy.hpp: a unit may be gathered while the `prefetch` units before it compute,
// so that its gather waits for the end of the one before these; in both passes, and the first
// layers of a microbatch behind those that ended the one before.
TEST_CASE("every gather of a layer waits for the window it may use, and for no later one") {
  for (const std::size_t prefetch : {0U, 1U, 2U, 3U}) {
    const CompiledStep step = fsdp_step(", \"prefetch\": " + std::to_string(prefetch));
    const Program& program = step.plan.programs[0];
    const Segments segments(program);
    std::size_t gathers = 0;
    for (const Task& task : program.tasks) {
      const bool gather = task.kind == TaskKind::collective && task.layer >= 0 &&
                          step.plan.collectives[static_cast<std::size_t>(task.work)].kind ==
                              CollectiveKind::all_gather;
      if (!gather) continue;
      ++gathers;
      std::vector<TaskId> waits_for;
      for (const TaskId before : program.after(task)) {
        if (program.tasks[static_cast<std::size_t>(before)].stream == 0)
          waits_for.push_back(before);
      }
      const std::size_t segment = segments.of(task);
      std::vector<TaskId> expected;
      if (segment > prefetch) expected.push_back(segments.ends[segment - 1 - prefetch]);
      CHECK(waits_for == expected);
    }
    CHECK(gathers == 32 * 2 * 2);  // layers, passes, microbatches
  }
}

// parameter_gathers.hpp: what a pass gathers it gives back when the unit is through, the root with
// the last block of the pass; what is kept is given back by the backward pass.
TEST_CASE("units are given back as soon as their pass is through") {
  for (const bool keeps_layers : {false, true}) {
    for (const bool keeps_root : {false, true}) {
      const auto flag = [](bool keeps) { return std::string(keeps ? "false" : "true"); };
      const CompiledStep step = fsdp_step(", \"reshard_after_forward\": " + flag(keeps_layers) +
                                          ", \"reshard_root_after_forward\": " + flag(keeps_root));
      const Program& program = step.plan.programs[0];
      const Segments segments(program);
      std::map<std::pair<bool, Phase>, int> seen;  // of the root, and when gathered
      for (const Buffer& buffer : program.buffers) {
        if (buffer.category != BufferCategory::gathered_parameters) continue;
        const Task& gather = program.tasks[static_cast<std::size_t>(buffer.allocated_by)];
        const bool root = buffer.layer < 0;
        ++seen[{root, gather.phase}];
        Task pass = gather;
        if (root ? keeps_root : keeps_layers) pass.phase = Phase::backward;
        const TaskId through = root ? segments.end_of_pass(pass.microbatch, pass.phase)
                                    : segments.ends[segments.of(pass)];
        const auto frees = program.freed_after(buffer);
        REQUIRE_FALSE(frees.empty());
        CHECK(*std::max_element(frees.begin(), frees.end()) == through);
      }
      // Nine parameters of 32 layers; of the root the table, the norm and the head.
      const auto expected = [](bool keeps, int parameters) {
        return std::pair{2 * parameters, keeps ? 0 : 2 * parameters};
      };
      const auto found = [&](bool root) {
        return std::pair{seen[{root, Phase::forward}], seen[{root, Phase::backward}]};
      };
      CHECK(found(false) == expected(keeps_layers, 32 * 9));
      CHECK(found(true) == expected(keeps_root, 3));
    }
  }
}

// fully_shard of torch 2.15: 1 means false, the size of the shard axis true.
TEST_CASE("a number of devices that is one or all is no number of slices") {
  const auto planned = [](const char* value) {
    const CompiledStep step = fsdp_step(std::string(", \"reshard_after_forward\": ") + value);
    return plan_to_json(step.plan);
  };
  CHECK(planned("1") == planned("false"));
  CHECK(planned("8") == planned("true"));
}

// PyTorch's own step, tests/golden/torch/fsdp/l8b-w8-reshard4.json: each of 32 blocks leaves
// 109,056,000 bytes after forward, a quarter of its bf16 weights (218,112,000 of them), and that is
// what the peak has more than l8b-w8-base.json (74,442,260,372 - 70,952,468,372 bytes).
TEST_CASE("slices over four neighbours are what lies between forward and backward") {
  constexpr std::int64_t slices = 109'056'000;
  const CompiledStep step = fsdp_step(", \"reshard_after_forward\": 4");
  const Program& program = step.plan.programs[0];
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> kept;  // by microbatch and layer
  for (const Buffer& buffer : program.buffers) {
    if (buffer.category != BufferCategory::gathered_parameters || buffer.layer < 0) continue;
    const Task& made_by = program.tasks[static_cast<std::size_t>(buffer.allocated_by)];
    const auto frees = program.freed_after(buffer);
    REQUIRE_FALSE(frees.empty());
    const Task& last =
        program.tasks[static_cast<std::size_t>(*std::max_element(frees.begin(), frees.end()))];
    CHECK(last.microbatch == made_by.microbatch);
    if (last.phase == made_by.phase) continue;
    CHECK(made_by.phase == Phase::forward);
    CHECK(last.kind == TaskKind::collective);  // given back with the gather that reads them
    kept[{made_by.microbatch, buffer.layer}] += buffer.bytes.count();
  }
  CHECK(kept.size() == 2 * 32);
  for (const auto& [unit, bytes] : kept) CHECK(bytes == slices);
}
