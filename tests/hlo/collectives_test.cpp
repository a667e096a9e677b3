// Facts of public HLO: parser and estimator tests of openxla/xla, jax issue 25010, profiling.md of
// jax-ml/scaling-book. The instructions are written anew with the same shapes and groups.
#include "hlo/collectives.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "fixture.hpp"

namespace shardsim {
namespace {

HloCollective read(const HloModule& module, std::string_view name) {
  return read_collective(module, test::find(module, name), devices_of(module));
}

}  // namespace

TEST_CASE("an all-gather's payload is its result, however the start wraps it") {
  // sol_latency_estimator_test.cc of openxla/xla: 32 MB in, 256 MB out.
  const HloModule module = test::module_of(
      "  %p = bf16[16000000]{0} parameter(0)\n"
      "  %s = (bf16[16000000]{0}, bf16[128000000]{0}) all-gather-start(%p), channel_id=1, "
      "replica_groups={{0,1,2,3,4,5,6,7},{8,9,10,11,12,13,14,15}}, dimensions={0}, "
      "use_global_device_ids=true\n"
      "  ROOT %d = bf16[128000000]{0} all-gather-done(%s)\n",
      16);
  const HloCollective gather = read(module, "s");
  CHECK(gather.kind == CollectiveKind::all_gather);
  CHECK(gather.payload == Bytes(256'000'000));
  CHECK(gather.groups.size() == 2);
  CHECK(gather.dtype == DType::bf16);
  CHECK(gather.reason == "s");
}

TEST_CASE("several operands are one call") {
  const HloModule module = test::module_of(
      "  %a = bf16[8]{0} parameter(0)\n"
      "  %b = bf16[4]{0} parameter(1)\n"
      "  %s = ((bf16[8]{0}, bf16[4]{0}), (bf16[64]{0}, bf16[32]{0})) all-gather-start(%a, %b), "
      "channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true\n"
      "  ROOT %d = (bf16[64]{0}, bf16[32]{0}) all-gather-done(%s)\n");
  const HloCollective gather = read(module, "s");
  CHECK(gather.payload == Bytes(192));
  CHECK(gather.parts == std::vector<CollectivePart>{{"a", Bytes(128)}, {"b", Bytes(64)}});
}

TEST_CASE("without a channel the numbers are replicas, with one and no global ids both") {
  // hlo_parser_test.cc: all-to-all f32[128,32] over replicas.
  const std::string lines =
      "  %p = f32[128,32]{1,0} parameter(0)\n"
      "  %a = f32[128,32]{1,0} all-to-all(%p), replica_groups=[4,8]<=[4,8]T(1,0), dimensions={0}\n"
      "  ROOT %r = f32[128,32]{1,0} all-reduce(%a), channel_id=1, replica_groups={{0,1}}, "
      "to_apply=%add\n";
  const HloModule module = test::module_of(lines, 1, "", ", replica_count=32");
  const HloCollective exchange = read(module, "a");
  CHECK(exchange.payload == Bytes(16384));
  CHECK(exchange.groups.at(0) == std::vector<std::int64_t>{0, 8, 16, 24, 1, 9, 17, 25});
  const HloModule both = test::module_of(lines, 2, "", ", replica_count=32");
  CHECK(read(both, "r").groups == DeviceGroups{{0, 1, 2, 3}});
}

TEST_CASE("permutes have pairs; in place they send slices") {
  const HloModule module = test::module_of(
      "  %p = f32[128,32]{1,0} parameter(0)\n"
      "  %z = s32[] constant(0)\n"
      "  %c = f32[128,32]{1,0} collective-permute(%p), channel_id=1, "
      "source_target_pairs={{0,1},{1,2},{2,3}}\n"
      "  ROOT %i = f32[128,32]{1,0} collective-permute(%c, %p, %z, %z), channel_id=2, "
      "source_target_pairs={{0,1}}, slice_sizes={{4,32}}\n");
  CHECK(read(module, "c").pairs == DevicePairs{{0, 1}, {1, 2}, {2, 3}});
  CHECK(read(module, "c").payload == Bytes(16384));
  CHECK(read(module, "i").payload == Bytes(512));
}

TEST_CASE("kinds that a plan lacks are read as the nearest, and noted") {
  const HloModule module = test::module_of(
      "  %p = bf16[1024,256]{1,0} parameter(0)\n"
      "  %s = s32[4]{0} parameter(1)\n"
      "  %r = bf16[1024,256]{1,0} ragged-all-to-all(%p, %p, %s, %s, %s, %s), "
      "replica_groups=[2,4]<=[4,2]T(1,0), channel_id=1\n"
      "  ROOT %b = bf16[1024,256]{1,0} collective-broadcast(%r), "
      "replica_groups={{0,1,2}}, channel_id=2\n");
  CHECK(read(module, "r").payload == Bytes(524288));
  CHECK(read(module, "r").groups == DeviceGroups{{0, 2, 4, 6}, {1, 3, 5, 7}});
  CHECK_FALSE(read(module, "r").note.empty());
  CHECK(read(module, "b").pairs == DevicePairs{{0, 1}, {0, 2}});
}

TEST_CASE("what a collective lacks is an error") {
  const HloModule module = test::module_of(
      "  %p = f32[8]{0} parameter(0)\n"
      "  %c = f32[8]{0} collective-permute(%p), channel_id=1\n"
      "  %t = token[] after-all()\n"
      "  ROOT %a = token[] all-reduce(%t), replica_groups={}, to_apply=%add\n");
  CHECK_THROWS_AS(read(module, "c"), InputError);
  CHECK_THROWS_AS(read(module, "a"), InputError);
}

TEST_CASE("starts are collectives, done is not") {
  CHECK(collective_opcode("all-gather-start") == std::optional<std::string_view>("all-gather"));
  CHECK_FALSE(collective_opcode("all-gather-done"));
  CHECK_FALSE(collective_opcode("copy-start"));
}

}  // namespace shardsim
