// Every algorithm on every kind of network: folding, skipping and doing without the graph change
// nothing, to the femtosecond.
#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "sim/network/algorithms/by_name.hpp"
#include "sim/network/symmetric.hpp"
#include "tests/sim/networks.hpp"

namespace shardsim::network::folding_laws_test {
namespace {

using testing::Groups;
using testing::holds;

constexpr auto kinds = std::to_array<CollectiveKind>({
    CollectiveKind::all_gather,
    CollectiveKind::reduce_scatter,
    CollectiveKind::all_reduce,
    CollectiveKind::all_to_all,
});

constexpr auto names = std::to_array<const char*>(
    {"ring", "bidirectional-ring", "multi-ring", "halving-doubling", "hierarchical", "torus", "pat",
     "double-tree", "chain", "binomial-tree", "pairwise"});

// As if the ranks, wherever they are, had the shape that the algorithm needs.
GroupOnNetwork arbitrary_shape(std::int64_t ranks) {
  GroupOnNetwork group;
  group.ranks = ranks;
  std::vector<std::int64_t> divisors;
  for (std::int64_t size = 2; size <= ranks; ++size) {
    if (ranks % size == 0) divisors.push_back(size);
  }
  group.per_leaf = *rc::gen::elementOf(divisors);
  group.dimensions = {ranks / group.per_leaf, group.per_leaf};
  return group;
}

// Nothing where the algorithm does not do the collective, or not over this many ranks.
std::optional<Schedule> arbitrary_schedule(std::int64_t ranks) {
  const CollectiveKind kind = *rc::gen::elementOf(kinds);
  const char* name = *rc::gen::elementOf(names);
  RC_TAG(std::string(name));
  try {
    return expand(name, kind, arbitrary_shape(ranks), {}).schedule();
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("folded and unfolded take the same time, to the femtosecond") {
  holds(rc::check([] {
    const NetworkGraph graph = testing::arbitrary_network();
    const Groups groups = testing::arbitrary_groups(graph.devices());
    const auto schedule = arbitrary_schedule(static_cast<std::int64_t>(groups.front().size()));
    RC_PRE(schedule.has_value());
    const auto choice = *rc::gen::element(RouteChoice::first, RouteChoice::by_destination);
    const Traffic traffic = testing::traffic_on(graph, groups, *schedule, choice);
    const Traffic folded = fold(traffic);
    RC_CLASSIFY(folded.streams.size() < traffic.streams.size());
    // One folding serves all sizes.
    for (int i = 0; i < 2; ++i) {
      const Bytes payload(*rc::gen::inRange<std::int64_t>(1, 20 * MiB));
      const FlowTime time = run(traffic, payload);
      RC_ASSERT(run(folded, payload) == time);
      RC_ASSERT(run(folded, payload, Repeats::skipped) == time);
      RC_ASSERT(run(traffic, payload, Repeats::skipped) == time);
      RC_ASSERT(latency_of(folded, payload) == latency_of(traffic, payload));
      RC_ASSERT(latency_of(traffic, payload) <= time);
    }
    RC_ASSERT(std::accumulate(folded.alike.begin(), folded.alike.end(), std::int64_t{0}) ==
              static_cast<std::int64_t>(traffic.streams.size()));
  }));
}

TEST_CASE("the bins of a link add up to what it carries, folded or not") {
  holds(rc::check([] {
    const NetworkGraph graph = testing::arbitrary_network();
    const Groups groups = testing::arbitrary_groups(graph.devices());
    const auto schedule = arbitrary_schedule(static_cast<std::int64_t>(groups.front().size()));
    RC_PRE(schedule.has_value());
    const Traffic traffic = testing::traffic_on(graph, groups, *schedule);
    const Bytes payload(*rc::gen::inRange<std::int64_t>(1, 20 * MiB));
    const auto bins = *rc::gen::inRange<std::size_t>(1, 100);
    const FlowTime time = run(traffic, payload);
    const std::vector<LinkHistory> links = links_over_time(traffic, payload, time, bins);
    std::vector<double> carried(links.size(), 0);
    for (const TrafficStream& stream : traffic.streams) {
      const Messages& kind = traffic.kinds[stream.kind];
      for (const Crossing& crossing : traffic.crossings_of(stream)) {
        carried[static_cast<std::size_t>(crossing.link)] +=
            static_cast<double>((kind.count(payload) * kind.bytes(payload)).count());
      }
    }
    const Folded folded = fold_links(traffic);
    const std::vector<LinkHistory> classes = links_over_time(folded.traffic, payload, time, bins);
    // A link moves no more than it can in a bin; sums are rounded.
    const double most =
        testing::wire.bandwidth.count() * to_seconds(time).count() / static_cast<double>(bins);
    constexpr double rounding = 1e-9;
    for (std::size_t i = 0; i < links.size(); ++i) {
      const double sum = std::accumulate(links[i].bytes.begin(), links[i].bytes.end(), 0.0);
      RC_ASSERT(std::abs(sum - carried[i]) <= rounding * carried[i]);
      const LinkHistory& of_class = classes[static_cast<std::size_t>(folded.classes[i])];
      for (std::size_t bin = 0; bin < bins; ++bin) {
        RC_ASSERT(links[i].bytes[bin] <= most * (1 + rounding));
        RC_ASSERT(std::abs(links[i].bytes[bin] - of_class.bytes[bin]) <= most * rounding);
      }
      RC_ASSERT(links[i].full == of_class.full);
      RC_ASSERT(links[i].first_full == of_class.first_full);
      RC_ASSERT(links[i].last_full == of_class.last_full);
      RC_ASSERT(links[i].full <= to_seconds(time) * (1 + rounding));
      RC_ASSERT(links[i].last_full <= to_seconds(time));
    }
  }));
}

namespace {

struct Symmetric {
  NetworkDescription network;
  NetworkGraph graph;
  Shape dimensions;  // those that the groups fill
  Groups groups;
};

NetworkDescription described(NetworkKind kind, const Shape& shape) {
  NetworkDescription network;
  network.kind = kind;
  network.shape = shape;
  network.wire = testing::wire;
  return network;
}

// On a torus the groups of any of its dimensions.
Symmetric arbitrary_torus() {
  const int dims = *rc::gen::inRange(1, 4);
  const auto shape = *rc::gen::container<Shape>(dims, rc::gen::inRange<std::int64_t>(2, 5));
  const NetworkDescription network = described(NetworkKind::torus, shape);
  std::vector<MeshAxis> axes;
  for (const std::int64_t size : shape) axes.push_back({std::to_string(axes.size()), size});
  const Mesh mesh(std::move(axes));
  const auto chosen =
      *rc::gen::suchThat(rc::gen::container<std::vector<bool>>(dims, rc::gen::arbitrary<bool>()),
                         [](const std::vector<bool>& some) {
                           return std::find(some.begin(), some.end(), true) != some.end();
                         });
  Symmetric result{network, build(network, mesh.devices(), {}), {}, {}};
  std::vector<AxisRef> parts;
  for (int dim = 0; dim < dims; ++dim) {
    if (!chosen[static_cast<std::size_t>(dim)]) continue;
    parts.push_back(mesh.whole(dim));
    result.dimensions.push_back(shape[static_cast<std::size_t>(dim)]);
  }
  for (const auto& group : mesh.groups(parts)) {
    result.groups.emplace_back(group.begin(), group.end());
  }
  return result;
}

Symmetric arbitrary_symmetric() {
  const auto kind = *rc::gen::element(NetworkKind::ring, NetworkKind::torus, NetworkKind::full,
                                      NetworkKind::switched);
  if (kind == NetworkKind::torus) return arbitrary_torus();
  const auto devices = *rc::gen::inRange<std::int64_t>(2, 20);
  const NetworkDescription network = described(kind, {});
  Symmetric result{network, build(network, devices, {}), {devices}, {}};
  result.groups = {testing::all_devices(result.graph)};
  return result;
}

}  // namespace

// Half round a ring a device is as far one way as the other; every other one goes up. On a link of
// 4 k devices k messages meet, on one of 4 k + 2 here k and there k + 1.
TEST_CASE("half round a ring every device sees the same where a fourth of them is a whole number") {
  for (const std::int64_t devices : {2, 4, 6, 8, 10, 12}) {
    CAPTURE(devices);
    const NetworkDescription network = described(NetworkKind::ring, {});
    const Lanes lanes{{Phase{{}, {Shift{0, devices / 2}}}}};
    const auto symmetric = symmetric_traffic(network, devices, {devices}, {devices}, lanes);
    CHECK(symmetric.has_value() == (devices == 2 || devices % 4 == 0));
    if (!symmetric) continue;
    const NetworkGraph graph = build(network, devices, {});
    const Traffic traffic =
        testing::traffic_on(graph, {testing::all_devices(graph)}, schedule_of({devices}, lanes));
    CHECK(run(*symmetric, Bytes(MiB)) == run(traffic, Bytes(MiB)));
  }
}

TEST_CASE("what is folded without the graph takes the time of the graph") {
  holds(rc::check([] {
    const Symmetric on = arbitrary_symmetric();
    GroupOnNetwork group;
    group.kind = on.network.kind;
    group.dimensions = on.dimensions;
    group.ranks = static_cast<std::int64_t>(on.groups.front().size());
    const CollectiveKind kind = *rc::gen::elementOf(kinds);
    const char* name =
        *rc::gen::element("ring", "bidirectional-ring", "multi-ring", "torus", "pat", "pairwise");
    std::optional<Expansion> expansion;
    try {
      expansion = expand(name, kind, group, {});
    } catch (const InputError&) {
      RC_DISCARD("not for this collective");
    }
    const auto symmetric = symmetric_traffic(on.network, on.graph.devices(), on.dimensions,
                                             expansion->shape, std::get<Lanes>(expansion->steps));
    RC_PRE(symmetric.has_value());
    RC_TAG(std::string(name));
    const Traffic traffic = testing::traffic_on(on.graph, on.groups, expansion->schedule());
    const Bytes payload(*rc::gen::inRange<std::int64_t>(1, 20 * MiB));
    RC_ASSERT(run(*symmetric, payload) == run(traffic, payload));
    RC_ASSERT(run(*symmetric, payload, Repeats::skipped) == run(traffic, payload));
    RC_ASSERT(latency_of(*symmetric, payload) == latency_of(traffic, payload));
  }));
}

}  // namespace shardsim::network::folding_laws_test
