// A collective over sizes: where the group lies, what it costs by the formulas of
// sim/collectives/cluster_cost.hpp and the profile's own numbers.
#include <catch2/catch.hpp>
#include <numeric>

#include "base/json.hpp"
#include "experiments/collective_experiment.hpp"
#include "tests/base/mistake.hpp"

namespace shardsim {
namespace {

using Catch::Contains;
using Catch::Equals;

CollectivePrediction predicted(const Json& document) {
  return predict_collective(read_collective(document, "test"));
}

std::string mistake(const Json& document) {
  return testing::mistake_of([&] { return predicted(document); });
}

const Json gather = {
    {"machine", "dgx-h100"}, {"kind", "all-gather"}, {"devices", 10}, {"sizes", "8GiB"}};

Json with(Json document, const Json& more) {
  document.update(more);
  return document;
}

struct Rates {
  double scale_up;
  double scale_out;
  double launch;
  double step_up;
  double step_out;
};

Rates rates_of(const char* name) {
  const Profile profile = load_profile(name, {});
  const auto& cluster = std::get<ClusterProfile>(profile.network);
  const auto rate = [](const LinkProfile& link) {
    return link.bandwidth.value.count() * link.efficiency.value;
  };
  return {rate(cluster.scale_up), rate(*cluster.scale_out), profile.collective_launch.value.count(),
          cluster.scale_up.latency.value.count(), cluster.scale_out->latency.value.count()};
}

}  // namespace

TEST_CASE("one device on each of ten nodes: the NIC carries nine tenths, nine steps across") {
  const Rates rates = rates_of("dgx-h100");
  const CollectivePrediction prediction =
      predicted(with(gather, {{"nodes", 10}, {"model", "uncalibrated"}}));
  CHECK(prediction.nodes == 10);
  CHECK(prediction.machine.devices == 80);
  REQUIRE(prediction.points.size() == 1);
  const CostBreakdown& cost = prediction.points[0].cost;
  CHECK(cost.transfer.count() == Approx(0.9 * 8 * GiB / rates.scale_out));
  CHECK(cost.latency.count() == Approx(9 * rates.step_out));
  CHECK(cost.launch.count() == rates.launch);
  CHECK_THAT(prediction.notes.at(0), Equals("1 of 8 devices on each of 10 nodes, the others idle"));
}

// 3 do not divide 8: no mesh of axes has such groups.
TEST_CASE("three of eight devices on each of two nodes: three NICs carry five sixths") {
  const Rates rates = rates_of("dgx-h100");
  const CollectivePrediction prediction =
      predicted(with(gather, {{"devices", 6}, {"nodes", 2}, {"model", "uncalibrated"}}));
  const CostBreakdown& cost = prediction.points.at(0).cost;
  CHECK(cost.transfer.count() == Approx(5.0 / 6 * 8 * GiB / (3 * rates.scale_out)));
  // Six members, two nodes: of five steps NCCL counts one across.
  CHECK(cost.latency.count() == Approx(1 * rates.step_out + 4 * rates.step_up));
}

TEST_CASE("sendrecv goes to the next in the ring, part of the nodes or all of them") {
  const Rates rates = rates_of("dgx-h100");
  const Json send =
      with(gather, {{"kind", "sendrecv"}, {"devices", 16}, {"model", "uncalibrated"}});
  // The last of a node sends to the first of the next: over its NIC, while others stay inside.
  const CostBreakdown whole = predicted(send).points.at(0).cost;
  CHECK(whole.transfer.count() == Approx(8.0 * GiB / rates.scale_out));
  const CostBreakdown half =
      predicted(with(send, {{"devices", 8}, {"nodes", 2}})).points.at(0).cost;
  CHECK(half.transfer.count() == Approx(whole.transfer.count()));
  const CostBreakdown inside = predicted(with(send, {{"devices", 8}})).points.at(0).cost;
  CHECK(inside.transfer.count() == Approx(8.0 * GiB / rates.scale_up));
}

TEST_CASE("nodes that are full, or one node, are the machine itself") {
  const Json sixteen = with(gather, {{"devices", 16}});
  const CollectivePrediction filled = predicted(sixteen);
  const CollectivePrediction said = predicted(with(sixteen, {{"nodes", 2}}));
  CHECK(filled.nodes == 2);
  CHECK(said.machine.devices == 16);
  CHECK(said.points.at(0).cost.total() == filled.points.at(0).cost.total());
  CHECK(predicted(with(gather, {{"devices", 4}, {"nodes", 1}})).machine.devices == 4);
}

// A tray of an NVL72 rack is a host of 4; the rack is one NVLink domain.
TEST_CASE("nodes are hosts where an NVLink domain has several") {
  const Json rack = with(gather, {{"machine", "gb200-nvl72"}, {"devices", 72}, {"nodes", 18}});
  const CollectivePrediction whole = predicted(rack);
  CHECK(levels_of(whole.points.at(0).cost) == std::vector{LinkLevel::scale_up});
  CHECK_THAT(whole.notes.at(0),
             Equals("18 nodes are taken for hosts of 4, of which 18 share one NVLink domain"));
  const CollectivePrediction one_each = predicted(with(rack, {{"devices", 18}}));
  CHECK(levels_of(one_each.points.at(0).cost) == std::vector{LinkLevel::scale_up});
  const CollectivePrediction two = predicted(with(rack, {{"devices", 144}, {"nodes", 36}}));
  CHECK(two.points.at(0).cost.links.back().level == LinkLevel::scale_out);
  CHECK_THAT(mistake(with(rack, {{"devices", 8}, {"nodes", 1}})),
             Equals("test: /nodes: 8 devices on 1 node, but a node of gb200-nvl72 has 4"));
}

TEST_CASE("groups that a machine cannot have") {
  CHECK_THAT(mistake(with(gather, {{"nodes", 3}})),
             Equals("test: /nodes: 10 devices do not lie evenly on 3 nodes"));
  CHECK_THAT(mistake(with(gather, {{"nodes", 1}})),
             Equals("test: /nodes: 10 devices on 1 node, but a node of dgx-h100 has 8"));
  CHECK_THAT(mistake(gather), Contains("test: /devices: 10 devices do not fill nodes of 8"));
  CHECK_THAT(mistake(with(gather, {{"devices", 1}})), Contains("must be from 2 to 1048576"));
  CHECK_THAT(mistake(with(gather, {{"devices", 0}})), Contains("must be from 2 to 1048576"));
  CHECK_THAT(mistake(with(gather, {{"machine", "tpu-v5e"}})),
             Contains("test: /devices: tpu-v5e has no slice of 10 devices"));
  CHECK_THAT(mistake(with(gather, {{"devices", 16}, {"topology", "4x4"}})),
             Contains("test: /topology: topology 4x4 is given, but dgx-h100 is a cluster"));
}

TEST_CASE("a torus is a slice, whatever its hosts") {
  const Json exchange = {
      {"machine", "tpu-v5p"}, {"kind", "all-to-all"}, {"devices", 64}, {"sizes", "64MiB"}};
  const CollectivePrediction prediction = predicted(with(exchange, {{"nodes", 16}}));
  CHECK(prediction.machine.torus->sizes == std::vector<std::int64_t>{4, 4, 4});
  CHECK_THAT(prediction.notes.at(0), Equals("16 nodes are taken for the hosts of one slice"));
  CHECK(prediction.points.at(0).cost.total() == predicted(exchange).points.at(0).cost.total());
}

TEST_CASE("kinds have the plan's names and nccl-tests'") {
  const auto kind = [](const char* name) {
    const Json json = name;
    return read_collective_kind(JsonReader(json, {"test", "/kind"}));
  };
  CHECK(kind("all-reduce") == CollectiveKind::all_reduce);
  CHECK(kind("all_gather") == CollectiveKind::all_gather);
  CHECK(kind("reduce_scatter") == CollectiveKind::reduce_scatter);
  CHECK(kind("alltoall") == CollectiveKind::all_to_all);
  CHECK(kind("sendrecv (ppermute)") == CollectiveKind::collective_permute);
  CHECK_THROWS_WITH(kind("all_redcue"),
                    "test: /kind: unknown kind of collective \"all_redcue\", "
                    "did you mean \"all_reduce\"?");
  CHECK(kind("broadcast") == CollectiveKind::broadcast);
  CHECK_THROWS_WITH(kind("gossip"),
                    "test: /kind: unknown kind of collective \"gossip\"; known are all-reduce, "
                    "all-gather, reduce-scatter, all-to-all, collective-permute, broadcast");
}

TEST_CASE("NCCL's choice is priced where its tuner makes one") {
  const Json reduce = {
      {"machine", "dgx-h100"}, {"kind", "all-reduce"}, {"devices", 8}, {"sizes", "1KiB,1GiB"}};
  const CollectivePrediction node = predicted(reduce);
  // Rings for small arrays, the switch for large ones: sim/nccl, which NCCL's prints hold.
  CHECK(node.points[0].cost.algorithm == "Ring");
  CHECK(node.points[0].cost.protocol == "LL");
  CHECK(node.points[1].cost.algorithm == "NVLS");
  CHECK(node.points[1].cost.nccl_estimate);
  CHECK(predicted(with(reduce, {{"algorithm", "tree"}})).points[1].cost.algorithm == "Tree");
  CHECK_FALSE(predicted(with(reduce, {{"kind", "all-to-all"}})).points[0].cost.nccl_estimate);
  CHECK_FALSE(predicted(with(reduce, {{"machine", "tpu-v5e"}})).points[0].cost.nccl_estimate);
}

TEST_CASE("the TPU compiler's choice is known on slices, and its scheduler's times can be had") {
  const Json gather = {
      {"machine", "tpu-v5e"}, {"kind", "all-gather"}, {"devices", 64}, {"sizes", "1MiB,64MiB"}};
  const CollectivePrediction ours = predicted(gather);
  CHECK(ours.points[0].tpu->instruction == tpu::Instruction::all_reduce);
  CHECK(ours.points[1].tpu->emitter == tpu::Emitter::all_gather_1d_imbalanced);
  const CollectivePrediction theirs = predicted(with(gather, {{"model", "tpu-scheduler"}}));
  CHECK(theirs.points[1].cost.total() == theirs.points[1].tpu->scheduler_latency);
  CHECK_THAT(mistake(with(gather, {{"model", "tpu"}})),
             Contains("test: /model: unknown value \"tpu\"; known are simulated, uncalibrated"));
  CHECK_FALSE(predicted(with(gather, {{"machine", "tpu-v3"}})).points[0].tpu);
}

// 2x2x1 of tpu7x: four devices are one of each chip, eight all of them.
TEST_CASE("a group may be one device of each chip") {
  const Json gather = {{"machine", "tpu7x"},
                       {"kind", "all-gather"},
                       {"devices", 4},
                       {"topology", "2x2x1"},
                       {"sizes", "64MiB"}};
  const CollectivePrediction part = predicted(gather);
  CHECK(part.machine.devices == 8);
  CHECK(part.notes == std::vector<std::string>{
                          "one of 2 devices of each chip; the others do the same beside it"});
  CHECK(predicted(with(gather, {{"devices", 8}})).notes.empty());
}

TEST_CASE("a network written in place is simulated, folded or not") {
  const Json ring = {{"machine", "ring(bandwidth=50GiB/s,latency=500ns)"},
                     {"kind", "all-reduce"},
                     {"devices", 64},
                     {"sizes", "64MiB"}};
  const CollectivePrediction folded = predicted(ring);
  // 126 steps of 1 MiB.
  CHECK(folded.points[0].cost.total().count() == Approx(126 * (500e-9 + 1.0 / 51200)));
  const CollectivePrediction unfolded = predicted(with(ring, {{"unfold", true}}));
  CHECK(unfolded.points[0].cost.total() == folded.points[0].cost.total());
  CHECK_THAT(mistake(with(gather, {{"unfold", true}})),
             Contains("/unfold: dgx-h100 is priced by formulas"));
  CHECK_THAT(mistake(with(ring, {{"topology", "8x8"}})), Contains("topology 8x8 is given beside"));
}

TEST_CASE("a graph of one's own is simulated, folded or not") {
  const Json exchange = {{"machine", SHARDSIM_SOURCE_DIR "/examples/topologies/two-hosts.json"},
                         {"kind", "all-to-all"},
                         {"devices", 8},
                         {"sizes", "256MiB"},
                         {"algorithm", "direct"},
                         {"links", true}};
  const CollectivePrediction folded = predicted(exchange);
  const CostBreakdown& cost = folded.points[0].cost;
  // A NIC of 50 GB/s carries what two GPUs send to four, 32 MiB each; the first bytes arrive over
  // four links of 300 ns, 1 us, 1 us and 300 ns.
  CHECK((cost.total() - cost.launch).count() == Approx(2.6e-6 + 8 * 32.0 * MiB / 50e9));
  REQUIRE(folded.links);
  CHECK(folded.links->links[0].from == "rail0");
  CHECK(folded.links->links[0].to == "host0.nic0");
  CHECK(folded.links->links[0].bytes == Bytes(256 * MiB));
  const CollectivePrediction unfolded = predicted(with(exchange, {{"unfold", true}}));
  CHECK(unfolded.points[0].cost.total() == cost.total());
  REQUIRE(unfolded.links);
  REQUIRE(folded.links->histories.size() == unfolded.links->histories.size());
  for (std::size_t i = 0; i < folded.links->histories.size(); ++i) {
    CHECK(folded.links->histories[i].links == unfolded.links->histories[i].links);
    CHECK(folded.links->histories[i].utilisation == unfolded.links->histories[i].utilisation);
  }
  CHECK_THAT(mistake(with(exchange, {{"devices", 4}})),
             Contains("/devices: the network has 8 devices, not 4"));
}

TEST_CASE("a machine with a profile is simulated when asked to, its links are shown in any case") {
  Json on_nodes = with(gather, {{"devices", 16}, {"links", true}});
  const CollectivePrediction priced = predicted(on_nodes);
  const CollectivePrediction flows = predicted(with(on_nodes, {{"model", "flows"}}));
  REQUIRE(priced.links);
  REQUIRE(flows.links);
  CHECK(priced.points[0].cost.protocol == "Simple");
  CHECK(flows.points[0].cost.algorithm == "ring");
  // The links are those of the flows.
  const CostBreakdown& cost = flows.points[0].cost;
  CHECK(priced.links->time == flows.links->time);
  CHECK(flows.links->time.count() == Approx((cost.total() - cost.launch).count()));
  CHECK(priced.links->links.size() == flows.links->links.size());
  CHECK_THAT(priced.notes.back(), Contains("links: as the model \"flows\" has them"));
  const CollectivePrediction unfolded =
      predicted(with(on_nodes, {{"model", "flows"}, {"unfold", true}}));
  CHECK(unfolded.points[0].cost.total() == cost.total());
  // Which switches there are between nodes of a cloud is not known.
  on_nodes["machine"] = "gcp-a4";
  CHECK_THAT(predicted(on_nodes).notes.back(), Contains("assumed: between nodes a switch"));
}

TEST_CASE("links of a network have names, the busiest come first") {
  const Json gather_on_tree = {
      {"machine", "fat-tree(2x2,oversubscription=2,bandwidth=1GB/s,latency=1us)"},
      {"kind", "all-to-all"},
      {"devices", 4},
      {"sizes", "4MB"},
      {"links", true}};
  const CollectivePrediction prediction = predicted(gather_on_tree);
  REQUIRE(prediction.links);
  const std::vector<LinkView::Link>& links = prediction.links->links;
  REQUIRE(links.size() == 12);
  // Both devices of a leaf send 1 MB to both of the other: 4 MB on its only wire, 3 MB on theirs.
  CHECK(links[0].from == "leaf 0");
  CHECK(links[0].to == "spine 0");
  CHECK(links[0].bytes == Bytes(4'000'000));
  CHECK(links[0].busy == Approx(4e-3 / prediction.points[0].cost.total().count()));
  CHECK(links[4].from == "device 0");
  CHECK(links[4].to == "leaf 0");
  CHECK(links[4].bytes == Bytes(3'000'000));
  CHECK_FALSE(predicted(with(gather_on_tree, {{"links", false}})).links);
}

TEST_CASE("links that carry the same at any time have one history") {
  // All links up a ring of 8 carry seven eighths of 8 MB, in seven steps of 1 ms and 1 us.
  constexpr int steps = 7;
  constexpr double carrying = steps * 1e-3;
  constexpr double time = carrying + steps * 1e-6;
  const Json around = {{"machine", "ring(bandwidth=1GB/s,latency=1us)"},
                       {"kind", "all-gather"},
                       {"devices", 8},
                       {"sizes", "8MB"},
                       {"algorithm", "ring"},
                       {"links", true}};
  const CollectivePrediction prediction = predicted(around);
  REQUIRE(prediction.links);
  const LinkView& view = *prediction.links;
  REQUIRE(view.histories.size() == 2);
  CHECK(view.histories[0].links == 8);
  CHECK(view.histories[1].links == 8);  // down: nothing
  CHECK(view.bin.count() == Approx(time / network::default_bins));
  CHECK(view.histories[0].full.count() == Approx(carrying));
  for (const LinkView::Link& link : view.links) {
    const std::vector<double>& bins = view.histories[link.history].utilisation;
    REQUIRE(bins.size() == network::default_bins);
    const double used = std::accumulate(bins.begin(), bins.end(), 0.0) / network::default_bins;
    CHECK(used == Approx(link.busy).margin(1e-6));  // bins are told to a millionth
  }
}

TEST_CASE("more links than can be followed over time are said to be") {
  // 32768 links, each a class of its own. One message of each device.
  const Json shift = {{"machine", "ring(bandwidth=1GB/s,latency=1us)"},
                      {"kind", "collective-permute"},
                      {"devices", 16384},
                      {"sizes", "1MB"},
                      {"links", true}};
  CHECK(predicted(shift).links->histories.size() == 2);
  const CollectivePrediction unfolded = predicted(with(shift, {{"unfold", true}}));
  CHECK(unfolded.links->histories.empty());
  CHECK(unfolded.links->links[0].bytes == Bytes(1'000'000));
  CHECK_THAT(unfolded.notes.back(),
             Contains("links are not followed over time: there are more than 16,384 that differ"));
}

TEST_CASE("every size of a sweep is told before it is looked at") {
  std::vector<Bytes> begun;
  const CollectiveExperiment experiment =
      read_collective(with(gather, {{"devices", 8}, {"sizes", "1KiB:1MiB:x2"}}), "test");
  static_cast<void>(predict_collective(experiment, [&](Bytes size) { begun.push_back(size); }));
  CHECK(begun == experiment.sizes);
}

// Slices of every shape that is small and legal, whole, as one device of each chip, and in groups
// that leave room for others. Broadcasts, which no TPU compiler was asked for, are refused in
// words.
TEST_CASE("every small slice of every TPU does every kind, whole and in parts") {
  const std::vector<std::pair<std::vector<const char*>, std::vector<const char*>>> machines = {
      {{"tpu7x", "tpu-v4", "tpu-v5p"}, {"2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4"}},
      {{"tpu-v5e", "tpu-v6e"}, {"2x2", "2x4", "4x4", "4x8"}},
      {{"tpu-v2"}, {"2x2", "4x4"}},
      {{"tpu-v3"}, {"2x2", "4x4", "4x8"}}};
  for (const auto& [names, shapes] : machines) {
    for (const char* name : names) {
      for (const char* shape : shapes) {
        const Json whole = {
            {"machine", name}, {"topology", shape}, {"kind", "all-gather"}, {"sizes", "1MiB"}};
        const auto all = read_collective(whole, "test").devices;
        for (std::int64_t devices = 2; devices <= all; devices *= 2) {
          for (int k = 0; k < 5; ++k) {
            const Json document = with(
                whole, {{"devices", devices}, {"kind", name_of(static_cast<CollectiveKind>(k))}});
            INFO(document.dump());
            const CollectivePrediction prediction = predicted(document);
            CHECK(prediction.machine.devices == all);
            CHECK(prediction.points.at(0).cost.total().count() > 0);
          }
          CHECK(mistake(with(whole, {{"devices", devices}, {"kind", "broadcast"}})) ==
                "/kind: what the TPU compiler makes of a broadcast is not known");
        }
      }
    }
  }
}

// 2x2x2 chips of two devices, groups of four: an axis of the mesh 2 x 4 x 2, which lies on two
// dimensions of two chips each.
TEST_CASE("a group that is part of the slice has others beside it") {
  const Json group = {{"machine", "tpu7x"},
                      {"topology", "2x2x2"},
                      {"kind", "all-gather"},
                      {"devices", 4},
                      {"sizes", "64MiB"}};
  const CollectivePrediction part = predicted(group);
  CHECK(part.notes.at(0) ==
        "an axis of 4 devices in a mesh over the slice, where jax's mesh_utils puts it; 3 groups "
        "like "
        "it work at the same time");
  // The same four chips as a slice of their own, one device of each.
  const CollectivePrediction alone = predicted(with(group, {{"topology", "2x2x1"}}));
  CHECK(part.points.at(0).cost.total().count() ==
        Approx(alone.points.at(0).cost.total().count()).epsilon(0.01));
  CHECK(mistake(with(group, {{"devices", 3}})) ==
        "test: /topology: topology 2x2x2 has 16 devices, but the mesh has 3");
  CHECK(mistake({{"machine", "tpu-v5e"},
                 {"topology", "1x1"},
                 {"kind", "all-gather"},
                 {"sizes", "1MiB"}}) ==
        "test: /topology: a slice of one device has no collectives");
  CHECK(mistake({{"machine", "dgx-h100"},
                 {"topology", "2x2"},
                 {"kind", "all-gather"},
                 {"sizes", "1MiB"}}) == "test: /topology: dgx-h100 has no slices");
}

}  // namespace shardsim
