#include "plan/plan_io.hpp"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <functional>

#include "arbitrary_plan.hpp"
#include "base/json.hpp"
#include "base/version.hpp"

namespace shardsim {
namespace {

Plan read(const Json& json) { return plan_from_json(JsonReader(json, {"plan.json", ""})); }

TEST_CASE("what is written reads back as the same plan, and is written as the same bytes") {
  CHECK(rc::check([] {
    const Plan plan = arbitrary_plan();
    verify(plan);
    const std::string text = plan_to_json(plan).dump();
    const Plan again = read(parse_json(text, "plan.json"));
    RC_ASSERT(again == plan);
    RC_ASSERT(plan_to_json(again).dump() == text);
    RC_ASSERT(plan_to_text(again) == plan_to_text(plan));
    RC_ASSERT(plan_to_dot(again) == plan_to_dot(plan));
  }));
}

TEST_CASE("the flat list of collectives says who, how much and how often") {
  const Json json = plan_to_json(layered_plan(3));
  CHECK(json["schema"] == "shardsim/plan/1");
  CHECK(json["shardsim"] == program_version);
  const Json& gather = json["collectives"][0];
  CHECK(gather["kind"] == "all-gather");
  CHECK(gather["axes"] == Json::parse(R"(["fsdp"])"));
  CHECK(gather["groups"] == Json::parse("[[0,1,2,3]]"));
  CHECK(gather["count"] == 6);  // 3 layers, forward and backward
  CHECK(gather["group_size"] == 4);
  CHECK_FALSE(gather.contains("source_target_pairs"));
}

TEST_CASE("groups of more than 1,024 devices are given in the iota form") {
  Plan plan = layered_plan(1);
  plan.mesh = Mesh({{"data", 512}, {"model", 4}});
  plan.collectives[0].axes = {plan.mesh.whole(1)};
  plan.collectives[1].axes = {AxisRef{0, 2, 256}};
  const Json json = plan_to_json(plan);
  CHECK(json["collectives"][0]["groups"] == "[512,4]<=[2048]");
  // Rows are (data:(1)2, model), columns data:(2)256.
  CHECK(json["collectives"][1]["groups"] == "[8,256]<=[2,256,4]T(0,2,1)");
  CHECK(json["collectives"][1]["axes"][0] == "data:(2)256");
  CHECK(read(json) == plan);
}

// The message for a good document after one change.
std::string complaint(const std::function<void(Json&)>& break_it) {
  Json json = plan_to_json(layered_plan(2));
  break_it(json);
  try {
    (void)read(json);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("hostile plans are refused with their place") {
  CHECK(complaint([](Json&) {}) == "");
  CHECK(complaint([](Json& j) { j.erase("kernels"); }) == "plan.json: missing key \"kernels\"");
  CHECK(complaint([](Json& j) { j["kernles"] = 1; }) ==
        "plan.json: unknown key \"kernles\", did you mean \"kernels\"?");
  CHECK(complaint([](Json& j) { j["schema"] = "shardsim/plan/2"; }) ==
        "plan.json: /schema: unknown value \"shardsim/plan/2\", did you mean \"shardsim/plan/1\"?");
  CHECK(complaint([](Json& j) { j["programs"][0]["tasks"][1]["work"] = 1; }) ==
        "plan.json: /programs/0/tasks/1/work: 1 is out of range, must be from 0 to 0");
  CHECK(complaint([](Json& j) { j["programs"][0]["tasks"][1]["work"] = -1; }) ==
        "plan.json: /programs/0/tasks/1/work: -1 is out of range, must be from 0 to 0");
  CHECK(complaint([](Json& j) { j["programs"][0]["tasks"][1]["after"] = {1}; }) ==
        "plan.json: /programs/0/tasks/1/after/0: 1 is out of range, must be from 0 to 0");
  CHECK(complaint([](Json& j) { j["programs"][0]["tasks"][0]["after"] = {0}; }) ==
        "plan.json: /programs/0/tasks/0/after/0: there are no earlier tasks");
  CHECK(complaint([](Json& j) { j["programs"][0]["tasks"][0]["name"] = "x"; }) ==
        "plan.json: /programs/0/tasks/0/name: \"x\" is not in /names");
  CHECK(complaint([](Json& j) { j["programs"][0]["tasks"][0]["stream"] = 2; }) ==
        "plan.json: /programs/0/tasks/0/stream: 2 is out of range, must be from 0 to 1");
  CHECK(complaint([](Json& j) { j["kernels"][0]["bytes"] = -6; }) ==
        "plan.json: /kernels/0/bytes: -6 is out of range, must be from 0 to 4611686018427387904");
  CHECK(complaint([](Json& j) { j["kernels"][0]["flops"] = -1.5; }) ==
        "plan.json: /kernels/0/flops: -1.5 is negative");
  // Axes of meshes and sides of products: products of two fit 64 bits.
  const std::string largest = std::to_string(std::int64_t{1} << 31);
  CHECK(complaint([](Json& j) {
          j["kernels"][0]["product"] = {1, 2, 3};
        }) == "plan.json: /kernels/0/product: expected [batch, m, n, k]");
  CHECK(complaint([](Json& j) {
          j["kernels"][0]["product"] = {1, 2, 0, 3};
        }) == "plan.json: /kernels/0/product/2: 0 is out of range, must be from 1 to " + largest);
  CHECK(complaint([](Json& j) { j["mesh"]["fsdp"] = 0; }) ==
        "plan.json: /mesh/fsdp: 0 is out of range, must be from 1 to " + largest);
  CHECK(complaint([](Json& j) { j["mesh"]["other"] = 1'000'000'000; }) ==
        "plan.json: /mesh: fsdp=4 x other=1000000000 has more than 2147483648 devices");
  CHECK(complaint([](Json& j) { j["devices"] = 5; }) ==
        "plan.json: /devices: the mesh has 4 devices");
  CHECK(complaint([](Json& j) { j["collectives"][0]["axes"][0] = "fsdp:(3)2"; }) ==
        "plan.json: /collectives/0/axes/0: no axis \"fsdp:(3)2\" in the mesh");
  CHECK(complaint([](Json& j) {
          j["collectives"][0]["groups"] = {{0, 1}, {2, 3}};
        }) == "plan.json: /collectives/0/groups: these are not the groups of the axes");
  CHECK(complaint([](Json& j) {
          j["collectives"][0]["groups"] = {{0, 1, 2, 4}};
        }) == "plan.json: /collectives/0/groups/0/3: 4 is out of range, must be from 0 to 3");
  CHECK(complaint([](Json& j) {
          j["collectives"][0]["source_target_pairs"] = {{0, 4}};
        }) ==
        "plan.json: /collectives/0/source_target_pairs/0/1: 4 is out of range, must be from 0 to "
        "3");
  CHECK(complaint([](Json& j) { j["collectives"][0]["group_size"] = 2; }) ==
        "plan.json: /collectives/0/group_size: the groups have 4 devices");
  CHECK(complaint([](Json& j) { j["collectives"][0]["count"] = 5; }) ==
        "plan.json: /collectives/0/count: the tasks execute it 4 times");
  CHECK(complaint([](Json& j) {
          j["collectives"][0]["axes"] = {"fsdp", "fsdp"};
        }) == "plan.json: plan: collective 0: axes overlap");
  CHECK(complaint([](Json& j) { j["names"][1] = "layers.{}"; }) ==
        "plan.json: /names/1: this name is there already");
  CHECK(complaint([](Json& j) { j["programs"][0]["streams"] = Json::array(); }) ==
        "plan.json: /programs/0/tasks/0/stream: there are no streams");
}

TEST_CASE("the text prints a repetition once") {
  const std::string text = plan_to_text(layered_plan(32));
  CHECK(text.find("Plan of toy, strategy fsdp\n  mesh       fsdp=4 (4 devices)\n") == 0);
  // Forward: 32 layers of 2 tasks, #0 to #63.
  CHECK(text.find("x32: #0 to #63, layer 0 to 31\n") != std::string::npos);
  CHECK(text.find("layers.1.proj") == std::string::npos);
  CHECK(text.find("x1:") == std::string::npos);  // what is there once is no repetition
}

// Runs of spaces as one: columns are as wide as they need.
std::string squeezed(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ' || result.empty() || result.back() != ' ') result += c;
  }
  return result;
}

TEST_CASE("the text tells collectives, transfers, buffers by category, paddings and notes") {
  Plan plan = layered_plan(2);
  plan.subject.parameters = 1'234'567;
  plan.subject.tokens_per_step = 4096;
  plan.transfers = {{1, true, DType::bf16, Bytes(3 * KiB), ""},
                    {1, false, DType::bf16, Bytes(5 * KiB), "", 3}};
  Program& program = plan.programs[0];
  for (const std::int32_t transfer : {0, 1}) {
    Task task;
    task.kind = TaskKind::transfer;
    task.work = transfer;
    (void)program.add_task(task, {0});
  }
  // What only moves memory is told in bytes, as is what has no operations.
  plan.kernels.push_back({"scale", KernelClass::memory, DType::bf16, Flops{8}, Bytes{2048}});
  plan.kernels.push_back({"transpose", KernelClass::matmul, DType::bf16, Flops{0}, Bytes{4096}});
  for (const std::int32_t kernel : {1, 2}) {
    Task task;
    task.work = kernel;
    (void)program.add_task(task, {});
  }
  Task copy;
  copy.kind = TaskKind::to_host;
  copy.recompute = true;
  (void)program.add_task(copy, {});
  const auto add = [&](BufferCategory category, Bytes bytes, TaskId by,
                       const std::vector<TaskId>& frees) {
    Buffer buffer;
    buffer.category = category;
    buffer.bytes = bytes;
    buffer.allocated_by = by;
    program.add_buffer(buffer, frees);
  };
  add(BufferCategory::parameters, Bytes(KiB), before_the_step, {});
  add(BufferCategory::parameters, Bytes(KiB), before_the_step, {3});
  add(BufferCategory::activations, Bytes(512), 1, {});
  plan.programs.push_back(plan.programs[0]);
  plan.programs[1].name = "next";
  plan.padding = {{"embed", 1, 5, 2, 6, 3, Bytes(12)}};
  plan.notes = {"one note", "another"};
  verify(plan);
  const std::string text = squeezed(plan_to_text(plan));
  const auto has = [&](const char* part) { CHECK_THAT(text, Catch::Contains(part)); };
  has("\n parameters 1,234,567\n tokens 4,096 per step\n");
  has("per step\n\nCollectives");
  has("scale 2.0 KiB");
  has("transpose 4.0 KiB");
  // Two layers, forward and backward, in each of two programs.
  has("all-gather fsdp 4 1.0 KiB bf16 8");
  has("send to next 3.0 KiB");
  has("receive from next, channel 3 5.0 KiB");
  has("forward, again to-host 6 B");
  has("\nBuffers of next, on each device\n");
  has("parameters 2 2.0 KiB 1.0 KiB");  // of the two one is there for the next step
  has("activations 1 512 B 0 B");
  has("embed 1 5 2 6 12 B");
  has("\nNotes\n one note\n another\n");
}

TEST_CASE("the graph has a node per task of the folded schedule") {
  // Sections of layered_plan(5), see fold_test.cpp: 2 + 3 + 3 + 1 tasks.
  const std::string dot = plan_to_dot(layered_plan(5));
  std::size_t nodes = 0;
  for (std::size_t at = dot.find("label="); at != std::string::npos;
       at = dot.find("label=", at + 1)) {
    ++nodes;
  }
  CHECK(nodes == 9);
  CHECK(dot.find("0->1") != std::string::npos);  // gather before matmul
}

}  // namespace
}  // namespace shardsim
