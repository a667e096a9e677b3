#include "hardware_profiles/calibration.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/json.hpp"
#include "hardware_profiles/embedded_calibrations.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t largest_size = std::int64_t{1} << 50;
constexpr std::int64_t largest_cluster = std::int64_t{1} << 30;
constexpr double largest_factor = 1e6;

struct RegionName {
  Region region;
  const char* name;
};
constexpr RegionName region_names[] = {
    {Region::node, "node"}, {Region::nodes, "nodes"}, {Region::rail, "rail"}};

Region read_region(const JsonReader& json) {
  const std::string name = json.choice({"node", "nodes", "rail"});
  for (const RegionName& known : region_names) {
    if (name == known.name) return known.region;
  }
  json.fail("is no region");
}

double read_factor(const JsonReader& json) {
  const double factor = json.number();
  if (!(factor > 0 && factor < largest_factor)) {
    json.fail(
        fmt::format("{} is not a factor, must be above 0 and below {:g}", factor, largest_factor));
  }
  return factor;
}

CurvePoint read_point(const JsonReader& json) {
  const std::vector<JsonReader> parts = json.elements();
  if (parts.size() != 2 && parts.size() != 5) {
    json.fail("is not a point, expected [bytes, factor] or [bytes, factor, low, high, tables]");
  }
  CurvePoint point{Bytes(parts[0].integer(1, largest_size)), read_factor(parts[1])};
  if (parts.size() == 2) return point;
  point.interval = {read_factor(parts[2]), read_factor(parts[3]),
                    parts[4].integer(1, largest_size)};
  if (point.interval->low > point.factor || point.interval->high < point.factor) {
    json.fail(fmt::format("its factor {} lies outside of {} to {}", point.factor,
                          point.interval->low, point.interval->high));
  }
  return point;
}

double read_error(const JsonReader& json) {
  const double error = json.number();
  if (!(error >= 0)) json.fail("is not an error, must not be negative");
  return error;
}

CalibrationCurve read_curve(const JsonReader& json) {
  json.only_keys({"region", "nodes", "members_per_node", "collective", "algorithm", "points",
                  "rows", "median_error", "percentile_90_error", "tables"});
  CalibrationCurve curve;
  curve.key.region = read_region(json.at("region"));
  curve.key.nodes = json.at("nodes").integer(1, largest_cluster);
  if (const auto members = json.find("members_per_node")) {
    curve.members_per_node = members->integer(1, largest_cluster);
  }
  curve.key.collective = json.at("collective")
                             .choice({"all-reduce", "all-gather", "reduce-scatter", "all-to-all",
                                      "collective-permute", "broadcast"});
  curve.key.algorithm = json.at("algorithm").string();
  for (const JsonReader& point : json.at("points").elements()) {
    curve.points.push_back(read_point(point));
    const std::size_t n = curve.points.size();
    if (n > 1 && curve.points[n - 2].bytes >= curve.points[n - 1].bytes) {
      point.fail("is not larger than the point before it");
    }
  }
  if (curve.points.empty()) json.at("points").fail("is empty");
  curve.rows = json.at("rows").integer(0, largest_size);
  curve.median_error = read_error(json.at("median_error"));
  curve.percentile_90_error = read_error(json.at("percentile_90_error"));
  for (const JsonReader& table : json.at("tables").elements()) {
    curve.tables.push_back(table.string());
  }
  return curve;
}

Json curve_to_json(const CalibrationCurve& curve) {
  Json points = Json::array();
  for (const CurvePoint& point : curve.points) {
    Json parts = Json::array({point.bytes.count(), point.factor});
    if (point.interval) {
      parts.push_back(point.interval->low);
      parts.push_back(point.interval->high);
      parts.push_back(point.interval->tables);
    }
    points.push_back(std::move(parts));
  }
  Json json = {{"region", name_of(curve.key.region)}, {"nodes", curve.key.nodes}};
  if (curve.members_per_node > 0) json["members_per_node"] = curve.members_per_node;
  json["collective"] = curve.key.collective;
  json["algorithm"] = curve.key.algorithm;
  json["points"] = std::move(points);
  json["rows"] = curve.rows;
  json["median_error"] = curve.median_error;
  json["percentile_90_error"] = curve.percentile_90_error;
  json["tables"] = curve.tables;
  return json;
}

// [[65536, 12, 0.031, 0.2], ...]
std::vector<SizeErrors> read_size_errors(const JsonReader& json) {
  std::vector<SizeErrors> result;
  for (const JsonReader& entry : json.elements()) {
    const std::vector<JsonReader> parts = entry.elements();
    if (parts.size() != 4) entry.fail("expected [bytes, rows, median, 90th percentile]");
    result.push_back({Bytes(parts[0].integer(1, largest_size)), parts[1].integer(0, largest_size),
                      read_error(parts[2]), read_error(parts[3])});
  }
  return result;
}

