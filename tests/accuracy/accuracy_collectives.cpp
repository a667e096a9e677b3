// Prints docs/accuracy-collectives.md: collectives predicted beside those measured, for every table
// of tests/measurements/collectives.
//
// A table is predicted three times: by the model alone, with the shipped calibrations, and with
// calibrations of its machine made anew without it. Only the last says what to expect of a system
// that nobody has measured yet.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/json.hpp"
#include "base/text.hpp"
#include "validate/fit/fit_calibration.hpp"
#include "validate/fit/size_errors.hpp"

namespace shardsim {
namespace {

constexpr Bytes largest_judged{8 * GiB};

struct Errors {
  std::vector<double> alone, fitted, left_out;

  void add(const Errors& other) {
    alone.insert(alone.end(), other.alone.begin(), other.alone.end());
    fitted.insert(fitted.end(), other.fitted.begin(), other.fitted.end());
    left_out.insert(left_out.end(), other.left_out.begin(), other.left_out.end());
  }
};

struct Table {
  CollectiveExperiment experiment;
  Profile profile;
  CalibrationTable samples;
};

struct Study {
  std::vector<Table> tables;
  std::vector<std::string> left_aside;
};

std::string why_left_aside(const CollectiveMeasurement& measurement) {
  if (measurement.healthy == false) return "not healthy: " + measurement.healthy_reason;
  if (!measurement.healthy) return "not known to be healthy";
  if (!measurement.machine) return "names no machine";
  if (!measurement.group.kind) return "does not say which collective";
  if (!measurement.group.ranks) return "does not say how many ranks";
  return {};
}

Study read_study() {
  Study study;
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder = SHARDSIM_SOURCE_DIR "/tests/measurements/collectives";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry);
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    const std::string file = path.string();
    const CollectiveMeasurement measurement = read_measurement(load_json(file), file, {});
    const std::string why = why_left_aside(measurement);
    if (!why.empty()) {
      study.left_aside.push_back(fmt::format("{}: {}", measurement.id, why));
      continue;
    }
    Table table;
    table.experiment = read_collective(Json{{"against", file}}, "");
    table.profile = load_profile(*measurement.machine, {file, "/machine"});
    table.samples = sample_table(table.experiment);
    study.tables.push_back(std::move(table));
  }
  return study;
}

bool names(const Profile& profile, const std::string& calibration) {
  return std::any_of(profile.calibrations.begin(), profile.calibrations.end(),
                     [&](const Calibration& named) { return named.name == calibration; });
}

// Those of the table's machine, made of all tables of their classes but this one.
std::vector<Calibration> calibrations_without(const Table& left_out, const Study& study) {
  std::vector<Calibration> calibrations;
  for (const Calibration& calibration : left_out.profile.calibrations) {
    std::vector<CalibrationTable> others;
    for (const Table& table : study.tables) {
      if (&table != &left_out && names(table.profile, calibration.name)) {
        others.push_back(table.samples);
      }
    }
    calibrations.push_back(fit_calibration(calibration, others));
  }
  return calibrations;
}

// Whether other tables have a curve for any row of this one.
bool has_others(const Table& table, const Study& study) {
  const std::vector<Calibration> calibrations = calibrations_without(table, study);
  const auto& samples = table.samples.samples;
  return std::any_of(samples.begin(), samples.end(), [&](const CalibrationSample& sample) {
    return find_curves(calibrations, sample.key).has_value();
  });
}

bool is_judged(Bytes bytes) { return smallest_judged <= bytes && bytes <= largest_judged; }

std::map<Bytes, double> judged_errors(const CollectiveExperiment& experiment) {
  std::map<Bytes, double> errors = errors_of(experiment);
  errors.erase(errors.upper_bound(largest_judged), errors.end());
  return errors;
}

std::map<Bytes, Errors> judge(const Table& table, const Study& study) {
  std::map<Bytes, Errors> result;
  CollectiveExperiment experiment = table.experiment;
  for (const auto& [bytes, error] : judged_errors(experiment)) result[bytes].fitted = {error};
  experiment.calibrations = calibrations_without(table, study);
  for (const auto& [bytes, error] : judged_errors(experiment)) result[bytes].left_out = {error};
  experiment.calibrations = std::vector<Calibration>{};
  for (const auto& [bytes, error] : judged_errors(experiment)) result[bytes].alone = {error};
  return result;
}

