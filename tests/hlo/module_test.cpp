#include "hlo/module.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/index.hpp"
#include "fixture.hpp"
#include "hlo/name_table.hpp"

namespace shardsim {
namespace {

using Catch::Matchers::Contains;

HloModule parse(const std::string& text) { return HloModule::parse(text, "m.hlo"); }

}  // namespace

TEST_CASE("a module's computations, instructions and attributes are found") {
  const HloModule module = test::module_of(
      "  %p = f32[8]{0} parameter(0), sharding={devices=[8]<=[8]}, "
      "metadata={op_name=\"a[\\'k\\']\"}\n"
      "  ROOT %r = f32[8]{0} all-reduce(%p), channel_id=1, replica_groups={{0,1},{2,3}}, "
      "to_apply=%add, backend_config={\"a\":\"}, to_apply=%x\"}\n");
  REQUIRE(module.computations().size() == 2);
  CHECK(module.name() == "m");
  CHECK(module.header("is_scheduled") == "true");
  CHECK(module.header_integer("num_partitions", 1) == 8);
  CHECK(module.header_integer("replica_count", 1) == 1);
  const HloId reduce = test::find(module, "r");
  CHECK(module.computation(module.entry()).root == reduce);
  CHECK(module.operand(reduce, 0) == test::find(module, "p"));
  CHECK(module.attribute(reduce, "replica_groups") == "{{0,1},{2,3}}");
  CHECK(module.attribute(reduce, "groups").empty());
  CHECK(module.callee(reduce, "to_apply") == 0);
  CHECK(module.op_name(test::find(module, "p")) == "a['k']");
}

// The spellings of HloPrintOptions of openxla/xla: without %, with operand shapes, with comments,
// with tables of source locations, with literals over several lines.
TEST_CASE("all spellings of HLO text are read") {
  const HloModule module = parse(
      "HloModule jit_f, entry_computation_layout={(f32[2]{0})->(f32[2]{0}, "
      "/*index=1*/s32[2,2]{1,0})}\n"
      "\nFileNames\n1 \"a.py\"\n\nStackFrames\n1 {file_location_id=1}\n\n"
      "ENTRY main.3 {\n"
      "  p.1 = f32[2]{0:T(128)(2,1)} parameter(0)\n"
      "  c = s32[2,2]{1,0} constant({\n    { 1, 2 },\n    { 3, 4 }\n  })\n"
      "  n = f32[2]{0} negate(f32[2]{0:T(128)(2,1)} p.1)\n"
      "  ROOT t = (f32[2]{0}, /*index=1*/s32[2,2]{1,0}) tuple(f32[2]{0} n, "
      "/*index=1*/s32[2,2]{1,0} c)\n"
      "}, execution_thread=\"main\"\n");
  REQUIRE(module.instructions().size() == 4);
  CHECK(module.instruction(0).shape == "f32[2]{0:T(128)(2,1)}");
  CHECK(module.operands(3).size() == 2);
  CHECK(module.operand(3, 1) == 1);
  CHECK(module.shape(3).elements.size() == 2);
}

TEST_CASE("a module moves with its text") {
  HloModule first = test::module_of("  ROOT %c = f32[] constant(1)\n");
  const HloModule second = std::move(first);
  CHECK(second.instruction(test::find(second, "c")).opcode == "constant");
}

TEST_CASE("what is no HLO is refused with its line") {
  CHECK_THROWS_WITH(parse("module @jit_f {}"), Contains("m.hlo: line 1: expected \"HloModule\""));
  CHECK_THROWS_WITH(parse("HloModule m\n"), Contains("no ENTRY"));
  CHECK_THROWS_WITH(parse("HloModule m\nENTRY %e () -> f32[] {\n  %a = f32[] negate(%b)\n}\n"),
                    Contains("line 3: a uses \"b\", which is not defined before it"));
  CHECK_THROWS_WITH(parse("HloModule m\nENTRY %e () -> f32[] {\n  %a = f32[] constant(1)\n"),
                    Contains("does not end"));
  CHECK_THROWS_WITH(parse("HloModule m\nENTRY %e () -> f32[] {\n}\n"), Contains("is empty"));
  CHECK_THROWS_WITH(parse("HloModule m\nENTRY %e () -> f32[] {\n  %a = f32[] tuple(\n}\n"),
                    Contains("parenthesis"));
  CHECK_THROWS_AS(parse("HloModule m\nhello\n"), InputError);
}

TEST_CASE("a computation is called from below it only") {
  const HloModule module = parse(
      "HloModule m\nENTRY %e () -> f32[] {\n  ROOT %a = f32[] fusion(), kind=kLoop, calls=%e\n}\n");
  CHECK_THROWS_WITH(module.callee(0, "calls"), Contains("no computation \"e\" above"));
  CHECK_THROWS_WITH(module.callee(0, "to_apply"), Contains("a has no to_apply=computation"));
  CHECK_THROWS_WITH(module.operand(0, 0), Contains("0 operands"));
}

TEST_CASE("a name table is emptied at once and grows") {
  NameTable table;
  std::vector<std::string> names;
  constexpr int many = 1000;  // a table begins with 64 slots
  for (int i = 0; i < many; ++i) names.push_back(fmt::format("n{}", i));
  for (int i = 0; i < many; ++i) table.add(names[at(i)], i);
  CHECK(table.find("n999") == 999);
  table.add("n7", 42);
  CHECK(table.find("n7") == 42);
  table.clear();
  CHECK(table.find("n7") == -1);
}

}  // namespace shardsim
