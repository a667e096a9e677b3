// prepare() by small programs. What it makes of jax's programs as a whole is compared with XLA in
// propagate_golden_test.cpp; here is one case for each thing it does.
#include "spmd/propagation/prepare.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/index.hpp"
#include "tests/spmd/programs.hpp"

namespace {
using namespace shardsim::test;  // NOLINT(google-build-using-namespace)
using shardsim::at;
using Names = std::vector<std::string>;

// The ops of @main in order, without the dialect.
Names ops_of(const shardsim::stablehlo::Module& module) {
  Names names;
  for (const auto& op : main_of(module).ops) names.push_back(op.name.substr(op.name.find('.') + 1));
  return names;
}

Names prepared(const std::string& main) { return ops_of(shardsim::spmd::prepare(program(main))); }

shardsim::stablehlo::Module parse(const std::string& functions) {
  return shardsim::stablehlo::parse_module("module @test {\n" + functions + "\n}", "test.mlir");
}

TEST_CASE("calls are inlined as often as they are made, also in regions") {
  CHECK(prepared(R"((%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @twice(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.while(%v = %0) : tensor<4xf32>
    cond {
      %t = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %2 = func.call @twice(%v) : (tensor<4xf32>) -> tensor<4xf32>
      stablehlo.return %2 : tensor<4xf32>
    }
    return %1 : tensor<4xf32>
  }
  func.func private @twice(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  })") == Names{"add", "while", "constant", "return", "add", "return", "return"});
}

TEST_CASE("functions that call each other in a circle are refused") {
  const std::string circle = R"(  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @even(%a) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @even(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @odd(%a) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @odd(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @even(%a) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  })";
  CHECK_THROWS_WITH(shardsim::spmd::prepare(parse(circle)),
                    Catch::Contains("line 11: @even calls itself"));
  CHECK_THROWS_WITH(shardsim::spmd::prepare(parse("")),
                    Catch::Contains("a program without functions"));
}

TEST_CASE("x + 0, x * 1 and unread ops are gone, constants are folded") {
  CHECK(prepared(R"((%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %c = stablehlo.constant dense<0.0> : tensor<8x8xf32>
    %d = stablehlo.constant dense<1.0> : tensor<8x8xf32>
    %0 = stablehlo.add %c, %a : tensor<8x8xf32>
    %1 = stablehlo.multiply %0, %d : tensor<8x8xf32>
    %2 = stablehlo.exponential %1 : tensor<8x8xf32>
    %3 = stablehlo.negate %1 : tensor<8x8xf32>
    return %3 : tensor<8x8xf32>
  })") == Names{"negate", "return"});
  const auto module = shardsim::spmd::prepare(program(R"(() -> tensor<f32> {
    %c = stablehlo.constant dense<1.0> : tensor<f32>
    %d = stablehlo.constant dense<3.0> : tensor<f32>
    %0 = stablehlo.divide %c, %d : tensor<f32>
    return %0 : tensor<f32>
  })"));
  CHECK(ops_of(module) == Names{"constant", "return"});
  // The float nearest to 1/3 is 0.3333333432674408.
  CHECK(find(main_of(module).ops.front().attributes, "value")->text == "0.33333334");
}

// HLO broadcasts scalars, and no dimension of size 1 to a larger one.
TEST_CASE("broadcasts are those of HLO") {
  CHECK(prepared(R"((%a: tensor<8xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  })") == Names{"reshape", "broadcast_in_dim", "reshape", "broadcast_in_dim", "return"});
  CHECK(prepared(R"(() -> (tensor<8x4xf32>, tensor<8x4xi32>) {
    %c = stablehlo.constant dense<2.0> : tensor<8x4xf32>
    %i = stablehlo.iota dim = 1 : tensor<8x4xi32>
    return %c, %i : tensor<8x4xf32>, tensor<8x4xi32>
  })") == Names{"constant", "broadcast_in_dim", "iota", "broadcast_in_dim", "return"});
}

TEST_CASE("what a loop does not change is read from outside, through an open constraint") {
  const auto module = shardsim::spmd::prepare(program(R"((%a: tensor<8xf32>,
      %b: tensor<8xf32> S<[{"x"}]>) -> tensor<8xf32> {
    %0:2 = stablehlo.while(%v = %a, %w = %b) : tensor<8xf32>, tensor<8xf32>
    cond {
      %t = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %1 = stablehlo.add %v, %w : tensor<8xf32>
      stablehlo.return %1, %w : tensor<8xf32>, tensor<8xf32>
    }
    return %0#0 : tensor<8xf32>
  })"));
  REQUIRE(ops_of(module) ==
          Names{"sharding_constraint", "while", "constant", "return", "add", "return", "return"});
  const auto& constraint = main_of(module).ops[0];
  const auto& made = main_of(module).values[at(constraint.results.front())];
  CHECK(text_of(*made.sharding.axes) == "<@mesh, [{?}]>");
  CHECK(main_of(module).ops[1].operands.size() == 1);
}

std::string tiles_of(const std::string& first, const std::string& second) {
  return "  func.func public @main(%a: tensor<8x8xf32> {mhlo.sharding = \"{" + first +
         "}\"}, %b: tensor<8x8xf32> {mhlo.sharding = \"{" + second +
         "}\"}) -> tensor<8x8xf32> {\n    %0 = stablehlo.add %a, %b : tensor<8x8xf32>\n"
         "    return %0 : tensor<8x8xf32>\n  }";
}

TEST_CASE("tiles are axes of a mesh that explains them") {
  // 8 devices as 2 x 4: the first array is split by both, the second along its columns by the rows
  // of devices that follow each other at distance 4.
  const auto module = shardsim::spmd::prepare(
      parse(tiles_of("devices=[2,4]<=[8]", "devices=[1,2,4]<=[8] last_tile_dim_replicate")));
  REQUIRE(module.meshes.size() == 1);
  CHECK(module.meshes[0].axes ==
        std::vector<shardsim::stablehlo::ProgramAxis>{{"axis_0", 2}, {"axis_1", 4}});
  CHECK(argument_axes(module) == Names{R"([{"axis_0"}, {"axis_1"}])", R"([{}, {"axis_0"}])"});
  // The same as a list of devices, and in the other order.
  const auto listed = shardsim::spmd::prepare(
      parse(tiles_of("devices=[4,2]0,4,1,5,2,6,3,7", "devices=[4,2]<=[2,4]T(1,0)")));
  CHECK(argument_axes(listed) ==
        Names{R"([{"axis_1"}, {"axis_0"}])", R"([{"axis_1"}, {"axis_0"}])"});
}

TEST_CASE("tiles that no mesh explains are refused") {
  const auto error = [](const std::string& first, const std::string& second,
                        const std::string& message) {
    CHECK_THROWS_WITH(shardsim::spmd::prepare(parse(tiles_of(first, second))),
                      Catch::Contains(message));
  };
  error("devices=[2,4]<=[6]", "replicated", "8 tiles for 6 devices");
  error("devices=[2,4]<=[8]", "devices=[2,2]<=[4]", "4 devices here, 8 in other shardings");
  error("devices=[2,3]<=[6]", "devices=[3,2]<=[6]", "no mesh explains all shardings");
  error("devices=[4,1]0,1,3,2", "replicated", "no mesh explains the sharding");
}

TEST_CASE("a call between full and per-device shapes is a manual computation") {
  const auto module = shardsim::spmd::prepare(parse(
      R"(  func.func public @main(%a: tensor<8x4xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"})
      -> tensor<8x4xf32> {
    %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[8,1]<=[8]}"}
        : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"}
        : (tensor<8x4xf32>) -> tensor<1x4xf32>
    %2 = call @body(%1) : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = "{manual}"}
        : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = "{devices=[8,1]<=[8]}"}
        : (tensor<1x4xf32>) -> tensor<8x4xf32>
    return %4 : tensor<8x4xf32>
  }
  func.func private @body(%a: tensor<1x4xf32>) -> tensor<1x4xf32> {
    %0 = stablehlo.negate %a : tensor<1x4xf32>
    return %0 : tensor<1x4xf32>
  })"));
  CHECK(ops_of(module) == Names{"manual_computation", "negate", "return", "return"});
  const auto& manual = main_of(module).ops.front();
  CHECK(find(manual.attributes, "in_shardings")->items.front().text ==
        R"(@mesh, [{"axis_0"}, {}])");
  CHECK(find(manual.attributes, "manual_axes")->entries.front().name == "axis_0");
}

