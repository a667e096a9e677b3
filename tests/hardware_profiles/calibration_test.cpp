// Calibrations: what a curve says of a size, which curve is taken, and what a file may not be.
#include "hardware_profiles/calibration.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "base/file.hpp"
#include "base/json.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "hardware_profiles/read_calibrations.hpp"
#include "tests/base/mistake.hpp"

namespace shardsim::calibration_test {
namespace {

using Catch::Equals;

CalibrationCurve curve_for(const CurveKey& key, std::int64_t rows = 1) {
  CalibrationCurve curve;
  curve.key = key;
  curve.points = {{Bytes(KiB), 1}};
  curve.rows = rows;
  return curve;
}

Calibration with_curves(const std::string& name, std::vector<CalibrationCurve> curves) {
  Calibration calibration;
  calibration.name = name;
  calibration.curves = std::move(curves);
  return calibration;
}

// The only one there is for the key.
const CalibrationCurve* found_for(const std::vector<Calibration>& calibrations,
                                  const CurveKey& key) {
  const std::optional<CurvesAround> curves = find_curves(calibrations, key);
  if (!curves) return nullptr;
  CHECK(curves->fewer == curves->more);
  return curves->fewer;
}

// Two curves, all keys there are.
Json document() {
  const Json ring = {{"region", "node"},
                     {"nodes", 1},
                     {"collective", "all-reduce"},
                     {"algorithm", "Ring"},
                     {"points", {{1024, 1.5}, {4096, 1.25}}},
                     {"rows", 7},
                     {"median_error", 0.0123},
                     {"percentile_90_error", 0.1},
                     {"tables", {"first", "second"}}};
  Json exchange = ring;
  exchange["region"] = "nodes";
  exchange["nodes"] = 16;
  exchange["collective"] = "all-to-all";
  exchange["algorithm"] = "";
  return {{"schema", "shardsim/calibration/1"},
          {"name", "mine"},
          {"title", "Nodes of \"mine\""},
          {"date", "2026-11"},
          {"regions", {"node", "nodes", "rail"}},
          {"curves", {ring, exchange}},
          {"sources", {{"first", "a page"}, {"second", "another page"}}}};
}

Calibration read(const Json& json) { return read_calibration(JsonReader(json, {"my.json", ""})); }

std::string calibration_mistake(const Json& json) {
  return testing::mistake_of([&] { return read(json); });
}

// What is said after setting the member at `pointer` to `value`.
std::string mistake_with(const std::string& pointer, const Json& value) {
  Json json = document();
  json[Json::json_pointer(pointer)] = value;
  return calibration_mistake(json);
}

}  // namespace

// log factor is linear in log size: half way from 1 KiB to 4 KiB, at 2 KiB, sqrt(1 * 4) = 2.
TEST_CASE("a factor between two points, and beyond the ends") {
  CalibrationCurve curve;
  curve.points = {{Bytes(KiB), 1}, {Bytes(4 * KiB), 4}, {Bytes(16 * KiB), 0.25}};
  CHECK(curve.factor_at(Bytes(2 * KiB)) == Approx(2));
  CHECK(curve.factor_at(Bytes(8 * KiB)) == Approx(1));  // sqrt(4 / 4)
  // A quarter of the way, 1448 B being 1 KiB times the root of 2: 4^(1/4).
  CHECK(curve.factor_at(Bytes(1448)) == Approx(std::sqrt(2.0)).epsilon(1e-3));
  for (const CurvePoint& point : curve.points) CHECK(curve.factor_at(point.bytes) == point.factor);
  CHECK(curve.factor_at(Bytes(1)) == 1);
  CHECK(curve.factor_at(Bytes(0)) == 1);
  CHECK(curve.factor_at(Bytes(GiB)) == 0.25);
}

TEST_CASE("one point holds everywhere") {
  CalibrationCurve curve;
  curve.points = {{Bytes(KiB), 1.3}};
  for (const std::int64_t bytes : {std::int64_t{1}, KiB, GiB}) {
    CHECK(curve.factor_at(Bytes(bytes)) == 1.3);
  }
}

TEST_CASE("the curve of the key goes before those that stand in") {
  const CurveKey reduce{Region::node, "all-reduce", "Ring"};
  const CurveKey tree{Region::node, "all-reduce", "Tree"};
  const CurveKey nvls{Region::node, "all-reduce", "NVLS"};
  const CurveKey gather{Region::node, "all-gather", "Ring"};
  const std::vector<Calibration> all = {with_curves(
      "c",
      {curve_for(gather, 90), curve_for(tree, 20), curve_for(nvls, 30), curve_for(reduce, 10)})};
  const auto found = [&](const CurveKey& key) { return found_for(all, key)->key; };
  CHECK(found(reduce) == reduce);
  CHECK(found(tree) == tree);
  // Of the same collective the one with the most rows, whatever all-gather has.
  CHECK(found({Region::node, "all-reduce", "NVLSTree"}) == nvls);
  CHECK(found({Region::node, "all-gather", "NVLS"}) == gather);
}

TEST_CASE("a reduce-scatter goes by the all-gather's curves unless it has its own") {
  const CurveKey reduce{Region::node, "all-reduce", "Ring"};
  const CurveKey gather{Region::node, "all-gather", "Ring"};
  const CurveKey scatter{Region::node, "reduce-scatter", "Ring"};
  const auto found = [&](std::vector<CalibrationCurve> curves) {
    return found_for({with_curves("c", std::move(curves))}, scatter)->key;
  };
  CHECK(found({curve_for(reduce), curve_for(gather)}) == gather);
  CHECK(found({curve_for(reduce), curve_for(gather), curve_for(scatter)}) == scatter);
  // Its own of another algorithm before an all-gather's.
  const CurveKey tree{Region::node, "reduce-scatter", "Tree"};
  CHECK(found({curve_for(gather), curve_for(tree)}) == tree);
  CHECK(found({curve_for(reduce)}) == reduce);
}

TEST_CASE("all-reduce and all-gather stand in for each other, by the same algorithm first") {
  const CurveKey ring{Region::nodes, "all-reduce", "Ring"};
  const CurveKey tree{Region::nodes, "all-reduce", "Tree"};
  const std::vector<Calibration> reduce = {with_curves("c", {curve_for(tree, 9), curve_for(ring)})};
  CHECK(found_for(reduce, {Region::nodes, "all-gather", "Ring"})->key == ring);
  CHECK(found_for(reduce, {Region::nodes, "all-gather", "PAT"})->key == tree);
  const CurveKey pat{Region::nodes, "all-gather", "PAT"};
  const std::vector<Calibration> gather = {with_curves("c", {curve_for(pat)})};
  CHECK(found_for(gather, ring)->key == pat);

  // Other collectives, and other parts of the machine, are not alike.
  CHECK(found_for(reduce, {Region::nodes, "all-to-all", ""}) == nullptr);
  CHECK(found_for(reduce, {Region::nodes, "collective-permute", ""}) == nullptr);
  CHECK(found_for(reduce, {Region::node, "all-reduce", "Ring"}) == nullptr);
  CHECK(found_for(reduce, {Region::rail, "all-reduce", "Ring"}) == nullptr);
  CHECK(found_for({}, ring) == nullptr);
}

// 1.2 over 2 nodes and 1.8 over 8, 4 being half way: sqrt(1.2 * 1.8).
TEST_CASE("between two numbers of nodes lies what holds between them") {
  CalibrationCurve two = curve_for({Region::nodes, "all-reduce", "Ring", 2});
  two.points = {{Bytes(KiB), 1.2}};
  CalibrationCurve eight = curve_for({Region::nodes, "all-reduce", "Ring", 8});
  eight.points = {{Bytes(64), 1.8}};
  // Many rows of another algorithm do not count.
  const CalibrationCurve tree = curve_for({Region::nodes, "all-reduce", "Tree", 4}, /*rows=*/99);
  const std::vector<Calibration> all = {with_curves("c", {eight, tree, two})};
  const auto factor = [&](std::int64_t nodes) {
    return find_curves(all, {Region::nodes, "all-reduce", "Ring", nodes})->factor_at(Bytes(KiB));
  };
  CHECK(factor(2) == 1.2);
  CHECK(factor(4) == Approx(std::sqrt(1.2 * 1.8)));
  CHECK(factor(8) == 1.8);
  CHECK(factor(1) == 1.2);
  CHECK(factor(1000) == 1.8);  // nobody has measured more than 8: as over 8
  const auto around = find_curves(all, {Region::nodes, "all-reduce", "Ring", 3});
  CHECK(around->fewer->key.nodes == 2);
  CHECK(around->more->key.nodes == 8);
  CHECK(around->reaches(Bytes(64), Bytes(64)));
  CHECK_FALSE(around->reaches(Bytes(512), Bytes(32)));
  // Either curve has the size where its own group has it: over 2 nodes 1.2 whatever it is.
  CHECK(around->factor_at(Bytes(1), Bytes(KiB)) == around->factor_at(Bytes(KiB)));
}

TEST_CASE("an algorithm's rows count over all numbers of nodes") {
  const CurveKey ring{Region::nodes, "all-reduce", "Ring", 2};
  CurveKey more_ring = ring;
  more_ring.nodes = 8;
  const CurveKey tree{Region::nodes, "all-reduce", "Tree", 4};
  const std::vector<Calibration> all = {
      with_curves("c", {curve_for(ring, 6), curve_for(tree, 10), curve_for(more_ring, 6)})};
  CHECK(found_for(all, {Region::nodes, "all-reduce", "NVLSTree", 2})->key == ring);
  CHECK(found_for(all, {Region::nodes, "all-reduce", "NVLSTree", 16})->key == more_ring);
}

TEST_CASE("the first calibration that has a curve wins, the nearest one or not") {
  const CurveKey ring{Region::node, "all-reduce", "Ring"};
  const CurveKey tree{Region::node, "all-reduce", "Tree"};
  const CurveKey other{Region::nodes, "all-reduce", "Ring"};
  const Calibration network = with_curves("network", {curve_for(other)});
  const Calibration first = with_curves("first", {curve_for(tree, 2)});
  const Calibration second = with_curves("second", {curve_for(ring, 99)});
  const std::vector<Calibration> list = {network, first, second};
  CHECK(found_for(list, ring) == &list[1].curves[0]);
  CHECK(found_for(list, other) == &list[0].curves[0]);
}

TEST_CASE("a calibration's text reads back to the same") {
  const Calibration calibration = read(document());
  REQUIRE(calibration.curves.size() == 2);
  CHECK(calibration.curves[0].key == CurveKey{Region::node, "all-reduce", "Ring"});
  CHECK(calibration.curves[1].key == CurveKey{Region::nodes, "all-to-all", "", 16});
  CHECK(calibration.curves[0].points[1].bytes == Bytes(4096));
  CHECK(calibration.curves[0].points[1].factor == 1.25);
  CHECK(calibration.regions == std::vector{Region::node, Region::nodes, Region::rail});
  CHECK(calibration.sources[1].table == "second");
  CHECK(calibration.sources[1].source == "another page");

  // The document that was read says all there is to know of it.
  const std::string text = calibration_text(calibration);
  CHECK(parse_json(text, "text") == document());
  CHECK(calibration_to_json(read(parse_json(text, "text"))) == document());

  const Calibration bare = with_curves("bare", {});
  CHECK(calibration_to_json(read(parse_json(calibration_text(bare), "text"))) ==
        calibration_to_json(bare));
}

TEST_CASE("how good a calibration is may stand in its file") {
  Json json = document();
  json["curves"][0]["points"][1] = Json::parse("[4096, 1.25, 1.1, 1.5, 3]");
  json["errors_by_size"] = Json::parse("[[65536, 12, 0.03, 0.2], [1048576, 4, 0.01, 0.02]]");
  json["held_out"] = Json::parse(
      "{\"tables\": {\"first\": [12, 0.1, 0.3]}, \"by_size\": [[65536, 12, 0.1, 0.3]]}");
  json["suspicious"] = {{"second", "slow"}};
  const Calibration calibration = read(json);
  CHECK_FALSE(calibration.curves[0].points[0].interval);
  CHECK(calibration.curves[0].points[1].interval == FactorInterval{1.1, 1.5, 3});
  REQUIRE(calibration.errors_by_size.size() == 2);
  CHECK(calibration.errors_by_size[1].from == Bytes(MiB));
  CHECK(calibration.errors_by_size[1].rows == 4);
  CHECK(calibration.errors_by_size[1].percentile_90 == 0.02);
  REQUIRE(calibration.held_out.tables.size() == 1);
  CHECK(calibration.held_out.tables[0].table == "first");
  CHECK(calibration.held_out.tables[0].median == 0.1);
  CHECK(calibration.held_out.by_size.at(0).rows == 12);
  CHECK(calibration.suspicious.at(0).shows == "slow");
  const Json again = parse_json(calibration_text(calibration), "text");
  for (const auto& [key, value] : json.items()) CHECK(again[key] == value);
  CHECK(again.size() == json.size());
}

TEST_CASE("what is wrong with a calibration, and where") {
  CHECK(calibration_mistake(document()) == "none");
  CHECK_THAT(mistake_with("/titel", "x"),
             Equals("my.json: unknown key \"titel\", did you mean \"title\"?"));
  CHECK_THAT(mistake_with("/curves/0/point", 1),
             Equals("my.json: /curves/0: unknown key \"point\", did you mean \"points\"?"));
  CHECK_THAT(mistake_with("/curves/1/points", Json::parse("[[4096, 1], [1024, 1]]")),
             Equals("my.json: /curves/1/points/1: is not larger than the point before it"));
  CHECK_THAT(mistake_with("/curves/1/points", Json::parse("[[4096, 1], [4096, 2]]")),
             Equals("my.json: /curves/1/points/1: is not larger than the point before it"));
  CHECK_THAT(mistake_with("/curves/0/points", Json::array()),
             Equals("my.json: /curves/0/points: is empty"));
  CHECK_THAT(mistake_with("/curves/0/points/0", Json::parse("[1024]")),
             Equals("my.json: /curves/0/points/0: is not a point, expected [bytes, factor] or "
                    "[bytes, factor, low, high, tables]"));
  CHECK_THAT(mistake_with("/curves/0/points/0", Json::parse("[1024, 1.5, 1.6, 2, 3]")),
             Equals("my.json: /curves/0/points/0: its factor 1.5 lies outside of 1.6 to 2"));
  CHECK_THAT(mistake_with("/errors_by_size", Json::parse("[[65536, 3, 0.1]]")),
             Equals("my.json: /errors_by_size/0: expected [bytes, rows, median, 90th percentile]"));
  CHECK_THAT(
      mistake_with("/held_out", Json::parse("{\"tables\": {\"a\": [1, 2]}, \"by_size\": []}")),
      Equals("my.json: /held_out/tables/a: expected [rows, median, 90th percentile]"));
  CHECK_THAT(
      mistake_with("/curves/0/points/0/1", 0),
      Equals("my.json: /curves/0/points/0/1: 0 is not a factor, must be above 0 and below 1e+06"));
  CHECK_THAT(
      mistake_with("/curves/0/points/0/1", -1.5),
      Equals(
          "my.json: /curves/0/points/0/1: -1.5 is not a factor, must be above 0 and below 1e+06"));
  CHECK_THAT(mistake_with("/curves/0/median_error", -0.1),
             Equals("my.json: /curves/0/median_error: is not an error, must not be negative"));
  CHECK_THAT(
      mistake_with("/curves/0/region", "nods"),
      Equals("my.json: /curves/0/region: unknown value \"nods\"; known are node, nodes, rail, "
             "did you mean \"node\"?"));
  CHECK_THAT(mistake_with("/regions/2", "planet"),
             Equals("my.json: /regions/2: unknown value \"planet\"; known are node, nodes, rail"));
  Json twice = document();
  twice["curves"].push_back(twice["curves"][0]);
  CHECK_THAT(
      calibration_mistake(twice),
      Equals("my.json: /curves/2: is the second curve for the same region, nodes, collective and "
             "algorithm"));
}

// Of a path relative to the file that names it, from wherever the program runs.
TEST_CASE("a path is a calibration") {
  const std::string folder = SHARDSIM_BINARY_DIR "/tests/calibration_paths/";
  std::filesystem::create_directories(folder + "measured");
  write_file(folder + "measured/mine.json", document().dump());
  const Json profile = {{"schema", "shardsim/profile/1"},
                        {"name", "cluster"},
                        {"title", "ours"},
                        {"extends", "dgx-h100"},
                        {"calibration", {"measured/mine.json", "h100-infiniband"}}};
  write_file(folder + "cluster.json", profile.dump());
  const auto names = [](const std::string& file) {
    std::vector<std::string> result;
    for (const Calibration& one : load_profile(file, {}).calibrations) result.push_back(one.name);
    return result;
  };
  const std::vector<std::string> expected = {"mine", "h100-infiniband"};
  CHECK(names(folder + "cluster.json") == expected);
  // One that extends it from elsewhere.
  const Json other = {{"schema", "shardsim/profile/1"},
                      {"name", "other"},
                      {"title", "theirs"},
                      {"extends", "../cluster.json"}};
  write_file(folder + "measured/other.json", other.dump());
  CHECK(names(folder + "measured/other.json") == expected);
  const Json missing = "measure/mine.json";
  CHECK_THROWS_WITH(
      read_calibrations(JsonReader(missing, {folder + "cluster.json", "/calibration"})),
      folder + "measure/mine.json: cannot be read: No such file or directory");
}

// Refitted under the name of a shipped one it is another.
TEST_CASE("what is written of a profile names shipped calibrations alone") {
  Profile profile = load_profile("dgx-h100", {});
  CHECK(profile_to_json(profile)["calibration"][0] == "h100-nvswitch");
  profile.calibrations[0].curves[0].points[0].factor *= 2;
  CHECK(profile_to_json(profile)["calibration"][0].is_object());
}

TEST_CASE("shipped calibrations are found by name") {
  const Calibration shipped = load_calibration("h100-nvswitch", {});
  CHECK(shipped.name == "h100-nvswitch");
  CHECK(is_shipped(shipped));
  CHECK_FALSE(is_shipped(read(document())));
  CHECK_THROWS_WITH(load_calibration("h100-nvswich", {"a.json", "/calibration/0"}),
                    "a.json: /calibration/0: unknown calibration \"h100-nvswich\", did you mean "
                    "\"h100-nvswitch\"?");
}

}  // namespace shardsim::calibration_test
