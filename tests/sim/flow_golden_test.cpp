// Runs tests/golden/maxmin/*.json, or those of SHARDSIM_GOLDEN_DIR, against SimGrid's finish times.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "base/json.hpp"
#include "sim/network/flow_simulation.hpp"
#include "tests/base/golden_files.hpp"

namespace {

using namespace shardsim;  // NOLINT(google-build-using-namespace)
using network::Crossing;
using network::FlowId;
using network::FlowTime;

constexpr double tolerance = 1e-9;  // relative

struct Recorded {
  std::vector<Crossing> crossings;
  Bytes bytes{0};
  Seconds start{0};
  Seconds finish{0};
};

struct Case {
  std::vector<Bandwidth> capacities;
  std::vector<Recorded> flows;
};

Case read(const Json& document) {
  Case result;
  std::map<std::string, network::LinkId> names;
  for (const Json& link : document.at("links")) {
    REQUIRE(link.at("latency_s") == 0.0);
    names[link.at("name")] = static_cast<network::LinkId>(names.size());
    result.capacities.emplace_back(link.at("bandwidth_Bps").get<double>());
  }
  for (const Json& flow : document.at("flows")) {
    Recorded recorded;
    for (const Json& link : flow.at("route")) {
      recorded.crossings.push_back({names.at(link.get<std::string>())});
    }
    recorded.bytes = Bytes(flow.at("bytes").get<std::int64_t>());
    recorded.start = Seconds(flow.at("start_s").get<double>());
    recorded.finish = Seconds(flow.at("finish_s").get<double>());
    result.flows.push_back(std::move(recorded));
  }
  return result;
}

std::vector<double> finish_times(const Case& of) {
  network::FlowSimulation simulation(of.capacities);
  for (std::size_t i = 0; i < of.flows.size(); ++i) {
    const Recorded& flow = of.flows[i];
    const FlowId id =
        simulation.start(network::round_up_to_flow_time(flow.start), flow.bytes, flow.crossings);
    REQUIRE(id == static_cast<FlowId>(i));
  }
  std::vector<double> times(of.flows.size(), -1);
  while (simulation.advance()) {
    for (const FlowId id : simulation.finished()) {
      times[static_cast<std::size_t>(id)] = network::to_seconds(simulation.now()).count();
    }
  }
  return times;
}

}  // namespace

TEST_CASE("flows end when SimGrid's do", "[golden]") {
  for (const std::string& file : test::golden_files(test::golden_folder("maxmin"), ".json")) {
    const Case of = read(load_json(file));
    const std::vector<double> times = finish_times(of);
    test::Comparison comparison;
    for (std::size_t i = 0; i < times.size(); ++i) {
      const double expected = of.flows[i].finish.count();
      if (std::abs(times[i] - expected) <= tolerance * expected) {
        ++comparison.passed;
      } else {
        comparison.failures.push_back(
            fmt::format("flow {}: expected {:.17g} s, actual {:.17g} s", i, expected, times[i]));
      }
    }
    test::report(file, comparison);
    CHECK(comparison.failures.empty());
  }
}
