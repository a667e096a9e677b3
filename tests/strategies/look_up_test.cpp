// Steps as JAX programs do them: look-ups in shards, norms in fp32, the loss averaged. On a graph
// of one embedding, one norm and one head, small enough to follow by hand.
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "model_step.hpp"
#include "workloads/graph/graph_builder.hpp"
#include "workloads/step/backward.hpp"

namespace shardsim::look_up_test {
using namespace shardsim::test;

namespace {

constexpr std::int64_t batch = 16, sequence = 8, hidden = 64, vocab = 1024;
constexpr std::int64_t tokens = batch * sequence, table = vocab * hidden;  // elements

struct Model {
  bool tied = false;
  WeightTypes weights{};
  Step step{};
};

Workload build(const Model& model) {
  GraphBuilder g("small", DType::bf16, model.weights);
  const Dim b{g.label("batch", batch, LabelRole::batch)},
      s{g.label("sequence", sequence, LabelRole::sequence)},
      h{g.label("hidden", hidden, LabelRole::hidden)}, v{g.label("vocab", vocab, LabelRole::vocab)};
  g.begin_block("embedding");
  const TensorId ids = g.input("ids", DType::i32, {b, s});
  g.carry_out(g.embedding("embed", ids, g.parameter("embed.weight", {v, h}), {b, s, h}));
  g.begin_block("head");
  const TensorId x =
      g.rms_norm("norm", g.carry_in("x"), g.parameter("norm.weight", {h}), h.front());
  const TensorId weight = g.parameter(model.tied ? "embed.weight" : "head.weight", {v, h});
  const TensorId logits = g.linear("head", x, weight, {b, s, v});
  const TensorId targets = g.input("targets", DType::i32, {b, s});
  Workload workload =
      g.finish(g.cross_entropy(g.cast("cast", logits, DType::f32), targets, v.front()));
  add_backward(workload, {});
  add_optimizer(workload, model.step.optimizer);
  return workload;
}

Plan plan_of(const Model& model, const Mesh& mesh, const std::string& strategy) {
  const Json json = parse_json(strategy, "strategy");
  return compile(build(model), model.step, mesh, read_strategy(JsonReader(json, {}), mesh)).plan;
}

// The norm is whole and read in bf16 unless a test says otherwise.
std::string fsdp(const std::string& more) {
  return R"({"name": "fsdp", "gather": "tensor", "gather_embedding": false,
             "reshard_root_after_forward": false, )" +
         more + R"("rules": [{"pattern": "norm", "spec": []}]})";
}

std::string bytes(std::int64_t elements) { return std::to_string(2 * elements); }

const Mesh data4({{"data", 4}});
const std::string norm_gradient = "backward all-reduce data " + bytes(hidden);
const std::string numbers = "forward all-gather data " + std::to_string(4 * tokens) + " int32";

}  // namespace

TEST_CASE("A look-up in shards gathers token numbers, adds rows up, gathers their gradients") {
  CHECK(collectives(plan_of({}, data4, fsdp(""))) ==
        Lines{numbers, "forward reduce-scatter data " + bytes(tokens * hidden),
              "forward all-gather data " + bytes(table),       // head.weight
              "backward reduce-scatter data " + bytes(table),  // its gradient
              norm_gradient, "backward all-gather data " + bytes(tokens * hidden)});
}

TEST_CASE("A unit is gathered without the table that is looked up in shards") {
  CHECK(collectives(plan_of({}, data4, R"({"name": "fsdp", "gather_embedding": false,
            "reshard_root_after_forward": false, "rules": [{"pattern": "norm", "spec": []}]})")) ==
        Lines{"forward all-gather data " + bytes(table), numbers,
              "forward reduce-scatter data " + bytes(tokens * hidden),
              "backward all-gather data " + bytes(tokens * hidden),
              "backward reduce-scatter data " + bytes(table), norm_gradient});
}

