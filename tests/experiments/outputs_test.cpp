// Outputs of every example, which leave a step beside its loss and its state.
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "experiments/experiment.hpp"
#include "reports/specs/specs_report.hpp"

namespace shardsim::outputs_test {
namespace {

using Catch::Contains;

// gpt2 over 4 devices that split the batch.
constexpr std::int64_t V = 50257, sequences = 8, length = 128, tokens = sequences * length;

Experiment experiment(const std::string& workload, const std::string& strategy) {
  const std::string text = R"({"workload": {"model": "gpt2", "batch": 8, "sequence": 128, )" +
                           workload + R"(}, "mesh": {"data": 4}, "machine": "dgx-h100",
                                         "strategy": )" +
                           strategy + "}";
  return read_experiments(parse_json(text, "a.json"), "a.json").front();
}

Plan plan_of(const std::string& workload, const std::string& strategy) {
  return predict(experiment(workload, strategy), {}).step.plan;
}

std::vector<Collective> gathers(const Plan& plan) {
  std::vector<Collective> found;
  for (const Task& task : plan.programs[0].tasks) {
    if (task.kind != TaskKind::collective) continue;
    const Collective& collective = plan.collectives[static_cast<std::size_t>(task.work)];
    if (collective.kind == CollectiveKind::all_gather) found.push_back(collective);
  }
  return found;
}

// Bytes that a device holds from the start of the step to beyond its end, under that name.
Bytes held(const Plan& plan, const std::string& name) {
  Bytes bytes{0};
  for (const Buffer& buffer : plan.programs[0].buffers) {
    if (plan.names[static_cast<std::size_t>(buffer.name)] != name) continue;
    CHECK(buffer.allocated_by == before_the_step);
    CHECK(buffer.free_count == 0);
    bytes += buffer.bytes;
  }
  return bytes;
}

}  // namespace

TEST_CASE("Outputs leave a step whole on every device, or as they were made") {
  const std::string step = GENERATE("forward", "train");
  CAPTURE(step);
  const std::string workload = R"("step": ")" + step + R"(", "outputs": ["logits", "losses"])";
  const Plan whole = plan_of(workload, R"({"name": "dp", "outputs": "whole"})");
  const std::vector<Collective> sent = gathers(whole);
  REQUIRE(sent.size() == 2);
  for (const Collective& gather : sent) {
    CHECK((gather.payload == Bytes(4 * tokens * V) || gather.payload == Bytes(4 * tokens)));
  }
  CHECK(held(whole, "loss.logits (output)") == Bytes(4 * tokens * V));
  CHECK(held(whole, "losses (output)") == Bytes(4 * tokens));

  const Plan as_made = plan_of(workload, R"("dp")");
  CHECK(gathers(as_made).empty());
  CHECK(held(as_made, "loss.logits (output)") == Bytes(tokens * V));
  CHECK(held(as_made, "losses (output)") == Bytes(tokens));
}

// The loss is made of the same numbers: nothing else changes.
TEST_CASE("A step with outputs sends what it sent without, and them") {
  const std::string strategy = R"({"name": "fsdp", "shard_axis": "data", "outputs": "whole"})";
  const Plan without = plan_of(R"("step": "train")", strategy);
  const Plan with = plan_of(R"("step": "train", "outputs": ["losses"])", strategy);
  CHECK(gathers(with).size() == gathers(without).size() + 1);
  CHECK(with.programs[0].tasks.size() == without.programs[0].tasks.size() + 1);
}

// partition_spmd_model: _partition_spec_from_shape answers None for all but the train state.
TEST_CASE("praxis' steps return outputs whole") {
  const std::string praxis = R"({"name": "praxis", "weights": [["wte", ["data", null]]]})";
  CHECK_FALSE(gathers(plan_of(R"("step": "forward", "outputs": ["losses"])", praxis)).empty());
  const SpecTable table =
      experiment_specs(experiment(R"("step": "forward", "outputs": ["logits", "labels"])", praxis));
  REQUIRE(table.outputs.size() == 2);
  CHECK(table.outputs[0].returned.empty());
  CHECK(table.outputs[0].shard_shape == std::vector<std::int64_t>{sequences, length, V});
  CHECK(table.outputs[1].shard_shape == std::vector<std::int64_t>{sequences, length});
}

TEST_CASE("Specs have outputs apart from parameters") {
  const Experiment one = experiment(R"("step": "train", "outputs": ["losses"])", R"("dp")");
  for (const bool state : {false, true}) {
    const SpecTable table = experiment_specs(
        one, state ? std::optional<StateOptimizer>(StateOptimizer{}) : std::nullopt);
    REQUIRE(table.outputs.size() == 1);
    CHECK(table.outputs[0].name == "losses");
    CHECK(table.outputs[0].spec == PartitionSpec{{"data"}, {}});
    for (const ParameterSharding& row : table.parameters) CHECK(row.name != "losses");
    CHECK_THAT(report_specs(table, *one.resolved, Format::text), Contains("Outputs\n"));
    const Json json = parse_json(report_specs(table, *one.resolved, Format::json), "specs");
    CHECK(json["outputs"][0]["shard_shape"] == Json({sequences / 4, length}));
  }
}

TEST_CASE("Outputs that a step cannot leave are refused") {
  const auto refused = [](const std::string& workload) {
    try {
      plan_of(workload, R"("dp")");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused(R"("outputs": ["logts"])") ==
        "a.json: /workload/outputs: unknown output \"logts\", did you mean \"logits\"?");
  CHECK(refused(R"("outputs": ["losses", "losses"])") ==
        "a.json: /workload/outputs: \"losses\" is there twice");
  CHECK(refused(R"("microbatches": 2, "outputs": ["losses"])") ==
        "a.json: /workload/outputs: outputs of a step of several microbatches are not supported");
}

}  // namespace shardsim::outputs_test
