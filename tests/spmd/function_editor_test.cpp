#include "spmd/propagation/function_editor.hpp"

#include <catch2/catch.hpp>

#include "base/index.hpp"
#include "tests/spmd/programs.hpp"

namespace {
using namespace shardsim;  // NOLINT(google-build-using-namespace)

// As MLIR numbers values where it prints them: arguments and results each from 0, in the order of
// the text, as many results of one op under one number.
TEST_CASE("what is left of a function is numbered in the order of the text") {
  stablehlo::Module module = test::program(R"((%a: tensor<4xf32>) -> tensor<4xf32> {
    %first = stablehlo.negate %a : tensor<4xf32>
    %unused = stablehlo.abs %a : tensor<4xf32>
    %two:2 = stablehlo.optimization_barrier %first, %a : tensor<4xf32>, tensor<4xf32>
    %last = stablehlo.add %two#0, %two#1 : tensor<4xf32>
    return %last : tensor<4xf32>
  })");
  stablehlo::Function& function = module.functions.front();
  spmd::FunctionEditor editor(function);
  editor.erase(1);
  editor.commit();
  spmd::compact(function);
  std::vector<std::string> names;
  for (const stablehlo::Value& value : function.values) names.push_back(value.name);
  CHECK(names == std::vector<std::string>{"arg0", "0", "1#0", "1#1", "2"});
  CHECK(function.op(1).operands == std::vector<stablehlo::ValueId>{1, 0});
}

}  // namespace
