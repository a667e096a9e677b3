// Graphs as users give them: what names and patterns stand for, by hand.
#include "hardware_profiles/network/given_graph.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "hardware_profiles/profile_io.hpp"

namespace shardsim::given_graph_test {
namespace {

using Catch::Matchers::Contains;

GivenGraph read(const Json& json) { return read_graph(JsonReader(json, {"mine.json", "/graph"})); }

std::string mistake(const Json& json) {
  try {
    (void)read(json);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Json link(const char* from, const char* to) {
  return {{"from", from}, {"to", to}, {"bandwidth", "50 GB/s"}, {"latency", "1 us"}};
}

Json with(Json json, const Json& changes) {
  json.update(changes);
  return json;
}

}  // namespace

TEST_CASE("units are as many as their count, devices are numbered as they come") {
  const Json graph = {{"units",
                       {{{"name", "host"},
                         {"count", 2},
                         {"devices", {{{"name", "gpu"}, {"count", 2}}}},
                         {"switches", {"nvswitch"}},
                         {"links", {link("gpu*", "nvswitch")}}},
                        {{"name", "box"},
                         {"devices", {"gpu"}},
                         {"switches", {"nvswitch"}},
                         {"links", {link("gpu", "nvswitch")}}}}},
                      {"switches", {"leaf"}},
                      {"devices", {"alone"}},
                      {"links", {link("*.nvswitch", "leaf"), link("alone", "leaf")}}};
  const GivenGraph given = read(graph);
  CHECK(given.devices == 6);
  CHECK(given.names == std::vector<std::string>{"alone", "host0.gpu0", "host0.gpu1", "host1.gpu0",
                                                "host1.gpu1", "box.gpu", "leaf", "host0.nvswitch",
                                                "host1.nvswitch", "box.nvswitch"});
  // 5 GPUs with their switches, 3 of these with the leaf, one device with it: both ways.
  CHECK(given.links.size() == 2 * (5 + 3 + 1));
  Router router(build(given, {}), RouteChoice::by_destination);
}

TEST_CASE("a star stands for any characters but a dot") {
  const auto nodes = [](const char* pattern) {
    const Json graph = {{"devices", {"a", "b", "a1", "a12", "xa"}},
                        {"switches", {"s"}},
                        {"links", {link("*", "*"), with(link(pattern, "s"), {{"one_way", true}})}}};
    return mistake(graph);
  };
  // Every node is joined with every other: what the pattern names is there twice.
  CHECK_THAT(nodes("xa"), Contains("from \"xa\" to \"s\" is given twice"));
  CHECK_THAT(nodes("a1*"), Contains("from \"a1\" to \"s\" is given twice"));
  CHECK_THAT(nodes("a*2"), Contains("from \"a12\" to \"s\" is given twice"));
  CHECK_THAT(nodes("y*"), Contains("/graph/links/1/from: no node is named like \"y*\""));
  const Json units = {{"units", {{{"name", "h"}, {"count", 2}, {"devices", {"g"}}}}},
                      {"links", {link("h*", "h0.g")}}};
  CHECK_THAT(mistake(units), Contains("no node is named like \"h*\""));
}

TEST_CASE("a pattern with itself is a full mesh, a count a trunk") {
  const Json graph = {{"devices", {{{"name", "gpu"}, {"count", 4}}}},
                      {"links", {with(link("gpu*", "gpu*"), {{"count", 3}})}}};
  const GivenGraph given = read(graph);
  CHECK(given.links.size() == 4 * 3);
  for (const NetworkLink& each : given.links) {
    CHECK(each.wire.bandwidth == Bandwidth(150e9));
    CHECK(each.wire.latency == Seconds(1e-6));
  }
}

TEST_CASE("devices pass on where there are no switches, or when told so") {
  const Json line = {{"devices", {"a", "b", "c"}}, {"links", {link("a", "b"), link("b", "c")}}};
  CHECK(mistake(line).empty());
  const Json with_switch = with(line, {{"switches", {"unused"}}});
  CHECK_THAT(mistake(with_switch), Contains("mine.json: /graph: c does not reach a"));
  CHECK(mistake(with(with_switch, {{"devices_forward", true}})).empty());
}

TEST_CASE("a profile with a graph is read back as it is") {
  Json document = profile_to_json(load_profile("dgx-h100", {}));
  document.erase("cluster");
  document.erase("calibration");
  document["graph"] = {{"devices", {{{"name", "gpu"}, {"count", 4}}}},
                       {"links", {link("gpu*", "gpu*")}}};
  const Profile profile = read_profile(document, "mine.json");
  CHECK(profile_to_json(profile) == document);
  const Machine machine = make_machine(profile, 4, std::nullopt, {});
  CHECK(std::get<NetworkDescription>(machine.profile.network).graph->devices == 4);
  CHECK_THROWS_WITH(make_machine(profile, 5, std::nullopt, {}),
                    Contains("the network has 4 devices, not 5"));
}

}  // namespace shardsim::given_graph_test
