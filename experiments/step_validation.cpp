#include "experiments/step_validation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace shardsim {
namespace {

bool is_part(const ValidatedTask& task, StepPart part) {
  const bool communicates =
      task.task_kind == TaskKind::collective || task.task_kind == TaskKind::transfer;
  return part == StepPart::everything || communicates == (part == StepPart::communication);
}

}  // namespace

std::optional<double> Compared::relative_error() const {
  if (!(measured > Seconds(0))) return std::nullopt;
  return predicted.count() / measured.count() - 1;
}

std::optional<double> ComparedBytes::relative_error() const {
  if (!(measured > Bytes(0))) return std::nullopt;
  return static_cast<double>(predicted.count()) / static_cast<double>(measured.count()) - 1;
}

Bytes ValidatedMemory::shared() const {
  Bytes rest = peak.measured;
  for (const ComparedBytes& category : by_category) rest -= category.measured;
  return rest;
}

std::optional<double> largest_error(const std::vector<ValidatedMemory>& memory) {
  std::optional<double> largest;
  for (const ValidatedMemory& program : memory) {
    const auto error = program.peak.relative_error();
    if (error) largest = std::max(std::abs(*error), largest.value_or(0));
  }
  return largest;
}

std::vector<ValidatedRow> rows_of(const std::vector<ValidatedTask>& tasks) {
  using Key = std::tuple<bool, std::string, std::vector<std::string>, Bytes>;
  std::map<Key, ValidatedRow> rows;
  for (const ValidatedTask& task : tasks) {
    const bool computes = is_part(task, StepPart::compute);
    // Kernels of a class are one row, whatever their size.
    const Bytes payload = computes ? Bytes(0) : task.payload;
    ValidatedRow& row = rows[{computes, task.kind, task.axes, payload}];
    row.kind = task.kind;
    row.axes = task.axes;
    row.group_size = task.group_size;
    row.payload = computes ? row.payload + task.payload : payload;
    const bool is_known = task.estimated && (row.count == 0 || row.estimated);
    row.estimated = is_known ? std::optional(row.estimated.value_or(Seconds(0)) + *task.estimated)
                             : std::nullopt;
    ++row.count;
    row.time.predicted += task.time.predicted;
    row.time.measured += task.time.measured;
  }
  std::vector<ValidatedRow> ordered;
  for (const bool computes : {false, true}) {
    const auto begin = static_cast<std::ptrdiff_t>(ordered.size());
    for (const auto& [key, row] : rows) {
      if (std::get<0>(key) == computes) ordered.push_back(row);
    }
    std::stable_sort(ordered.begin() + begin, ordered.end(),
                     [](const ValidatedRow& a, const ValidatedRow& b) {
                       return a.time.measured > b.time.measured;
                     });
  }
  return ordered;
}

Compared total_of(const std::vector<ValidatedTask>& tasks, StepPart part) {
  Compared total;
  for (const ValidatedTask& task : tasks) {
    if (!is_part(task, part)) continue;
    total.predicted += task.time.predicted;
    total.measured += task.time.measured;
  }
  return total;
}

std::optional<ErrorSummary> errors_of(const std::vector<ValidatedTask>& tasks, StepPart part) {
  std::vector<double> errors;
  for (const ValidatedTask& task : tasks) {
    const auto error = task.time.relative_error();
    if (error && is_part(task, part)) errors.push_back(std::abs(*error));
  }
  return summary_of(errors);
}

}  // namespace shardsim
