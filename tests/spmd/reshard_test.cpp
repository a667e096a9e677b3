// Which way an array goes from one sharding to another: XLA's, and a cheaper one where there is
// one. Bytes are derived by hand. Mesh "x"=2, "y"=4 numbers its devices 4x + y.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "local_ops.hpp"
#include "spmd/propagation/prepare.hpp"
#include "spmd/propagation/propagate.hpp"
#include "spmd/sharded.hpp"
#include "spmd/wire_bytes.hpp"

namespace {
using shardsim::spmd::Builder;
using shardsim::spmd::Context;
using shardsim::spmd::partition;
using shardsim::spmd::Tiling;
using shardsim::spmd::wire_bytes;
using shardsim::stablehlo::Module;
using shardsim::test::local_ops;
using Lines = std::vector<std::string>;

std::string lying(const std::string& dims) {
  return "{sdy.sharding = #sdy.sharding<@mesh, [" + dims + "]>}";
}

Module propagated(const std::string& mesh, const std::string& function) {
  Module program = shardsim::spmd::prepare(shardsim::stablehlo::parse_module(
      "sdy.mesh @mesh = <[" + mesh + "]>\nfunc.func public @main" + function + "\n", "test.mlir"));
  shardsim::spmd::propagate(program);
  return program;
}

// One array of 16x32, from one sharding to another.
Module moved(const std::string& from, const std::string& to) {
  return propagated(R"("x"=2, "y"=4)", "(%arg0: tensor<16x32xf32> " + lying(from) +
                                           ") -> (tensor<16x32xf32> " + lying(to) +
                                           ") {\n  return %arg0 : tensor<16x32xf32>\n}");
}

}  // namespace

TEST_CASE("what is sliced after an all-gather may be sliced before") {
  // Halves of the columns become quarters of the rows. XLA gathers over x, 16x16x4 bytes sent, and
  // slices; of what it gathers a device keeps a quarter, which it can ask for alone.
  const Module program = moved(R"({}, {"x"})", R"({"y"}, {})");
  CHECK(local_ops(program, true) == Lines{"all_gather 16x32 {0 4}{1 5}{2 6}{3 7}"});
  CHECK(local_ops(program, false) == Lines{"all_gather 4x32 {0 4}{1 5}{2 6}{3 7}"});
  CHECK(wire_bytes(partition(program, {true})) == 16 * 16 * 4);
  CHECK(wire_bytes(partition(program)) == 4 * 16 * 4);
}

TEST_CASE("two exchanges in the right order need no permute after") {
  // Columns over (x, y) to rows over (y, x), tiles of 128 elements: XLA's all-to-all over all eight
  // sends 7/8 of a tile and leaves the rows in the order (x, y), so that a permute sends all of it.
  // First y to the rows, then x behind it: 3/4 and 1/2 of a tile.
  const Module program = moved(R"({}, {"x", "y"})", R"({"y", "x"}, {})");
  CHECK(wire_bytes(partition(program, {true})) == Approx((7.0 / 8 + 1) * 64 * 4));
  CHECK(wire_bytes(partition(program)) == Approx((3.0 / 4 + 1.0 / 2) * 64 * 4));
}

TEST_CASE("two dimensions change places with two others in one exchange") {
  // Of its 2x2x4x4 every device sends a quarter to each of the three others.
  const std::string from = R"({"x"}, {"y"}, {}, {})";
  const std::string to = R"({}, {}, {"x"}, {"y"})";
  const Module program =
      propagated(R"("x"=2, "y"=2)", "(%arg0: tensor<4x4x4x4xf32> " + lying(from) +
                                        ") -> (tensor<4x4x4x4xf32> " + lying(to) +
                                        ") {\n  return %arg0 : tensor<4x4x4x4xf32>\n}");
  CHECK(local_ops(program) == Lines{"all_to_all 4x2x2x2x2 {0 1 2 3}"});
  CHECK(wire_bytes(partition(program, {true})) == 3.0 / 4 * 2 * 2 * 4 * 4 * 4);
}