// The same collective, by the same algorithm, over as many ranks and nodes of machines of one
// class, in several tables: how far each is from the median of the others. No model can do better.
std::vector<double> differences_between_tables(const Study& study) {
  using Same = std::tuple<std::string, std::int64_t, CurveKey, CollectiveKind, Bytes>;
  std::map<Same, std::vector<double>> times;
  for (const Table& table : study.tables) {
    if (table.profile.calibrations.empty()) continue;
    for (const CalibrationSample& sample : table.samples.samples) {
      if (!is_judged(sample.bytes)) continue;
      const bool leaves = sample.key.region != Region::node;
      const auto& calibrations = table.profile.calibrations;
      const Calibration& its = leaves ? calibrations.back() : calibrations.front();
      times[{its.name, table.experiment.devices, sample.key, table.experiment.kind, sample.bytes}]
          .push_back(sample.measured.count());
    }
  }
  std::vector<double> differences;
  for (const auto& [same, measured] : times) {
    for (std::size_t i = 0; i < measured.size() && measured.size() > 1; ++i) {
      std::vector<double> others = measured;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      differences.push_back(std::abs(quantile(others, 0.5) / measured[i] - 1));
    }
  }
  return differences;
}

std::string quantiles(const std::vector<double>& errors) {
  if (errors.empty()) return "";
  return fmt::format("{:.1f} / {:.1f}", 100 * quantile(errors, 0.5), 100 * quantile(errors, 0.9));
}

std::vector<std::string> cells(std::vector<std::string> first, const Errors& errors) {
  first.push_back(std::to_string(errors.fitted.size()));
  for (const auto* column : {&errors.left_out, &errors.fitted, &errors.alone}) {
    first.push_back(quantiles(*column));
  }
  return first;
}

TextTable table_of(std::vector<TextTable::Column> columns) {
  for (const char* title : {"rows", "left out, %", "fitted, %", "model alone, %"}) {
    columns.push_back({title, TextTable::Align::right});
  }
  return TextTable(std::move(columns));
}

void print_group(const char* title, const char* column, const std::vector<std::string>& order,
                 const std::map<std::string, Errors>& groups) {
  TextTable table = table_of({{column}});
  for (const std::string& name : order) table.add_row(cells({name}, groups.at(name)));
  fmt::print("## {}\n\n{}\n", title, table.markdown());
}

// Tables that no calibration was made of, whatever is left out.
void print_blind() {
  const std::string root = SHARDSIM_SOURCE_DIR;
  std::vector<Json> asked;
  for (const char* name : {"allgather", "allreduce", "reducescatter"}) {
    asked.push_back({{"against", fmt::format("{}/tests/measurements/blind/h100_xla_1n8g_{}.json",
                                             root, name)}});
  }
  asked.push_back({{"against", root + "/examples/nccl-tests/a100-2x8-all-reduce.log"},
                   {"machine", "oci-bm-gpu4.8"}});
  constexpr auto right = TextTable::Align::right;
  TextTable table({{"table"},
                   {"machine"},
                   {"ranks"},
                   {"nodes"},
                   {"collective"},
                   {"rows", right},
                   {"predicted, %", right},
                   {"model alone, %", right}});
  Errors all;
  for (const Json& document : asked) {
    CollectiveExperiment experiment = read_collective(document, "");
    Errors errors;
    for (const auto& [bytes, error] : judged_errors(experiment)) errors.fitted.push_back(error);
    experiment.calibrations = std::vector<Calibration>{};
    for (const auto& [bytes, error] : judged_errors(experiment)) errors.alone.push_back(error);
    table.add_row({experiment.measured->id, experiment.machine, std::to_string(experiment.devices),
                   std::to_string(experiment.nodes.value_or(1)),
                   std::string(name_of(experiment.kind)), std::to_string(errors.fitted.size()),
                   quantiles(errors.fitted), quantiles(errors.alone)});
    all.add(errors);
  }
  table.add_row({"all", "", "", "", "", std::to_string(all.fitted.size()), quantiles(all.fitted),
                 quantiles(all.alone)});
  fmt::print(
      "## Blind\n\nTables that no calibration was made of, predicted with those that profiles "
      "name: "
      "what XLA's own cost model\nholds of 8 H100s, and what Oracle published of two nodes of "
      "A100s "
      "(examples/nccl-tests).\n\n{}\n",
      table.markdown());
}

