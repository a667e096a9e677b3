// Plans between meshes on a network of round numbers (cross_mesh_helpers.hpp). Byte counts are
// derived beside the checks.
#include "sharding/cross_mesh_reshard.hpp"

#include <catch2/catch.hpp>

#include "cross_mesh_helpers.hpp"
#include "sharding/cross_mesh_candidates.hpp"
#include "sharding/cross_mesh_pathways.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

const Mesh fsdp8({{"fsdp", 8}});
const Mesh dp2_tp4({{"dp", 2}, {"tp", 4}});

std::vector<Message> messages_of(const ReshardTask& task, std::int64_t per_domain) {
  std::vector<Message> messages;
  for_each_message(
      task.shape, size_of(task.dtype), {task.source_mesh, task.source},
      {task.target_mesh, task.target}, [&](std::int64_t device) { return device / per_domain; },
      [&](const Message& message) { messages.push_back(message); });
  return messages;
}

// A candidate by its spec on the mesh, parts of axes as fsdp:(1)4.
bool is_candidate(const std::vector<Sharding>& candidates, const Mesh& mesh,
                  const std::string& text) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [&](const Sharding& candidate) { return to_string(candidate, mesh) == text; });
}

}  // namespace

TEST_CASE("Index ranges: row-major over the axes of a dimension, the last chunks short or empty") {
  const Mesh mesh({{"a", 2}, {"b", 2}});
  const auto ranges = [&](const std::string& spec, std::int64_t position) {
    return index_ranges({5}, to_sharding(parse_partition_spec(spec, {}), 1, mesh, {}), mesh,
                        position)[0];
  };
  // 5 rows in chunks of 2: [0, 2) [2, 4) [4, 5) and nothing. (b, a): b is major.
  CHECK(ranges("(a, b)", 0) == DimRange{0, 2});
  CHECK(ranges("(a, b)", 2) == DimRange{4, 5});
  CHECK(ranges("(a, b)", 3) == DimRange{5, 5});
  CHECK(ranges("(b, a)", 1) == DimRange{4, 5});
}

TEST_CASE("Direct: every target device fetches its shard from holders that take turns") {
  // 16 elements, whole on 4 devices, to halves on 2 x 2 others: 4 messages of 8 elements, each from
  // another holder.
  const Mesh four({{"a", 4}});
  const Mesh two_by_two({{"dp", 2}, {"tp", 2}});
  const auto found =
      messages_of(task({16}, four, "None", two_by_two, "tp", /*shared=*/false), /*per_domain=*/4);
  REQUIRE(found.size() == 4);
  for (std::int64_t i = 0; i < 4; ++i) {
    CHECK(found[static_cast<std::size_t>(i)].source == i);
    CHECK(found[static_cast<std::size_t>(i)].target == 4 + i);
    CHECK(found[static_cast<std::size_t>(i)].bytes == Bytes(16));
  }
}

