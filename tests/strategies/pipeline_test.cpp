// Steps of pipelines: what every schedule keeps, what may be written by hand, what is refused.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "model_step.hpp"
#include "plan/plan_io.hpp"
#include "strategies/compile/compile.hpp"
#include "strategies/schedule/schedules.hpp"

namespace shardsim::pipeline_test {
namespace {

constexpr std::int64_t microbatches = 8;

Step small_step() { return {.batch = 16, .sequence = 128, .microbatches = microbatches}; }

ModelConfig small_model(bool tied = false) {
  const Json model = {
      {"base", "llama-3.1-8b"}, {"num_hidden_layers", 8}, {"tie_word_embeddings", tied}};
  return load_model_config(JsonReader(model, {"model", ""}), "");
}

Workload workload_of(const Step& step, bool tied = false) {
  return build_step(small_model(tied), step, {}, SharedParameters::copies);
}

Strategy strategy_of(const Json& json, const Mesh& mesh) {
  return read_strategy(JsonReader(json, {"a.json", "/strategy"}), mesh);
}

CompiledStep compile_with(const Json& strategy, const std::vector<MeshAxis>& axes,
                          const Step& step = small_step(), bool tied = false) {
  const Mesh mesh(axes);
  return compile(workload_of(step, tied), step, mesh, strategy_of(strategy, mesh));
}

Json with_pipeline(const std::string& name, const Json& pipeline) {
  return {{"name", name}, {"pipeline", pipeline}};
}

// Of all programs together, each as often as it has devices.
struct Sums {
  double flops = 0;
  std::int64_t parameter_bytes = 0;
  std::int64_t sent = 0;
  std::int64_t received = 0;
};

Sums sums_of(const Plan& plan) {
  Sums sums;
  for (const Program& program : plan.programs) {
    const auto devices = static_cast<std::int64_t>(
        program.devices.empty() ? static_cast<std::size_t>(plan.mesh.devices())
                                : program.devices.size());
    for (const Task& task : program.tasks) {
      const auto work = static_cast<std::size_t>(task.work);
      if (task.kind == TaskKind::kernel && task.stream == 0 && task.phase != Phase::optimizer) {
        sums.flops += static_cast<double>(devices) * plan.kernels[work].flops.count();
      }
      if (task.kind != TaskKind::transfer) continue;
      const Transfer& transfer = plan.transfers[work];
      (transfer.sends ? sums.sent : sums.received) += devices * transfer.payload.count();
    }
    for (const Buffer& buffer : program.buffers) {
      if (buffer.category == BufferCategory::parameters && buffer.free_count == 0) {
        sums.parameter_bytes += devices * buffer.bytes.count();
      }
    }
  }
  return sums;
}

}  // namespace

// Whatever the schedule: all devices together compute what they compute without stages, every
// message arrives, and no parameter is there twice.
TEST_CASE("stages divide a step, whatever the schedule") {
  for (const Json& strategy : {Json{{"name", "replicate"}}, Json{{"name", "fsdp"}},
                               Json{{"name", "fsdp"}, {"reshard_after_forward", false}},
                               Json{{"name", "fsdp+tp"}, {"sequence_parallel", true}},
                               Json{{"name", "tp"}, {"zero_stage", 2}}}) {
    const bool tp = strategy["name"] == "tp" || strategy["name"] == "fsdp+tp";
    std::vector<MeshAxis> axes = {
        {strategy["name"] == "replicate" || strategy["name"] == "tp" ? "dp" : "fsdp", 2}};
    if (tp) axes.push_back({"tp", 2});
    const Sums whole = sums_of(compile_with(strategy, axes).plan);
    axes.insert(axes.begin(), {"pp", 2});
    for (const ScheduleKind& kind : schedule_kinds()) {
      CAPTURE(strategy.dump(), kind.name);
      Json staged = strategy;
      staged["pipeline"] = {
          {"schedule", kind.name},
          {"virtual_stages", std::max(kind.fewest_stages, std::min(kind.most_stages, 2))}};
      const CompiledStep step = compile_with(staged, axes);
      const Sums sums = sums_of(step.plan);
      CHECK(step.plan.programs.size() == 2);
      CHECK(sums.flops == Approx(whole.flops).epsilon(1e-12));
      CHECK(sums.parameter_bytes == whole.parameter_bytes);
      CHECK(sums.sent == sums.received);
      CHECK(sums.sent > 0);
      // What the strategy prints, read again, is the same plan.
      const Mesh mesh(axes);
      const Json printed = strategy_to_json(strategy_of(staged, mesh));
      CHECK(compile_with(printed, axes).plan == step.plan);
    }
  }
}

TEST_CASE("a forward step has the forwards of its schedule") {
  Step step = small_step();
  step.kind = StepKind::forward;
  const Plan plan =
      compile_with(with_pipeline("replicate", {{"schedule", "1f1b"}}), {{"pp", 2}}, step).plan;
  for (const Program& program : plan.programs) {
    for (const Task& task : program.tasks) CHECK(task.phase == Phase::forward);
  }
  CHECK(sums_of(plan).sent > 0);
}

// The loss is the last stage's; what is summed of it once a step is the last microbatch's.
TEST_CASE("metrics of a pipeline are summed in its last stage, once") {
  Step step = small_step();
  step.metrics = {"loss"};
  for (const char* name : {"1f1b", "zbv", "interleaved-1f1b"}) {
    CAPTURE(name);
    const Plan plan =
        compile_with(with_pipeline("fsdp", {{"schedule", name}}), {{"pp", 2}, {"fsdp", 2}}, step)
            .plan;
    std::map<std::string, int> sums;  // by program
    for (const Program& program : plan.programs) {
      for (const Task& task : program.tasks) {
        if (plan.task_name(task).starts_with("metrics.loss.")) ++sums[program.name];
      }
    }
    REQUIRE(sums.size() == 1);
    CHECK(sums.begin()->second == 2);  // sum and count
  }
}

// The table that both ends read is there twice, and counted once; what it costs is one all-reduce
// that the programs of both stages run together.
TEST_CASE("a tied table is in both stages, whose gradients are added up") {
  const Json strategy = with_pipeline("replicate", {{"schedule", "1f1b"}});
  const Plan tied = compile_with(strategy, {{"pp", 4}, {"dp", 2}}, small_step(), true).plan;
  const Plan plain = compile_with(strategy, {{"pp", 4}, {"dp", 2}}).plan;
  CHECK(sums_of(tied).parameter_bytes == sums_of(plain).parameter_bytes);
  CHECK(tied.subject.parameters < plain.subject.parameters);
  std::map<std::string, int> joint;  // by program
  for (const Program& program : tied.programs) {
    for (const Task& task : program.tasks) {
      if (task.kind != TaskKind::collective) continue;
      const Collective& call = tied.collectives[static_cast<std::size_t>(task.work)];
      if (call.groups == std::vector<std::vector<std::int64_t>>{{0, 6}, {1, 7}})
        ++joint[program.name];
    }
  }
  CHECK(joint == std::map<std::string, int>{{"stage 0", 1}, {"stage 3", 1}});
}

// plan --stop-after schedule prints it; in place of its name it gives the same plan.
TEST_CASE("a schedule that is written out is the one that it was printed from") {
  const std::vector<MeshAxis> axes = {{"pp", 2}, {"fsdp", 2}};
  const Mesh mesh(axes);
  for (const char* name : {"interleaved-1f1b", "zero-bubble", "zbv", "dualpipev"}) {
    CAPTURE(name);
    const int stages = std::string(name) == "zero-bubble" ? 1 : 2;
    const Json strategy = with_pipeline("fsdp", {{"schedule", name}, {"virtual_stages", stages}});
    const Json station = compile_until("schedule", workload_of(small_step()), small_step(), mesh,
                                       strategy_of(strategy, mesh));
    const Json written = with_pipeline("fsdp", {{"schedule", station}});
    CHECK(compile_with(written, axes).plan == compile_with(strategy, axes).plan);
  }
}

TEST_CASE("what pipelines refuse") {
  const auto message = [](const Json& strategy, const std::vector<MeshAxis>& axes,
                          bool tied = false) -> std::string {
    try {
      (void)compile_with(strategy, axes, small_step(), tied);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const std::vector<MeshAxis> two = {{"pp", 2}};
  const std::string at = "a.json: /strategy/pipeline";
  const Json one_microbatch = Json::parse(R"([["0F0", "0B0"], ["1F0", "1B0"]])");
  CHECK(message(with_pipeline("replicate", {{"schedul", "1f1b"}}), two) ==
        at + ": unknown key \"schedul\", did you mean \"schedule\"?");
  CHECK(message(with_pipeline("replicate", {{"schedule", "1f2b"}}), two) ==
        at + "/schedule: unknown schedule \"1f2b\", did you mean \"1f1b\"?");
  CHECK(message(with_pipeline("replicate", Json::object()), {{"dp", 2}}) ==
        at + ": the mesh has no axis for stages: name one \"pp\", \"stage\" or \"pipeline\", or "
             "give it "
             "the role \"stages\"");
  CHECK(message(with_pipeline("replicate", Json::object()), {{"pp", 2}, {"stage", 2}}) ==
        "a.json: /strategy: axes \"pp\" and \"stage\" are both for pipeline stages");
  CHECK(message(with_pipeline("replicate", {{"layers", {3, 4}}}), two) ==
        at + "/layers: the stages have 7 layers, the model 8");
  CHECK(message(with_pipeline("replicate", {{"schedule", "zbv"}, {"layers", {4, 4}}}), two) ==
        at + "/layers: zbv lays the stages out as a V: say the layers of each of the 4 stages");
  CHECK(message(with_pipeline("replicate", {{"schedule", {{"ranks", one_microbatch}}}}), two) ==
        at + "/schedule: actions of 1 microbatches, for a step of 8");
  CHECK(
      message(with_pipeline("replicate", {{"schedule", "zbv"}}), two, /*tied=*/true) ==
      at +
          ": zbv has the first and the last stage on one rank, which tied parameters "
          "(model.embed_tokens.weight) are not supported on; \"tie_word_embeddings\": false in the "
          "model unties them");
  CHECK(message(with_pipeline("replicate", Json::object()), {{"pp", 16}})
            .starts_with(at + "/layers: "));
}

// 32 layers over 3 stages; 30 and the two ends over 4 are 32, which divide.
TEST_CASE("what Megatron refuses of uneven stages is noted") {
  const auto notes = [](std::int64_t ranks, const std::string& pipeline) {
    const CompiledStep step = test::compile_step(
        "llama-3.1-8b", Mesh({{"pp", ranks}}),
        R"({"name": "megatron", "pipeline": {"schedule": "1f1b")" + pipeline + "}}",
        {.batch = 12, .sequence = 512, .microbatches = 12});
    return std::count_if(step.warnings.begin(), step.warnings.end(), [](const std::string& note) {
      return note.find("which Megatron-Core refuses") != std::string::npos;
    });
  };
  CHECK(notes(4, "") == 0);
  CHECK(notes(3, "") == 1);
  CHECK(notes(3, R"(, "layers": [11, 11, 10])") == 0);
  CHECK(notes(3, R"(, "embedding_counts": true)") == 0);  // 33 divide by 3
  CHECK(notes(5, R"(, "layers": "one-less-at-ends")") == 0);
}

}  // namespace shardsim::pipeline_test