TEST_CASE("in the body of a loop arrays go the cheaper way as well") {
  // As in the first test, three times.
  const Module program =
      propagated(R"("x"=2, "y"=4)", "(%arg0: tensor<16x32xf32> " + lying(R"({}, {"x"})") +
                                        ") -> (tensor<16x32xf32> " + lying(R"({}, {"x"})") + R"() {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %a = %arg0) : tensor<i32>, tensor<16x32xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.add %i, %one : tensor<i32>
    %3 = sdy.sharding_constraint %a <@mesh, [{"y"}, {}]> : tensor<16x32xf32>
    %4 = stablehlo.tanh %3 : tensor<16x32xf32>
    %5 = sdy.sharding_constraint %4 <@mesh, [{"y"}, {}]> : tensor<16x32xf32>
    %6 = sdy.sharding_constraint %5 <@mesh, [{}, {"x"}]> : tensor<16x32xf32>
    stablehlo.return %2, %6 : tensor<i32>, tensor<16x32xf32>
  }
  return %0#1 : tensor<16x32xf32>
})");
  CHECK(wire_bytes(partition(program)) < wire_bytes(partition(program, {true})));
  CHECK(local_ops(program, false).front() == "all_gather 4x32 {0 4}{1 5}{2 6}{3 7}");
}

namespace {

// A loop around `body`, which makes %outN of %aN; `bound` is the value that it counts to.
std::string loop_of(const std::string& body, int depth, const std::string& bound) {
  const std::string n = std::to_string(depth);
  return "%l" + n + ":2 = stablehlo.while(%i" + n + " = %zero, %a" + n + " = %a" +
         std::to_string(depth - 1) + R"() : tensor<i32>, tensor<16x32xf32>
  cond {
    %lt)" +
         n + " = stablehlo.compare LT, %i" + n + ", " + bound +
         R"( : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %lt)" +
         n + R"( : tensor<i1>
  } do {
    %next)" +
         n + " = stablehlo.add %i" + n + ", %one : tensor<i32>\n" + body +
         "    stablehlo.return %next" + n + ", %out" + n +
         " : tensor<i32>, tensor<16x32xf32>\n  }\n";
}

// The rows, split over x, are made whole, which takes the other half, 8x32x4 bytes; back costs
// nothing.
std::string whole_and_back(int depth) {
  const std::string n = std::to_string(depth);
  return "    %w = sdy.sharding_constraint %a" + n + R"( <@mesh, [{}, {}]> : tensor<16x32xf32>
    %t = stablehlo.tanh %w : tensor<16x32xf32>
    %k = sdy.sharding_constraint %t <@mesh, [{}, {}]> : tensor<16x32xf32>
    %out)" +
         n + R"( = sdy.sharding_constraint %k <@mesh, [{"x"}, {}]> : tensor<16x32xf32>
)";
}

double bytes_of_loops(const std::string& loops) {
  const Module program = propagated(
      R"("x"=2)", "(%a0: tensor<16x32xf32> " + lying(R"({"x"}, {})") + ", %n: tensor<i32> " +
                      "{sdy.sharding = #sdy.sharding<@mesh, []>}) -> (tensor<16x32xf32> " +
                      lying(R"({"x"}, {})") + R"() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %seven = stablehlo.constant dense<7> : tensor<i32>
  )" + loops + "  return %l1#1 : tensor<16x32xf32>\n}");
  return wire_bytes(partition(program, {true}));
}

}  // namespace

TEST_CASE("a loop sends what its body sends, as often as it runs") {
  constexpr double once = 8 * 32 * 4;
  CHECK(bytes_of_loops(loop_of(whole_and_back(1), 1, "%one")) == once);
  CHECK(bytes_of_loops(loop_of(whole_and_back(1), 1, "%seven")) == 7 * once);
  CHECK(bytes_of_loops(loop_of(whole_and_back(1), 1, "%zero")) == 0);
  // Nobody knows: once, as the header says.
  CHECK(bytes_of_loops(loop_of(whole_and_back(1), 1, "%n")) == once);
  const std::string inner =
      loop_of(whole_and_back(2), 2, "%two") +
      "    %out1 = sdy.sharding_constraint %l2#1 <@mesh, [{\"x\"}, {}]> : tensor<16x32xf32>\n";
  CHECK(bytes_of_loops(loop_of(inner, 1, "%seven")) == 7 * 2 * once);
}