TEST_CASE("a slice of a concatenation reads the pieces that it needs only") {
  const auto sliced = [](const std::string& slice) {
    return prepared(R"((%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.concatenate %a, %b, %c, dim = 0 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<12xf32>
    %1 = stablehlo.slice %0 )" +
                    slice + R"( : (tensor<12xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  })");
  };
  CHECK(sliced("[4:8]") == Names{"return"});
  CHECK(sliced("[6:10]") == Names{"concatenate", "slice", "return"});
  CHECK(sliced("[1:12:3]") == Names{"concatenate", "slice", "return"});
}

TEST_CASE("pieces without elements are left out of a concatenation") {
  CHECK(prepared(R"((%a: tensor<0xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<0xf32>, tensor<3xf32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  })") == Names{"return"});
}

TEST_CASE("a padded tensor without elements is padding") {
  CHECK(prepared(R"((%a: tensor<0xf32>, %p: tensor<f32>) -> tensor<3xf32> {
    %0 = stablehlo.pad %a, %p, low = [1], high = [2], interior = [0] : (tensor<0xf32>, tensor<f32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  })") == Names{"broadcast_in_dim", "return"});
}

TEST_CASE("a reversal of dimensions of size 1 is nothing") {
  const auto reversed = [](const std::string& dims) {
    return prepared(R"((%a: tensor<1x4xf32>) -> tensor<1x4xf32> {
    %0 = stablehlo.reverse %a, dims = )" +
                    dims + R"( : tensor<1x4xf32>
    return %0 : tensor<1x4xf32>
  })");
  };
  CHECK(reversed("[0]") == Names{"return"});
  CHECK(reversed("[0, 1]") == Names{"reverse", "return"});
}

}  // namespace
