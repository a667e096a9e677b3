// Which collectives a dot needs, derived from what lies where; payloads and groups by hand. Mesh
// "x"=2, "y"=4 numbers its devices 4x + y.
#include <catch2/catch.hpp>

#include "local_ops.hpp"

namespace {
using shardsim::test::local_ops;
using shardsim::test::program;
using shardsim::test::sharding;
using Lines = std::vector<std::string>;

struct Sizes {
  std::string lhs = "64x16";
  std::string rhs = "16x32";
  std::string result = "64x32";
  std::string dims = "contracting_dims = [1] x [0]";
};

Lines matmul(const std::string& mesh, const std::string& lhs, const std::string& rhs,
             const std::string& result, const Sizes& sizes = {}) {
  const std::string x = "tensor<" + sizes.lhs + "xf32>";
  const std::string w = "tensor<" + sizes.rhs + "xf32>";
  const std::string y = "tensor<" + sizes.result + "xf32>";
  return local_ops(program(mesh,
                           "%arg0: " + x + " {sdy.sharding = " + sharding(lhs) + "}, %arg1: " + w +
                               " {sdy.sharding = " + sharding(rhs) + "}",
                           "  %r = stablehlo.dot_general %arg0, %arg1, " + sizes.dims +
                               " {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [" + result +
                               "]>]>} : (" + x + ", " + w + ") -> " + y,
                           y + " {sdy.sharding = " + sharding(result) + "}"));
}

const std::string line_of_4 = "\"x\"=4";
const std::string grid = "\"x\"=2, \"y\"=4";

}  // namespace

TEST_CASE("what all devices split alike needs no communication") {
  // Data parallel: rows. Megatron's first matmul: columns of the weights.
  CHECK(matmul(line_of_4, R"({"x"}, {})", "{}, {}", R"({"x"}, {})") == Lines{"dot_general 16x32"});
  CHECK(matmul(line_of_4, "{}, {}", R"({}, {"x"})", R"({}, {"x"})") == Lines{"dot_general 64x8"});
  // Both at once.
  CHECK(matmul(grid, R"({"x"}, {})", R"({}, {"y"})", R"({"x"}, {"y"})") ==
        Lines{"dot_general 32x8"});
  // One half of the devices repeats what the other does.
  CHECK(matmul(grid, R"({"y"}, {})", "{}, {}", R"({"y"}, {})") == Lines{"dot_general 16x32"});
}

TEST_CASE("split contracting dimensions leave partial sums") {
  // Megatron's second matmul: rows of the weights.
  CHECK(matmul(line_of_4, R"({}, {"x"})", R"({"x"}, {})", "{}, {}") ==
        Lines{"dot_general 64x32", "all_reduce 64x32 {0 1 2 3}"});
  // Sequence parallel: every device keeps its rows of the sum.
  CHECK(matmul(line_of_4, R"({}, {"x"})", R"({"x"}, {})", R"({"x"}, {})") ==
        Lines{"dot_general 64x32", "reduce_scatter 16x32 {0 1 2 3}"});
  // Rows over x, sums over y: groups of four, each with its rows.
  CHECK(matmul(grid, R"({"x"}, {"y"})", R"({"y"}, {})", R"({"x"}, {})") ==
        Lines{"dot_general 32x32", "all_reduce 32x32 {0 1 2 3}{4 5 6 7}"});
  // 2-D weight stationary: activations lie as the rows of the weights, sums as their columns.
  CHECK(matmul(grid, R"({}, {"x"})", R"({"x"}, {"y"})", R"({}, {"y"})") ==
        Lines{"dot_general 64x8", "all_reduce 64x8 {0 4}{1 5}{2 6}{3 7}"});
}

