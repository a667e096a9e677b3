// What compiled HLO can hold besides arithmetic, each through the whole way to a plan. The forms
// are those of openxla/xla (hlo/parser/hlo_parser_test.cc, service/gpu tests) and of what TPU and
// GPU compilers print; sizes are derived beside them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "fixture.hpp"
#include "hlo/memory.hpp"

namespace shardsim {
namespace {

using Catch::Contains;

Plan plan_of(const std::string& lines, const std::string& before = "", int partitions = 8) {
  return plan_from_hlo(test::module_of(lines, partitions, before), {});
}

bool has_note(const Plan& plan, const std::string& part) {
  return std::any_of(plan.notes.begin(), plan.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

// f32[64] on 8 devices, in two groups of four: 256 bytes.
struct Kind {
  std::string opcode;
  CollectiveKind kind;
  std::string result;
  std::string attributes;
  std::int64_t payload;
  std::string more_operands = "";
};

const std::string groups = "replica_groups={{0,1,2,3},{4,5,6,7}}";
const std::vector<Kind> kinds = {
    {"all-gather", CollectiveKind::all_gather, "f32[256]",
     groups + ", dimensions={0}, use_global_device_ids=true", 1024},
    {"all-reduce", CollectiveKind::all_reduce, "f32[64]",
     groups + ", to_apply=%add, use_global_device_ids=true", 256},
    {"reduce-scatter", CollectiveKind::reduce_scatter, "f32[16]",
     groups + ", dimensions={0}, to_apply=%add, use_global_device_ids=true", 256},
    {"all-to-all", CollectiveKind::all_to_all, "f32[64]", groups + ", dimensions={0}", 256},
    {"collective-permute", CollectiveKind::collective_permute, "f32[64]",
     "source_target_pairs={{0,1},{1,0}}", 256},
    {"ragged-all-to-all", CollectiveKind::all_to_all, "f32[64]", groups, 256,
     ", %p, %o, %o, %o, %o"},
    {"collective-broadcast", CollectiveKind::collective_permute, "f32[64]", groups, 256}};

const std::string operands = "  %p = f32[64] parameter(0)\n  %o = s32[4] parameter(1)\n";

void check_only_collective(const Plan& plan, const Kind& kind, int stream) {
  INFO(kind.opcode);
  REQUIRE(plan.collectives.size() == 1);
  CHECK(plan.collectives[0].kind == kind.kind);
  CHECK(plan.collectives[0].payload == Bytes(kind.payload));
  if (kind.kind != CollectiveKind::collective_permute) {
    CHECK(group_size(plan, plan.collectives[0]) == 4);
  }
  CHECK(executions(plan) == std::vector<std::int64_t>{1});
  CHECK(plan.programs.at(0).tasks.at(0).stream == stream);
}

}  // namespace

TEST_CASE("every kind of collective: synchronous") {
  for (const Kind& kind : kinds) {
    const Plan plan =
        plan_of(operands + fmt::format("  ROOT %c = {} {}(%p{}), channel_id=1, {}\n", kind.result,
                                       kind.opcode, kind.more_operands, kind.attributes));
    check_only_collective(plan, kind, 0);
  }
}

TEST_CASE("every kind of collective: -start and -done") {
  for (const Kind& kind : kinds) {
    const std::string lines = fmt::format(
        "  %s = (f32[64], {0}) {1}-start(%p{2}), channel_id=1, {3}\n"
        "  ROOT %d = {0} {1}-done(%s)\n",
        kind.result, kind.opcode, kind.more_operands, kind.attributes);
    const Plan plan = plan_of(operands + lines);
    check_only_collective(plan, kind, 1);
    CHECK(plan.programs[0].tasks.size() == 1);
  }
}

TEST_CASE("every kind of collective: in async-start") {
  for (const Kind& kind : kinds) {
    const bool ragged = !kind.more_operands.empty();
    const std::string wrapped = fmt::format(
        "%wrapped (p: f32[64], o: s32[4]) -> {0} {{\n  %p = f32[64] parameter(0)\n"
        "  %o = s32[4] parameter(1)\n"
        "  ROOT %c = {0} {1}(%p{2}), channel_id=1, {3}\n}}\n",
        kind.result, kind.opcode, kind.more_operands, kind.attributes);
    const std::string lines = fmt::format(
        "  %s = ((f32[64]{1}), {0}, u32[]) async-start(%p{2}), calls=%wrapped\n"
        "  %u = ((f32[64]{1}), {0}, u32[]) async-update(%s), calls=%wrapped\n"
        "  ROOT %d = {0} async-done(%u), calls=%wrapped\n",
        kind.result, ragged ? ", s32[4]" : "", ragged ? ", %o" : "");
    check_only_collective(plan_of(operands + lines, wrapped), kind, 1);
  }
}

TEST_CASE("every kind of collective with several operands is one call") {
  for (const Kind& kind : kinds) {
    if (!kind.more_operands.empty() || kind.opcode == "collective-broadcast") continue;
    const Plan plan =
        plan_of(operands + fmt::format("  ROOT %c = ({0}, {0}) {1}(%p, %p), channel_id=1, {2}\n",
                                       kind.result, kind.opcode, kind.attributes));
    INFO(kind.opcode);
    REQUIRE(plan.collectives.size() == 1);
    CHECK(plan.collectives[0].payload == Bytes(2 * kind.payload));
    CHECK(plan.collectives[0].parts.size() == 2);
  }
}

TEST_CASE("the spellings of groups mean the same") {
  for (const char* spelling :
       {"{{0,4},{1,5},{2,6},{3,7}}", "[4,2]<=[2,4]T(1,0)", "mesh['x'=2,'y'=4] {'x'}",
        "mesh['y'=4,'x'=2], device_ids=([2,4]T(1,0)) {'x'}"}) {
    const HloModule module = test::module_of(fmt::format(
        "  %p = f32[64] parameter(0)\n  ROOT %c = f32[64] all-reduce(%p), channel_id=1, "
        "replica_groups={}, use_global_device_ids=true, to_apply=%add\n",
        spelling));
    const Plan plan = plan_from_hlo(module, {Mesh({{"data", 2}, {"model", 4}})});
    INFO(spelling);
    CHECK(plan.mesh.names_of(plan.collectives.at(0).axes) == std::vector<std::string>{"data"});
  }
}

// Two replicas of two partitions, device = replica * 2 + partition.
TEST_CASE("channel and global ids say what the numbers of a group are") {
  const auto groups_of = [](const std::string& attributes) {
    const HloModule module = test::module_of(
        "  %p = f32[64] parameter(0)\n  ROOT %c = f32[64] all-reduce(%p), to_apply=%add, " +
            attributes + "\n",
        2, "", ", replica_count=2");
    const Plan plan = plan_from_hlo(module, {});
    const Collective& collective = plan.collectives.at(0);
    return collective.axes.empty() ? collective.groups : plan.mesh.groups(collective.axes);
  };
  using Groups = std::vector<std::vector<std::int64_t>>;
  CHECK(groups_of("replica_groups={{0,1}}") == Groups{{0, 2}, {1, 3}});
  CHECK(groups_of("replica_groups={{0},{1}}, channel_id=1") == Groups{{0, 1}, {2, 3}});
  CHECK(groups_of("replica_groups={{0,3},{1,2}}, channel_id=1, use_global_device_ids=true") ==
        Groups{{0, 3}, {1, 2}});
}

TEST_CASE("operations that the importer does not know are counted and listed") {
  const Plan plan = plan_of(
      "  %p = f32[64] parameter(0)\n"
      "  %a = f32[64] frobnicate(%p)\n"
      "  %b = f32[64] frobnicate(%a)\n"
      "  %c = c64[33] fft(%b), fft_type=RFFT, fft_length={64}\n"
      "  %d = f32[64] custom-call(%b), custom_call_target=\"my_kernel\"\n"
      "  %token = token[] after-all()\n"
      "  ROOT %e = token[] outfeed(%d, %token), outfeed_shape=f32[64]\n",
      "", 1);
  CHECK(has_note(plan, "2 times instruction \"frobnicate\": operations unknown"));
  CHECK(has_note(plan, "1 times instruction \"fft\": operations unknown"));
  CHECK(has_note(plan, "1 times custom call \"my_kernel\": operations unknown"));
  CHECK(has_note(plan, "1 \"outfeed\": not in the plan"));
  CHECK(plan.kernels.at(0).flops == Flops(0));
  CHECK(plan.kernels.at(0).bytes == Bytes(512));
}

TEST_CASE("what is printed as asynchronous is the same work") {
  const std::string fused =
      "%fused (q: f32[64]) -> f32[64] {\n  %q = f32[64] parameter(0)\n"
      "  ROOT %n = f32[64] negate(%q)\n}\n";
  const Plan plan = plan_of(
      "  %p = f32[64] parameter(0)\n"
      "  %s = ((f32[64]), f32[64], s32[]) fusion-start(%p), kind=kLoop, calls=%fused\n"
      "  %u = ((f32[64]), f32[64], s32[]) fusion-update(%s)\n"
      "  %d = f32[64] fusion-done(%u)\n"
      "  ROOT %b = f32[64] opt-barrier(%d)\n",
      fused, 1);
  REQUIRE(plan.kernels.size() == 1);
  CHECK(plan.kernels[0].flops == Flops(64));
  CHECK(plan.kernels[0].bytes == Bytes(512));
  CHECK(plan.programs.at(0).tasks.size() == 1);
}

TEST_CASE("a loop inside a loop is unrolled with both counts") {
  const std::string before =
      "%at (c: f32[64]) -> pred[] {\n  %c = f32[64] parameter(0)\n"
      "  ROOT %go = pred[] constant(true)\n}\n"
      "%inner (a: f32[64]) -> f32[64] {\n  %a = f32[64] parameter(0)\n"
      "  ROOT %r = f32[64] all-reduce(%a), channel_id=1, replica_groups={}, "
      "use_global_device_ids=true, to_apply=%add\n}\n"
      "%outer (b: f32[64]) -> f32[64] {\n  %b = f32[64] parameter(0)\n"
      "  ROOT %w.1 = f32[64] while(%b), condition=%at, body=%inner, "
      "backend_config={\"known_trip_count\":{\"n\":\"3\"}}\n}\n";
  const Plan plan = plan_of(
      "  %p = f32[64] parameter(0)\n"
      "  ROOT %w = f32[64] while(%p), condition=%at, body=%outer, "
      "backend_config={\"known_trip_count\":{\"n\":\"5\"}}\n",
      before);
  CHECK(executions(plan) == std::vector<std::int64_t>{15});
}

// T(8,128)(2,1) of bf16[3,200]: 8 rows, two of them in a word, and 256 columns.
TEST_CASE("arguments take what their tiles take, aliased results nothing") {
  const std::string shape = "bf16[3,200]{1,0:T(8,128)(2,1)}";
  const HloModule module = test::module_of(
      "  %p = " + shape + " parameter(0)\n  ROOT %n = " + shape + " negate(%p)\n", 1, "",
      ", input_output_alias={ {}: (0, {}, may-alias) }, entry_computation_layout={(" + shape +
          ")->" + shape + "}");
  const HloMemory memory = entry_memory(module);
  CHECK(memory.argument == Bytes(8 * 256 * 2));
  CHECK(memory.alias == memory.output);
}

TEST_CASE("what would take too long or too much is refused") {
  const std::string operand = "  %p = f32[64] parameter(0)\n";
  CHECK_THROWS_WITH(plan_of(operand, "", 1 << 30), Contains("out of range"));
  CHECK_THROWS_AS(plan_of(operand + "  ROOT %c = f32[64] all-reduce(%p), channel_id=1, "
                                    "replica_groups=[1,99999999]<=[99999999], to_apply=%add\n"),
                  InputError);
  // Sixty computations, each calling the one before it twice: 2^60 instructions.
  std::string deep = "%f0 (q0: f32[64]) -> f32[64] {\n  ROOT %q0 = f32[64] parameter(0)\n}\n";
  for (int i = 1; i <= 60; ++i) {
    deep += fmt::format(
        "%f{0} (q{0}: f32[64]) -> f32[64] {{\n  %q{0} = f32[64] parameter(0)\n"
        "  %a{0} = f32[64] call(%q{0}), to_apply=%f{1}\n"
        "  ROOT %b{0} = f32[64] call(%a{0}), to_apply=%f{1}\n}}\n",
        i, i - 1);
  }
  CHECK_THROWS_WITH(plan_of(operand + "  ROOT %c = f32[64] call(%p), to_apply=%f60\n", deep),
                    Contains("when loops are unrolled"));
}

}  // namespace shardsim
