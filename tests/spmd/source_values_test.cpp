// How values of a source are told: mesh x=2, y=4, sizes and bytes by hand.
#include "spmd/source_values.hpp"

#include <catch2/catch.hpp>

#include "stablehlo/module.hpp"

namespace shardsim::spmd {
namespace {

const Mesh mesh({{"x", 2}, {"y", 4}});
const AxisRef x = mesh.whole(0);
const AxisRef y = mesh.whole(1);
const AxisRef y_major{1, 1, 2};
const AxisRef y_minor{1, 2, 2};

const char* const program = R"(module @m {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<2x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {"y":(1)2}]>}, %arg1: tensor<i32>) -> tensor<8x16xbf16> {
    %0 = stablehlo.slice %arg0 [0:1, 0:8, 0:16] : (tensor<2x8x16xf32>) -> tensor<1x8x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x16xf32>) -> tensor<8x16xf32>
    %2 = stablehlo.convert %1 : (tensor<8x16xf32>) -> tensor<8x16xbf16>
    %3 = stablehlo.add %2, %2 : tensor<8x16xbf16>
    return %3 : tensor<8x16xbf16>
  }
}
)";

}  // namespace

TEST_CASE("A layout in Shardy's words, and what a device holds of it") {
  const Layout layout{{8, 16}, {{y, x}, {}}, 16};
  CHECK(text_of(layout, mesh) == "[{y, x}, {}]");
  CHECK(layout.shard_bytes() == Bytes(32));  // 1 of 8 rows of 16, two bytes each
  // 10 rows over 4: the device with most has 3.
  CHECK(Layout{{10, 16}, {{y}, {}}, 16}.shard_bytes() == Bytes(96));
  CHECK(layout.uses(y_minor));
  CHECK_FALSE(Layout{{8}, {{y_major}}, 32}.uses(y_minor));
}

TEST_CASE("Axes are taken off where they are the minor end of what splits a dimension") {
  const Layout layout{{8, 16}, {{y}, {x}}, 32};
  CHECK(text_of(*without(layout, {x}), mesh) == "[{y}, {}]");
  CHECK(text_of(*without(layout, {y_minor}), mesh) == "[{y:(1)2}, {x}]");
  CHECK_FALSE(without(layout, {y_major}));
  CHECK_FALSE(without(Layout{{8}, {{y}}, 32}, {x}));
}

TEST_CASE("Axes are put where they divide, into a whole dimension before a split one") {
  CHECK(text_of(*with(Layout{{8, 16}, {{x}, {}}, 32}, {y}), mesh) == "[{x}, {y}]");
  CHECK(text_of(*with(Layout{{8, 3}, {{x}, {}}, 32}, {y}), mesh) == "[{x, y}, {}]");
  CHECK_FALSE(with(Layout{{6, 3}, {{x}, {}}, 32}, {y}));  // 6 rows over 8
  CHECK_FALSE(with(Layout{{8, 16}, {{y}, {}}, 32}, {y}));
}

TEST_CASE("Values are named by op and line, and traced to the argument that they are cut from") {
  const stablehlo::Module module = stablehlo::parse_module(program, "m.mlir");
  const stablehlo::Function& function = module.functions.front();
  const SourceValues values(function, mesh, "mesh");
  const auto result_of = [&](std::size_t op) { return function.ops[op].results.front(); };
  const stablehlo::ValueId argument = function.body().arguments.front();
  CHECK(values.name(argument) == "argument 0");
  CHECK(values.name(result_of(2)) == "the result of convert, line 6");
  CHECK(values.root(result_of(2)) == argument);
  CHECK(values.root(result_of(3)) == result_of(3));  // a sum is computed
  const auto layout = values.layout(argument);
  REQUIRE(layout);
  CHECK(text_of(*layout, mesh) == "[{}, {x}, {y:(1)2}]");
  CHECK(text_of(values.written(*layout)) == R"(<@mesh, [{}, {"x"}, {"y":(1)2}]>)");
}

}  // namespace shardsim::spmd
