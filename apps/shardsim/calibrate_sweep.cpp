#include "calibrate_sweep.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>

#include "base/json.hpp"
#include "base/text.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "reports/json_report.hpp"
#include "validate/fit_profile.hpp"
#include "validate/sweep_findings.hpp"

namespace shardsim {
namespace {

constexpr auto right = TextTable::Align::right;

std::string errors_text(const char* what, const std::optional<ErrorSummary>& errors) {
  if (!errors) return {};
  return fmt::format("{}: median {}, 90th percentile {} ({} records)\n", what,
                     format_percent(errors->median), format_percent(errors->percentile_90),
                     errors->rows);
}

// By its schema, which sweeps begin with: other files can be traces of hundreds of megabytes.
bool begins_as_sweep(const std::string& file) {
  constexpr std::size_t enough = 256;
  std::string head(enough, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head.find(sweep_schema.substr(0, sweep_schema.rfind('/') + 1)) != std::string::npos;
}

std::string kernels_text(const std::vector<KernelErrors>& errors) {
  return errors.empty() ? "" : fmt::format("\n{}", kernel_errors_table(errors).text());
}

std::string fitted_text(const FittedProfile& fitted) {
  TextTable table({{"number"}, {"fitted", right}, {"95 % from", right}, {"to", right}, {""}});
  for (const FittedNumber& number : fitted.numbers) {
    const bool has_old = number.value != "-";
    const char* remark = has_old ? "not determined: left as it was" : "not determined: left out";
    table.add_row(
        {number.quantity, number.value, number.low, number.high, number.determined ? "" : remark});
  }
  return fmt::format("{}: {}\n\n{}\n{}{}{}{}{}{}", fitted.profile.name, fitted.profile.title,
                     table.text(),
                     errors_text("collectives from 64 KiB on, fitted", fitted.collectives),
                     errors_text("collectives from 64 KiB on, every second size left out",
                                 fitted.left_out_collectives),
                     errors_text("kernels, fitted", fitted.kernels),
                     errors_text("kernels, every second one left out", fitted.left_out_kernels),
                     errors_text("copies to the host and back, fitted", fitted.copies),
                     kernels_text(fitted.kernels_by_size));
}

std::string groups_text(std::int64_t groups, std::int64_t group_size) {
  return fmt::format("{} of {}", groups, group_size);
}

std::string algorithm_text(const std::string& algorithm) {
  return algorithm.empty() ? "library's choice" : algorithm;
}

std::string contention_text(const std::vector<Contention>& rows) {
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
                     table.text());
}

std::string interval_text(const FittedTerm& term, double unit) {
  if (!term.determined) return "not determined";
  const std::string high = std::isfinite(term.high) ? fmt::format("{:.4g}", term.high * unit) : "?";
  return fmt::format("{:.4g} ({:.4g} to {})", term.value * unit, term.low * unit, high);
}

std::string algorithms_text(const std::vector<ComparedAlgorithms>& all) {
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
      "\nBy algorithm, start + payload * a byte, with 95 % intervals:\n\n{}", fits.text());
  return any_fastest ? fmt::format("{}\n{}", text, fastest.text()) : text;
}

}  // namespace

std::optional<DeviceSweep> given_sweep(const Given& given) {
  const Words files = given.all("operand");
  for (const std::string& file : files) {
    if (!begins_as_sweep(file)) continue;
    if (files.size() > 1) throw UsageError(fmt::format("{} is a sweep: one at a time", file));
    return read_sweep(load_json(file), file);
  }
  return std::nullopt;
}

int calibrate_sweep(const DeviceSweep& sweep, const Given& given,
                    const std::vector<Output>& outputs) {
  for (const char* option : {"refit", "machine", "date", "exclude-suspicious"}) {
    if (given.has(option)) throw UsageError(fmt::format("--{} is for tables, not sweeps", option));
  }
  const std::string name = given.has("name") ? given.all("name").back() : "my-host";
  const FittedProfile fitted = fit_profile(sweep, name);
  const SweepFindings findings = find_in_sweep(sweep, fitted.profile);
  write(outputs, [&](const std::string& format) {
    if (format == "json") {
      Json document = profile_to_json(fitted.profile);
      add_findings(document, findings);
      return json_text(document);
    }
    return fitted_text(fitted) + contention_text(findings.contention) +
           algorithms_text(findings.algorithms);
  });
  return exit_done;
}

}  // namespace shardsim
