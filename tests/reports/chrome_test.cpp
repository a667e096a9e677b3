// Chrome's traces read back by a JSON parser and held to what the simulation says.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "base/json.hpp"
#include "reports/traces/chrome.hpp"
#include "traced.hpp"

namespace shardsim::chrome_test {
namespace {

TEST_CASE("Chrome's format has the same slices, to the picosecond") {
  for (const Prediction* prediction : traced::examples()) {
    const ProgramResult& result = prediction->result.programs[0];
    const auto trace = trace_of(*prediction);
    const Json document = Json::parse(chrome_trace(trace));
    std::int64_t compute = 0;
    std::int64_t peak = 0;
    std::map<std::int64_t, std::string> flows;
    for (const Json& event : document.at("traceEvents")) {
      const std::string phase = event.at("ph");
      CHECK(event.at("pid") >= 1);
      if (phase == "X" && event.at("tid") == 0) {
        compute += std::llround(event.at("dur").get<double>() * 1e6);
      }
      if (phase == "C" && event.at("name") == "memory") {
        std::int64_t bytes = 0;
        for (const Json& value : event.at("args")) bytes += value.get<std::int64_t>();
        peak = std::max(peak, bytes);
      }
      if (phase == "s" || phase == "f") flows[event.at("id")] += phase;
    }
    CHECK(compute == (result.compute_time + result.contention_time).count());
    CHECK(peak == result.peak.count());
    REQUIRE_FALSE(flows.empty());
    CHECK(flows.size() == trace.flows.size());
    for (const auto& [id, phases] : flows) CHECK(phases == "sf");
  }
}

}  // namespace
}  // namespace shardsim::chrome_test
