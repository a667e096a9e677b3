// Arrays whose layout says S(5) lie on the host. The forms are those of programs that jax 0.10.2
// compiled for TPU v5e (tests/golden/xla_offload).
#include "hlo/host_copy.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "fixture.hpp"

namespace shardsim::test {
namespace {

// As XLA wraps a slice for a GPU, the same with arithmetic in it, and both directions in one.
const std::string fused =
    "%wrapped (h: f32[4,256], i: s32[]) -> f32[1,256] {\n"
    "  %h = f32[4,256]{1,0:S(5)} parameter(0)\n  %i = s32[] parameter(1)\n"
    "  %s = f32[1,256]{1,0} dynamic-slice(%h, %i, %i), dynamic_slice_sizes={1,256}\n"
    "  ROOT %v = f32[1,256]{1,0} copy(%s)\n}\n"
    "%computes (h: f32[4,256], i: s32[]) -> f32[1,256] {\n"
    "  %h = f32[4,256]{1,0:S(5)} parameter(0)\n  %i = s32[] parameter(1)\n"
    "  %s = f32[1,256]{1,0} dynamic-slice(%h, %i, %i), dynamic_slice_sizes={1,256}\n"
    "  ROOT %v = f32[1,256]{1,0} negate(%s)\n}\n"
    "%both (h: f32[4,256]) -> f32[4,256] {\n"
    "  %h = f32[4,256]{1,0:S(5)} parameter(0)\n  %d = f32[4,256]{1,0} copy(%h)\n"
    "  ROOT %v = f32[4,256]{1,0:S(5)} copy(%d)\n}\n";

// Of the instruction %c, behind parameters %d on the device and %h on the host, 4 KiB each, and %i.
std::optional<HostCopy> copy_of(const std::string& instruction) {
  const HloModule module = module_of(
      "  %d = f32[4,256]{1,0} parameter(0)\n  %h = f32[4,256]{1,0:S(5)} parameter(1)\n"
      "  %row = f32[1,256]{1,0} parameter(2)\n  %i = s32[] parameter(3)\n  %c = " +
          instruction + "\n",
      8, fused);
  return HostCopies(module).find(find(module, "c"));
}

void check_copy(const std::string& instruction, bool to_host, bool asynchronous, Bytes bytes) {
  INFO(instruction);
  const auto copy = copy_of(instruction);
  REQUIRE(copy);
  CHECK(copy->to_host == to_host);
  CHECK(copy->asynchronous == asynchronous);
  CHECK(copy->bytes == bytes);
  CHECK(copy->dtype == DType::f32);
}

}  // namespace

TEST_CASE("whole arrays and slices go to the host and come back") {
  const Bytes whole(4 * KiB);
  const Bytes row(KiB);
  check_copy("f32[4,256]{1,0:S(5)} copy(%d)", true, false, whole);
  check_copy("f32[4,256]{1,0} copy(%h)", false, false, whole);
  check_copy("(f32[4,256]{1,0:S(5)}, f32[4,256]{1,0}, u32[]{:S(2)}) copy-start(%d)", true, true,
             whole);
  check_copy("(f32[4,256]{1,0}, f32[4,256]{1,0:S(5)}, u32[]{:S(2)}) copy-start(%h)", false, true,
             whole);
  check_copy("f32[1,256]{1,0} dynamic-slice(%h, %i, %i), dynamic_slice_sizes={1,256}", false, false,
             row);
  check_copy(
      "((f32[4,256]{1,0:S(5)}, s32[], s32[]), f32[1,256]{1,0}, u32[]{:S(2)}) "
      "dynamic-slice-start(%h, %i, %i)",
      false, true, row);
  check_copy("f32[4,256]{1,0:S(5)} dynamic-update-slice(%h, %row, %i, %i)", true, false, row);
  check_copy(
      "((f32[4,256]{1,0:S(5)}, f32[1,256]{1,0}, s32[], s32[]), f32[4,256]{1,0:S(5)}, u32[]) "
      "dynamic-update-slice-start(%h, %row, %i, %i)",
      true, true, row);
}

TEST_CASE("a fusion of nothing else is a copy") {
  check_copy("f32[1,256]{1,0} fusion(%h, %i), kind=kCustom, calls=%wrapped", false, false,
             Bytes(KiB));
  check_copy(
      "((f32[4,256]{1,0:S(5)}, s32[]), f32[1,256]{1,0}, u32[]) fusion-start(%h, %i), "
      "kind=kCustom, calls=%wrapped",
      false, true, Bytes(KiB));
  CHECK_FALSE(copy_of("f32[1,256]{1,0} fusion(%h, %i), kind=kLoop, calls=%computes"));
  CHECK_FALSE(copy_of("f32[4,256]{1,0:S(5)} fusion(%h), kind=kLoop, calls=%both"));
}

TEST_CASE("what stays on one side is no copy to or from the host") {
  CHECK_FALSE(copy_of("f32[4,256]{1,0} copy(%d)"));
  CHECK_FALSE(copy_of("f32[4,256]{1,0:S(5)} copy(%h)"));
  // S(1) is memory on the TPU's chip: a prefetch.
  CHECK_FALSE(copy_of("(f32[4,256]{1,0:S(1)}, f32[4,256]{1,0}, u32[]) copy-start(%d)"));
  CHECK_FALSE(copy_of("f32[4,256]{1,0} negate(%h)"));
  CHECK_THROWS_WITH(copy_of("() copy-start(%d)"), Catch::Contains("a start that makes nothing"));
}

// What is saved leaves after the kernel that makes it, beside the next; it comes back not before
// the kernel that stands before its start, and its user waits for it.
TEST_CASE("asynchronous copies are tasks on streams of their own, where the schedule has them") {
  const Plan plan = plan_from_hlo(
      module_of("  %x = f32[4,256]{1,0} parameter(0)\n"
                "  %made = f32[4,256]{1,0} negate(%x)\n"
                "  %out = (f32[4,256]{1,0:S(5)}, f32[4,256]{1,0}, u32[]) copy-start(%made)\n"
                "  %next = f32[4,256]{1,0} negate(%made)\n"
                "  %there = f32[4,256]{1,0:S(5)} copy-done(%out)\n"
                "  %in = (f32[4,256]{1,0}, f32[4,256]{1,0:S(5)}, u32[]) copy-start(%there)\n"
                "  %back = f32[4,256]{1,0} copy-done(%in)\n"
                "  ROOT %sum = f32[4,256]{1,0} add(%back, %next)\n"),
      {});
  const Program& program = plan.programs.at(0);
  CHECK(program.streams ==
        std::vector<std::string>{"compute", "communication", "to host", "from host"});
  REQUIRE(program.tasks.size() == 5);  // made, out, next, in, sum
  const auto after = [&](std::size_t task) {
    const auto waits = program.after(program.tasks[task]);
    return std::vector<TaskId>(waits.begin(), waits.end());
  };
  CHECK(program.tasks[1].kind == TaskKind::to_host);
  CHECK(program.tasks[1].stream == 2);
  CHECK(after(1) == std::vector<TaskId>{0});
  CHECK(after(2).empty());
  CHECK(program.tasks[3].kind == TaskKind::from_host);
  CHECK(program.tasks[3].stream == 3);
  CHECK(after(3) == std::vector<TaskId>{2, 1});
  CHECK(after(4) == std::vector<TaskId>{3});
  CHECK(plan.kernels[static_cast<std::size_t>(program.tasks[3].work)].bytes == Bytes(4 * KiB));
}

TEST_CASE("who reads what a step copies first waits for it") {
  const Plan plan = plan_from_hlo(
      module_of("  %x = f32[4,256]{1,0} parameter(0)\n"
                "  %out = (f32[4,256]{1,0:S(5)}, f32[4,256]{1,0}, u32[]) copy-start(%x)\n"
                "  %there = f32[4,256]{1,0:S(5)} copy-done(%out)\n"
                "  ROOT %back = f32[4,256]{1,0} copy(%there)\n"),
      {});
  const Program& program = plan.programs.at(0);
  REQUIRE(program.tasks.size() == 2);
  REQUIRE(program.after(program.tasks[1]).size() == 1);
  CHECK(program.after(program.tasks[1])[0] == 0);
  CHECK(program.tasks[1].stream == 0);  // nothing else runs until it is there
}

TEST_CASE("what computes on the host's memory, and what only asks for copies, is noted") {
  const auto notes = [](const std::string& lines) {
    const Plan plan = plan_from_hlo(module_of(lines), {});
    CHECK(plan.programs.at(0).streams.size() == 2);
    return plan.notes.back();
  };
  CHECK(notes("  %h = f32[4,256]{1,0:S(5)} parameter(0)\n"
              "  ROOT %n = f32[4,256]{1,0} negate(%h)\n") ==
        "1 kernels read or write the host's memory: charged as the device's");
  CHECK(notes("  %d = f32[8]{0} parameter(0)\n"
              "  ROOT %c = f32[8]{0} custom-call(%d), "
              "custom_call_target=\"annotate_device_placement\"\n") ==
        "1 times annotate_device_placement: copies to and from hosts are in the compiled program "
        "only");
}

}  // namespace shardsim::test