TEST_CASE("what is cheaper alone and dearer together is not taken") {
  // XLA makes the array whole once, 7/8 of it sent, and cuts both results from that. Alone the
  // first would go for less, but then the second pays for the whole array on top.
  const Module program =
      propagated(R"("x"=2, "y"=4)", "(%arg0: tensor<16x32xf32> " + lying(R"({"x", "y"}, {})") +
                                        ") -> (tensor<16x32xf32> " + lying("{}, {}") +
                                        ", tensor<16x32xf32> " + lying(R"({}, {"y"})") + R"() {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{}, {"y"}]> : tensor<16x32xf32>
  %1 = sdy.sharding_constraint %arg0 <@mesh, [{}, {}]> : tensor<16x32xf32>
  %2 = stablehlo.tanh %0 : tensor<16x32xf32>
  %3 = stablehlo.tanh %1 : tensor<16x32xf32>
  return %3, %2 : tensor<16x32xf32>, tensor<16x32xf32>
})");
  CHECK(wire_bytes(partition(program, {true})) == 7.0 / 8 * 16 * 32 * 4);
  CHECK(wire_bytes(partition(program)) == 7.0 / 8 * 16 * 32 * 4);
}

TEST_CASE("a reduce-scatter says which part a device keeps") {
  // 4x2 summed over all four devices, of which each keeps 2x1: rows by the major, columns by the
  // minor digit of its number.
  Module module;
  module.functions.emplace_back().regions.emplace_back();
  Builder builder(module);
  Context context(builder, 4);
  const shardsim::stablehlo::TensorType type{true, {4, 2}, "f32", shardsim::DType::f32, ""};
  const auto sum = all_reduce(context, builder.add_argument(type, ""), {{0, 1, 2, 3}}, "add");
  const auto starts = tile_offsets(context, {4, 2}, Tiling::tiled({2, 2}, {0, 1, 2, 3}));
  builder.add_many("func.return", {builder.dynamic_slice(sum, starts, {2, 1})}, {});
  shardsim::spmd::clean_up(module);
  const auto& scatter = *module.functions.front().definition(sum);
  CHECK(scatter.name == "stablehlo.reduce_scatter");
  std::vector<std::vector<std::int64_t>> found;
  for (const auto& dim : shardsim::stablehlo::find(scatter.attributes, "spmd.starts")->items) {
    for (found.emplace_back(); const auto& start : dim.items) found.back().push_back(start.integer);
  }
  CHECK(found == std::vector<std::vector<std::int64_t>>{{0, 0, 2, 2}, {0, 1, 0, 1}});
}

TEST_CASE("uneven tiles behind other tiles do not reshape into one dimension") {
  // 2x4 over x=2 and y=3 are tiles of 1x2, the third and the sixth of padding alone; 8 over six are
  // tiles of 2, of which the last two are padding. XLA gathers, cuts and slices (its dump of this
  // program, jax 0.10.2).
  const Module program =
      propagated(R"("x"=2, "y"=3)", "(%arg0: tensor<8xf32> " + lying("{}") +
                                        ") -> (tensor<2x4xf32> " + lying("{}, {}") + R"() {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x", "y"}]> : tensor<8xf32>
  %1 = stablehlo.reshape %0 : (tensor<8xf32>) -> tensor<2x4xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{"x"}, {"y"}]> : tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
})");
  CHECK(local_ops(program) == Lines{"all_gather 12 {0 1 2 3 4 5}", "all_gather 1x6 {0 1 2}{3 4 5}",
                                    "all_gather 2x6 {0 3}{1 4}{2 5}"});
}

TEST_CASE("a slice that cuts no tile is another value than its operand") {
  // 7 and 5 rows over four are tiles of 2 both. Made whole, the slice has 5.
  const Module program = propagated(R"("x"=4)", "(%arg0: tensor<7xf32> " + lying("{}") +
                                                    ") -> (tensor<5xf32> " + lying("{}") + R"() {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]> : tensor<7xf32>
  %1 = stablehlo.slice %0 [0:5:1] : (tensor<7xf32>) -> tensor<5xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{"x"}]> : tensor<5xf32>
  return %2 : tensor<5xf32>
})");
  for (const bool like_xla : {true, false}) {
    const Module local = partition(program, {like_xla});
    CHECK(local.functions.front().results.front().type.dims == std::vector<std::int64_t>{5});
    CHECK(local_ops(program, like_xla) == Lines{"all_gather 8 {0 1 2 3}"});
  }
}
