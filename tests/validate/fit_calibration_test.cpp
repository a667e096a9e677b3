// Calibrations from samples: medians, residuals and what is kept, by hand.
#include "validate/fit/fit_calibration.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

namespace shardsim {
namespace {

const CurveKey ring_key{Region::node, "all-reduce", "Ring"};
const CurveKey tree_key{Region::node, "all-reduce", "Tree"};
const CurveKey nodes_key{Region::nodes, "all-reduce", "Ring"};

// Modelled as 2 ms, measured as `factor` times that.
CalibrationSample sample(const CurveKey& key, std::int64_t bytes, double factor) {
  return {key, Bytes(bytes), Seconds(2e-3), Seconds(factor * 2e-3)};
}

CalibrationTable table(const std::string& id, std::vector<CalibrationSample> samples) {
  return {id, "source of " + id, std::move(samples)};
}

Calibration header(std::vector<Region> regions) {
  Calibration result;
  result.name = "mine";
  result.title = "My nodes";
  result.date = "2026-11";
  result.regions = std::move(regions);
  return result;
}

std::vector<std::pair<std::int64_t, double>> points_of(const CalibrationCurve& curve) {
  std::vector<std::pair<std::int64_t, double>> points;
  for (const CurvePoint& point : curve.points) {
    points.emplace_back(point.bytes.count(), point.factor);
  }
  return points;
}

// Errors of what the curves say alone.
Calibration with_errors(Calibration calibration, const std::vector<CalibrationTable>& tables) {
  add_errors(
      calibration, tables, [&](const CalibrationTable& /*table*/, const CalibrationSample& sample) {
        const auto curve = std::find_if(calibration.curves.begin(), calibration.curves.end(),
                                        [&](const auto& one) { return one.key == sample.key; });
        return sample.modelled * curve->factor_at(sample.bytes);
      });
  return calibration;
}

using Points = std::vector<std::pair<std::int64_t, double>>;

}  // namespace

// The header's example. At 2 MiB the curve misses the tables by 1.25 / 1.2 - 1 = 4.17 %, 0 and
// 1 - 1.25 / 4 = 68.75 %; the 90th percentile is 4.17 + 0.8 * 64.58 = 55.83 %.
TEST_CASE("of three tables the middle one tells the factor") {
  const std::vector<CalibrationTable> tables = {table("c", {sample(ring_key, 2 * MiB, 4)}),
                                                table("a", {sample(ring_key, 2 * MiB, 1.2)}),
                                                table("b", {sample(ring_key, 2 * MiB, 1.25)})};
  const Calibration calibration =
      with_errors(fit_calibration(header({Region::node}), tables), tables);
  REQUIRE(calibration.curves.size() == 1);
  const CalibrationCurve& curve = calibration.curves[0];
  CHECK(curve.key == ring_key);
  // The powers of two beside it are an octave away, more than 3/4.
  CHECK(points_of(curve) == Points{{2 * MiB, 1.25}});
  CHECK(curve.tables == std::vector<std::string>{"a", "b", "c"});
  CHECK(curve.rows == 3);
  CHECK(curve.median_error == Approx(0.0417));
  CHECK(curve.percentile_90_error == Approx(0.5583));
  CHECK(calibration.name == "mine");
  CHECK(calibration.title == "My nodes");
  CHECK(calibration.date == "2026-11");
}

// 3 MiB is 0.585 octaves above 2 MiB and 0.415 below 4 MiB: near both.
TEST_CASE("a table says the geometric mean of its samples within 3/4 of an octave") {
  const Calibration calibration =
      fit_calibration(header({Region::node}),
                      {table("a", {sample(ring_key, 2 * MiB, 1), sample(ring_key, 3 * MiB, 4)})});
  REQUIRE(calibration.curves.size() == 1);
  CHECK(points_of(calibration.curves[0]) == Points{{2 * MiB, 2}, {4 * MiB, 4}});
}

// With two tables the logarithms' mean: sqrt(1 * 4).
TEST_CASE("of two tables the geometric mean; many rows of one weigh no more") {
  const CalibrationTable one = table("a", {sample(ring_key, MiB, 1), sample(ring_key, MiB, 1)});
  const CalibrationTable other = table("b", {sample(ring_key, MiB, 4)});
  const Calibration calibration =
      with_errors(fit_calibration(header({Region::node}), {one, other}), {one, other});
  CHECK(points_of(calibration.curves.at(0)) == Points{{MiB, 2}});
  CHECK(calibration.curves[0].rows == 3);
  // 2 / 1 - 1, twice, and 1 - 2 / 4.
  CHECK(calibration.curves[0].median_error == Approx(1));
}

TEST_CASE("rows below 64 KiB make points and are not judged") {
  const std::vector<CalibrationTable> tables = {
      table("a", {sample(ring_key, 16 * KiB, 3), sample(ring_key, 64 * KiB, 2)}),
      table("b", {sample(ring_key, 16 * KiB, 1), sample(ring_key, 64 * KiB, 2)}),
      table("c", {sample(ring_key, 16 * KiB, 9)})};
  const Calibration calibration =
      with_errors(fit_calibration(header({Region::node}), tables), tables);
  const CalibrationCurve& curve = calibration.curves.at(0);
  CHECK(points_of(curve) == Points{{16 * KiB, 3}, {64 * KiB, 2}});
  CHECK(curve.rows == 2);
  CHECK(curve.median_error == 0);
}

TEST_CASE("curves of the header's regions, by key; the sources are those of their tables") {
  const std::vector<CalibrationTable> tables = {
      table("z", {sample(tree_key, MiB, 2), sample(nodes_key, MiB, 5)}),
      table("elsewhere", {sample(nodes_key, MiB, 6)}), table("a", {sample(ring_key, MiB, 3)})};
  const Calibration calibration = fit_calibration(header({Region::node}), tables);
  REQUIRE(calibration.curves.size() == 2);
  CHECK(calibration.curves[0].key == ring_key);
  CHECK(calibration.curves[1].key == tree_key);
  REQUIRE(calibration.sources.size() == 2);
  CHECK(calibration.sources[0].table == "a");
  CHECK(calibration.sources[0].source == "source of a");
  CHECK(calibration.sources[1].table == "z");

  const Calibration network = fit_calibration(header({Region::nodes, Region::rail}), tables);
  REQUIRE(network.curves.size() == 1);
  CHECK(network.curves[0].key == nodes_key);
  CHECK(network.curves[0].tables == std::vector<std::string>{"elsewhere", "z"});
}

TEST_CASE("what the header had of curves and sources is made anew") {
  Calibration old = header({Region::node});
  old.curves.emplace_back();
  old.sources.push_back({"old", "a page"});
  const Calibration calibration = fit_calibration(old, {});
  CHECK(calibration.curves.empty());
  CHECK(calibration.sources.empty());
}

}  // namespace shardsim
