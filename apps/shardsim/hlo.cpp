#include <fmt/format.h>

#include "base/error.hpp"
#include "base/gzip.hpp"
#include "base/json.hpp"
#include "plan/read_mesh.hpp"
#include "reports/hlo/hlo_diff_report.hpp"

#include "command.hpp"
#include "output.hpp"
#include "verbs.hpp"

namespace shardsim {
namespace {

const Manual hlo_manual = {
    "hlo diff BEFORE AFTER [OPTION...]",
    "What two programs that XLA compiled do differently: collectives removed, added and changed,\n"
    "bytes sent, operations, memory and instructions per device and step, largest difference\n"
    "first. A program is HLO text as compile().as_text() and --xla_dump_to print it, gzip too\n"
    "(docs/hlo-import.md).",
    {"shardsim hlo diff examples/programs/fsdp-matmul.hlo examples/programs/tp-matmul.hlo \\\n"
     "               --mesh x=2,y=4",
     "shardsim hlo diff examples/programs/fsdp-matmul.hlo examples/programs/tp-matmul.hlo \\\n"
     "               -o diff.json -o diff.md"}};

// Of one program: the only mesh is for both.
HloImportOptions import_options(const Words& meshes, std::size_t which) {
  HloImportOptions options;
  if (meshes.empty()) return options;
  const Json text = meshes[meshes.size() == 1 ? 0 : which];
  options.mesh = read_mesh(JsonReader(text, {"command line", "--mesh"}));
  return options;
}

HloSummary read_program(const std::string& path, const HloImportOptions& options) {
  return summarize_hlo(HloModule::parse(read_maybe_gzip(path), path), options);
}

const std::vector<std::string> hlo_formats = {"text", "json", "csv", "markdown"};

void add_hlo_options(po::options_description& options) {
  add_output_options(options, hlo_formats);
  options.add_options()(
      "mesh", po::value<Words>()->value_name("MESH"),
      "axes and sizes to tell device groups by: data=2,fsdp=4; given twice, one per program");
}

int run_hlo(const Given& given) {
  const Words operands = given.all("operand");
  if (operands.size() != 3 || operands[0] != "diff") {
    throw UsageError("expected: hlo diff BEFORE AFTER");
  }
  const Words meshes = given.all("mesh");
  if (meshes.size() > 2) throw UsageError("--mesh is given more than twice");
  const auto outputs = read_outputs(given, hlo_formats);
  const HloDiff diff = diff_hlo(read_program(operands[1], import_options(meshes, 0)),
                                read_program(operands[2], import_options(meshes, 1)));
  write(outputs, [&](const Output& output) {
    const std::string& format = output.format;
    if (format == "json") return hlo_diff_json(diff);
    if (format == "csv") return hlo_diff_csv(diff);
    return format == "markdown" ? hlo_diff_markdown(diff) : hlo_diff_text(diff, output.width);
  });
  return exit_done;
}

}  // namespace

Verb hlo_verb() {
  return {.name = "hlo",
          .summary = "what two compiled programs do differently",
          .manual = hlo_manual,
          .add_options = add_hlo_options,
          .run = run_hlo,
          .actions = {"diff"}};
}

}  // namespace shardsim
