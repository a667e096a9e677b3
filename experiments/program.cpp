#include "experiments/program.hpp"

#include "base/error.hpp"
#include "base/gzip.hpp"
#include "hlo/to_plan.hpp"
#include "spmd/partition.hpp"
#include "spmd/prepare.hpp"
#include "spmd/propagate.hpp"
#include "spmd/to_plan.hpp"
#include "stablehlo/module.hpp"

namespace shardsim {

bool is_hlo(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && text.compare(begin, 9, "HloModule") == 0;
}

Plan program_plan(const std::string& path, const ProgramOptions& options) {
  const std::string text = read_maybe_gzip(path);
  if (is_hlo(text)) return plan_from_hlo(HloModule::parse(text, path), {options.mesh});
  if (!options.mesh.axes().empty()) {
    throw InputError({path, ""}, "a StableHLO program brings its own mesh: leave out the other");
  }
  stablehlo::Module program = spmd::prepare(stablehlo::parse_module(text, path));
  spmd::propagate(program);
  return spmd::plan_of(spmd::partition(program), options.target);
}

}  // namespace shardsim
