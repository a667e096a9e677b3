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
                                  {Mesh({{"fsdp", trainers}}), samplers, /*shared=*/false}, {}, {});
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

TEST_CASE("fewer chips of a slice are its first ones") {
  // 8 chips of v5e, 2x4 and open; chip 2 y + x. The four of the target are y = 0 and 1, and take
  // their quarters, each two eighths, from chips 2 i and 2 i + 1: chip 0 has half of its own, chip
  // 1 has none.
  const ReshardPlan plan = direct(array("fsdp=8", "fsdp", "tp=4", "tp", "shared", "tpu-v5e"));
  const LinkProfile link = std::get<TorusProfile>(load_profile("tpu-v5e", {}).network).link;
  const double rate = link.bandwidth.value.count() * link.efficiency.value;
  REQUIRE(plan.steps.size() == 1);
  // The listed devices that shared stands for here.
  Json listed = array("fsdp=8", "fsdp", "tp=4", "tp", "shared", "tpu-v5e");
  listed.erase("devices");
  listed["to"]["devices"] = "0-3";
  listed["from"]["devices"] = {0, 1, 2, 3, 4, 5, 6, 7};
  // Row-major, where create_device_mesh may go round: the same to send, on other routes.
  const ReshardPlan by_number = direct(listed);
  CHECK(by_number.steps.at(0).messages == 7);
  CHECK(by_number.crossing == Bytes(7 * 4096 * 14336 * 2 / 8));
  // From y = 2 and 3 all four pieces come through the links between y = 1 and 2, one of each
  // column: two each way down x = 0 and x = 1.
  CHECK(by_number.time.count() >= 2 * array_bytes / 8 / rate);
}

TEST_CASE("disjoint meshes of a torus lie on two slices, which DCN joins") {
  const ReshardPlan plan = direct(array("fsdp=8", "fsdp", "tp=4", "tp", "disjoint", "tpu-v5e"));
  const Profile profile = load_profile("tpu-v5e", {});
  const LinkProfile& dcn = *std::get<TorusProfile>(profile.network).dcn;
  const double nic = dcn.bandwidth.value.count() * dcn.efficiency.value;
  // Four chips take a quarter each.
  CHECK(plan.crossing == Bytes(4096 * 14336 * 2));
  CHECK(plan.time.count() == Approx(profile.collective_launch.value.count() +
                                    dcn.latency.value.count() + array_bytes / 4 / nic));
  CHECK(plan.peak == Bytes(4096 * 14336 * 2 / 4));
  Json shaped = array("fsdp=16", "fsdp", "tp=8", "tp", "disjoint", "tpu-v5e");
  shaped["from"]["topology"] = "4x4";
  shaped["to"]["topology"] = "2x4";
  CHECK(predict_reshard(read_reshard(shaped, "test")).where == "slices of 4x4 and 2x4 over DCN");
}

TEST_CASE("a target on another slice gathers inside it what crosses once") {
  // Eight copies of the array: sent directly it crosses DCN eight times.
  const ReshardChoice choice =
      predict_reshard(
          read_reshard(array("fsdp=8", "fsdp", "dp=8", "", "disjoint", "tpu-v5e"), "test"))
          .groups.at(0)
          .choice;
  CHECK(choice.direct.crossing == Bytes(8 * 4096 * 14336 * 2LL));
  REQUIRE(choice.intermediate_is_better);
  CHECK(choice.best().crossing == Bytes(4096 * 14336 * 2));
}

TEST_CASE("on networks written in place messages are routed over its links") {
  // A ring of 8, each way 50 GiB/s: trainers on 0..3 send to the counterpart on 4..7, four hops
  // either way. Router's first choice is one of the two for all of them; each link of it carries
  // at most four shards.
  const std::string ring = "ring(bandwidth=50GiB/s,latency=500ns)";
  const ReshardPlan plan = direct(array("fsdp=4", "fsdp", "fsdp=4", "fsdp", "disjoint", ring));
  const double shard_time = array_bytes / 4 / (50.0 * 1024 * 1024 * 1024);
  const double fixed = load_profile(ring, {}).collective_launch.value.count() + 4 * 500e-9;
  CHECK(plan.time.count() >= fixed + shard_time);
  CHECK(plan.time.count() <= Approx(fixed + 4 * shard_time));
  // Through a switch every shard has links of its own.
  const std::string hub = "switch(bandwidth=50GiB/s,latency=500ns)";
  const ReshardPlan switched = direct(array("fsdp=4", "fsdp", "fsdp=4", "fsdp", "disjoint", hub));
  CHECK(switched.time.count() ==
        Approx(load_profile(hub, {}).collective_launch.value.count() + 2 * 500e-9 + shard_time));
  // Its collectives run, too. Over one wire comes a whole copy, gathered or not.
  const ReshardPrediction copies =
      predict_reshard(read_reshard(array("fsdp=4", "fsdp", "dp=4", "", "disjoint", hub), "test"));
  const ReshardChoice& choice = copies.groups.at(0).choice;
  REQUIRE(choice.intermediate);
  CHECK(choice.left_out == 0);
  CHECK(choice.direct.time <= choice.intermediate->time);
}