TEST_CASE("A table split along hidden: rows come out split along it, an all-to-all each way") {
  const std::string strategy = fsdp("").substr(0, fsdp("").size() - 2) +
                               R"(, {"pattern": "embed", "spec": [null, "data"]}]})";
  // A device holds a quarter of the rows and sends three quarters of that on.
  const std::string turned = " all-to-all data " + bytes(tokens * hidden / 4);
  CHECK(collectives(plan_of({}, data4, strategy)) ==
        Lines{numbers, "forward" + turned, "forward all-gather data " + bytes(table),
              "backward reduce-scatter data " + bytes(table), norm_gradient, "backward" + turned});
}

TEST_CASE("A tied table is gathered for the head, which gives its gradient to the shards") {
  CHECK(collectives(plan_of({true}, data4, fsdp(""))) ==
        Lines{numbers, "forward reduce-scatter data " + bytes(tokens * hidden),
              "forward all-gather data " + bytes(table),
              "backward reduce-scatter data " + bytes(table), norm_gradient,
              "backward all-gather data " + bytes(tokens * hidden)});
}

TEST_CASE("Replicas add up the shard's gradient, of look-up and head together") {
  const Mesh mesh({{"replica", 2}, {"fsdp", 4}});
  const std::string strategy = R"({"name": "hsdp", "gather": "tensor", "gather_embedding": false,
      "reshard_root_after_forward": false, "rules": [{"pattern": "norm", "spec": []}]})";
  // Four devices share half of the batch.
  const std::string half = bytes(tokens / 2 * hidden);
  CHECK(collectives(plan_of({true}, mesh, strategy)) ==
        Lines{"forward all-gather fsdp " + std::to_string(4 * tokens / 2) + " int32",
              "forward reduce-scatter fsdp " + half, "forward all-gather fsdp " + bytes(table),
              "backward reduce-scatter fsdp " + bytes(table),
              "backward all-reduce replica fsdp " + bytes(hidden),
              "backward all-gather fsdp " + half,
              "backward all-reduce replica " + bytes(table / 4)});
}

TEST_CASE("Shards stored in fp32 are cast where they lie") {
  Model model;
  model.step.optimizer.parameters = DType::f32;
  const Plan plan = plan_of(model, data4, fsdp(""));
  CHECK(collectives(plan) == collectives(plan_of({}, data4, fsdp(""))));
  const auto cast = std::find(plan.names.begin(), plan.names.end(), "embed.weight cast");
  REQUIRE(cast != plan.names.end());
  const auto name = static_cast<std::int32_t>(cast - plan.names.begin());
  const std::vector<Task>& tasks = plan.programs[0].tasks;
  const auto task = std::find_if(tasks.begin(), tasks.end(),
                                 [&](const Task& candidate) { return candidate.name == name; });
  REQUIRE(task != tasks.end());
  // Four bytes of each element read, two written.
  CHECK(plan.kernels[static_cast<std::size_t>(task->work)].bytes == Bytes(table / 4 * 6));
}

// Parameters in fp32, rows looked up as they are and cast then; the head multiplies in bf16.
TEST_CASE("Look-ups in fp32 send rows and table in fp32, and a tied table's gradients apart") {
  Model model;
  model.tied = true;
  model.weights.look_ups = DType::f32;
  model.step.optimizer.parameters = DType::f32;
  const std::string rows = std::to_string(4 * tokens * hidden) + " fp32";
  const std::string wide = std::to_string(4 * table) + " fp32";
  CHECK(collectives(plan_of(model, data4, fsdp(""))) ==
        Lines{numbers, "forward reduce-scatter data " + rows,
              "forward all-gather data " + bytes(table),
              "backward reduce-scatter data " + bytes(table), norm_gradient,
              "backward all-gather data " + rows});
  const std::string gathered = R"({"name": "fsdp", "gather": "tensor",
      "reshard_root_after_forward": false, "rules": [{"pattern": "norm", "spec": []}]})";
  CHECK(collectives(plan_of(model, data4, gathered)) ==
        Lines{"forward all-gather data " + wide, "forward all-gather data " + bytes(table),
              "backward reduce-scatter data " + bytes(table), norm_gradient,
              "backward reduce-scatter data " + wide});
  CHECK(collectives(plan_of(model, data4, R"({"name": "dp", "gather": "tensor"})")) ==
        Lines{"backward all-reduce data " + bytes(table), norm_gradient,
              "backward all-reduce data " + wide});
}

