#include "experiments/program.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "base/gzip.hpp"
#include "base/text.hpp"
#include "hlo/buffer_assignment.hpp"
#include "hlo/to_plan.hpp"
#include "spmd/partition.hpp"
#include "spmd/propagation/prepare.hpp"
#include "spmd/propagation/propagate.hpp"
#include "spmd/to_plan.hpp"
#include "spmd/wire_bytes.hpp"
#include "stablehlo/module.hpp"

namespace shardsim {
namespace {

Plan compiled_plan(const std::string& text, const std::string& path,
                   const ProgramOptions& options) {
  HloImportOptions import;
  import.mesh = options.mesh;
  if (!options.buffers.empty()) {
    import.temporaries =
        parse_buffer_assignment(read_maybe_gzip(options.buffers), options.buffers).temporaries();
  }
  return plan_from_hlo(HloModule::parse(text, path), import);
}

}  // namespace

bool is_hlo(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && text.compare(begin, 9, "HloModule") == 0;
}

Plan program_plan(const std::string& path, const ProgramOptions& options) {
  const std::string text = read_maybe_gzip(path);
  if (is_hlo(text)) return compiled_plan(text, path, options);
  if (!options.mesh.axes().empty()) {
    throw InputError({path, ""}, "a StableHLO program brings its own mesh: leave out the other");
  }
  stablehlo::Module program = spmd::prepare(stablehlo::parse_module(text, path));
  spmd::propagate(program);
  if (options.like_xla) {
    return spmd::plan_of(spmd::partition(program, {.like_xla = true}), options.target);
  }
  const stablehlo::Module local = spmd::partition(program);
  Plan plan = spmd::plan_of(local, options.target);
  const double bytes = spmd::wire_bytes(local);
  const double usual = spmd::wire_bytes(spmd::partition(program, {.like_xla = true}));
  if (bytes >= usual) return plan;
  plan.notes.push_back(fmt::format(
      "a device sends {} per step where XLA's partitioner sends {}: some arrays are resharded in "
      "other steps (--like xla shows XLA's)",
      format_bytes(Bytes(std::llround(bytes))), format_bytes(Bytes(std::llround(usual)))));
  return plan;
}

}  // namespace shardsim
