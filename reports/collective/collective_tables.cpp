#include "reports/collective/collective_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "sim/collectives/bus_bandwidth.hpp"

namespace shardsim {
namespace {

constexpr std::string_view not_measured = "-";

Cell microseconds(Seconds time) {
  return {fmt::format("{:.2f}", time.count() * 1e6), plain_number(time.count())};
}

Cell gigabytes_per_second(Bandwidth rate) {
  return {fmt::format("{:.2f}", rate.count() * 1e-9), plain_number(rate.count())};
}

Cell optional_microseconds(const std::optional<Seconds>& time) {
  return time ? microseconds(*time) : Cell{std::string(not_measured), ""};
}

Cell signed_percent(const std::optional<double>& fraction) {
  if (!fraction) return {std::string(not_measured), ""};
  return {fmt::format("{:+.1f} %", 100 * *fraction), plain_number(*fraction)};
}

enum class Of : std::uint8_t { prediction, measurement, protocol, nccl, calibration, tpu };

struct Column {
  std::string_view name;  // in CSV
  const char* title;
  Of of;
  Cell (*cell)(const CollectiveFigures&);
};

using Row = const CollectiveFigures&;
constexpr std::array columns{
    Column{"bytes", "size (B)", Of::prediction,
           [](Row row) {
             const std::string count = std::to_string(row.bytes.count());
             return Cell{count, count};
           }},
    Column{"time_s", "time (us)", Of::prediction, [](Row row) { return microseconds(row.time); }},
    Column{"measured_s", "measured (us)", Of::measurement,
           [](Row row) { return optional_microseconds(row.measured); }},
    Column{"relative_error", "error", Of::measurement,
           [](Row row) { return signed_percent(row.relative_error); }},
    Column{"algbw_Bps", "algbw (GB/s)", Of::prediction,
           [](Row row) { return gigabytes_per_second(row.algorithm_bandwidth); }},
    Column{"busbw_Bps", "busbw (GB/s)", Of::prediction,
           [](Row row) { return gigabytes_per_second(row.bus_bandwidth); }},
    Column{"measured_busbw_Bps", "measured busbw (GB/s)", Of::measurement,
           [](Row row) {
             return row.measured_bus_bandwidth ? gigabytes_per_second(*row.measured_bus_bandwidth)
                                               : Cell{std::string(not_measured), ""};
           }},
    Column{"launch_s", "launch (us)", Of::prediction,
           [](Row row) { return microseconds(row.launch); }},
    Column{"latency_s", "latency (us)", Of::prediction,
           [](Row row) { return microseconds(row.latency); }},
    Column{"transfer_s", "transfer (us)", Of::prediction,
           [](Row row) { return microseconds(row.transfer); }},
    Column{"algorithm", "algorithm", Of::prediction,
           [](Row row) {
             return Cell{row.algorithm, ""};
           }},
    Column{"protocol", "protocol", Of::protocol,
           [](Row row) {
             return Cell{row.protocol, ""};
           }},
    Column{"nccl_estimate_s", "NCCL's estimate (us)", Of::nccl,
           [](Row row) { return optional_microseconds(row.nccl_estimate); }},
    Column{"calibration_factor", "calibrated by", Of::calibration,
           [](Row row) {
             return Cell{fmt::format("{:.2f}", row.factor), fmt::format("{}", row.factor)};
           }},
    Column{"tpu_choice", "TPU compiler chooses", Of::tpu,
           [](Row row) {
             return Cell{row.tpu ? row.tpu_choice : std::string(not_measured), ""};
           }},
    Column{"tpu_scheduler_s", "its scheduler (us)", Of::tpu,
           [](Row row) {
             return optional_microseconds(row.tpu ? std::optional(row.tpu->scheduler_latency)
                                                  : std::nullopt);
           }},
};

std::vector<Column> columns_of(const CollectivePrediction& prediction) {
  const bool some = !prediction.points.empty();
  const bool has_protocol = some && !prediction.points.front().cost.protocol.empty();
  const bool nccl_known = some && prediction.points.front().cost.nccl_estimate;
  const auto is_calibrated = [](const CollectivePoint& point) { return point.cost.factor != 1; };
  const bool calibrated =
      std::any_of(prediction.points.begin(), prediction.points.end(), is_calibrated);
  const bool tpu_known = some && prediction.points.front().tpu;
  std::vector<Column> present;
  for (const Column& column : columns) {
    if (column.of == Of::measurement && !prediction.experiment.measured) continue;
    if (column.of == Of::protocol && !has_protocol) continue;
    if (column.of == Of::nccl && !nccl_known) continue;
    if (column.of == Of::calibration && !calibrated) continue;
    if (column.of == Of::tpu && !tpu_known) continue;
    present.push_back(column);
  }
  return present;
}

}  // namespace

std::vector<CollectiveFigures> figures_of(const CollectivePrediction& prediction) {
  const CollectiveExperiment& experiment = prediction.experiment;
  const auto bus = [&](Bytes bytes, Seconds time) {
    return bus_bandwidth(experiment.kind, experiment.devices, bytes, time);
  };
  std::vector<CollectiveFigures> rows;
  for (const CollectivePoint& point : prediction.points) {
    CollectiveFigures row;
    row.bytes = point.bytes;
    row.time = point.cost.total();
    row.launch = point.cost.launch;
    row.latency = point.cost.latency;
    row.transfer = point.cost.transfer;
    row.algorithm_bandwidth = algorithm_bandwidth(point.bytes, row.time);
    row.bus_bandwidth = bus(point.bytes, row.time);
    row.algorithm = point.cost.algorithm;
    row.protocol = point.cost.protocol;
    row.factor = point.cost.factor;
    row.nccl_estimate = point.cost.nccl_estimate;
    row.tpu = point.tpu;
    if (row.tpu) row.tpu_choice = row.tpu->describe(experiment.kind);
    row.measured = point.measured;
    if (row.measured) row.measured_bus_bandwidth = bus(point.bytes, *row.measured);
    row.relative_error = point.relative_error();
    rows.push_back(std::move(row));
  }
  return rows;
}

Table collective_table(const CollectivePrediction& prediction) {
  const std::vector<Column> present = columns_of(prediction);
  Table table{"Sizes and bandwidths as in nccl-tests", {}, {}};
  for (const Column& column : present) {
    const bool words =
        column.name == "algorithm" || column.name == "protocol" || column.name == "tpu_choice";
    table.columns.push_back(
        {column.title, words ? TextTable::Align::left : TextTable::Align::right});
  }
  for (const CollectiveFigures& row : figures_of(prediction)) {
    std::vector<Cell>& cells = table.rows.emplace_back();
    for (const Column& column : present) cells.push_back(column.cell(row));
  }
  return table;
}

std::vector<std::string_view> collective_columns(const CollectivePrediction& prediction) {
  std::vector<std::string_view> names;
  for (const Column& column : columns_of(prediction)) names.push_back(column.name);
  return names;
}

std::string title_of(const CollectivePrediction& prediction) {
  const CollectiveModel& model = prediction.experiment.model;
  return fmt::format("{} over {} on {}{}", name_of(prediction.experiment.kind),
                     counted(prediction.experiment.devices, "device"),
                     prediction.machine.profile.name,
                     model == CollectiveModel() ? "" : fmt::format(", {}", name_of(model)));
}

std::string subject_of(const CollectivePrediction& prediction) {
  const std::string& device = prediction.machine.profile.device.name;
  if (prediction.machine.torus) {
    return fmt::format("{}, {}", prediction.machine.topology(), device);
  }
  if (std::holds_alternative<NetworkDescription>(prediction.machine.profile.network)) {
    const auto& network = std::get<NetworkDescription>(prediction.machine.profile.network);
    const std::string what = network.graph ? "a graph" : "written in place";
    return device.empty() ? what : fmt::format("{}, {}", what, device);
  }
  if (prediction.nodes == 1) return fmt::format("1 node, {}", device);
  const std::int64_t each = prediction.experiment.devices / prediction.nodes;
  return fmt::format("{} with {} each, {}", counted(prediction.nodes, "node"), each, device);
}

std::string measured_what(const CollectivePrediction& prediction) {
  if (!prediction.experiment.measured) return {};
  const CollectiveMeasurement& measured = *prediction.experiment.measured;
  return measured.source.empty() ? measured.id
                                 : fmt::format("{} ({})", measured.id, measured.source);
}

std::string error_sentence(const CollectivePrediction& prediction) {
  if (!prediction.errors) return {};
  const ErrorSummary& errors = *prediction.errors;
  return fmt::format("absolute error over {}: median {}, 90th percentile {}",
                     counted(static_cast<std::int64_t>(errors.rows), "row"),
                     format_percent(errors.median), format_percent(errors.percentile_90));
}

}  // namespace shardsim
