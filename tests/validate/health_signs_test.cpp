// What a table shows of a machine that is not well, by hand and by laws.
#include "validate/fit/health_signs.hpp"

#include <rapidcheck.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "base/json.hpp"

namespace shardsim {
namespace {

void holds_for_signs(bool passed) { CHECK(passed); }

// Launches of 10 us and links of 100 GB/s (125 at their full bandwidth), as measured: sizes of 8 B
// to 4 GiB by factors of 2.
std::vector<JudgedRow> healthy_rows() {
  std::vector<JudgedRow> rows;
  for (int power = 3; power <= 32; ++power) {
    const Bytes bytes(std::int64_t{1} << power);
    const Seconds transfer(static_cast<double>(bytes.count()) / 100e9);
    const Seconds time = Seconds(10e-6) + transfer;
    rows.push_back({bytes, time, time, transfer, transfer * 0.8});
  }
  return rows;
}

std::vector<JudgedRow> rows_times(double factor) {
  std::vector<JudgedRow> rows = healthy_rows();
  for (JudgedRow& row : rows) row.measured = row.measured * factor;
  return rows;
}

JudgedRow& row_of(std::vector<JudgedRow>& rows, std::int64_t bytes) {
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const JudgedRow& row) { return row.bytes == Bytes(bytes); });
}

std::vector<std::string> described(const std::vector<JudgedRow>& rows) {
  std::vector<std::string> result;
  for (const Finding& finding : find_signs(rows)) result.push_back(describe(finding));
  return result;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("what takes what the model says shows nothing") {
  CHECK(described(healthy_rows()).empty());
  CHECK(described({}).empty());
  CHECK(plateau_factor(healthy_rows()) == Approx(1));
}

// 10 us are a tenth of the modelled time at 9 MB: from 16 MiB on the rows are transfer.
TEST_CASE("large sizes that take twice as long are slow, whatever small ones take") {
  CHECK(described(rows_times(2)) ==
        Lines{"slow: sizes from 16.0 MiB on take 2.0 times what their links carry"});
  CHECK(described(rows_times(1.9)).empty());
  std::vector<JudgedRow> launches = healthy_rows();
  for (JudgedRow& row : launches) row.measured += Seconds(30e-6);
  CHECK(described(launches).empty());
  // Where nothing is modelled, nothing is slow.
  std::vector<JudgedRow> alone = rows_times(20);
  for (JudgedRow& row : alone) row.modelled = row.transfer = row.fastest = Seconds(0);
  CHECK(described(alone).empty());
  CHECK_FALSE(plateau_factor(alone));
}

// 2 GiB at the full 100 GB/s, 4 GiB at a third of it. Of the 9 rows from 16 MiB on the median is 1.
TEST_CASE("a rate that comes down again sags") {
  std::vector<JudgedRow> rows = healthy_rows();
  rows.back().measured = rows.back().measured * 3;
  CHECK(described(rows) == Lines{"sagging: 4.0 GiB go at 1/3.0 of the rate of a smaller size"});
}

TEST_CASE("what links at their full bandwidth cannot carry is too fast") {
  std::vector<JudgedRow> rows = healthy_rows();
  row_of(rows, GiB).measured = row_of(rows, GiB).fastest * 0.9;
  CHECK(described(rows) ==
        Lines{"too fast: 1.0 GiB take 0.90 of what they take at full bandwidth"});
}

// 32 B and those beside it take 10 us: five times what these say, and 64 B a fifth of its time. The
// neighbours of the odd row are not told for what it makes of them.
TEST_CASE("one row out of line is told once, and is no verdict") {
  std::vector<JudgedRow> rows = healthy_rows();
  row_of(rows, 32).measured = row_of(rows, 32).measured * 5;
  CHECK(described(rows) == Lines{"falling: 64 B take 1/5.0 of the time of a smaller size",
                                 "odd: 32 B take 5 times what the sizes beside it say"});
  for (const Finding& finding : find_signs(rows)) CHECK_FALSE(is_of_table(finding.sign));
}

TEST_CASE("sizes far apart say nothing of those between them") {
  CHECK(described({{Bytes(8), Seconds(60e-6)},
                   {Bytes(GiB), Seconds(7e-3)},
                   {Bytes(4 * GiB), Seconds(28e-3)}})
            .empty());
}

// The ring's 7/4 GiB at 0.824 * 450 GB/s; at full bandwidth 0.824 of it, and half where switches
// would sum. NVLS is what NCCL takes by itself; the table says Ring and Simple.
TEST_CASE("a table's rows stand beside the model without calibrations") {
  CollectiveExperiment experiment = read_collective(Json{{"machine", "dgx-h100"},
                                                         {"kind", "all-reduce"},
                                                         {"devices", 8},
                                                         {"sizes", "1GiB"},
                                                         {"algorithm", "Ring"},
                                                         {"protocol", "Simple"}},
                                                    "test");
  CollectiveMeasurement measurement;
  measurement.rows = {{Bytes(GiB), Seconds(6e-3)}};
  experiment.measured = measurement;
  const std::vector<JudgedRow> rows = judged_rows(experiment);
  REQUIRE(rows.size() == 1);
  const double transfer = 1.75 * GiB / (0.824 * 450e9);
  CHECK(rows[0].measured == Seconds(6e-3));
  CHECK(rows[0].transfer.count() == Approx(transfer));
  CHECK(rows[0].modelled.count() == Approx(transfer + 14 * 3.4e-6 + 8.4e-6));
  CHECK(rows[0].fastest.count() == Approx(transfer * 0.824 / 2));
}

TEST_CASE("rows within a third of what they should take show nothing, in any order") {
  holds_for_signs(rc::check("noise", [] {
    std::vector<JudgedRow> rows = healthy_rows();
    // Up to 1.3 either way: two neighbours and a row are at most 1.3 * 1.3 = 1.69 apart, rates and
    // the model likewise; a larger size would have to lose more than noise can take.
    for (JudgedRow& row : rows) {
      row.measured = row.measured * std::pow(1.3, *rc::gen::inRange(-100, 101) / 100.0);
      row.fastest = row.fastest * 0.7;
    }
    RC_ASSERT(find_signs(rows).empty());
  }));
}

TEST_CASE("signs do not depend on the order of rows or the unit of time") {
  holds_for_signs(rc::check("order and unit", [] {
    std::vector<JudgedRow> rows = healthy_rows();
    for (JudgedRow& row : rows) {
      row.measured = row.measured * std::pow(5.0, *rc::gen::inRange(-100, 101) / 100.0);
    }
    // A power of two: quotients stay as they are, bit for bit.
    std::vector<JudgedRow> other = rows;
    for (JudgedRow& row : other) {
      for (Seconds* time : {&row.measured, &row.modelled, &row.transfer, &row.fastest}) {
        *time = *time * 1024;
      }
    }
    std::shuffle(other.begin(), other.end(), std::mt19937(*rc::gen::arbitrary<unsigned>()));
    const std::vector<Finding> one = find_signs(rows);
    const std::vector<Finding> same = find_signs(other);
    RC_ASSERT(one.size() == same.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      RC_ASSERT(one[i].sign == same[i].sign && one[i].bytes == same[i].bytes);
      RC_ASSERT(std::abs(one[i].factor / same[i].factor - 1) < 1e-9);
    }
  }));
}

}  // namespace shardsim
