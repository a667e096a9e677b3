// Tables that are predicted by what others make, and what does not change a calibration.
#include "validate/fit/hold_out.hpp"

#include <rapidcheck.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "base/json.hpp"
#include "validate/fit/size_errors.hpp"

namespace shardsim {
namespace {

// All-reduces in a ring of 8 on a DGX H100 that take `factor` times what the model says alone.
CalibrationTable ring_table(const std::string& id, double factor) {
  CollectiveExperiment experiment = read_collective(Json{{"machine", "dgx-h100"},
                                                         {"kind", "all-reduce"},
                                                         {"devices", 8},
                                                         {"sizes", "256KiB:4GiB:x4"},
                                                         {"algorithm", "Ring"},
                                                         {"protocol", "Simple"},
                                                         {"model", "uncalibrated"}},
                                                    "test");
  CollectiveMeasurement measurement;
  measurement.id = id;
  for (const CollectivePoint& point : predict_collective(experiment).points) {
    measurement.rows.push_back({point.bytes, point.cost.total() * factor});
  }
  experiment.measured = measurement;
  experiment.model = collective_models::simulated;
  return sample_table(experiment);
}

Calibration ring_header() {
  Calibration header;
  header.name = "mine";
  header.regions = {Region::node};
  return header;
}

std::vector<CalibrationTable> three_tables() {
  return {ring_table("a", 1.2), ring_table("b", 1.5), ring_table("c", 1.8)};
}

std::string holding_mistake(const std::vector<std::string>& ids) {
  std::vector<CalibrationTable> tables = three_tables();
  try {
    static_cast<void>(hold_out(ring_header(), ids, tables));
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

// Measured times fall between 1 and 4 GiB and go below what links carry: no prediction does
// either, so that what remains is more than the curve misses its rows by.
TEST_CASE("the errors that remain are those of what is predicted") {
  CalibrationTable table = ring_table("a", 1);
  CollectiveMeasurement& measured = *table.experiment->measured;
  const std::size_t n = measured.rows.size();
  *measured.rows[n - 1].time = *measured.rows[n - 1].time * 0.5;
  *measured.rows[n - 2].time = *measured.rows[n - 2].time * 0.5;
  table = sample_table(*table.experiment);
  Calibration calibration = fit_calibration(ring_header(), {table});
  add_errors(calibration, {table});

  CollectiveExperiment experiment = *table.experiment;
  experiment.calibrations = std::vector{calibration};
  std::vector<double> errors;
  double largest = 0;
  for (const CollectivePoint& point : predict_collective(experiment).points) {
    errors.push_back(std::abs(*point.relative_error()));
    largest = std::max(largest, errors.back());
  }
  REQUIRE(calibration.curves.size() == 1);
  CHECK(calibration.curves[0].rows == static_cast<std::int64_t>(errors.size()));
  CHECK(calibration.curves[0].median_error == Approx(quantile(errors, 0.5)).margin(0.0001));
  CHECK(calibration.curves[0].percentile_90_error == Approx(quantile(errors, 0.9)).margin(0.0001));
  // Links are modelled at 0.824 of their bandwidth: half the time is predicted 0.824 / 0.5 - 1, 65
  // % too slow.
  CHECK(largest == Approx(0.65).margin(0.02));
  REQUIRE_FALSE(calibration.errors_by_size.empty());
  CHECK(calibration.errors_by_size.back().percentile_90 > 0.3);
}

// 15 MiB are less than 16 times 1 MiB.
TEST_CASE("ranges of sizes") {
  CHECK(range_of(Bytes(64 * KiB)) == Bytes(64 * KiB));
  CHECK(range_of(Bytes(15 * MiB)) == Bytes(MiB));
  CHECK(range_of(Bytes(16 * MiB)) == Bytes(16 * MiB));
  CHECK(range_text(Bytes(MiB)) == "1.0 MiB to 16.0 MiB");
}

// With b and c the factor is sqrt(1.5 * 1.8) = 1.643: of a too slow by 1.643 / 1.2 - 1. With a and
// c sqrt(1.2 * 1.8) = 1.470, of b too fast by 2 %; with a and b 1.342, of c by 25.5 %.
TEST_CASE("each table is predicted by what the others make") {
  const HeldOut held_out = hold_out_each(ring_header(), three_tables());
  REQUIRE(held_out.tables.size() == 3);
  const double errors[] = {std::sqrt(1.5 * 1.8) / 1.2 - 1, 1 - std::sqrt(1.2 * 1.8) / 1.5,
                           1 - std::sqrt(1.2 * 1.5) / 1.8};
  for (const std::size_t i : {0U, 1U, 2U}) {
    // Factors have three digits, errors four.
    CHECK(held_out.tables[i].median == Approx(errors[i]).margin(0.0006));
    CHECK(held_out.tables[i].percentile_90 == Approx(errors[i]).margin(0.0006));
    CHECK(held_out.tables[i].rows == 8);
  }
  CHECK(held_out.tables[0].table == "a");
  REQUIRE(held_out.by_size.size() == 5);
  CHECK(held_out.by_size[0].from == Bytes(64 * KiB));
  CHECK(held_out.by_size[0].rows == 3);
  CHECK(held_out.by_size[1].rows == 6);
  CHECK(held_out.by_size[1].median == Approx(errors[2]).margin(0.0006));
}

TEST_CASE("tables held out together are predicted by the rest, which is what remains") {
  std::vector<CalibrationTable> tables = three_tables();
  const HeldOut held_out = hold_out(ring_header(), {"c", "a"}, tables);
  REQUIRE(tables.size() == 1);
  CHECK(tables[0].id == "b");
  REQUIRE(held_out.tables.size() == 2);
  CHECK(held_out.tables[0].table == "c");
  CHECK(held_out.tables[0].median == Approx(1 - 1.5 / 1.8).margin(0.0006));
  CHECK(held_out.tables[1].median == Approx(1.5 / 1.2 - 1).margin(0.0006));
}

// Their rows are another calibration's, which knows them: nothing would be left out.
TEST_CASE("tables of other regions are not held out") {
  Calibration header = ring_header();
  header.regions = {Region::nodes};
  CHECK(hold_out_each(header, three_tables()).tables.empty());
}

TEST_CASE("what cannot be held out") {
  CHECK(holding_mistake({"a"}) == "none");
  CHECK(holding_mistake({"A1"}) ==
        "command line: /holdout: no table of its regions has the id \"A1\"");
  CHECK(holding_mistake({"a", "a"}) ==
        "command line: /holdout: no table of its regions has the id \"a\"");
  CHECK(holding_mistake({"a", "b", "c"}) ==
        "command line: /holdout: no table is left to calibrate with");
}

TEST_CASE("the order of rows and tables and the unit of time change no calibration") {
  CHECK(rc::check("invariant", [] {
    std::mt19937 random(*rc::gen::arbitrary<unsigned>());
    std::normal_distribution<double> noise(0, 0.3);
    const CurveKey keys[] = {{Region::node, "all-reduce", "Ring"},
                             {Region::node, "all-reduce", "Tree"}};
    std::vector<CalibrationTable> tables;
    const auto count = *rc::gen::inRange(1, 5);
    for (int i = 0; i < count; ++i) {
      CalibrationTable table{"table " + std::to_string(i), "a page", {}};
      const auto rows = *rc::gen::inRange(0, 40);
      for (int row = 0; row < rows; ++row) {
        const Bytes bytes(*rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 34));
        const Seconds modelled(1e-5 + static_cast<double>(bytes.count()) / 300e9);
        table.samples.push_back(
            {keys[*rc::gen::inRange(0, 2)], bytes, modelled, modelled * std::exp(noise(random))});
      }
      tables.push_back(std::move(table));
    }
    std::vector<CalibrationTable> other = tables;
    for (CalibrationTable& table : other) {
      std::shuffle(table.samples.begin(), table.samples.end(), random);
      // A power of two: quotients stay as they are, bit for bit.
      for (CalibrationSample& sample : table.samples) {
        sample.modelled = sample.modelled * 1024;
        sample.measured = sample.measured * 1024;
      }
    }
    std::shuffle(other.begin(), other.end(), random);
    RC_ASSERT(calibration_text(fit_calibration(ring_header(), tables)) ==
              calibration_text(fit_calibration(ring_header(), other)));
  }));
}

}  // namespace shardsim