TEST_CASE("an operand that is split otherwise than the result is gathered") {
  // FSDP: rows by device, weights stored in parts.
  CHECK(matmul(line_of_4, R"({"x"}, {})", R"({"x"}, {})", R"({"x"}, {})") ==
        Lines{"all_gather 16x32 {0 1 2 3}", "dot_general 16x32"});
  // FSDP over x with tensor parallelism over y: a quarter of the columns is gathered over x.
  CHECK(matmul(grid, R"({"x"}, {})", R"({"x"}, {"y"})", R"({"x"}, {"y"})") ==
        Lines{"all_gather 16x8 {0 4}{1 5}{2 6}{3 7}", "dot_general 32x8"});
  // lhs by rows over x, rhs by columns over x: the smaller, rhs, is gathered for a result by rows.
  CHECK(matmul(line_of_4, R"({"x"}, {})", R"({}, {"x"})", R"({"x"}, {})") ==
        Lines{"all_gather 16x32 {0 1 2 3}", "dot_general 16x32"});
}

TEST_CASE("with a whole result, parts are added up rather than gathered where the sum is smaller") {
  // lhs 64x16 has fewer elements than the result 64x32: it is gathered.
  CHECK(matmul(line_of_4, R"({}, {"x"})", "{}, {}", "{}, {}") ==
        Lines{"all_gather 64x16 {0 1 2 3}", "dot_general 64x32"});
  // A vector of 64 times 64x32, 2048 elements for a result of 32: whole lhs is sliced, 32 added up.
  CHECK(matmul(line_of_4, "{}", R"({"x"}, {})", "{}",
               {"64", "64x32", "32", "contracting_dims = [0] x [0]"}) ==
        Lines{"dot_general 32", "all_reduce 32 {0 1 2 3}"});
}

TEST_CASE("a sum over other groups than the result's is made finer and resharded") {
  // Columns lie over y in rhs and over x, the axis of the sums, in the result. Kept over y, a sum
  // has 8x8 elements; then [{}, {"y"}] becomes [{}, {"x"}]: a permute puts the four parts in pairs
  // on the devices whose x holds them, which gather halves.
  CHECK(
      matmul(grid, R"({}, {"x"})", R"({"x"}, {"y"})", R"({}, {"x"})", {"8x64", "64x32", "8x32"}) ==
      Lines{"dot_general 8x8", "all_reduce 8x8 {0 4}{1 5}{2 6}{3 7}",
            "collective_permute 8x8 {0 0}{4 1}{1 2}{5 3}{2 4}{6 5}{3 6}{7 7}",
            "all_gather 8x16 {0 2}{1 3}{4 6}{5 7}"});
  // Where the result is larger than rhs, rhs is gathered over half of y instead.
  CHECK(matmul(grid, R"({}, {"x"})", R"({"x"}, {"y"})", R"({}, {"x"})").front() ==
        "all_gather 8x16 {0 1}{2 3}{4 5}{6 7}");
}

TEST_CASE("one value as both operands is resharded twice") {
  // x times its transpose, rows of the result by device: the left x stays, the right is gathered.
  const std::string rows = sharding(R"({"x"}, {})");
  CHECK(local_ops(program(line_of_4, "%arg0: tensor<64x16xf32> {sdy.sharding = " + rows + "}",
                          "  %r = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [1] "
                          "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}]>]>} : "
                          "(tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x64xf32>",
                          "tensor<64x64xf32> {sdy.sharding = " + rows + "}")) ==
        Lines{"all_gather 64x16 {0 1 2 3}", "dot_general 16x64"});
}

TEST_CASE("batch dimensions: the operand that is split otherwise is exchanged") {
  // Attention scores by head; queries lie by sequence: they change over from sequence to heads, on
  // every device 4 heads of 32 positions become 1 head of 128... written [head, seq, dim].
  CHECK(matmul(line_of_4, R"({}, {"x"}, {})", R"({"x"}, {}, {})", R"({"x"}, {}, {})",
               {"4x128x8", "4x64x8", "4x128x64",
                "batching_dims = [0] x [0], contracting_dims = [2] x [2]"}) ==
        Lines{"all_to_all 4x1x32x8 {0 1 2 3}", "dot_general 1x128x64"});
}