TEST_CASE("Direct: the device itself first, then its own domain, then any") {
  // Whole on devices 0..3 in domains {0, 1} and {2, 3}; wanted on 0..5: 0..3 have it, 4 and 5 are
  // in a domain without and take turns.
  const auto found = messages_of(
      task({8}, Mesh({{"a", 4}}), "None", Mesh({{"b", 6}}), "None", /*shared=*/true), 2);
  const std::vector<std::int64_t> sources = {0, 1, 2, 3, 0, 1};
  REQUIRE(found.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(found[i].source == sources[i]);
  // Halves a: devices 0, 1 hold the first, 2, 3 the second; all want both. In domains of 4, device
  // 0 takes the second half from 2, device 1 from 3, and 2 and 3 the first from 0 and 1.
  const auto halves = messages_of(
      task({8}, Mesh({{"a", 2}, {"b", 2}}), "a", Mesh({{"c", 4}}), "None", /*shared=*/true), 4);
  const std::vector<std::int64_t> holders = {0, 2, 1, 3, 0, 2, 1, 3};
  REQUIRE(halves.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) CHECK(halves[i].source == holders[i]);
}

TEST_CASE("A copy crosses once and is multiplied inside, where that is cheaper") {
  // The example of the header, in 4096 x 1024: 8 MiB of bf16. Directly 8 devices fetch 2 MiB each;
  // by way of eighths 1 MiB, and the all-gather over dp brings the other.
  const ReshardTask trainer_to_sampler =
      task({4096, 1024}, fsdp8, "fsdp", dp2_tp4, "None, tp", /*shared=*/false);
  const ReshardChoice choice = plan_reshard(trainer_to_sampler, RoundCost(8));
  CHECK(choice.direct.crossing == Bytes(16 * MiB));
  CHECK(choice.direct.steps.at(0).messages == 64);
  CHECK(choice.direct.steps.at(0).received == Bytes(2 * MiB));
  CHECK(choice.direct.peak == Bytes(2 * MiB));
  REQUIRE(choice.intermediate_is_better);
  const ReshardPlan& plan = *choice.intermediate;
  CHECK(plan.crossing == Bytes(8 * MiB));
  const PlannedReshardStep& gather = plan.steps.back();
  CHECK(gather.part == ReshardPart::target);
  CHECK(gather.kind == CollectiveKind::all_gather);
  CHECK(gather.sent == Bytes(1 * MiB));
  // Its eighth and its quarter.
  CHECK(gather.target_bytes == Bytes(3 * MiB));
}

TEST_CASE("The docstring of pathways: fsdp 8 to split 4 x replica 2 is looked at") {
  const auto candidates =
      source_candidates({64, 64}, to_sharding(parse_partition_spec("fsdp", {}), 2, fsdp8, {}));
  CHECK(to_string(candidates.at(0), fsdp8) == "[fsdp, -]");
  CHECK(is_candidate(candidates, fsdp8, "[fsdp:(1)4, -]"));
  CHECK(is_candidate(candidates, fsdp8, "[-, -]"));
  CHECK(is_candidate(candidates, fsdp8, "[fsdp:(1)4, fsdp:(4)2]"));
}

TEST_CASE("A dimension that its shards do not divide is gathered whole or not at all") {
  const auto candidates =
      source_candidates({10}, to_sharding(parse_partition_spec("fsdp", {}), 1, fsdp8, {}));
  REQUIRE(candidates.size() == 2);
  CHECK(to_string(candidates[0], fsdp8) == "[fsdp]");
  CHECK(to_string(candidates[1], fsdp8) == "[-]");
}

TEST_CASE("Parts of an axis are gathered alone") {
  const auto part = [](std::int64_t pre_size, std::int64_t size) {
    return AxisRef{0, pre_size, size};
  };
  // 64 rows, 8 on each device; 4 groups of 2 gather 16.
  const auto steps = reshard_parts({64}, {{{{part(1, 8)}, 1}}, {}}, {{{{part(1, 4)}, 1}}, {}});
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].kind == CollectiveKind::all_gather);
  CHECK(steps[0].axes == AxisList{part(4, 2)});
  CHECK(steps[0].elements == 16);
}

TEST_CASE("Within one mesh no transfer is needed: an all-gather does it") {
  const ReshardTask gather = task({64, 64}, fsdp8, "fsdp", fsdp8, "None", /*shared=*/true);
  // Every device is a domain of its own: single messages are dear, collectives are not.
  const ReshardChoice choice = plan_reshard(gather, RoundCost(1));
  REQUIRE(choice.intermediate_is_better);
  REQUIRE(choice.best().steps.size() == 1);
  const PlannedReshardStep& step = choice.best().steps[0];
  CHECK(step.part == ReshardPart::source);
  CHECK(step.kind == CollectiveKind::all_gather);
  CHECK(step.sent == Bytes(64 * 64 * 2 * 7 / 8));
  CHECK(step.messages == 8 * 7);
  CHECK(choice.best().crossing == Bytes(0));
}

TEST_CASE("On the same devices a piece that is there is not sent") {
  // Elastic restart with half of the devices: device i of 4 wants quarter i, the shards 2i and
  // 2i + 1 of 8. Only device 0 has one of its two; devices 1 to 3 fetch both. 7 eighths move.
  const Mesh fsdp4({{"fsdp", 4}});
  const ReshardChoice choice =
      plan_reshard(task({64}, fsdp8, "fsdp", fsdp4, "fsdp", /*shared=*/true), RoundCost(8));
  CHECK(choice.direct.crossing == Bytes(64 * 2 * 7 / 8));
  CHECK(choice.direct.peak == Bytes(16 + 32));
}

TEST_CASE("To stay costs nothing, under whatever names") {
  const Mesh mesh({{"data", 2}, {"one", 1}, {"fsdp", 4}});
  for (const std::string to : {"fsdp", "(one, fsdp)", "fsdp, one"}) {
    const ReshardChoice choice =
        plan_reshard(task({64, 64}, mesh, "fsdp", mesh, to, /*shared=*/true), RoundCost(4));
    CHECK(choice.direct.steps.empty());
    CHECK(choice.best().time == Seconds(0));
    CHECK(choice.best().peak == Bytes(64 * 64 * 2 / 4));
    CHECK_FALSE(choice.intermediate);
  }
  // Eight shards in the same order by one axis and by two.
  const ReshardChoice renamed =
      plan_reshard(task({64}, fsdp8, "fsdp", dp2_tp4, "(dp, tp)", /*shared=*/true), RoundCost(8));
  CHECK(renamed.direct.steps.empty());
}

