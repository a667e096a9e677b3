// What MFU counts of a program, on programs small enough to count by hand.
#include "stablehlo/model_work.hpp"

#include <catch2/catch.hpp>

#include "tests/stablehlo/programs.hpp"

using namespace shardsim::stablehlo;  // NOLINT(google-build-using-namespace)
using shardsim::Flops;

namespace {

ModelWork work_of_body(const std::string& arguments, const std::string& body) {
  const Module module = shardsim::test::parse_body(arguments, body);
  return model_work(module, *module.find_function("main"));
}

}  // namespace

// Every product here is [8,16] x [16,16] or has its sizes in another place: 2 * 8 * 16 * 16.
TEST_CASE("what is computed again behind a barrier does not count") {
  const double one = 2.0 * 8 * 16 * 16;
  // Forward x W; then, behind the barrier, x W again, and the gradients of x and of W.
  const ModelWork work = work_of_body("%x: tensor<8x16xf32>, %w: tensor<16x16xf32>", R"(
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.tanh %0 : tensor<8x16xf32>
    %2:3 = stablehlo.optimization_barrier %x, %w, %1 : tensor<8x16xf32>, tensor<16x16xf32>, tensor<8x16xf32>
    %3 = stablehlo.dot_general %2#0, %2#1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %4 = stablehlo.multiply %3, %2#2 : tensor<8x16xf32>
    %5 = stablehlo.dot_general %4, %2#1, contracting_dims = [1] x [1] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %6 = stablehlo.dot_general %2#0, %4, contracting_dims = [0] x [0] : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>)");
  CHECK(work.executed == Flops{4 * one});
  CHECK(work.recomputed == Flops{one});
  CHECK(work.full_attention() == Flops{3 * one});
  CHECK(work.needed() == Flops{3 * one});
  CHECK_FALSE(work.scores);
}

// Products of [8,16] x [16,16] by one of two weights, in front of a barrier or behind it.
TEST_CASE("a product by another weight is another product, whatever its shapes") {
  const double one = 2.0 * 8 * 16 * 16;
  const std::string arguments =
      "%x: tensor<8x16xf32>, %v: tensor<16x16xf32>, %w: tensor<16x16xf32>, "
      "%s: tensor<4x16x16xbf16>";
  const auto product = [](const std::string& result, const std::string& left,
                          const std::string& right) {
    return "%" + result + " = stablehlo.dot_general %" + left + ", %" + right +
           ", contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> "
           "tensor<8x16xf32>\n";
  };
  const std::string barrier = R"(
    %b:5 = stablehlo.optimization_barrier %0, %x, %v, %w, %s : tensor<8x16xf32>, tensor<8x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<4x16x16xbf16>
    )";
  const std::string layer_of_stack = R"(
    %i = stablehlo.constant dense<0> : tensor<i32>
    %l = stablehlo.dynamic_slice %b#4, %i, %i, %i, sizes = [1, 16, 16] : (tensor<4x16x16xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xbf16>
    %m = stablehlo.reshape %l : (tensor<1x16x16xbf16>) -> tensor<16x16xbf16>
    %n = stablehlo.convert %m : (tensor<16x16xbf16>) -> tensor<16x16xf32>
    )";
  const std::string computed = "%t = stablehlo.tanh %b#2 : tensor<16x16xf32>\n";
  struct Case {
    const char* what;
    std::string body;
    double recomputed;
  };
  const Case cases[] = {
      {"one layer behind another", product("0", "x", "v") + barrier + product("1", "b#0", "b#3"),
       0},
      {"the same again", product("0", "x", "v") + barrier + product("1", "b#1", "b#2"), 1},
      {"the same, then another",
       product("0", "x", "v") + barrier + product("1", "b#1", "b#2") + product("2", "1", "b#3"), 1},
      {"a layer of a stack is no other weight",
       product("0", "x", "v") + barrier + layer_of_stack + product("1", "b#1", "n"), 0},
      {"what is computed may be anything",
       product("0", "x", "v") + barrier + computed + product("1", "b#1", "t"), 1},
      // The first behind the barrier may be either in front, the second one of them only.
      {"equal sources first",
       product("0", "x", "v") + product("a", "x", "w") + barrier + computed +
           product("1", "b#1", "t") + product("2", "b#1", "b#2"),
       2},
      {"equal sources first, in the other order of arguments",
       product("0", "x", "v") + product("a", "x", "w") + barrier + computed +
           product("1", "b#1", "t") + product("2", "b#1", "b#3"),
       2},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    CHECK(work_of_body(arguments, c.body).recomputed == Flops{c.recomputed * one});
  }
}

