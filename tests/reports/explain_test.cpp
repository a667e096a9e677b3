// plan --explain: a plan made by hand on fsdp=4, model=2, its wire bytes by the formulas of
// plan.hpp.
//
//   collective                  payload   executions   wire bytes each      together
//   all-gather fsdp (4)         4 MiB     2 layers     3/4 P     = 3 MiB    6 MiB
//   all-reduce model (2)        1 MiB     1            2*1/2 P   = 1 MiB    1 MiB
//   all-reduce model (2)        1 MiB     1            2*1/2 P   = 1 MiB    1 MiB
// The two all-reduces differ in the line that their reasons name, and are one row of 2 MiB.
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "reports/step/explain_report.hpp"

namespace shardsim {
namespace {

using Catch::Contains;

Collective collective(CollectiveKind kind, const AxisRef& axis, std::int64_t payload,
                      const std::string& reason, const std::string& remedy) {
  Collective made;
  made.kind = kind;
  made.axes = {axis};
  made.payload = Bytes(payload);
  made.reason = reason;
  made.remedy = remedy;
  return made;
}

Plan step() {
  Plan plan;
  plan.subject.model = "toy";
  plan.subject.strategy = "fsdp";
  plan.mesh = Mesh({{"fsdp", 4}, {"model", 2}});
  const AxisRef fsdp = plan.mesh.whole(0);
  const AxisRef model = plan.mesh.whole(1);
  plan.collectives = {
      collective(CollectiveKind::all_reduce, model, MiB, "dot, line 7, sums", "split *a* at 7"),
      collective(CollectiveKind::all_gather, fsdp, 4 * MiB, "stored over fsdp", ""),
      collective(CollectiveKind::all_reduce, model, MiB, "dot, line 12, sums", "split *a* at 12")};
  plan.names = {"layers.{}", "head"};
  Program program;
  program.name = "all";
  program.streams = {"compute"};
  const auto add = [&](std::int32_t work, std::int32_t name, std::int32_t layer) {
    Task task;
    task.kind = TaskKind::collective;
    task.work = work;
    task.name = name;
    task.layer = layer;
    (void)program.add_task(task, {});
  };
  add(1, 0, 0);
  add(1, 0, 1);
  add(0, 1, -1);
  add(2, 1, -1);
  plan.programs.push_back(std::move(program));
  verify(plan);
  return plan;
}

// Tasks one after the other: 1 ms each, the first all-reduce 5 ms; the step 10 ms.
Result times() {
  Result result;
  const auto ms = [](std::int64_t count) { return SimTime(count * 1'000'000'000); };
  result.step_time = ms(10);
  ProgramResult program;
  program.tasks = {{ms(0), ms(1)}, {ms(1), ms(2)}, {ms(2), ms(7)}, {ms(7), ms(8)}};
  result.programs.push_back(std::move(program));
  return result;
}

}  // namespace

TEST_CASE("Without a machine, rows are in order of the bytes that a device sends") {
  const Explanation explanation = explain(step(), nullptr);
  REQUIRE(explanation.collectives.size() == 2);
  const ExplainedCollective& gather = explanation.collectives[0];
  CHECK(gather.kind == CollectiveKind::all_gather);
  CHECK(gather.over == "fsdp");
  CHECK(gather.group_size == 4);
  CHECK(gather.count == 2);
  CHECK(gather.wire_bytes == Bytes(3 * MiB));
  CHECK(gather.total_wire_bytes() == Bytes(6 * MiB));
  CHECK(gather.where == std::vector<std::string>{"layers.{}, 2 layers"});
  CHECK_FALSE(gather.time);
  CHECK(explanation.count == 4);
  CHECK(explanation.wire_bytes == Bytes(8 * MiB));
  CHECK(explanation.share_of_bytes(gather) == 0.75);  // 6 of 8
}

TEST_CASE("Reasons that differ in numbers only are one row, which has the first") {
  const ExplainedCollective row = explain(step(), nullptr).collectives[1];
  CHECK(row.places == 2);
  CHECK(row.count == 2);
  CHECK(row.reasons == 2);
  CHECK(row.reason == "dot, line 7, sums");
  CHECK(row.remedy == "split *a* at 7");
}

TEST_CASE("Layers are counted where there are several") {
  Plan one = step();
  one.programs[0].tasks[1].layer = 0;
  CHECK(explain(one, nullptr).collectives[0].where == std::vector<std::string>{"layers.{}"});
}

TEST_CASE("With a machine, rows are in order of their time, and say its share of the step") {
  const Result result = times();
  const Explanation explanation = explain(step(), &result);
  const ExplainedCollective& sum = explanation.collectives[0];
  CHECK(sum.kind == CollectiveKind::all_reduce);
  CHECK(sum.time == SimTime(6'000'000'000));  // 5 + 1 ms
  CHECK(explanation.share_of_step(*sum.time) == 0.6);
  CHECK(explanation.time == SimTime(8'000'000'000));
}

TEST_CASE("The text has a summary and a block per row") {
  const Result result = times();
  const std::string text = explain_text(explain(step(), &result));
  CHECK_THAT(text, Contains("Collectives of toy, fsdp on fsdp=4,model=2\n"));
  CHECK_THAT(text,
             Contains("4 collectives, 2 distinct; a device sends 8.0 MiB per step in 8.00 ms"));
  CHECK_THAT(text, Contains("\n1. all-reduce over model (2 devices), 1.0 MiB bf16, 2 times\n"));
  CHECK_THAT(text, Contains("   why       dot, line 7, sums\n"));
  CHECK_THAT(text, Contains("   takes     6.00 ms per step (60.0 %"));
  CHECK_THAT(text, Contains("   alike     1 more"));
  CHECK_THAT(text, !Contains("0 more"));
  CHECK_THAT(text, Contains("\n2. all-gather over fsdp (4 devices), 4.0 MiB bf16, 2 times\n"));
  CHECK_THAT(text, Contains("   to avoid  nothing known\n"));
  CHECK_THAT(text, Contains("   sends     3.0 MiB per device each time, 6.0 MiB per step (75.0 %"));
}

TEST_CASE("Markdown keeps user text harmless") {
  const std::string text = explain_markdown(explain(step(), nullptr));
  CHECK_THAT(text, Contains("## Collectives of toy"));
  CHECK_THAT(text, Contains("- **to avoid**: split \\*a\\* at 7\n"));
}

TEST_CASE("JSON has every number, and null for what is not known") {
  const Json json = parse_json(explain_json(explain(step(), nullptr)), "explanation");
  CHECK(json["schema"] == "shardsim/explanation/1");
  CHECK(json["wire_bytes_per_device"] == 8 * MiB);
  CHECK(json["time_s"].is_null());
  CHECK(json["collectives"][0]["reason"] == "stored over fsdp");
  CHECK(json["collectives"][0]["remedy"].is_null());
  CHECK(json["collectives"][1]["reasons_alike"] == 2);
}

TEST_CASE("Compiled HLO says where, not why") {
  Plan plan = step();
  plan.subject.strategy = "compiled";
  plan.collectives[1].reason = "jit(step)/dot_general";  // the op_name of its metadata
  const Explanation explanation = explain(plan, nullptr);
  CHECK(explanation.collectives[0].reason.empty());
  CHECK(explanation.collectives[0].where.front() == "layers.{} of jit(step)/dot_general, 2 layers");
  CHECK_THAT(explain_text(explanation),
             Contains("why       not known: compiled HLO does not say\n"));
}

TEST_CASE("A plan without collectives says so") {
  Plan plan = step();
  plan.programs.front().tasks.clear();
  CHECK_THAT(explain_text(explain(plan, nullptr)), Contains("No collectives"));
}

}  // namespace shardsim