Json size_errors_to_json(const std::vector<SizeErrors>& errors) {
  Json json = Json::array();
  for (const SizeErrors& size : errors) {
    json.push_back(Json::array({size.from.count(), size.rows, size.median, size.percentile_90}));
  }
  return json;
}

HeldOut read_held_out(const JsonReader& json) {
  json.only_keys({"tables", "by_size"});
  HeldOut held_out;
  for (const auto& [table, errors] : json.at("tables").members()) {
    const std::vector<JsonReader> parts = errors.elements();
    if (parts.size() != 3) errors.fail("expected [rows, median, 90th percentile]");
    held_out.tables.push_back(
        {table, parts[0].integer(0, largest_size), read_error(parts[1]), read_error(parts[2])});
  }
  held_out.by_size = read_size_errors(json.at("by_size"));
  return held_out;
}

Json held_out_to_json(const HeldOut& held_out) {
  Json tables = Json::object();
  for (const TableErrors& table : held_out.tables) {
    tables[table.table] = Json::array({table.rows, table.median, table.percentile_90});
  }
  return {{"tables", std::move(tables)}, {"by_size", size_errors_to_json(held_out.by_size)}};
}

// Lower is nearer; nothing where the curve cannot stand in.
std::optional<int> distance(const CurveKey& curve, const CurveKey& key) {
  if (curve.region != key.region) return std::nullopt;
  const int other_algorithm = curve.algorithm == key.algorithm ? 0 : 1;
  if (curve.collective == key.collective) return other_algorithm;
  if (key.collective == "reduce-scatter" && curve.collective == "all-gather") {
    return 2 + other_algorithm;
  }
  const auto is_ring_like = [](const std::string& collective) {
    return collective == "all-reduce" || collective == "all-gather" ||
           collective == "reduce-scatter";
  };
  if (!is_ring_like(curve.collective) || !is_ring_like(key.collective)) return std::nullopt;
  return 4 + other_algorithm;
}

using Curves = std::vector<const CalibrationCurve*>;

// Of one algorithm of one collective, by ascending number of nodes.
Curves nearest_curves(const Calibration& calibration, const CurveKey& key) {
  std::map<std::pair<std::string, std::string>, Curves> by_algorithm;
  for (const CalibrationCurve& curve : calibration.curves) {
    if (!distance(curve.key, key)) continue;
    by_algorithm[{curve.key.collective, curve.key.algorithm}].push_back(&curve);
  }
  const auto rows_of = [](const Curves& curves) {
    return std::accumulate(
        curves.begin(), curves.end(), std::int64_t{0},
        [](std::int64_t sum, const CalibrationCurve* curve) { return sum + curve->rows; });
  };
  const auto is_nearer = [&](const Curves& a, const Curves& b) {
    const int away_a = *distance(a.front()->key, key);
    const int away_b = *distance(b.front()->key, key);
    return away_a != away_b ? away_a < away_b : rows_of(a) > rows_of(b);
  };
  Curves nearest;
  for (auto& [algorithm, curves] : by_algorithm) {
    if (nearest.empty() || is_nearer(curves, nearest)) nearest = std::move(curves);
  }
  std::sort(nearest.begin(), nearest.end(),
            [](const auto* a, const auto* b) { return a->key.nodes < b->key.nodes; });
  return nearest;
}

CurvesAround around(const Curves& curves, std::int64_t nodes) {
  const auto more = std::find_if(curves.begin(), curves.end(),
                                 [&](const auto* curve) { return curve->key.nodes >= nodes; });
  if (more == curves.end()) return {curves.back(), curves.back(), 0};
  if (more == curves.begin() || (*more)->key.nodes == nodes) return {*more, *more, 0};
  const CalibrationCurve* fewer = *std::prev(more);
  const auto log_of = [](std::int64_t count) { return std::log(static_cast<double>(count)); };
  const double low = log_of(fewer->key.nodes);
  return {fewer, *more, (log_of(nodes) - low) / (log_of((*more)->key.nodes) - low)};
}

}  // namespace

double CalibrationCurve::factor_at(Bytes bytes) const {
  const auto after =
      std::lower_bound(points.begin(), points.end(), bytes,
                       [](const CurvePoint& point, Bytes size) { return point.bytes < size; });
  if (after == points.begin()) return points.front().factor;
  if (after == points.end()) return points.back().factor;
  const CurvePoint& low = *std::prev(after);
  const auto log_of = [](Bytes size) { return std::log(static_cast<double>(size.count())); };
  const double share =
      (log_of(bytes) - log_of(low.bytes)) / (log_of(after->bytes) - log_of(low.bytes));
  return low.factor * std::pow(after->factor / low.factor, share);
}

double CurvesAround::factor_at(Bytes of_fewer, Bytes of_more) const {
  return std::pow(fewer->factor_at(of_fewer), 1 - share) *
         std::pow(more->factor_at(of_more), share);
}

bool CurvesAround::reaches(Bytes of_fewer, Bytes of_more) const {
  return fewer->points.front().bytes <= of_fewer || more->points.front().bytes <= of_more;
}