TEST_CASE("Scalars and arrays without elements") {
  const ReshardChoice scalar =
      plan_reshard(task({}, fsdp8, "", dp2_tp4, "", /*shared=*/false), RoundCost(8));
  CHECK(scalar.direct.crossing == Bytes(8 * 2));
  const ReshardChoice empty = plan_reshard(
      task({0, 8}, fsdp8, "fsdp", dp2_tp4, "None, tp", /*shared=*/false), RoundCost(8));
  CHECK(empty.direct.steps.empty());
}

TEST_CASE("What is too large or no parameter is an error") {
  const Mesh large({{"a", 2 * most_reshard_devices}});
  CHECK_THROWS_WITH(
      plan_reshard(task({8}, large, "None", fsdp8, "None", /*shared=*/false), RoundCost(8)),
      Catch::Contains("at most 8192"));
  // 2^55 elements of 2 bytes on each of 8 devices are 2^59 bytes.
  CHECK_THROWS_WITH(plan_reshard(task({std::int64_t{1} << 55}, fsdp8, "None", fsdp8, "None",
                                      /*shared=*/true),
                                 RoundCost(8)),
                    Catch::Contains("too large"));
  ReshardTask partial = task({8}, fsdp8, "None", fsdp8, "None", /*shared=*/true);
  partial.source.partial = {fsdp8.whole(0)};
  CHECK_THROWS_WITH(plan_reshard(partial, RoundCost(8)), Catch::Contains("partial sums"));
}

namespace {

// What pathways does from one end to the other, for which it has an intermediate.
ReshardPlan pathways(const std::vector<std::int64_t>& shape, const Mesh& from,
                     const std::string& from_spec, const Mesh& to, const std::string& to_spec) {
  const IntermediateSharding intermediate = find_intermediate_sharding(
      {from, parse_partition_spec(from_spec, {})}, {to, parse_partition_spec(to_spec, {})}, {});
  const std::optional<ReshardPlan> plan = plan_pathways(
      task(shape, from, from_spec, to, to_spec, /*shared=*/false), intermediate, RoundCost(8));
  REQUIRE(plan);
  return *plan;
}

}  // namespace

TEST_CASE("Pathways' way: gather on the source, keep replica 0, transfer") {
  // The docstring's example, 64 x 64 in bf16, 8 KiB: every device of 8 gathers 7 KiB to its one,
  // device 0 sends each of the 4 its quarter.
  const ReshardPlan plan = pathways({64, 64}, Mesh({{"fsdp", 8}, {"tp", 1}}), "fsdp, tp",
                                    Mesh({{"fsdp", 1}, {"tp", 4}}), "fsdp, tp");
  REQUIRE(plan.steps.size() == 3);
  CHECK(plan.steps[0].action == ReshardAction::collective);
  CHECK(plan.steps[0].kind == CollectiveKind::all_gather);
  CHECK(plan.steps[0].sent == Bytes(7 * KiB));
  // Given and gathered.
  CHECK(plan.steps[0].source_bytes == Bytes(9 * KiB));
  CHECK(plan.steps[1].action == ReshardAction::split);
  CHECK(plan.steps[1].total == Bytes(0));
  CHECK(plan.steps[1].time == Seconds(0));
  CHECK(plan.steps[2].action == ReshardAction::transfer);
  CHECK(plan.steps[2].messages == 4);
  CHECK(plan.steps[2].sent == Bytes(8 * KiB));
  CHECK(plan.steps[2].received == Bytes(2 * KiB));
  CHECK(plan.crossing == Bytes(8 * KiB));
  CHECK(plan.peak == Bytes(9 * KiB));
  // What is donated is the gathered copy.
  CHECK(plan.donated_peak == plan.peak);
}

TEST_CASE("Pathways' replica axes come first: other shards then belong on other devices") {
  // c is the fastest axis, and gathered. Device 4 a + 2 b + c has quarter 2 a + b of the rows; in
  // the mesh [c_replica, a, b] device i has quarter i mod 4. Devices 0 and 7 have theirs, 6 fetch.
  const ReshardPlan plan = pathways({64, 64}, Mesh({{"a", 2}, {"b", 2}, {"c", 2}}), "(a, b), c",
                                    Mesh({{"t", 1}}), "t, None");
  REQUIRE(plan.steps.size() == 4);
  CHECK(plan.steps[0].kind == CollectiveKind::all_gather);
  const PlannedReshardStep& permute = plan.steps[1];
  CHECK(permute.action == ReshardAction::permute);
  CHECK(permute.messages == 6);
  CHECK(permute.total == Bytes(6 * 2 * KiB));
  // Given, gathered and permuted.
  CHECK(permute.source_bytes == Bytes(1 * KiB + 2 * KiB + 2 * KiB));
  CHECK(plan.steps[2].action == ReshardAction::split);
  // Replica 0, devices 0 to 3, has every quarter once.
  CHECK(plan.steps[3].messages == 4);
  CHECK(plan.crossing == Bytes(8 * KiB));
  // Where the gathered axis is the outermost, nothing moves within the source.
  CHECK(pathways({64, 64}, Mesh({{"c", 2}, {"a", 2}, {"b", 2}}), "(a, b), c", Mesh({{"t", 1}}),
                 "t, None")
            .steps.size() == 3);
}

