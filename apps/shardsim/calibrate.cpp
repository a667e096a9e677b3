#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

#include "command.hpp"
#include "output.hpp"
#include "validate/calibration_tables.hpp"

namespace shardsim {
namespace {

const Manual manual = {
    "calibrate TABLE... [OPTION...]",
    "Measured tables of collectives in, a calibration out: by how much machines of a class miss "
    "the\n"
    "model, by size, with the residuals. A table says what ran where (docs/collective.md); one "
    "that\n"
    "is not marked healthy is left out. What nccl-tests and rccl-tests print is a table, too, as\n"
    "text or JSON (-J), and traces of the PyTorch profiler, of one rank or of several of a job, "
    "are\n"
    "one for each collective in them. A profile names its calibrations, shipped ones or files:\n"
    "\"calibration\": [\"h100-nvswitch\", \"my-network.json\"].",
    {"shardsim calibrate examples/kineto-traces/llama-3.2-fsdp-8xh100-rank0.json \\\n"
     "               --machine dgx-h100",
     "shardsim calibrate examples/collectives/h100-dgx-8-all-reduce.json --name my-nodes \\\n"
     "               --date 2026-11 -o my-nodes.json",
     "shardsim calibrate examples/nccl-tests/a100-2x8-all-reduce.log --machine oci-bm-gpu4.8",
     "shardsim calibrate examples/collectives/h100-dgx-8-all-reduce.json --refit h100-nvswitch"}};

Calibration header_of(const Given& given) {
  if (given.has("refit")) {
    if (given.has("name")) throw UsageError("--refit keeps the name");
    return load_calibration(given.all("refit").front(), {"command line", "/refit"});
  }
  Calibration header;
  header.name = given.has("name") ? given.all("name").front() : "calibration";
  header.title = header.name;
  header.regions = {Region::node, Region::nodes, Region::rail};
  return header;
}

std::string text_of(const Calibration& calibration, const CalibrationTables& tables) {
  TextTable table({{"region"},
                   {"nodes", TextTable::Align::right},
                   {"collective"},
                   {"algorithm"},
                   {"tables", TextTable::Align::right},
                   {"rows", TextTable::Align::right},
                   {"median error", TextTable::Align::right},
                   {"90th percentile", TextTable::Align::right}});
  for (const CalibrationCurve& curve : calibration.curves) {
    table.add_row({std::string(name_of(curve.key.region)), std::to_string(curve.key.nodes),
                   curve.key.collective, curve.key.algorithm, std::to_string(curve.tables.size()),
                   std::to_string(curve.rows), format_percent(curve.median_error),
                   format_percent(curve.percentile_90_error)});
  }
  std::string text = fmt::format(
      "{}: {} from {}; errors over rows from 64 KiB on\n\n{}", calibration.name,
      counted(static_cast<std::int64_t>(calibration.curves.size()), "curve"),
      counted(static_cast<std::int64_t>(calibration.sources.size()), "table"), table.text());
  for (const std::string& note : tables.notes) text += "\nnote: " + note;
  for (const std::string& left_out : tables.left_out) text += "\nleft out: " + left_out;
  return text + (tables.notes.empty() && tables.left_out.empty() ? "" : "\n");
}

}  // namespace

int calibrate_command(const Words& words) {
  const std::vector<std::string> formats = {"text", "json"};
  boost::program_options::options_description options("Options");
  options.add_options()("name", boost::program_options::value<Words>()->value_name("NAME"),
                        "of the calibration")(
      "date", boost::program_options::value<Words>()->value_name("YYYY-MM"), "of the measurements")(
      "refit", boost::program_options::value<Words>()->value_name("NAME"),
      "a shipped calibration, made anew from the tables whose machine names it")(
      "machine", boost::program_options::value<Words>()->value_name("NAME"),
      "of tables that name none, as nccl-tests' output and traces do not");
  add_output_options(options, formats);
  const std::optional<Given> answered = parse_or_help(words, options, manual);
  if (!answered) return exit_done;
  const Given& given = *answered;
  const auto outputs = read_outputs(given, formats, /*text_beside_files=*/true);
  Calibration header = header_of(given);
  if (given.has("date")) header.date = given.all("date").front();
  const auto of_class = given.has("refit") ? std::optional(header.name) : std::nullopt;
  const auto machine =
      given.has("machine") ? std::optional(given.all("machine").front()) : std::nullopt;
  const CalibrationTables tables = read_calibration_tables(given.all("operand"), of_class, machine);
  const Calibration calibration = fit_calibration(header, tables.tables);
  write(outputs, [&](const std::string& format) {
    return format == "json" ? calibration_text(calibration) : text_of(calibration, tables);
  });
  return exit_done;
}

}  // namespace shardsim