TEST_CASE("many messages to a device take what they take one by one") {
  // 24 trainers around a ring, a sampler on the same devices: each takes 23 pieces. Halfway round
  // and 12 hops away is the longest route. A link carries what comes from the 11 or 12 devices
  // before it for those beyond: of messages that go k hops that way k cross it; 1 + 2 + ... + 11
  // and of those that go 12 either way, all of one direction or none: 66 or 78 pieces.
  const std::string ring = "ring(bandwidth=50GiB/s,latency=500ns)";
  Json document = array("fsdp=24", "fsdp", "tp=24", "None, tp", "shared", ring);
  document["shape"] = "4608x4608";
  const ReshardPlan plan = direct(document);
  CHECK(plan.steps.at(0).messages == 24 * 23);
  const double piece_time = 192.0 * 192 * 2 / (50.0 * 1024 * 1024 * 1024);
  const double fixed = load_profile(ring, {}).collective_launch.value.count() + 12 * 500e-9;
  CHECK(plan.time.count() >= Approx(fixed + 66 * piece_time));
  CHECK(plan.time.count() <= Approx(fixed + 78 * piece_time));
}

TEST_CASE("devices that are listed are where they are said to be") {
  // Pairs within a node, and pairs between nodes.
  const auto time = [](const Json& from, const Json& to) {
    Json json = array("fsdp=2", "fsdp", "fsdp=2", "fsdp", "", "dgx-h100");
    json.erase("devices");
    json["from"]["devices"] = from;
    json["to"]["devices"] = to;
    return direct(json);
  };
  CHECK(
      time({0, 1}, {2, 3}).time.count() ==
      Approx(
          direct(array("fsdp=2", "fsdp", "fsdp=2", "fsdp", "disjoint", "dgx-h100")).time.count()));
  CHECK(time({0, 1}, {8, 9}).time > time({0, 1}, {2, 3}).time);
  CHECK(time({5, 9}, "5,9").steps.empty());
  // Turned round, both shards move, and both devices hold two.
  const ReshardPlan turned = time({5, 9}, {9, 5});
  CHECK(turned.steps.at(0).messages == 2);
  CHECK(turned.peak == Bytes(4096 * 14336 * 2));
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
  CHECK(totals.direct.time.count() == Approx(2 * prediction.groups[0].choice.direct.time.count() +
                                             prediction.groups[1].choice.direct.time.count()));
  CHECK(totals.chosen.time <= totals.direct.time);
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

TEST_CASE("pathways goes directly where it finds no intermediate, and nowhere where it fails") {
  const auto answer = [](const std::string& from_mesh, const std::string& from,
                         const std::string& to_mesh, const std::string& to) {
    return predict_reshard(
               read_reshard(array(from_mesh, from, to_mesh, to, "disjoint", "dgx-h100"), "test"))
        .groups[0]
        .pathways;
  };
  const PathwaysAnswer larger = answer("fsdp=8", "fsdp", "fsdp=8", "fsdp");
  CHECK(larger.error_type == "NoIntermediateShardingError");
  REQUIRE(larger.plan);
  CHECK(larger.plan->steps.size() == 1);
  // Shards 7 x 15 to 5 x 3: 15 is a multiple of 5, 105 of 15, no two have a factor in common; the
  // axis of 7 does not make 5 parts, which numpy's reshape refuses.
  const PathwaysAnswer raises = answer("a=7,b=15", "a, b", "c=5,d=1", "c, d");
  CHECK(raises.error_type == "ValueError");
  CHECK_FALSE(raises.plan);
}

TEST_CASE("without a machine there are bytes and pathways' answer, and no times") {
  for (const char* shape : {"4096x14336", "", "[]"}) {
    Json document = array("fsdp=8,tp=1", "fsdp, tp", "fsdp=1,tp=4", "fsdp, tp", "disjoint", "");
    document.erase("machine");
    document["shape"] = shape;
    if (std::string(shape).size() < 3) document["from"]["spec"] = document["to"]["spec"] = "";
    const ReshardPrediction prediction = predict_reshard(read_reshard(document, "test"));
    const ReshardedGroup& group = prediction.groups.at(0);
    CHECK(group.choice.direct.time == Seconds(0));
    if (std::string(shape).size() > 2) {
      CHECK(group.choice.direct.crossing == Bytes(4096 * 14336 * 2));
      REQUIRE(group.pathways.intermediate);
      CHECK(group.pathways.plan->steps.at(0).total == Bytes(8 * 7 * (4096 * 14336 * 2 / 8)));
    } else {
      // A scalar goes to each of the four.
      CHECK(group.choice.direct.crossing == Bytes(4 * 2));
      CHECK(group.pathways.error_type == "NoIntermediateShardingError");
    }
  }
  Json shaped = array("fsdp=8", "fsdp", "tp=4", "tp", "disjoint", "");
  shaped.erase("machine");
  shaped["topology"] = "2x4";
  CHECK_THROWS_WITH(predict_reshard(read_reshard(shaped, "test")),
                    Catch::Contains("no machine is named"));
}

TEST_CASE(
    "copies to hosts go over the link of the profile, and hosts have what their devices send") {
  const Profile profile = load_profile("dgx-h100", {});
  const HostLinkProfile& link = *profile.device.host_link;
  const double rate = link.bandwidth.value.count() * link.efficiency.value;
  Json document{{"shape", "4096x14336"},
                {"from", {{"mesh", "dp=2,fsdp=8"}, {"spec", "fsdp"}}},
                {"to", {{"memory", "host"}}},
                {"machine", "dgx-h100"}};
  const ReshardPrediction every = predict_reshard(read_reshard(document, "test"));
  CHECK(every.groups[0].choice.direct.time.count() ==
        Approx(link.latency.value.count() + array_bytes / 8 / rate));
  REQUIRE(every.totals.to_host);
  CHECK(every.totals.to_host->bytes == Bytes(2 * 4096 * 14336 * 2LL));
  CHECK(every.totals.to_host->hosts == 2);
  CHECK(every.totals.to_host->host == Bytes(4096 * 14336 * 2));
  // The second node has nothing that the first has not.
  document["to"]["memory"] = "checkpoint";
  const ReshardPrediction once = predict_reshard(read_reshard(document, "test"));
  CHECK(once.totals.to_host->bytes == Bytes(4096 * 14336 * 2));
  CHECK(once.totals.to_host->hosts == 1);
  // Whole on one device, which copies all of it.
  document["to"]["spec"] = "";
  const ReshardPrediction whole = predict_reshard(read_reshard(document, "test"));
  CHECK(whole.totals.to_host->device == Bytes(4096 * 14336 * 2));
  CHECK(whole.groups[0].choice.direct.steps.back().action == ReshardAction::to_host);
  CHECK(whole.groups[0].choice.direct.steps.back().time.count() ==
        Approx(link.latency.value.count() + array_bytes / rate));
}

TEST_CASE("devices that share a link to the host share its bandwidth") {
  // Two GPUs of a DGX A100 behind one PCIe switch.
  const Profile profile = load_profile("dgx-a100", {});
  const HostLinkProfile& link = *profile.device.host_link;
  REQUIRE(link.devices);
  const MachineReshardCost cost(profile, {Mesh({{"a", 8}}), Mesh({{"a", 8}}), /*shared=*/true}, {},
                                {});
  const double one = (cost.host_copies({0}, Bytes(MiB)) - link.latency.value).count();
  CHECK((cost.host_copies({0, 2, 4}, Bytes(MiB)) - link.latency.value).count() == Approx(one));
  CHECK((cost.host_copies({0, 1, 4}, Bytes(MiB)) - link.latency.value).count() == Approx(2 * one));
}

TEST_CASE("an experiment's parameters lie as its strategy says") {
  const Json document{{"tree", SHARDSIM_SOURCE_DIR "/examples/llama-3.1-8b-8xh100.json"},
                      {"variant", "fsdp+tp"},
                      {"to", {{"memory", "checkpoint"}}},
                      {"machine", "dgx-h100"}};
  const ReshardPrediction prediction = predict_reshard(read_reshard(document, ""));
  CHECK(prediction.experiment.source.mesh == Mesh({{"fsdp", 4}, {"model", 2}}));
  const ReshardTotals& totals = prediction.totals;
  // 8.03e9 parameters in bf16, each once, and from a device what it holds, all of it on one host;
  // norms lie twice and are copied from one device of each pair.
  CHECK(totals.bytes == Bytes(2 * 8030261248LL));
  CHECK(totals.to_host->bytes == totals.bytes);
  CHECK(totals.to_host->host == totals.bytes);
  CHECK(totals.to_host->device == totals.source_shard);
  CHECK(totals.chosen.crossing == Bytes(0));
}

TEST_CASE("every reshard among the examples says what it teaches and has a plan") {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SHARDSIM_SOURCE_DIR "/examples/reshard")) {
    const std::string path = entry.path().string();
    INFO(path);
    CHECK(read_file(path).rfind("// ", 0) == 0);
    const ReshardPrediction prediction = predict_reshard(read_reshard(load_json(path), path));
    CHECK(prediction.totals.chosen.time <= prediction.totals.direct.time);
    ++count;
  }
  CHECK(count > 0);
}
