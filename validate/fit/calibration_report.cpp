#include "validate/fit/calibration_report.hpp"

#include <fmt/format.h>

#include "validate/fit/size_errors.hpp"

namespace shardsim {
namespace {

constexpr Bytes shown_sizes[] = {Bytes(64 * KiB), Bytes(MiB), Bytes(16 * MiB), Bytes(256 * MiB),
                                 Bytes(4 * GiB)};

TextTable::Column number(std::string title) { return {std::move(title), TextTable::Align::right}; }

std::vector<TextTable::Column> key_columns() {
  return {{"region"}, number("nodes"), {"collective"}, {"algorithm"}};
}

std::vector<std::string> key_cells(const CurveKey& key) {
  return {std::string(name_of(key.region)), std::to_string(key.nodes), key.collective,
          key.algorithm};
}

// Of rows, with their errors.
void add_errors(std::vector<std::string>& cells, std::int64_t rows, double median,
                double percentile_90) {
  cells.push_back(std::to_string(rows));
  cells.push_back(rows > 0 ? format_percent(median) : "");
  cells.push_back(rows > 0 ? format_percent(percentile_90) : "");
}

std::vector<TextTable::Column> error_columns(std::vector<TextTable::Column> columns) {
  for (const char* title : {"rows", "median error", "90th percentile"}) {
    columns.push_back(number(title));
  }
  return columns;
}

std::string factor_cell(const CalibrationCurve& curve, Bytes bytes) {
  for (const CurvePoint& point : curve.points) {
    if (point.bytes != bytes) continue;
    if (!point.interval) return fmt::format("{:.2f}", point.factor);
    return fmt::format("{:.2f} ({}{:.2f}-{:.2f})", point.factor,
                       point.interval->tables == 1 ? "~" : "", point.interval->low,
                       point.interval->high);
  }
  return "";
}

}  // namespace

TextTable curves_table(const Calibration& calibration) {
  std::vector<TextTable::Column> columns = key_columns();
  columns.push_back(number("tables"));
  TextTable table(error_columns(std::move(columns)));
  for (const CalibrationCurve& curve : calibration.curves) {
    std::vector<std::string> cells = key_cells(curve.key);
    cells.push_back(std::to_string(curve.tables.size()));
    add_errors(cells, curve.rows, curve.median_error, curve.percentile_90_error);
    table.add_row(std::move(cells));
  }
  return table;
}

TextTable factors_table(const Calibration& calibration) {
  std::vector<TextTable::Column> columns = key_columns();
  for (const Bytes size : shown_sizes) columns.push_back(number(format_bytes(size)));
  TextTable table(std::move(columns));
  for (const CalibrationCurve& curve : calibration.curves) {
    std::vector<std::string> cells = key_cells(curve.key);
    for (const Bytes size : shown_sizes) cells.push_back(factor_cell(curve, size));
    table.add_row(std::move(cells));
  }
  return table;
}

TextTable sizes_table(const std::vector<SizeErrors>& errors) {
  TextTable table(error_columns({{"size"}}));
  for (const SizeErrors& size : errors) {
    std::vector<std::string> cells = {range_text(size.from)};
    add_errors(cells, size.rows, size.median, size.percentile_90);
    table.add_row(std::move(cells));
  }
  return table;
}

TextTable held_out_table(const HeldOut& held_out) {
  TextTable table(error_columns({{"held out"}}));
  for (const TableErrors& errors : held_out.tables) {
    std::vector<std::string> cells = {errors.table};
    add_errors(cells, errors.rows, errors.median, errors.percentile_90);
    table.add_row(std::move(cells));
  }
  return table;
}

}  // namespace shardsim
