// Reshards on machines, and the files that describe them. Times are worked out from the terms of
// the profile beside the checks.
#include "experiments/reshard_experiment.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.hpp"
#include "base/json.hpp"

using namespace shardsim;

namespace {

Json array(const std::string& from_mesh, const std::string& from, const std::string& to_mesh,
           const std::string& to, const std::string& devices, const std::string& machine) {
  return {{"shape", "4096x14336"},
          {"from", {{"mesh", from_mesh}, {"spec", from}}},
          {"to", {{"mesh", to_mesh}, {"spec", to}}},
          {"devices", devices},
          {"machine", machine}};
}

ReshardPlan direct(const Json& document) {
  return predict_reshard(read_reshard(document, "test")).groups.at(0).choice.direct;
}

constexpr double array_bytes = 4096.0 * 14336 * 2;

const Json tree = {
    {"schema", "shardsim/parameter-tree/1"},
    {"mesh", {{"fsdp", 8}}},
    {"parameters",
     {{"a/kernel", {{"shape", {64, 32}}, {"dtype", "bfloat16"}, {"spec", {"fsdp", nullptr}}}},
      {"b/kernel", {{"shape", {64, 32}}, {"dtype", "bfloat16"}, {"spec", {"fsdp", nullptr}}}},
      {"bias", {{"shape", {32}}, {"dtype", "float32"}, {"spec", Json::array()}}}}}};

Json with_specs(const Json& from, const Json& to) {
  return {{"tree", tree},
          {"from", {{"specs", from}}},
          {"to", {{"mesh", "tp=4"}, {"specs", to}}},
          {"machine", "dgx-h100"}};
}

}  // namespace

TEST_CASE("a transfer between nodes takes what the busiest NIC takes, and a latency per message") {
  const Profile profile = load_profile("dgx-h100", {});
  const auto& cluster = std::get<ClusterProfile>(profile.network);
  const double nic =
      cluster.scale_out->bandwidth.value.count() * cluster.scale_out->efficiency.value;
  // Four samplers take a quarter each, in 8 pieces; eight trainers send an eighth each.
  const ReshardPlan plan =
      direct(array("fsdp=8", "fsdp", "tp=4", "None, tp", "disjoint", "dgx-h100"));
  const double expected = profile.collective_launch.value.count() +
                          8 * cluster.scale_out->latency.value.count() + array_bytes / 4 / nic;
  CHECK(plan.time.count() == Approx(expected));
  CHECK(plan.crossing == Bytes(4096 * 14336 * 2));
}

TEST_CASE("within a node the transfer goes over its switches, at once with the NICs") {
  const Profile profile = load_profile("dgx-h100", {});
  const auto& cluster = std::get<ClusterProfile>(profile.network);
  const double port = cluster.scale_up.bandwidth.value.count() * cluster.scale_up.efficiency.value;
  // Trainers on 0..3, samplers on 4..7 of one node: a quarter each, in one piece.
  const ReshardPlan plan =
      direct(array("fsdp=4", "fsdp", "fsdp=4", "fsdp", "disjoint", "dgx-h100"));
  CHECK(plan.time.count() ==
        Approx(profile.collective_launch.value.count() + cluster.scale_up.latency.value.count() +
               array_bytes / 4 / port));
}

TEST_CASE("a target mesh that begins inside a node has its collectives over the nodes it lies in") {
  // 12 trainers fill one node and half of the next; 8 samplers lie on 12..19, in two nodes. The
  // same samplers behind 8 trainers lie in one node: their all-gather is quicker.
  const auto gather_time = [](std::int64_t trainers) {
    const Mesh samplers({{"dp", 8}});
    const MachineReshardCost cost(load_profile("dgx-h100", {}),
                                  {Mesh({{"fsdp", trainers}}), samplers, /*shared=*/false},
                                  std::nullopt, {});
    Collective collective;
    collective.kind = CollectiveKind::all_gather;
    collective.axes = {samplers.whole(0)};
    collective.payload = Bytes(64 * MiB);
    return cost.collective(ReshardPart::target, collective)->count();
  };
  CHECK(gather_time(8) == Approx(gather_time(16)));
  CHECK(gather_time(12) > gather_time(8));
}

TEST_CASE("on a torus devices are chips, and messages are routed") {
  // A slice of 4x4 without wraparound. All stays where it is when both meshes are laid alike.
  CHECK(direct(array("fsdp=16", "fsdp", "fsdp=16", "fsdp", "shared", "tpu-v5e")).steps.empty());
  const ReshardPlan plan = direct(array("a=4,b=4", "a, b", "a=4,b=4", "b, a", "shared", "tpu-v5e"));
  const Profile profile = load_profile("tpu-v5e", {});
  const LinkProfile& link = std::get<TorusProfile>(profile.network).link;
  // A transpose of the grid: chip (x, y) sends its shard to (y, x), x first. From (3, y) and so on
  // the link into (y, y) along a row carries the messages of all chips beyond: 3 at the corner, and
  // the longest way is 6 hops.
  CHECK(plan.steps.at(0).messages == 12);
  const double rate = link.bandwidth.value.count() * link.efficiency.value;
  CHECK(plan.time.count() == Approx(profile.collective_launch.value.count() +
                                    6 * link.latency.value.count() + 3 * array_bytes / 16 / rate));
}

