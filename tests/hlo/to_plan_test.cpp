#include "hlo/to_plan.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "fixture.hpp"
#include "hlo/heap.hpp"
#include "hlo/memory.hpp"

namespace shardsim::to_plan_test {
namespace {

using Catch::Matchers::Contains;

const Program& only_program(const Plan& plan) {
  REQUIRE(plan.programs.size() == 1);
  return plan.programs.front();
}

bool has_note(const Plan& plan, const std::string& text) {
  for (const std::string& note : plan.notes) {
    if (note.find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("what uses -done waits for the collective, nothing else does") {
  const Plan plan = plan_from_hlo(
      test::module_of("  %w = f32[8]{0} parameter(0)\n  %x = f32[64]{0} parameter(1)\n"
                      "  %s = (f32[8]{0}, f32[64]{0}) all-gather-start(%w), channel_id=1, "
                      "replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true, "
                      "metadata={op_name=\"w\"}\n"
                      "  %n = f32[64]{0} negate(%x)\n"
                      "  %d = f32[64]{0} all-gather-done(%s)\n"
                      "  ROOT %a = f32[64]{0} add(%n, %d)\n"),
      {Mesh({{"x", 2}, {"y", 4}})});
  const Program& program = only_program(plan);
  REQUIRE(program.tasks.size() == 3);
  CHECK(program.tasks[0].kind == TaskKind::collective);
  CHECK(program.tasks[0].stream == 1);
  CHECK(program.after(program.tasks[1]).empty());
  REQUIRE(program.after(program.tasks[2]).size() == 1);
  CHECK(program.after(program.tasks[2])[0] == 0);
  REQUIRE(plan.collectives.size() == 1);
  CHECK(plan.mesh.names_of(plan.collectives[0].axes) == std::vector<std::string>{"x", "y"});
  CHECK(plan.collectives[0].reason == "w");
}

TEST_CASE("loops are unrolled, and one of unknown length is noted") {
  const std::string before =
      "%condition (s: f32[8]) -> pred[] {\n  %s = f32[8]{0} parameter(0)\n"
      "  ROOT %c = pred[] constant(true)\n}\n"
      "%body (t: f32[8]) -> f32[8] {\n  %t = f32[8]{0} parameter(0)\n"
      "  ROOT %r = f32[8]{0} all-reduce(%t), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, "
      "use_global_device_ids=true, to_apply=%add\n}\n";
  const std::string loop =
      "  %p = f32[8]{0} parameter(0)\n"
      "  ROOT %w = f32[8]{0} while(%p), condition=%condition, body=%body";
  const Plan known = plan_from_hlo(
      test::module_of(loop + ", backend_config={\"known_trip_count\":{\"n\":\"10\"}}\n", 8, before),
      {});
  CHECK(executions(known) == std::vector<std::int64_t>{10});
  CHECK(only_program(known).tasks[9].layer == 9);
  CHECK_FALSE(has_note(known, "trip count"));
  const Plan unknown = plan_from_hlo(test::module_of(loop + "\n", 8, before), {});
  CHECK(executions(unknown) == std::vector<std::int64_t>{1});
  CHECK(has_note(unknown, "loop w: trip count unknown"));
  CHECK_THROWS_WITH(
      plan_from_hlo(
          test::module_of(loop + ", backend_config={\"known_trip_count\":{\"n\":\"5000000\"}}\n", 8,
                          before),
          {}),
      Contains("more than 4194304 tasks"));
}

TEST_CASE("both branches of a conditional are counted") {
  const auto branch = [](int i) {
    return fmt::format(
        "%b{0} (q{0}: f32[8]) -> f32[8] {{\n  %q{0} = f32[8]{{0}} parameter(0)\n"
        "  ROOT %n{0} = f32[8]{{0}} negate(%q{0})\n}}\n",
        i);
  };
  const Plan plan = plan_from_hlo(
      test::module_of(
          "  %i = s32[] parameter(0)\n  %p = f32[8]{0} parameter(1)\n"
          "  ROOT %c = f32[8]{0} conditional(%i, %p, %p), branch_computations={%b1, %b2}\n",
          1, branch(1) + branch(2)),
      {});
  CHECK(only_program(plan).tasks.size() == 2);
  CHECK(has_note(plan, "all branches are counted"));
}

// The forms of openxla/xla's reduce-scatter wrapped in async-start, and of the TPU fusion that
// profiling.md of jax-ml/scaling-book shows.
TEST_CASE("collectives inside async-start and fusions are found") {
  const std::string before =
      "%wrapped (q: bf16[1024]) -> bf16[128] {\n  %q = bf16[1024]{0} parameter(0)\n"
      "  ROOT %rs = bf16[128]{0} reduce-scatter(%q), channel_id=1, replica_groups=[1,8]<=[8], "
      "use_global_device_ids=true, dimensions={0}, to_apply=%add\n}\n"
      "%all-reduce-scatter (v: bf16[1024]) -> bf16[512] {\n  %v = bf16[1024]{0} parameter(0)\n"
      "  %ar = bf16[1024]{0} all-reduce(%v), channel_id=2, "
      "replica_groups={{0,1},{2,3},{4,5},{6,7}},"
      " use_global_device_ids=true, to_apply=%add\n"
      "  %id = u32[] partition-id()\n  %size = u32[] constant(512)\n"
      "  %offset = u32[] multiply(%id, %size)\n"
      "  ROOT %ds = bf16[512]{0} dynamic-slice(%ar, %offset), dynamic_slice_sizes={512}\n}\n";
  const Plan plan = plan_from_hlo(
      test::module_of("  %p = bf16[1024]{0} parameter(0)\n"
                      "  %s = ((bf16[1024]{0}), bf16[128]{0}) async-start(%p), calls=%wrapped\n"
                      "  %f = bf16[512]{0} fusion(%p), kind=kCustom, calls=%all-reduce-scatter\n"
                      "  %d = bf16[128]{0} async-done(%s)\n"
                      "  ROOT %t = (bf16[128]{0}, bf16[512]{0}) tuple(%d, %f)\n",
                      8, before),
      {});
  REQUIRE(plan.collectives.size() == 2);
  for (const Collective& collective : plan.collectives) {
    CHECK(collective.kind == CollectiveKind::reduce_scatter);
    CHECK(collective.payload == Bytes(2048));
  }
  CHECK(only_program(plan).tasks[0].stream == 1);
  CHECK(only_program(plan).tasks[1].stream == 0);
}

TEST_CASE("memory of arguments, results and aliases") {
  // 3 x 5 floats take 8 x 128 in tiles; three results share the arguments' rounding, and the table
  // of their addresses is rounded up to 512 bytes.
  const HloModule module = test::module_of(
      "  %a = f32[3,5]{1,0:T(8,128)} parameter(0)\n  %b = f32[100]{0:T(128)} parameter(1)\n"
      "  ROOT %t = (f32[3,5]{1,0:T(8,128)}, f32[100]{0:T(128)}) tuple(%a, %b)\n",
      1, "",
      ", input_output_alias={ {0}: (0, {}, may-alias) }, "
      "entry_computation_layout={(f32[3,5]{1,0:T(8,128)}, f32[100]{0:T(128)})->"
      "(f32[3,5]{1,0:T(8,128)}, f32[100]{0:T(128)})}");
  const HloMemory memory = entry_memory(module);
  CHECK(memory.argument == Bytes(4096 + 512));
  CHECK(memory.output == Bytes(4096 + 512 + 512));
  CHECK(memory.alias == Bytes(4096));
  const Plan plan = plan_from_hlo(module, {});
  CHECK(only_program(plan).buffers.size() == 3);
  CHECK(only_program(plan).buffers[0].category == BufferCategory::parameters);
  CHECK(only_program(plan).buffers[1].category == BufferCategory::inputs);
  CHECK(only_program(plan).buffers[2].bytes == Bytes(1024));
}

TEST_CASE("temporaries live from who makes them to the last use") {
  // y and z of 4096 bytes each are alive at once when z is made; the transpose of z takes a third
  // place when y is gone, the exponential takes the place of the transpose. The result is no
  // temporary.
  const HloModule module = test::module_of(
      "  %p = f32[32,32]{1,0} parameter(0)\n"
      "  %y = f32[32,32]{1,0} transpose(%p), dimensions={1,0}\n"
      "  %z = f32[32,32]{1,0} dot(%y, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "  %view = f32[1024]{0} bitcast(%z)\n"
      "  %t = f32[1024]{0} reverse(%view), dimensions={0}\n"
      "  %e = f32[1024]{0} exponential(%t)\n"
      "  ROOT %r = f32[1024]{0} reverse(%e), dimensions={0}\n",
      1);
  CHECK(temporary_bytes(module) == Bytes(8192));
}

TEST_CASE("a loop's state is one array, its body's temporaries come on top") {
  const std::string before =
      "%condition (s: f32[1024]) -> pred[] {\n  %s = f32[1024]{0} parameter(0)\n"
      "  ROOT %c = pred[] constant(true)\n}\n"
      "%body (q: f32[1024]) -> f32[1024] {\n  %q = f32[1024]{0} parameter(0)\n"
      "  %t1 = f32[1024]{0} reverse(%q), dimensions={0}\n"
      "  ROOT %t2 = f32[1024]{0} reverse(%t1), dimensions={0}\n}\n";
  const HloModule module = test::module_of(
      "  %p = f32[1024]{0} parameter(0)\n  %copied = f32[1024]{0} copy(%p)\n"
      "  %w = f32[1024]{0} while(%copied), condition=%condition, body=%body\n"
      "  ROOT %r = f32[1024]{0} reverse(%w), dimensions={0}\n",
      1, before);
  CHECK(temporary_bytes(module) == Bytes(8192));
}

TEST_CASE("a mesh of another size is refused") {
  CHECK_THROWS_WITH(
      plan_from_hlo(test::module_of("  ROOT %c = f32[] constant(1)\n"), {Mesh({{"x", 4}})}),
      Contains("runs on 8 devices, the mesh x=4 has 4"));
}

}  // namespace shardsim::to_plan_test
