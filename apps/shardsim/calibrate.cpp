#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/error.hpp"
#include "base/text.hpp"

#include "calibrate_sweep.hpp"
#include "command.hpp"
#include "hardware_profiles/sourced_reader.hpp"
#include "measurements/measured_tables.hpp"
#include "output.hpp"
#include "validate/fit/calibration_report.hpp"
#include "validate/fit/hold_out.hpp"
#include "verbs.hpp"

namespace shardsim {
namespace {

const Manual calibrate_manual = {
    "calibrate TABLE...|SWEEP [OPTION...]",
    "Measured tables of collectives in, a calibration out: by how much machines of a class miss\n"
    "the model, by size, with the residuals. A table says what ran where (docs/collective.md);\n"
    "one that is not marked healthy is left out, one whose figures look like a machine that is\n"
    "not well is named. What nccl-tests and rccl-tests print is a table, too, as text or JSON\n"
    "(-J), and traces of the PyTorch profiler, of one rank or of several of a job, are one for\n"
    "each collective in them. collective --calibration FILE shows what it makes of them, run and\n"
    "others take it as well; a profile or an experiment names its calibrations, shipped ones or\n"
    "files beside it: \"calibration\": [\"h100-nvswitch\", \"my-network.json\"].\n"
    "Of a SWEEP, which shardsim validate --sweep measures, a whole profile is made, of one host\n"
    "or of several; beside it stand what groups at the same time take, and algorithms.\n"
    "A published table of kernels, a row for each with its shape and time or rate, tells the\n"
    "device's efficiencies by shape; the network stays the machine's (docs/calibration.md).",
    {"shardsim calibrate examples/kernels/cublaslt-fp8-h100-h200.json --machine dgx-h100 \\\n"
     "               --date 2026-08 --where 'device=H100 SXM 80GB HBM3'",
     "shardsim calibrate examples/sweep-two-processes.json --name my-host -o my-host.json",
     "shardsim calibrate examples/nccl-tests/a100-2x8-all-reduce.log --machine oci-bm-gpu4.8",
     "shardsim calibrate examples/collectives/h100-dgx-8-all-reduce.json --refit h100-nvswitch"}};

// --name, else the name of the file that it is written to.
std::string name_of(const Given& given, const std::vector<Output>& outputs) {
  if (given.has("name")) return given.all("name").front();
  for (const Output& output : outputs) {
    if (output.format != "json" || output.path.empty()) continue;
    return std::filesystem::path(output.path).stem().string();
  }
  return "calibration";
}

Calibration header_of(const Given& given, const std::vector<Output>& outputs) {
  if (given.has("refit")) {
    if (given.has("name")) throw UsageError("--refit keeps the name");
    return load_calibration(given.all("refit").front(), {"command line", "/refit"});
  }
  Calibration header;
  header.name = name_of(given, outputs);
  header.title = header.name;
  header.regions = {Region::node, Region::nodes, Region::rail};
  return header;
}

std::string notes_text(const CalibrationTables& tables) {
  std::string text;
  const auto add = [&](const char* what, const std::vector<std::string>& notes) {
    for (const std::string& note : notes) text += fmt::format("\n{}: {}", what, note);
  };
  add("note", tables.notes);
  add("left out", tables.left_out);
  add("suspicious", tables.suspicious);
  add("odd rows", tables.odd);
  if (!tables.suspicious.empty()) {
    text += "\nWhat is suspicious is fitted, too; --exclude-suspicious leaves it out.";
  }
  return text + (text.empty() ? "" : "\n");
}

std::string text_of(const Calibration& calibration, const CalibrationTables& tables,
                    std::size_t width) {
  std::string text =
      fmt::format("{}: {} from {}; errors over rows from 64 KiB on\n\n{}", calibration.name,
                  counted(static_cast<std::int64_t>(calibration.curves.size()), "curve"),
                  counted(static_cast<std::int64_t>(calibration.sources.size()), "table"),
                  curves_table(calibration).text({}, width));
  text += fmt::format("\n{}:\n\n{}", about_factors, factors_table(calibration).text({}, width));
  text += fmt::format("\n{}", sizes_table(calibration.errors_by_size).text({}, width));
  if (!calibration.held_out.tables.empty()) {
    text += fmt::format("\nTables predicted by calibrations made without them:\n\n{}\n{}",
                        held_out_table(calibration.held_out).text({}, width),
                        sizes_table(calibration.held_out.by_size).text({}, width));
  }
  return text + notes_text(tables);
}

std::vector<MeasuredTable> load(const Given& given) {
  std::optional<std::int64_t> devices_per_node;
  if (given.has("machine")) {
    devices_per_node = devices_of_host(given.all("machine").front(), {"command line", "/machine"});
  }
  return load_measured_tables(given.all("operand"), devices_per_node);
}

// Takes the tables that are held out together out of `tables`.
Calibration fit(const Given& given, const Calibration& header, CalibrationTables& tables) {
  std::vector<std::string> ids;
  for (const std::string& list : given.all("holdout")) {
    std::istringstream stream(list);
    for (std::string id; std::getline(stream, id, ',');) ids.push_back(id);
  }
  HeldOut held_out;
  if (ids == std::vector<std::string>{"all"}) {
    held_out = hold_out_each(header, tables.tables);
  } else if (!ids.empty()) {
    held_out = hold_out(header, ids, tables.tables);
  }
  Calibration calibration = fit_calibration(header, tables.tables);
  add_errors(calibration, tables.tables);
  calibration.held_out = std::move(held_out);
  for (const SuspiciousTable& remark : tables.remarks) {
    const auto& sources = calibration.sources;
    if (std::any_of(sources.begin(), sources.end(),
                    [&](const MeasuredSource& source) { return source.table == remark.table; })) {
      calibration.suspicious.push_back(remark);
    }
  }
  return calibration;
}

const std::vector<std::string> calibrate_formats = {"text", "json"};

void add_calibrate_options(po::options_description& options) {
  options.add_options()("name", po::value<Words>()->value_name("NAME"),
                        "of the calibration; that of the file it is written to")(
      "date", po::value<Words>()->value_name("YYYY-MM"), "of the measurements")(
      "refit", po::value<Words>()->value_name("NAME"),
      "a shipped calibration, made anew from the tables whose machine names it")(
      "machine", po::value<Words>()->value_name("NAME"),
      "of tables that name none, as nccl-tests' output and traces do not, and of kernels")(
      "where", po::value<Words>()->value_name("COLUMN=VALUE"),
      "only these rows of a table of kernels; may be repeated")(
      "set", po::value<Words>()->value_name("COLUMN=VALUE"),
      "what its rows leave out: dtype=bf16, causal=true; may be repeated")(
      "exclude-suspicious", "leave out tables that show a machine that is not well")(
      "holdout", po::value<Words>()->value_name("ID[,ID]|all"),
      "predict these tables by what the others make; with all each by what is made without it");
  add_output_options(options, calibrate_formats);
}

int run_calibrate(const Given& given) {
  const auto outputs = read_outputs(given, calibrate_formats);
  if (given.has("date")) check_date(given.all("date").front(), {"command line", "/date"});
  Calibration header = header_of(given, outputs);
  const std::vector<MeasuredTable> files = load(given);
  if (const auto sweep = given_sweep(files, given)) return calibrate_sweep(*sweep, given, outputs);
  if (given.has("date")) header.date = given.all("date").front();
  TableChoice choice;
  if (given.has("refit")) choice.of_class = header.name;
  if (given.has("machine")) choice.machine = given.all("machine").front();
  choice.exclude_suspicious = given.has("exclude-suspicious");
  CalibrationTables tables = calibration_tables_of(files, choice);
  const Calibration calibration = fit(given, header, tables);
  write(outputs, [&](const Output& output) {
    return output.format == "json" ? calibration_text(calibration)
                                   : text_of(calibration, tables, output.width);
  });
  return exit_done;
}

}  // namespace

Verb calibrate_verb() {
  return {"calibrate", "measured tables of collectives in, what machines take beyond the model out",
          calibrate_manual, add_calibrate_options, run_calibrate};
}

}  // namespace shardsim
