#include "spmd/prepare.hpp"

#include "spmd/prepare_passes.hpp"

namespace shardsim::spmd {

using stablehlo::Function;
using stablehlo::Module;

Module prepare(const Module& program) {
  if (program.find_function("main") == nullptr) {
    throw InputError({program.file, ""}, "no function @main");
  }
  const Module imported = import_tiles(program);
  Module canonical = imported;
  for (Function& function : canonical.functions) {
    function = sink_constants(canonicalize(imported, function));
  }
  Module result = imported;
  result.functions = {expand(inline_calls(canonical, *canonical.find_function("main")))};
  order_from_results(result.functions.front());
  open_loop_inputs(program, result.functions.front());
  return result;
}

}  // namespace shardsim::spmd