void print_document(const Study& study) {
  std::array<Errors, 2> all;  // of tables that are alone in their class, of those that are not
  std::array<std::size_t, 2> count{};
  std::map<std::string, Errors> machines, kinds;
  std::map<Bytes, Errors> ranges;
  TextTable tables = table_of({{"table"}, {"machine"}, {"ranks"}, {"nodes"}, {"collective"}});
  for (const Table& table : study.tables) {
    Errors of_table;
    const CollectiveExperiment& experiment = table.experiment;
    for (const auto& [bytes, errors] : judge(table, study)) {
      of_table.add(errors);
      ranges[range_of(bytes)].add(errors);
    }
    const std::size_t together = has_others(table, study) ? 1 : 0;
    all.at(together).add(of_table);
    ++count.at(together);
    machines[experiment.machine].add(of_table);
    kinds[std::string(name_of(experiment.kind))].add(of_table);
    tables.add_row(
        cells({experiment.measured->id, experiment.machine, std::to_string(experiment.devices),
               std::to_string(experiment.nodes.value_or(1)), std::string(name_of(experiment.kind))},
              of_table));
  }
  TextTable total = table_of({{""}, {"tables", TextTable::Align::right}});
  total.add_row(cells({"of a class with others", std::to_string(count[1])}, all[1]));
  total.add_row(cells({"alone in their class, TPUs", std::to_string(count[0])}, all[0]));
  all[0].add(all[1]);
  total.add_row(cells({"all", std::to_string(study.tables.size())}, all[0]));
  fmt::print("{}\n", total.markdown());
  const std::vector<double> differences = differences_between_tables(study);
  fmt::print(
      "Measurements differ, too: of {} rows that several tables have (the same class of machine, "
      "ranks, nodes, collective,\nalgorithm and size), one table's is from the median of the "
      "others' {} %.\n\n",
      differences.size(), quantiles(differences));

  const auto names_of = [](const std::map<std::string, Errors>& groups) {
    std::vector<std::string> names;
    for (const auto& [name, errors] : groups) names.push_back(name);
    return names;
  };
  std::vector<std::string> sizes;
  std::map<std::string, Errors> decades;
  for (const auto& [from, errors] : ranges) {
    sizes.push_back(range_text(from));
    decades[sizes.back()] = errors;
  }
  print_blind();
  print_group("By machine", "machine", names_of(machines), machines);
  print_group("By collective", "collective", names_of(kinds), kinds);
  print_group("By size", "size", sizes, decades);
  fmt::print("## By table\n\n{}\n## Left aside\n\n", tables.markdown());
  for (const std::string& why : study.left_aside) fmt::print("- {}\n", why);
}

constexpr const char* preface =
    R"(# Collectives: predicted beside measured

Written by `scripts/accuracy.sh`. Every published table of tests/measurements/collectives that is
marked healthy, rows from 64 KiB to 8 GiB: absolute relative error of the predicted time, median /
90th percentile, three ways:

- **left out**: with calibrations of its class of machines made without this table: what to expect
  of a system that nobody has measured yet. Where no other table of its class has such a collective
  on such a part of the machine, this is the model alone.
- **fitted**: with the calibrations that profiles name, which this table is part of.
- **model alone**: NCCL's choice and latencies, and what links carry (docs/cost-model.md).

How calibrations are made: docs/calibration.md. Profiles of TPUs have none.

)";

}  // namespace
}  // namespace shardsim

int main() {
  fmt::print("{}", shardsim::preface);
  shardsim::print_document(shardsim::read_study());
}