std::optional<CurvesAround> find_curves(const std::vector<Calibration>& calibrations,
                                        const CurveKey& key) {
  for (const Calibration& calibration : calibrations) {
    const auto curves = nearest_curves(calibration, key);
    if (!curves.empty()) return around(curves, key.nodes);
  }
  return std::nullopt;
}

std::string_view name_of(Region region) {
  for (const RegionName& known : region_names) {
    if (region == known.region) return known.name;
  }
  return "?";
}

Calibration read_calibration(const JsonReader& document) {
  document.only_keys({"schema", "shardsim", "name", "title", "date", "regions", "curves", "sources",
                      "errors_by_size", "held_out", "suspicious"});
  (void)document.at("schema").choice({"shardsim/calibration/1"});
  Calibration calibration;
  calibration.name = document.at("name").string();
  calibration.title = document.at("title").string();
  calibration.date = document.at("date").string();
  for (const JsonReader& region : document.at("regions").elements()) {
    calibration.regions.push_back(read_region(region));
  }
  for (const JsonReader& curve : document.at("curves").elements()) {
    calibration.curves.push_back(read_curve(curve));
    for (std::size_t i = 0; i + 1 < calibration.curves.size(); ++i) {
      if (calibration.curves[i].key == calibration.curves.back().key) {
        curve.fail("is the second curve for the same region, nodes, collective and algorithm");
      }
    }
  }
  for (const auto& [table, source] : document.at("sources").members()) {
    calibration.sources.push_back({table, source.string()});
  }
  if (const auto errors = document.find("errors_by_size")) {
    calibration.errors_by_size = read_size_errors(*errors);
  }
  if (const auto held_out = document.find("held_out")) {
    calibration.held_out = read_held_out(*held_out);
  }
  if (const auto suspicious = document.find("suspicious")) {
    for (const auto& [table, shows] : suspicious->members()) {
      calibration.suspicious.push_back({table, shows.string()});
    }
  }
  return calibration;
}

Json calibration_to_json(const Calibration& calibration) {
  Json curves = Json::array();
  for (const CalibrationCurve& curve : calibration.curves) curves.push_back(curve_to_json(curve));
  Json regions = Json::array();
  for (const Region region : calibration.regions) regions.push_back(name_of(region));
  Json sources = Json::object();
  for (const MeasuredSource& source : calibration.sources) sources[source.table] = source.source;
  Json document = {{"schema", "shardsim/calibration/1"},
                   {"name", calibration.name},
                   {"title", calibration.title},
                   {"date", calibration.date},
                   {"regions", std::move(regions)}};
  if (!calibration.errors_by_size.empty()) {
    document["errors_by_size"] = size_errors_to_json(calibration.errors_by_size);
  }
  if (!calibration.held_out.tables.empty()) {
    document["held_out"] = held_out_to_json(calibration.held_out);
  }
  for (const SuspiciousTable& suspicious : calibration.suspicious) {
    document["suspicious"][suspicious.table] = suspicious.shows;
  }
  document["curves"] = std::move(curves);
  document["sources"] = std::move(sources);
  return document;
}

std::string calibration_text(const Calibration& calibration) {
  const Json document = calibration_to_json(calibration);
  std::string text = "{\n";
  for (const char* key :
       {"schema", "name", "title", "date", "regions", "errors_by_size", "held_out", "suspicious"}) {
    if (document.contains(key)) text += fmt::format("  \"{}\": {},\n", key, document[key].dump());
  }
  text += "  \"curves\": [";
  for (const Json& curve : document["curves"]) {
    text += fmt::format("{}\n    {}", &curve == &document["curves"][0] ? "" : ",", curve.dump());
  }
  text += "\n  ],\n  \"sources\": {";
  bool first = true;
  for (const auto& [table, source] : document["sources"].items()) {
    text += fmt::format("{}\n    {}: {}", first ? "" : ",", Json(table).dump(), source.dump());
    first = false;
  }
  return text + "\n  }\n}\n";
}

bool is_shipped(const Calibration& calibration) {
  const auto& shipped = embedded_calibrations();
  return std::any_of(shipped.begin(), shipped.end(),
                     [&](const EmbeddedFile& file) { return file.name == calibration.name; });
}

Calibration load_calibration(const std::string& name, const Place& place) {
  std::vector<std::string> known;
  for (const EmbeddedFile& shipped : embedded_calibrations()) {
    if (shipped.name == name) {
      const Json document = parse_json(shipped.text, name);
      return read_calibration(JsonReader(document, {name, ""}));
    }
    known.emplace_back(shipped.name);
  }
  const std::string suggestion = closest(name, known);
  if (!suggestion.empty()) {
    throw InputError(place, fmt::format("unknown calibration \"{}\"", name), suggestion);
  }
  throw InputError(
      place, fmt::format("unknown calibration \"{}\"; known are {}, or a path ending in .json",
                         name, fmt::join(known, ", ")));
}

}  // namespace shardsim