TEST_CASE("Donated arrays are freed once their first step has run") {
  // 64 rows of 2 bytes, 16 bytes on each of 8; gathered on the source and sent from there, the
  // transfer still has the copy, and no longer the shard.
  const ReshardTask one = task({64}, fsdp8, "fsdp", Mesh({{"t", 1}}), "t", /*shared=*/false);
  const ReshardChoice choice = plan_reshard(one, RoundCost(8));
  CHECK(choice.direct.donated_peak == choice.direct.peak);
  // A second array that is like it: the target's device gets both; the source's had both.
  const ReshardPlan& direct = choice.direct;
  CHECK(fullest_device({&direct, &direct}, /*shared=*/false, /*donated=*/false) == Bytes(256));
  // On the same devices half of them: shards of 16 become 32. Three arrays: 48 bytes and then 32
  // for each; donated, the last one's 16 and its 32 beside the 64 of the others.
  const ReshardPlan half =
      plan_reshard(task({64}, fsdp8, "fsdp", Mesh({{"fsdp", 4}}), "fsdp", /*shared=*/true),
                   RoundCost(8))
          .direct;
  const std::vector<const ReshardPlan*> three(3, &half);
  CHECK(fullest_device(three, /*shared=*/true, /*donated=*/false) == Bytes(48 + 96));
  CHECK(fullest_device(three, /*shared=*/true, /*donated=*/true) == Bytes(16 + 96));
}

TEST_CASE("To the hosts goes every shard, or every piece once") {
  // Halves on 2 x 2 devices, each twice. 64 rows of 2 bytes.
  const Mesh mesh({{"dp", 2}, {"fsdp", 2}});
  ReshardTask copied = task({64}, mesh, "fsdp", mesh, "fsdp", /*shared=*/true);
  copied.to_host = HostShards::every;
  const ReshardPlan every = plan_reshard(copied, RoundCost(4)).direct;
  REQUIRE(every.steps.size() == 1);
  CHECK(every.steps[0].action == ReshardAction::to_host);
  CHECK(every.steps[0].copying == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(every.steps[0].sent == Bytes(64));
  CHECK(every.steps[0].total == Bytes(4 * 64));
  CHECK(every.time.count() == Approx(164e-9));
  // It is read where it lies.
  CHECK(every.peak == Bytes(64));
  copied.to_host = HostShards::once;
  const ReshardPlan once = plan_reshard(copied, RoundCost(4)).direct;
  CHECK(once.steps.at(0).copying == std::vector<std::int64_t>{0, 1});
  CHECK(once.steps.at(0).total == Bytes(2 * 64));
}

TEST_CASE("From hosts an array comes to the source's devices first") {
  ReshardTask loaded = task({64}, fsdp8, "fsdp", Mesh({{"t", 4}}), "t", /*shared=*/false);
  const ReshardPlan from_devices = plan_reshard(loaded, RoundCost(8)).direct;
  loaded.from_host = true;
  const ReshardChoice choice = plan_reshard(loaded, RoundCost(8));
  const ReshardPlan& plan = choice.direct;
  REQUIRE(plan.steps.size() == 2);
  CHECK(plan.steps[0].action == ReshardAction::from_host);
  CHECK(plan.steps[0].received == Bytes(16));
  CHECK(plan.time.count() == Approx(from_devices.time.count() + 116e-9));
  CHECK(plan.given == Bytes(0));
  CHECK(plan.steps[1].source_bytes == Bytes(16));
  // The same way is best.
  ReshardTask here = loaded;
  here.from_host = false;
  CHECK(plan_reshard(here, RoundCost(8)).priced == choice.priced);
}

TEST_CASE("Without a machine there is the direct way, without times") {
  const ReshardChoice choice = plan_reshard(
      task({64}, fsdp8, "fsdp", Mesh({{"t", 4}}), "t", /*shared=*/false), UnknownReshardCost());
  CHECK(choice.direct.crossing == Bytes(128));
  CHECK(choice.direct.time == Seconds(0));
  CHECK_FALSE(choice.intermediate);
}
