// Prints docs/calibration-parameters.md: what every shipped calibration holds, how sure it is, what
// it is worth on tables that it was made without, and what the tables do not tell.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/text.hpp"
#include "hardware_profiles/embedded_calibrations.hpp"
#include "validate/fit/calibration_report.hpp"
#include "validate/fit/hold_out.hpp"
#include "validate/fit/size_errors.hpp"

namespace shardsim {
namespace {

std::vector<std::string> table_files() {
  std::set<std::string> files;
  const std::filesystem::path folder = SHARDSIM_SOURCE_DIR "/tests/measurements/collectives";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.insert(entry.path().string());
  }
  return {files.begin(), files.end()};
}

// "64 B to 1.0 KiB"
std::string span_of(const std::vector<Bytes>& sizes) {
  return sizes.size() == 1
             ? format_bytes(sizes.front())
             : fmt::format("{} to {}", format_bytes(sizes.front()), format_bytes(sizes.back()));
}

std::string name_of_curve(const CurveKey& key) {
  return fmt::format("{}{} in region {} over {}", key.collective,
                     key.algorithm.empty() ? "" : " (" + key.algorithm + ")", name_of(key.region),
                     counted(key.nodes, "node"));
}

// Sizes of a curve where its tables, several, differ too much.
std::vector<Bytes> untold_sizes(const CalibrationCurve& curve) {
  std::vector<Bytes> sizes;
  for (const CurvePoint& point : curve.points) {
    if (!point.interval) sizes.push_back(point.bytes);
  }
  return sizes;
}

std::vector<std::string> not_determined(const Calibration& calibration) {
  std::vector<std::string> lines;
  std::int64_t alone = 0;
  for (const CalibrationCurve& curve : calibration.curves) {
    if (curve.tables.size() == 1) {
      ++alone;
      continue;
    }
    const std::vector<Bytes> sizes = untold_sizes(curve);
    if (sizes.empty()) continue;
    lines.push_back(fmt::format("{}: of {} points {} are not told to within a factor of 100, {}",
                                name_of_curve(curve.key), curve.points.size(), sizes.size(),
                                span_of(sizes)));
  }
  if (alone > 0) {
    lines.push_back(
        fmt::format("How far other machines are from {} of {}: one table each", alone,
                    counted(static_cast<std::int64_t>(calibration.curves.size()), "curve")));
  }
  for (const char* collective : {"all-reduce", "all-gather", "all-to-all", "collective-permute"}) {
    const auto& curves = calibration.curves;
    if (std::none_of(curves.begin(), curves.end(), [&](const CalibrationCurve& curve) {
          return curve.key.collective == collective;
        })) {
      lines.push_back(fmt::format("{}: no table", collective));
    }
  }
  return lines;
}

// Rows from 64 KiB on of tables that were left out, and those of them within the intervals.
struct Coverage {
  std::int64_t rows = 0;
  std::int64_t inside = 0;
};
struct Coverages {
  Coverage of_one;      // intervals of a single table's scatter
  Coverage of_several;  // of several tables
};

void add_coverage(const Calibration& calibration, const CalibrationTable& left_out,
                  Coverages& coverages) {
  for (const CalibrationSample& sample : left_out.samples) {
    if (sample.bytes < smallest_judged) continue;
    const double ratio = sample.measured.count() / sample.modelled.count();
    for (const CalibrationCurve& curve : calibration.curves) {
      if (curve.key != sample.key) continue;
      for (const CurvePoint& point : curve.points) {
        if (point.bytes != sample.bytes || !point.interval) continue;
        Coverage& coverage = point.interval->tables == 1 ? coverages.of_one : coverages.of_several;
        ++coverage.rows;
        const bool is_inside = point.interval->low <= ratio && ratio <= point.interval->high;
        coverage.inside += is_inside ? 1 : 0;
      }
    }
  }
}

void print_class(const EmbeddedFile& shipped, const std::vector<std::string>& files,
                 Coverages& coverages) {
  const Calibration calibration = load_calibration(std::string(shipped.name), {});
  fmt::print("## {}\n\n{}: {} from {}.\n\n", calibration.name, calibration.title,
             counted(static_cast<std::int64_t>(calibration.curves.size()), "curve"),
             counted(static_cast<std::int64_t>(calibration.sources.size()), "table"));
  fmt::print("{}\n{}\n", curves_table(calibration).markdown(),
             factors_table(calibration).markdown());
  fmt::print("Errors that remain, by size:\n\n{}\n",
             sizes_table(calibration.errors_by_size).markdown());
  const std::vector<CalibrationTable> tables =
      read_calibration_tables(files, {.of_class = calibration.name}).tables;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    std::vector<CalibrationTable> others = tables;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    add_coverage(fit_calibration(calibration, others), tables[i], coverages);
  }
  if (calibration.sources.size() > 1) {
    const HeldOut held_out = hold_out_each(calibration, tables);
    fmt::print("Each table predicted without itself:\n\n{}\n{}\n",
               held_out_table(held_out).markdown(), sizes_table(held_out.by_size).markdown());
  }
  fmt::print("What the tables do not tell:\n\n");
  for (const std::string& line : not_determined(calibration)) fmt::print("- {}\n", line);
  fmt::print("\n");
}

void print_coverage(const Coverages& coverages) {
  TextTable table({{"intervals from"},
                   {"rows of tables left out", TextTable::Align::right},
                   {"inside", TextTable::Align::right}});
  const auto add = [&](const char* what, const Coverage& coverage) {
    const auto rows = static_cast<double>(std::max<std::int64_t>(coverage.rows, 1));
    table.add_row({what, std::to_string(coverage.rows),
                   format_percent(static_cast<double>(coverage.inside) / rows)});
  };
  add("several tables", coverages.of_several);
  add("the scatter of one", coverages.of_one);
  fmt::print(
      "## How often the intervals hold\n\nOf rows of tables that were left out, at sizes and in "
      "curves that the others have:\n\n{}",
      table.markdown());
}

constexpr const char* preface =
    R"(# Calibrations: their parameters and how sure they are

Written by `scripts/accuracy.sh`, of the calibrations that profiles name (docs/calibration.md) and
the tables of tests/measurements/collectives that they are made of. For every class of machines: its
curves with the errors that remain; factors with the interval in which one more table lies 19 times
in 20 (validate/fit/factor_interval.hpp), after ~ the scatter of a single table, which says nothing of
other machines; what is predicted of each table by a calibration made without it. Where a table is
alone with its collective, leaving it out leaves another algorithm's or collective's curve, or the
model. Errors are of rows from 64 KiB on, absolute and relative to the measured time. How often the
intervals hold for tables that were left out stands at the end.

)";

}  // namespace
}  // namespace shardsim

int main() {
  fmt::print("{}", shardsim::preface);
  const std::vector<std::string> files = shardsim::table_files();
  shardsim::Coverages coverages;
  for (const auto& shipped : shardsim::embedded_calibrations()) {
    shardsim::print_class(shipped, files, coverages);
  }
  shardsim::print_coverage(coverages);
}