TEST_CASE("a torus has no word on what is between slices") {
  CHECK_THROWS_WITH(direct(array("fsdp=16", "fsdp", "tp=4", "tp", "disjoint", "tpu-v5e")),
                    Catch::Contains("devices must be shared"));
  CHECK_THROWS_WITH(direct(array("fsdp=16", "fsdp", "tp=4", "tp", "shared", "tpu-v5e")),
                    Catch::Contains("do not lie on the same slice"));
}

TEST_CASE("a tree's specs come by pattern, by name, or from the tree") {
  const Json by_pattern = {{{"pattern", "kernel$"}, {"spec", "None, tp"}},
                           {{"pattern", ""}, {"spec", Json::array()}}};
  const Json by_name = {{"a/kernel", "None, tp"}, {"b/kernel", {nullptr, "tp"}}, {"bias", ""}};
  for (const Json& to : {by_pattern, by_name}) {
    const ReshardExperiment experiment = read_reshard(with_specs("recorded", to), "test");
    CHECK(experiment.source.mesh == Mesh({{"fsdp", 8}}));
    CHECK(to_string(experiment.source.specs.at(0)) == "P(fsdp, None)");
    CHECK(to_string(experiment.target.specs.at(1)) == "P(None, tp)");
    CHECK(to_string(experiment.target.specs.at(2)) == "P()");
  }
  const Json too_few = {{{"pattern", "kernel$"}, {"spec", "None, tp"}}};
  CHECK_THROWS_WITH(read_reshard(with_specs("recorded", too_few), "test"),
                    Catch::Contains("no pattern is found in \"bias\""));
  CHECK_THROWS_WITH(read_reshard(with_specs("recorded", {{"c/kernel", ""}}), "test"),
                    Catch::Contains("c/kernel"));
}

TEST_CASE("leaves that are alike are planned once and counted all") {
  const Json to = {{{"pattern", "kernel$"}, {"spec", "None, tp"}},
                   {{"pattern", ""}, {"spec", Json::array()}}};
  const ReshardPrediction prediction =
      predict_reshard(read_reshard(with_specs("recorded", to), "test"));
  REQUIRE(prediction.groups.size() == 2);
  CHECK(prediction.groups[0].leaves == std::vector<std::size_t>{0, 1});
  const ReshardTotals& totals = prediction.totals;
  CHECK(totals.bytes == Bytes(2 * 64 * 32 * 2 + 32 * 4));
  // A sampler holds a quarter of either kernel and the whole bias.
  CHECK(totals.target_shard == Bytes(2 * 64 * 32 * 2 / 4 + 32 * 4));
  CHECK(totals.direct_time.count() == Approx(2 * prediction.groups[0].choice.direct.time.count() +
                                             prediction.groups[1].choice.direct.time.count()));
  CHECK(totals.time <= totals.direct_time);
}

TEST_CASE("pathways' answer stands beside the plan") {
  const ReshardPrediction found = predict_reshard(read_reshard(
      array("fsdp=8,tp=1", "fsdp, tp", "fsdp=1,tp=4", "fsdp, tp", "disjoint", "dgx-h100"), "test"));
  // The docstring's example; a full gather, as the function does it today (rules/pathways.hpp).
  REQUIRE(found.groups[0].pathways.intermediate);
  CHECK(to_string(found.groups[0].pathways.intermediate->spec) == "P(fsdp_intermediate_split, tp)");
  const ReshardPrediction none = predict_reshard(
      read_reshard(array("fsdp=8", "fsdp", "fsdp=8", "fsdp", "disjoint", "dgx-h100"), "test"));
  CHECK(none.groups[0].pathways.error_type == "NoIntermediateShardingError");
  CHECK(none.groups[0].pathways.reason == "the source has 8 shards, not more than the target's 8");
}

TEST_CASE("every reshard among the examples says what it teaches and has a plan") {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SHARDSIM_SOURCE_DIR "/examples/reshard")) {
    const std::string path = entry.path().string();
    INFO(path);
    CHECK(read_file(path).rfind("// ", 0) == 0);
    const ReshardPrediction prediction = predict_reshard(read_reshard(load_json(path), path));
    CHECK(prediction.totals.time <= prediction.totals.direct_time);
    ++count;
  }
  CHECK(count > 0);
}
