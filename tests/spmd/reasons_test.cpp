// Remedies of small programs; those of the shipped example are tried in remedies_test.cpp of
// experiments.
#include "spmd/reasons.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "spmd/partition.hpp"
#include "spmd/propagation/prepare.hpp"
#include "spmd/propagation/propagate.hpp"
#include "spmd/to_plan.hpp"

namespace shardsim::spmd {
namespace {

// Of a product of which x splits what is summed, and whose result is annotated so.
Plan product_made_as(const std::string& sharding) {
  stablehlo::Module program =
      prepare(stablehlo::parse_module(fmt::format(
                                          R"(sdy.mesh @mesh = <["x"=2, "y"=2]>
sdy.mesh @other = <["a"=4]>
func.func @main(%l: tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}]>}}, %r: tensor<16x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> (tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<{0}>}}) {{
  %0 = stablehlo.dot_general %l, %r, contracting_dims = [1] x [0] {{sdy.sharding = #sdy.sharding_per_value<[<{0}>]>}} : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}
)",
                                          sharding),
                                      "test.mlir"));
  propagate(program);
  return plan_of(partition(program));
}

}  // namespace

// An all-reduce of f32[8,8], 256 B, over two devices sends as much, a reduce-scatter half.
TEST_CASE("a result that names axes of another mesh is not told to be split further") {
  const std::string less =
      "take x off argument 0 and argument 1: each device then does 2 times the work of this op";
  const Plan same = product_made_as("@mesh, [{}, {}]");
  REQUIRE_FALSE(same.collectives.empty());
  CHECK(same.collectives[0].remedy ==
        less +
            "; or constrain the result of line 4 to [{x}, {}]: a reduce-scatter, which sends "
            "128 B instead of 256 B, where nothing reads it whole");
  const Plan other = product_made_as("@other, [{\"a\"}, {}]");
  REQUIRE_FALSE(other.collectives.empty());
  CHECK(other.collectives[0].remedy == less);
}

}  // namespace shardsim::spmd
