// Differences between two programs. Expectations are derived beside the programs: wire bytes of a
// ring are (n-1)/n of an all-gather's or reduce-scatter's payload, twice that for an all-reduce.
#include "hlo/diff.hpp"

#include <catch2/catch.hpp>

#include "fixture.hpp"

namespace shardsim {
namespace {

std::string gather(const std::string& name, int rows, const std::string& op_name) {
  return fmt::format(
      "  %p.{0} = f32[{1}] iota(), iota_dimension=0\n"
      "  %{0} = f32[{2}] all-gather(%p.{0}), channel_id=1, replica_groups={{{{0,1,2,3}},"
      "{{4,5,6,7}}}}, dimensions={{0}}, use_global_device_ids=true, metadata={{op_name=\"{3}\"}}\n",
      name, rows, 4 * rows, op_name);
}

std::string reduce(const std::string& opcode, int result, const std::string& op_name) {
  return fmt::format(
      "  %p.r = f32[64] iota(), iota_dimension=0\n"
      "  %r = f32[{1}] {0}(%p.r), channel_id=2, replica_groups=[4,2]<=[8], "
      "use_global_device_ids=true, dimensions={{0}}, to_apply=%add, "
      "metadata={{op_name=\"{2}\"}}\n",
      opcode, result, op_name);
}

HloDiff diff_of(const std::string& before, const std::string& after) {
  const auto summary = [](const std::string& lines) {
    return summarize_hlo(test::module_of(lines), {});
  };
  return diff_hlo(summary(before), summary(after));
}

// What holds for every difference.
void check_sums(const HloDiff& diff) {
  const auto wire = [](const HloSummary& program) {
    Bytes sum;
    for (const CollectiveUse& use : program.collectives) sum += use.key.wire_bytes() * use.count;
    return sum;
  };
  Bytes sum;
  for (const CollectiveChange& change : diff.collectives) sum += change.wire_difference();
  CHECK(sum == wire(diff.after) - wire(diff.before));
}

}  // namespace

TEST_CASE("a program does not differ from itself") {
  const std::string lines = gather("a", 8, "x") + gather("b", 16, "y");
  const HloDiff diff = diff_of(lines, lines);
  CHECK(diff.equal_collectives == 2);
  CHECK(diff.collectives.empty());
  CHECK(diff.work.empty());
  CHECK(diff.opcodes.empty());
}

TEST_CASE("collectives of other names are equal") {
  const HloDiff diff = diff_of(gather("a", 8, "x"), gather("b", 8, "y"));
  CHECK(diff.equal_collectives == 1);
  CHECK(diff.collectives.empty());
}

TEST_CASE("collectives are removed and added, the largest difference first") {
  // Removed: 4 * 64 floats = 1024 bytes, of which a ring of 4 sends 3/4. Added: 128 bytes, 3/4.
  const HloDiff diff = diff_of(gather("a", 8, "x") + gather("b", 64, "gone"),
                               gather("a", 8, "x") + reduce("all-reduce", 64, "new"));
  REQUIRE(diff.collectives.size() == 2);
  CHECK(diff.equal_collectives == 1);
  CHECK(diff.collectives[0].after.empty());
  CHECK(diff.collectives[0].wire_difference() == Bytes(-768));
  CHECK(diff.collectives[0].reasons == std::vector<std::string>{"gone"});
  CHECK(diff.collectives[1].before.empty());
  CHECK(diff.collectives[1].wire_difference() == Bytes(256));  // 2 * 1/2 of 256
  CHECK(diff.collectives[1].reasons == std::vector<std::string>{"new"});
  check_sums(diff);
}

TEST_CASE("of several equal collectives, what stays is told") {
  const HloDiff diff = diff_of(gather("a", 8, "x") + gather("b", 8, "y") + gather("c", 8, "z"),
                               gather("a", 8, "x") + gather("b", 8, "y"));
  REQUIRE(diff.collectives.size() == 1);
  CHECK(diff.equal_collectives == 2);
  CHECK(diff.collectives[0].staying == 2);
  CHECK(diff.collectives[0].before.at(0).count == 1);
  CHECK(diff.collectives[0].reasons == std::vector<std::string>{"z"});
}

TEST_CASE("another payload for the same reason is a change") {
  const HloDiff diff = diff_of(gather("a", 8, "x"), gather("a", 32, "x"));
  REQUIRE(diff.collectives.size() == 1);
  CHECK(diff.collectives[0].before.at(0).key.payload == Bytes(128));
  CHECK(diff.collectives[0].after.at(0).key.payload == Bytes(512));
  check_sums(diff);
}

TEST_CASE("another kind on the same devices for the same reason is a change") {
  const HloDiff diff =
      diff_of(reduce("all-reduce", 64, "dot"), reduce("reduce-scatter", 32, "dot"));
  REQUIRE(diff.collectives.size() == 1);
  CHECK(diff.collectives[0].before.at(0).key.kind == CollectiveKind::all_reduce);
  CHECK(diff.collectives[0].after.at(0).key.kind == CollectiveKind::reduce_scatter);
  CHECK(diff.collectives[0].wire_difference() == Bytes(-128));  // of 256 bytes, half is left
  const HloDiff elsewhere = diff_of(gather("a", 16, "dot"), reduce("all-reduce", 64, "dot"));
  CHECK(elsewhere.collectives.size() == 2);
}

TEST_CASE("collectives that were combined are one change") {
  const HloDiff diff = diff_of(gather("a", 8, "x") + gather("b", 16, "y"), gather("a", 24, "z"));
  REQUIRE(diff.collectives.size() == 1);
  CHECK(diff.collectives[0].before.size() == 2);
  CHECK(diff.collectives[0].after.size() == 1);
  CHECK(diff.collectives[0].wire_difference() == Bytes(0));
}

TEST_CASE("work is compared by op_name, loops multiplied out") {
  const auto loop = [](int times) {
    return fmt::format(
        "  %i = s32[] constant(0)\n"
        "  %x = f32[4,4] parameter(0)\n"
        "  %t = (s32[], f32[4,4]) tuple(%i, %x)\n"
        "  %w = (s32[], f32[4,4]) while(%t), condition=%cond, body=%body, "
        "backend_config={{\"known_trip_count\":{{\"n\":\"{}\"}}}}\n",
        times);
  };
  const std::string computations =
      "%cond (c: (s32[], f32[4,4])) -> pred[] {\n"
      "  %c = (s32[], f32[4,4]) parameter(0)\n"
      "  ROOT %go = pred[] constant(true)\n}\n\n"
      "%body (b: (s32[], f32[4,4])) -> (s32[], f32[4,4]) {\n"
      "  %b = (s32[], f32[4,4]) parameter(0)\n"
      "  %n = s32[] get-tuple-element(%b), index=0\n"
      "  %v = f32[4,4] get-tuple-element(%b), index=1\n"
      "  %d = f32[4,4] dot(%v, %v), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
      "metadata={op_name=\"step/dot\"}\n"
      "  ROOT %o = (s32[], f32[4,4]) tuple(%n, %d)\n}\n\n";
  const auto summary = [&](int times) {
    return summarize_hlo(test::module_of(loop(times), 8, computations), {});
  };
  const HloDiff diff = diff_hlo(summary(3), summary(5));
  REQUIRE(diff.work.size() == 1);
  CHECK(diff.work[0].op_name == "step/dot");
  CHECK(diff.work[0].before.flops == Flops(3 * 2 * 4 * 4 * 4));
  CHECK(diff.work[0].after.flops == Flops(5 * 2 * 4 * 4 * 4));
  CHECK(diff.work[0].after.bytes == Bytes(5 * 3 * 64));
  CHECK(diff.after.matmuls == diff.work[0].after);
  CHECK(diff.opcodes.empty());  // the text has as many
}

TEST_CASE("instructions are counted by opcode") {
  const HloDiff diff = diff_of(gather("a", 8, "x") + gather("b", 8, "x"), gather("a", 8, "x"));
  REQUIRE(diff.opcodes.size() == 2);
  CHECK(diff.opcodes[0].opcode == "all-gather");
  CHECK(diff.opcodes[0].before == 2);
  CHECK(diff.opcodes[0].after == 1);
  CHECK(diff.opcodes[1].opcode == "iota");
}

TEST_CASE("temporaries of a module that is not scheduled are not known") {
  const std::string text =
      "HloModule m, num_partitions=1\n\nENTRY %main (p: f32[8]) -> f32[8] {\n"
      "  %p = f32[8] parameter(0)\n  ROOT %n = f32[8] negate(%p)\n}\n";
  const HloSummary summary = summarize_hlo(HloModule::parse(text, "m.hlo"), {});
  CHECK(!summary.temporaries);
  CHECK(summary.memory.argument == Bytes(32));
  CHECK(summary.opcodes.at("negate") == 1);
}

}  // namespace shardsim
