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
    function = canonicalize(imported, function);
    // A constant that a loop passed around stands in its body now.
    if (narrow_loops(function)) function = canonicalize(imported, function);
    function = sink_constants(function);
  }
  Function main = inline_calls(canonical, *canonical.find_function("main"));
  narrow_loops(main);
  main = expand(main);
  order_from_results(main);
  main = narrow_manual_computations(main);
  order_from_results(main);
  open_loop_inputs(imported, main);
  Module result = imported;
  result.functions = {std::move(main)};
  return result;
}

}  // namespace shardsim::spmd
