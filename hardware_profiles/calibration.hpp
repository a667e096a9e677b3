// What machines of a class take beyond the model: measured over modelled time of a collective, by
// size. Launch floors, dips between protocols and the jitter of networks have no formula; they
// have been measured on machines alike.
//
//   factor 1.30 at 2 MiB: measured times are 1.3 times what the model says
//
// A calibration is a JSON file ("shardsim/calibration/1"; hardware_profiles/calibrations/NAME.json,
// built into the library) that `shardsim calibrate` writes from measured tables. A profile names
// those of its class, one for the inside of a node, one for the network between nodes: shipped ones
// by name, others by a path that ends in .json, relative to the profile; or it holds its own:
//
//   "calibration": ["h100-nvswitch", "our-infiniband.json"]
//
// A curve holds for one algorithm of one collective on one part of the machine and one number of
// nodes. Between its points the logarithm of the factor is linear in that of the size, between two
// curves in that of the number of nodes; beyond the ends the factor stays.
//
//   1.2 over 2 nodes, 1.8 over 8: over 4, half way, sqrt(1.2 * 1.8) = 1.47; over 16 nodes 1.8
//
// Whoever has fewer members than what was measured spends less on latency and more on transfer at
// one size: sim/collectives/calibrated_cost.hpp says which size of theirs is like which.
//
// A point in the file is [bytes, factor] or [bytes, factor, low, high, tables], with its interval.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"
#include "base/units.hpp"

namespace shardsim {

// Where the members of a group lie.
enum class Region : std::uint8_t {
  node,   // all in one node
  nodes,  // over several nodes, several on each
  rail,   // over several nodes, one on each
};

// What a curve holds for. `collective` is the plan's name of its kind; a reduce-scatter that has no
// curves goes by the all-gather's, which sends the same. `algorithm` is as the cost model names
// it.
struct CurveKey {
  Region region = Region::node;
  std::string collective;
  std::string algorithm;
  std::int64_t nodes = 1;
  friend auto operator<=>(const CurveKey&, const CurveKey&) = default;
};

// Where the factor of one more table of the class lies, 19 times in 20
// (validate/fit/factor_interval.hpp).
struct FactorInterval {
  double low = 1;
  double high = 1;
  std::int64_t tables = 1;  // that have the size; of a single one its rows' scatter, which is less
  friend bool operator==(const FactorInterval&, const FactorInterval&) = default;
};

struct CurvePoint {
  Bytes bytes{0};
  double factor = 1;
  std::optional<FactorInterval> interval = {};  // nothing: not told, or beyond a factor of 100
};

struct CalibrationCurve {
  CurveKey key;
  std::vector<CurvePoint> points;  // ascending, at least one
  // On every node of all that was measured over several nodes; 0: not known, or not one number.
  std::int64_t members_per_node = 0;
  // Of the rows from 64 KiB on that the curve was made of: absolute relative errors of the time.
  std::int64_t rows = 0;
  double median_error = 0;
  double percentile_90_error = 0;
  std::vector<std::string> tables;  // by id

  [[nodiscard]] double factor_at(Bytes bytes) const;
};

struct MeasuredSource {
  std::string table;  // id
  std::string source;
};

struct SuspiciousTable {
  std::string table;
  std::string shows;  // validate/fit/health_signs.hpp
};

// Of rows from 64 KiB on: absolute relative errors of the time.
struct SizeErrors {
  Bytes from{0};  // to 16 times that
  std::int64_t rows = 0;
  double median = 0;
  double percentile_90 = 0;
};

struct TableErrors {
  std::string table;
  std::int64_t rows = 0;
  double median = 0;
  double percentile_90 = 0;
};

// What is predicted of tables by calibrations made without them.
struct HeldOut {
  std::vector<TableErrors> tables;
  std::vector<SizeErrors> by_size;
};

struct Calibration {
  std::string name;  // "h100-nvswitch"
  std::string title;
  std::string date;             // when it was fitted, YYYY-MM
  std::vector<Region> regions;  // that it has, or may have, curves for
  std::vector<CalibrationCurve> curves;
  std::vector<MeasuredSource> sources;
  // How good it is, where the file says so.
  std::vector<SizeErrors> errors_by_size = {};  // of all curves
  HeldOut held_out = {};
  std::vector<SuspiciousTable> suspicious = {};  // that it was made of nevertheless
};

// What corrects a collective: of the curves of one algorithm those for the numbers of nodes on
// either side of its own, or twice the same.
struct CurvesAround {
  const CalibrationCurve* fewer = nullptr;
  const CalibrationCurve* more = nullptr;
  double share = 0;  // of `more`

  // Of the size in question as either curve has it.
  [[nodiscard]] double factor_at(Bytes of_fewer, Bytes of_more) const;
  [[nodiscard]] double factor_at(Bytes bytes) const { return factor_at(bytes, bytes); }
  // Whether either curve has sizes as small.
  [[nodiscard]] bool reaches(Bytes of_fewer, Bytes of_more) const;
};

// Of the first calibration that has any for the region: those of the key's algorithm, else of the
// collective's algorithm with the most rows, all-reduce and all-gather standing in for each other.
// Nothing where nothing is alike.
[[nodiscard]] std::optional<CurvesAround> find_curves(const std::vector<Calibration>& calibrations,
                                                      const CurveKey& key);

[[nodiscard]] std::string_view name_of(Region region);

// Throws InputError with the place in the file.
[[nodiscard]] Calibration read_calibration(const JsonReader& document);
// A curve to a line. Reads back to the same calibration.
[[nodiscard]] std::string calibration_text(const Calibration& calibration);
[[nodiscard]] Json calibration_to_json(const Calibration& calibration);

// Is one of the shipped ones, by name.
[[nodiscard]] bool is_shipped(const Calibration& calibration);
// Of the shipped ones. Throws InputError with a suggestion.
[[nodiscard]] Calibration load_calibration(const std::string& name, const Place& place);

}  // namespace shardsim
