#include "hardware_profiles/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.hpp"
#include "hardware_profiles/embedded_calibrations.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t largest_size = std::int64_t{1} << 50;
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

CurvePoint read_point(const JsonReader& json) {
  const std::vector<JsonReader> pair = json.elements();
  if (pair.size() != 2) json.fail("is not a point, expected [bytes, factor]");
  CurvePoint point{Bytes(pair[0].integer(1, largest_size)), pair[1].number()};
  if (!(point.factor > 0 && point.factor < largest_factor)) {
    pair[1].fail(fmt::format("{} is not a factor, must be above 0 and below {:g}", point.factor,
                             largest_factor));
  }
  return point;
}

double read_error(const JsonReader& json) {
  const double error = json.number();
  if (!(error >= 0)) json.fail("is not an error, must not be negative");
  return error;
}

CalibrationCurve read_curve(const JsonReader& json) {
  json.only_keys({"region", "collective", "algorithm", "points", "rows", "median_error",
                  "percentile_90_error", "tables"});
  CalibrationCurve curve;
  curve.key.region = read_region(json.at("region"));
  curve.key.collective =
      json.at("collective")
          .choice({"all-reduce", "all-gather", "all-to-all", "collective-permute"});
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
    points.push_back(Json::array({point.bytes.count(), point.factor}));
  }
  return {{"region", name_of(curve.key.region)},
          {"collective", curve.key.collective},
          {"algorithm", curve.key.algorithm},
          {"points", std::move(points)},
          {"rows", curve.rows},
          {"median_error", curve.median_error},
          {"percentile_90_error", curve.percentile_90_error},
          {"tables", curve.tables}};
}

// Lower is nearer; nothing where the curve cannot stand in.
std::optional<int> distance(const CurveKey& curve, const CurveKey& key) {
  if (curve.region != key.region) return std::nullopt;
  if (curve.collective == key.collective) return curve.algorithm == key.algorithm ? 0 : 1;
  const auto is_ring_like = [](const std::string& collective) {
    return collective == "all-reduce" || collective == "all-gather";
  };
  if (!is_ring_like(curve.collective) || !is_ring_like(key.collective)) return std::nullopt;
  return curve.algorithm == key.algorithm ? 2 : 3;
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

const CalibrationCurve* find_curve(const std::vector<Calibration>& calibrations,
                                   const CurveKey& key) {
  for (const Calibration& calibration : calibrations) {
    const CalibrationCurve* best = nullptr;
    int nearest = std::numeric_limits<int>::max();
    for (const CalibrationCurve& curve : calibration.curves) {
      const std::optional<int> away = distance(curve.key, key);
      if (!away || *away > nearest) continue;
      if (*away == nearest && best->rows >= curve.rows) continue;
      best = &curve;
      nearest = *away;
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

std::string_view name_of(Region region) {
  for (const RegionName& known : region_names) {
    if (region == known.region) return known.name;
  }
  return "?";
}

Calibration read_calibration(const JsonReader& document) {
  document.only_keys(
      {"schema", "shardsim", "name", "title", "date", "regions", "curves", "sources"});
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
        curve.fail("is the second curve for the same region, collective and algorithm");
      }
    }
  }
  for (const auto& [table, source] : document.at("sources").members()) {
    calibration.sources.push_back({table, source.string()});
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
  return {{"schema", "shardsim/calibration/1"}, {"name", calibration.name},
          {"title", calibration.title},         {"date", calibration.date},
          {"regions", std::move(regions)},      {"curves", std::move(curves)},
          {"sources", std::move(sources)}};
}

std::string calibration_text(const Calibration& calibration) {
  const Json document = calibration_to_json(calibration);
  std::string text = "{\n";
  for (const char* key : {"schema", "name", "title", "date", "regions"}) {
    text += fmt::format("  \"{}\": {},\n", key, document[key].dump());
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
  throw InputError(place, fmt::format("unknown calibration \"{}\"", name), closest(name, known));
}

}  // namespace shardsim
