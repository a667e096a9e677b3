// Laws of max-min fair sharing, for any flows on any links.
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/network/flow_simulation.hpp"

namespace shardsim::network::flow_laws_test {
namespace {

void holds(bool passed) { CHECK(passed); }

struct Traffic {
  std::vector<Bandwidth> capacities;
  std::vector<std::vector<Crossing>> routes;
};

Traffic arbitrary_traffic() {
  Traffic traffic;
  const int links = *rc::gen::inRange(1, 12);
  for (int i = 0; i < links; ++i) traffic.capacities.emplace_back(*rc::gen::inRange(1, 100));
  const int flows = *rc::gen::inRange(1, 30);
  for (int i = 0; i < flows; ++i) {
    std::vector<Crossing> route;
    for (LinkId link = 0; link < links; ++link) {
      if (*rc::gen::inRange(0, 3) == 0) route.push_back({link});
    }
    if (route.empty()) route.push_back({*rc::gen::inRange(0, links)});
    traffic.routes.push_back(std::move(route));
  }
  return traffic;
}

std::vector<double> loads(const Traffic& traffic, const FairShare& shares) {
  std::vector<double> load(traffic.capacities.size(), 0);
  for (std::size_t i = 0; i < traffic.routes.size(); ++i) {
    for (const Crossing& crossing : traffic.routes[i]) {
      load[static_cast<std::size_t>(crossing.link)] += shares.rate(static_cast<FlowId>(i)).count();
    }
  }
  return load;
}

FairShare settled(const Traffic& traffic) {
  FairShare shares(traffic.capacities);
  for (std::size_t i = 0; i < traffic.routes.size(); ++i) {
    shares.join(static_cast<FlowId>(i), traffic.routes[i]);
  }
  shares.update_rates();
  return shares;
}

constexpr double rounding = 1e-9;

// A link that holds a flow is full and has no flow that is faster: the allocation cannot be better
// for anyone but at the cost of someone slower (Bertsekas and Gallager, 6.5.2).
bool is_held(const Traffic& traffic, const FairShare& shares, const std::vector<double>& load,
             std::size_t flow) {
  const double rate = shares.rate(static_cast<FlowId>(flow)).count();
  const auto& route = traffic.routes[flow];
  return std::any_of(route.begin(), route.end(), [&](const Crossing& crossing) {
    const auto link = static_cast<std::size_t>(crossing.link);
    if (load[link] < traffic.capacities[link].count() * (1 - rounding)) return false;
    for (std::size_t other = 0; other < traffic.routes.size(); ++other) {
      const auto& links = traffic.routes[other];
      const bool shares_link = std::any_of(
          links.begin(), links.end(), [&](const Crossing& c) { return c.link == crossing.link; });
      if (shares_link && shares.rate(static_cast<FlowId>(other)).count() > rate * (1 + rounding)) {
        return false;
      }
    }
    return true;
  });
}

}  // namespace

TEST_CASE("no link carries more than it can, and every flow is held by a full one") {
  holds(rc::check([] {
    const Traffic traffic = arbitrary_traffic();
    const FairShare shares = settled(traffic);
    const std::vector<double> load = loads(traffic, shares);
    for (std::size_t i = 0; i < load.size(); ++i) {
      RC_ASSERT(load[i] <= traffic.capacities[i].count() * (1 + rounding));
    }
    for (std::size_t i = 0; i < traffic.routes.size(); ++i) {
      RC_ASSERT(is_held(traffic, shares, load, i));
    }
  }));
}

TEST_CASE("rates do not depend on how the present flows came about") {
  holds(rc::check([] {
    const Traffic traffic = arbitrary_traffic();
    const FairShare at_once = settled(traffic);
    FairShare one_by_one(traffic.capacities);
    const auto flows = static_cast<FlowId>(traffic.routes.size());
    for (int pass = 0; pass < 2; ++pass) {
      for (FlowId id = flows - 1; id >= 0; --id) {
        if (pass == 1 && id % 2 == 0) continue;
        if (pass == 1) one_by_one.leave(id);
        one_by_one.join(id, traffic.routes[static_cast<std::size_t>(id)]);
        one_by_one.update_rates();
      }
    }
    for (FlowId id = 0; id < flows; ++id) RC_ASSERT(one_by_one.rate(id) == at_once.rate(id));
  }));
}

TEST_CASE("copies of the traffic, side by side or as a class, have its rates to the last bit") {
  holds(rc::check([] {
    const Traffic traffic = arbitrary_traffic();
    const auto copies = *rc::gen::inRange<LinkId>(2, 5);
    const auto links = static_cast<LinkId>(traffic.capacities.size());
    // Every flow `copies` times on the same links, which are as many times faster: once as flows of
    // their own, once as classes.
    Traffic many;
    Traffic folded;
    for (const Bandwidth capacity : traffic.capacities) {
      many.capacities.push_back(capacity * static_cast<double>(copies));
    }
    folded.capacities = many.capacities;
    for (auto route : traffic.routes) {
      for (LinkId copy = 0; copy < copies; ++copy) many.routes.push_back(route);
      for (Crossing& crossing : route) crossing.flows = copies;
      folded.routes.push_back(route);
    }
    // And the traffic on links apart.
    Traffic apart;
    for (LinkId copy = 0; copy < copies; ++copy) {
      apart.capacities.insert(apart.capacities.end(), traffic.capacities.begin(),
                              traffic.capacities.end());
      for (auto route : traffic.routes) {
        for (Crossing& crossing : route) crossing.link += copy * links;
        apart.routes.push_back(std::move(route));
      }
    }
    const FairShare one = settled(traffic);
    const FairShare of_many = settled(many);
    const FairShare of_folded = settled(folded);
    const FairShare of_apart = settled(apart);
    const auto flows = static_cast<FlowId>(traffic.routes.size());
    for (FlowId id = 0; id < flows; ++id) {
      for (LinkId copy = 0; copy < copies; ++copy) {
        RC_ASSERT(of_many.rate(id * copies + copy) == of_folded.rate(id));
        RC_ASSERT(of_apart.rate(copy * flows + id) == one.rate(id));
      }
    }
  }));
}

}  // namespace shardsim::network::flow_laws_test