TEST_CASE("Norms in fp32 have their gradients summed in fp32, kept in bf16") {
  Model model;
  model.weights.norms = DType::f32;
  const std::string wide = "backward all-reduce data " + std::to_string(4 * hidden) + " fp32";
  Lines expected = collectives(plan_of({}, data4, fsdp("")));
  std::replace(expected.begin(), expected.end(), norm_gradient, wide);
  const Plan plan = plan_of(model, data4, fsdp(""));
  CHECK(collectives(plan) == expected);

  std::vector<std::int64_t> made;  // in fp32 by the norm, in bf16 by the cast
  for (const Buffer& buffer : plan.programs[0].buffers) {
    if (plan.names[static_cast<std::size_t>(buffer.name)] == "norm.weight.grad")
      made.push_back(buffer.bytes.count());
  }
  CHECK(made == std::vector<std::int64_t>{4 * hidden, 2 * hidden});
}

TEST_CASE("A wide gradient is summed once where microbatches are added up first") {
  Model model;
  model.weights.norms = DType::f32;
  model.step.microbatches = 4;
  const auto wide = [&](const std::string& each) {
    return count(
        plan_of(model, data4, R"({"name": "dp", "reduce_each_microbatch": ")" + each + "\"}"),
        [](const Collective& c) { return c.dtype == DType::f32; });
  };
  CHECK(wide("all") == 4);
  CHECK(wide("none") == 1);
}

TEST_CASE("The loss is averaged in every microbatch, or once where gradients are put off") {
  const auto losses = [&](std::int64_t microbatches, const std::string& more) {
    Model model;
    model.step.microbatches = microbatches;
    return count(plan_of(model, data4, R"({"name": "dp")" + more + "}"), [](const Collective& c) {
      return c.kind == CollectiveKind::all_reduce && c.dtype == DType::f32 && c.payload == Bytes(4);
    });
  };
  CHECK(losses(1, "") == 0);
  CHECK(losses(1, R"(, "reduce_loss": true)") == 1);
  CHECK(losses(4, R"(, "reduce_loss": true)") == 4);
  CHECK(losses(4, R"(, "reduce_loss": true, "reduce_each_microbatch": "none")") == 1);
}

TEST_CASE("Words of a look-up in shards name the table and the key that gathers it") {
  const Plan plan = plan_of({}, data4, fsdp(""));
  const Collective& ids = plan.collectives.at(0);
  CHECK(ids.reason == "embed (embedding) needs ids as [-, -], which lies as [data, -]");
  // 1024 x 64 elements of two bytes.
  CHECK(ids.remedy ==
        "\"gather_embedding\": true gathers embed.weight instead, and reduces its whole gradient: "
        "128.0 KiB each");
}

TEST_CASE("What \"gather_embedding\" does not avoid says so: the model axis splits the head too") {
  const Plan plan = plan_of({true}, Mesh({{"fsdp", 4}, {"model", 2}}),
                            R"({"name": "fsdp+tp", "gather_embedding": false})");
  const auto told = [&](const std::string& axis) {
    for (const Collective& c : plan.collectives) {
      const bool look_up = c.reason.find("embed (embedding) sums over vocab") != std::string::npos;
      if (!look_up || plan.mesh.names_of(c.axes) != std::vector<std::string>{axis}) continue;
      return c.remedy.find("gather_embedding") != std::string::npos;
    }
    FAIL("no look-up is summed over " << axis);
    return false;
  };
  CHECK(told("fsdp"));
  CHECK_FALSE(told("model"));
  const auto tied =
      std::find_if(plan.collectives.begin(), plan.collectives.end(), [](const Collective& c) {
        return c.reason.rfind("gradients of embed.weight are partial sums over fsdp", 0) == 0;
      });
  CHECK(tied != plan.collectives.end());
}

}  // namespace shardsim::look_up_test
