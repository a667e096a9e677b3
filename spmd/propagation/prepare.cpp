#include "spmd/propagation/prepare.hpp"

#include "spmd/propagation/prepare_passes.hpp"
#include "stablehlo/verify.hpp"

namespace shardsim::spmd {

using stablehlo::Function;
using stablehlo::Module;

Module prepare(const Module& program) {
  if (program.find_function("main") == nullptr) {
    throw InputError({program.file, ""}, "no function @main");
  }
  verify(program);
  Module result = program;
  import_tiles(result);
  for (Function& function : result.functions) {
    function = canonicalize(result, simplify_moves(result, function));
    // A constant that a loop passed around stands in its body now.
    if (narrow_loops(function)) function = canonicalize(result, function);
    sink_constants(function);
    function = expand(function);
    order_from_results(function);
  }
  Function main = inline_calls(result, *result.find_function("main"));
  narrow_loops(main);
  drop_unneeded(main);
  if (narrow_manual_computations(main)) drop_unneeded(main);
  open_loop_inputs(result, main);
  result.functions.clear();
  result.functions.push_back(std::move(main));
  return result;
}

}  // namespace shardsim::spmd
