#include "calibrate_sweep.hpp"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>

#include "base/json.hpp"
#include "base/text.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "reports/step/json_report.hpp"
#include "validate/fit/fit_profile.hpp"
#include "validate/sweep/sweep_findings.hpp"

namespace shardsim {
namespace {

constexpr auto right = TextTable::Align::right;

std::string errors_text(const char* what, const std::optional<ErrorSummary>& errors) {
  if (!errors) return {};
  return fmt::format("{}: median {}, 90th percentile {} ({} records)\n", what,
                     format_percent(errors->median), format_percent(errors->percentile_90),
                     errors->rows);
}

bool is_sweep(const Json& document) {
  const auto schema = document.find("schema");
  const std::string_view any_version = sweep_schema.substr(0, sweep_schema.rfind('/') + 1);
  return schema != document.end() && schema->is_string() &&
         schema->get<std::string>().starts_with(any_version);
}

void refuse(const Given& given, std::initializer_list<const char*> options, const char* what) {
  for (const char* option : options) {
    if (given.has(option)) throw UsageError(fmt::format("--{} is {}", option, what));
  }
}

KernelTable table_of(const MeasuredTable& table, const Given& given) {
  if (!given.has("machine") || !given.has("date")) {
    throw UsageError(
        fmt::format("{} is a table of kernels: --machine and --date say of what "
                    "device and of when",
                    table.file));
  }
  KernelTableChoice choice;
  choice.machine = given.all("machine").front();
  choice.date = given.all("date").front();
  choice.where = read_column_values(given.all("where"), "where");
  choice.set = read_column_values(given.all("set"), "set");
  return read_kernel_table(table.table, table.file, choice);
}

std::string kernels_text(const std::vector<KernelErrors>& errors, std::size_t width) {
  return errors.empty() ? "" : fmt::format("\n{}", kernel_errors_table(errors).text({}, width));
}

std::string fitted_text(const FittedProfile& fitted, std::size_t width) {
  TextTable table({{"number"}, {"fitted", right}, {"95 % from", right}, {"to", right}, {""}});
  for (const FittedNumber& number : fitted.numbers) {
    const bool has_old = number.value != "-";
    const char* remark = has_old ? "not determined: left as it was" : "not determined: left out";
    table.add_row(
        {number.quantity, number.value, number.low, number.high, number.determined ? "" : remark});
  }
  return fmt::format("{}: {}\n\n{}\n{}{}{}{}{}{}", fitted.profile.name, fitted.profile.title,
                     table.text({}, width),
                     errors_text("collectives from 64 KiB on, fitted", fitted.collectives),
                     errors_text("collectives from 64 KiB on, every second size left out",
                                 fitted.left_out_collectives),
                     errors_text("kernels, fitted", fitted.kernels),
                     errors_text("kernels, every second one left out", fitted.left_out_kernels),
                     errors_text("copies to the host and back, fitted", fitted.copies),
                     kernels_text(fitted.kernels_by_size, width));
}

std::string groups_text(std::int64_t groups, std::int64_t group_size) {
  return fmt::format("{} of {}", groups, group_size);
}

std::string algorithm_text(const std::string& algorithm) {
  return algorithm.empty() ? "library's choice" : algorithm;
}

std::string contention_text(const std::vector<Contention>& rows, std::size_t width) {
  if (rows.empty()) return {};
  TextTable table({{"collective"},
                   {"groups"},
                   {"sizes", right},
                   {"at once / alone", right},
                   {"from", right},
                   {"to", right},
                   {"predicted", right}});
  for (const Contention& row : rows) {
    table.add_row({std::string(name_of(row.kind)), groups_text(row.groups, row.group_size),
                   std::to_string(row.sizes), fmt::format("{:.2f}", row.ratio),
                   fmt::format("{:.2f}", row.low), fmt::format("{:.2f}", row.high),
                   fmt::format("{:.2f}", row.predicted)});
  }
  return fmt::format("\nAll groups at once against one alone, median and range over sizes:\n\n{}",
                     table.text({}, width));
}

std::string interval_text(const FittedTerm& term, double unit) {
  if (!term.determined) return "not determined";
  const std::string high = std::isfinite(term.high) ? fmt::format("{:.4g}", term.high * unit) : "?";
  return fmt::format("{:.4g} ({:.4g} to {})", term.value * unit, term.low * unit, high);
}

std::string algorithms_text(const std::vector<ComparedAlgorithms>& all, std::size_t width) {
  if (all.empty()) return {};
  TextTable fits({{"collective"},
                  {"groups"},
                  {"algorithm"},
                  {"start, us", right},
                  {"a byte, ns", right},
                  {"median error", right}});
  TextTable fastest({{"collective"},
                     {"groups"},
                     {"size", right},
                     {"fastest"},
                     {"time", right},
                     {"the next", right}});
  bool any_fastest = false;
  for (const ComparedAlgorithms& of : all) {
    const std::string kind(name_of(of.kind));
    const std::string groups = groups_text(of.groups, of.group_size);
    for (const AlgorithmFit& fit : of.fits) {
      fits.add_row({kind, groups, algorithm_text(fit.algorithm), interval_text(fit.start, 1e6),
                    interval_text(fit.byte, 1e9), format_percent(fit.median_error)});
    }
    for (const FastestAlgorithm& best : of.fastest) {
      any_fastest = true;
      fastest.add_row({kind, groups, format_bytes(best.payload), algorithm_text(best.algorithm),
                       format_seconds(best.time), format_seconds(best.next)});
    }
  }
  const std::string text = fmt::format(
      "\nBy algorithm, start + payload * a byte, with 95 % intervals:\n\n{}", fits.text({}, width));
  return any_fastest ? fmt::format("{}\n{}", text, fastest.text({}, width)) : text;
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += fmt::format("\nnote: {}", note);
  return text + (text.empty() ? "" : "\n");
}

}  // namespace

std::optional<KernelTable> given_sweep(const std::vector<MeasuredTable>& tables,
                                       const Given& given) {
  for (const MeasuredTable& table : tables) {
    const bool is_of_program = is_sweep(table.table);
    if (!is_of_program && !is_kernel_table(table.table)) continue;
    if (tables.size() > 1) {
      throw UsageError(fmt::format("{} is a {}: one at a time", table.file,
                                   is_of_program ? "sweep" : "table of kernels"));
    }
    refuse(given, {"refit", "exclude-suspicious", "holdout"}, "for tables of collectives");
    if (!is_of_program) return table_of(table, given);
    refuse(given, {"machine", "date", "where", "set"}, "for tables, not sweeps");
    return KernelTable{read_sweep(table.table, table.file), {}};
  }
  refuse(given, {"where", "set"}, "for tables of kernels");
  return std::nullopt;
}

int calibrate_sweep(const KernelTable& table, const Given& given,
                    const std::vector<Output>& outputs) {
  const DeviceSweep& sweep = table.sweep;
  const std::string name = given.has("name") ? given.all("name").back() : "my-host";
  const FittedProfile fitted = fit_profile(sweep, name);
  const SweepFindings findings = find_in_sweep(sweep, fitted.profile);
  write(outputs, [&](const Output& output) {
    if (output.format == "json") {
      Json document = profile_to_json(fitted.profile);
      add_findings(document, findings);
      return json_text(document);
    }
    return fitted_text(fitted, output.width) + contention_text(findings.contention, output.width) +
           algorithms_text(findings.algorithms, output.width) + notes_text(table.notes);
  });
  return exit_done;
}

}  // namespace shardsim