TEST_CASE("sources go into functions and come out of them") {
  const double one = 2.0 * 8 * 16 * 16;
  const auto recomputed = [](const std::string& weight) {
    const Module module = parse_module(
        R"(
func.func private @layer(%w: tensor<16x16xf32>, %x: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<16x16xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  return %0, %w : tensor<8x16xf32>, tensor<16x16xf32>
}
func.func @main(%x: tensor<8x16xf32>, %v: tensor<16x16xf32>, %w: tensor<16x16xf32>) {
  %0:2 = func.call @layer(%v, %x) : (tensor<16x16xf32>, tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<16x16xf32>)
  %1:3 = stablehlo.optimization_barrier %0#0, %0#1, %w : tensor<8x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
  %2:2 = func.call @layer(%)" +
            weight +
            R"(, %1#0) : (tensor<16x16xf32>, tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<16x16xf32>)
  return
}
)",
        "test.mlir");
    return model_work(module, *module.find_function("main")).recomputed;
  };
  CHECK(recomputed("1#1") == Flops{one});
  CHECK(recomputed("1#2") == Flops{0});
}

TEST_CASE("loops count by their rounds, and what they carry past a barrier stays behind it") {
  const ModelWork work = work_of_body("%x: tensor<4x4xf32>", R"(
    %c = stablehlo.constant dense<0> : tensor<i32>
    %f = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %0:2 = stablehlo.while(%i = %c, %y = %x) : tensor<i32>, tensor<4x4xf32>
     cond {
      %n = stablehlo.constant dense<3> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %n = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %i, %n : tensor<i32>
      %2 = stablehlo.dot_general %y, %x, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %3 = stablehlo.optimization_barrier %2 : tensor<4x4xf32>
      stablehlo.return %1, %3 : tensor<i32>, tensor<4x4xf32>
    })");
  const double one = 2.0 * 4 * 4 * 4;
  CHECK(work.executed == Flops{4 * one});
  // From the second round on %y comes from a barrier: one such product stands in front of it.
  CHECK(work.recomputed == Flops{one});
}

// Scores of [2 batch, 2 heads, 8, 8] from q and k of 4; what they weigh has 4, too. By the causal
// mask half of both products is needed. The product after them has no scores.
TEST_CASE("of products with scores under a causal mask half is needed") {
  const char* const arguments = "%q: tensor<2x2x8x4xf32>, %w: tensor<4x32xf32>";
  const auto body = [](const std::string& direction, const std::string& apply) {
    return R"(
    %0 = stablehlo.dot_general %q, %q, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>) -> tensor<2x2x8x8xf32>
    %1 = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %2 = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %3 = stablehlo.compare )" +
           direction + R"(, %1, %2 : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %4 = stablehlo.broadcast_in_dim %3, dims = [2, 3] : (tensor<8x8xi1>) -> tensor<2x2x8x8xi1>
    %c = stablehlo.constant dense<-1.0> : tensor<2x2x8x8xf32>
    )" + apply +
           R"(
    %7 = stablehlo.dot_general %6, %q, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x2x8x8xf32>, tensor<2x2x8x4xf32>) -> tensor<2x2x8x4xf32>
    %8 = stablehlo.dot_general %7, %w, contracting_dims = [3] x [0] : (tensor<2x2x8x4xf32>, tensor<4x32xf32>) -> tensor<2x2x8x32xf32>)";
  };
  const double scores = 2.0 * 4 * 8 * 8 * 4;
  const double after = 2.0 * 2 * 2 * 8 * 4 * 32;
  const std::string select =
      "%6 = stablehlo.select %4, %0, %c : tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>";
  const std::string add = R"(%z = stablehlo.constant dense<0.0> : tensor<2x2x8x8xf32>
    %5 = stablehlo.select %4, %z, %c : tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>
    %6 = stablehlo.add %0, %5 : tensor<2x2x8x8xf32>)";
  for (const std::string& apply : {select, add}) {
    const ModelWork work = work_of_body(arguments, body("GE", apply));
    CHECK(work.executed == Flops{2 * scores + after});
    CHECK(work.masked == Flops{2 * scores});
    CHECK(work.needed() == Flops{scores + after});
    REQUIRE(work.scores);
    CHECK(text_of(*work.scores) == "tensor<2x2x8x8xf32>");
  }
  // Equal positions are no causal mask.
  CHECK(work_of_body(arguments, body("EQ", select)).masked == Flops{0});
}
