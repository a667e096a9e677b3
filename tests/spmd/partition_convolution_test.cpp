// Which collectives a convolution needs, derived from which rows its windows reach.
#include <catch2/catch.hpp>

#include "local_ops.hpp"
#include "spmd/propagation/constants.hpp"
#include "spmd/propagation/prepare.hpp"
#include "spmd/propagation/propagate.hpp"

namespace shardsim::spmd::partition_convolution_test {
namespace {
using shardsim::test::local_ops;
using shardsim::test::program;
using shardsim::test::sharding;
using Lines = std::vector<std::string>;

// An image 4 x image_rows x 16 of `features` channels (b, row, column, f), kernel of rows x 1.
struct Example {
  int image_rows = 32;
  int rows = 3;
  bool reversed = false;  // its rows
  int stride = 1;
  std::string padding = "[1, 1]";
  int out_rows = 32;
  int features = 8;
  int groups = 1;
};

Lines convolve(const Example& e, const std::string& image, const std::string& kernel,
               const std::string& result) {
  const auto number = [](int value) { return std::to_string(value); };
  const std::string x = "tensor<4x" + number(e.image_rows) + "x16x" + number(e.features) + "xf32>";
  const std::string k =
      "tensor<" + number(e.rows) + "x1x" + number(e.features / e.groups) + "x8xf32>";
  const std::string y = "tensor<4x" + number(e.out_rows) + "x16x8xf32>";
  return local_ops(program(
      "\"x\"=4",
      "%arg0: " + x + " {sdy.sharding = " + sharding(image) + "}, %arg1: " + k +
          " {sdy.sharding = " + sharding(kernel) + "}",
      "  %r = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->"
      "[b, 0, 1, f], window = {stride = [" +
          number(e.stride) + ", 1], pad = [" + e.padding +
          ", [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [" +
          (e.reversed ? "true" : "false") +
          ", false]} {batch_group_count = 1 : i64, feature_group_count = " + number(e.groups) +
          " : i64, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [" + result + "]>]>} : (" + x +
          ", " + k + ") -> " + y,
      y + " {sdy.sharding = " + sharding(result) + "}"));
}

const std::string whole = "{}, {}, {}, {}";
const std::string by_batch = R"({"x"}, {}, {}, {})";
const std::string by_row = R"({}, {"x"}, {}, {})";
const std::string by_feature = R"({}, {}, {}, {"x"})";

}  // namespace

TEST_CASE("a convolution over batch or output features needs no communication") {
  CHECK(convolve({}, by_batch, whole, by_batch) == Lines{"convolution 1x32x16x8"});
  CHECK(convolve({}, whole, by_feature, by_feature) == Lines{"convolution 4x32x16x2"});
}

TEST_CASE("split input features leave partial sums") {
  CHECK(convolve({}, by_feature, R"({}, {}, {"x"}, {})", whole) ==
        Lines{"convolution 4x32x16x8", "all_reduce 4x32x16x8 {0 1 2 3}"});
}

TEST_CASE("a kernel of stored parts is gathered") {
  CHECK(convolve({}, by_batch, R"({}, {}, {}, {"x"})", by_batch) ==
        Lines{"all_gather 3x1x8x8 {0 1 2 3}", "convolution 1x32x16x8"});
}

TEST_CASE("windows reach into the rows of neighbours") {
  // 8 rows a device. 3 rows, stride 1, padding 1: one row from above, one from below.
  CHECK(convolve({}, by_row, whole, by_row) == Lines{"collective_permute 4x1x16x8 {0 1}{1 2}{2 3}",
                                                     "collective_permute 4x1x16x8 {1 0}{2 1}{3 2}",
                                                     "convolution 4x8x16x8"});
  // 5 rows, padding 2: two from both sides.
  CHECK(convolve({.rows = 5, .padding = "[2, 2]"}, by_row, whole, by_row) ==
        Lines{"collective_permute 4x2x16x8 {0 1}{1 2}{2 3}",
              "collective_permute 4x2x16x8 {1 0}{2 1}{3 2}", "convolution 4x8x16x8"});
  // Windows that do not overlap, 2 rows every 2 rows: everything is there.
  CHECK(convolve({.rows = 2, .stride = 2, .padding = "[0, 0]", .out_rows = 16}, by_row, whole,
                 by_row) == Lines{"convolution 4x4x16x8"});
}

TEST_CASE("rows of a kernel over one row are rows of the result") {
  // Padded by 7 on both sides a row meets each of the 8 rows of the kernel once: y[i] = x k[i]. Of
  // 4 devices each has 2 of them.
  const std::string by_kernel_row = R"({"x"}, {}, {}, {})";
  CHECK(convolve({.image_rows = 1, .rows = 8, .reversed = true, .padding = "[7, 7]", .out_rows = 8},
                 whole, by_kernel_row, by_row) == Lines{"convolution 4x2x16x8"});
}

TEST_CASE("feature groups are a batch") {
  // Depthwise: 8 groups, 2 on each device, the kernel split alike.
  CHECK(convolve({.groups = 8}, by_feature, by_feature, by_feature) ==
        Lines{"convolution 4x32x16x2"});
  // The kernel is whole: every device cuts out its own part.
  CHECK(convolve({.groups = 8}, by_feature, whole, by_feature) == Lines{"convolution 4x32x16x2"});
  // Groups of two features are not taken apart.
  CHECK(convolve({.features = 16, .groups = 8}, by_feature, by_feature, by_feature) ==
        Lines{"all_gather 4x32x16x16 {0 1 2 3}", "all_gather 3x1x2x8 {0 1 2 3}",
              "convolution 4x32x16x8"});
}

TEST_CASE("windows never select padding") {
  // 7 elements over two devices are tiles of 4, the last padded with what the comparison likes
  // least.
  const auto paddings = [](const std::string& direction) {
    shardsim::stablehlo::Module whole =
        shardsim::spmd::prepare(shardsim::stablehlo::parse_module(R"(sdy.mesh @mesh = <["x"=2]>
func.func public @main(%arg0: tensor<7xf32>, %arg1: tensor<3xf32>) -> tensor<7xf32> {
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %a = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]> : tensor<7xf32>
  %0 = "stablehlo.select_and_scatter"(%a, %arg1, %zero) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %1 = stablehlo.compare )" + direction + R"(, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }, {
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %2 = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<7xf32>, tensor<3xf32>, tensor<f32>) -> tensor<7xf32>
  %b = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<7xf32>
  return %b : tensor<7xf32>
}
)",
                                                                  "test.mlir"));
    shardsim::spmd::propagate(whole);
    const auto local = shardsim::spmd::partition(whole, {.like_xla = true});
    std::vector<std::string> found;
    for (const auto& op : local.functions.front().ops) {
      const auto text = shardsim::spmd::splat_text(op);
      if (text && text->find("inf") != std::string::npos) found.push_back(*text);
    }
    return found;
  };
  CHECK(paddings("GE") == Lines{"-inf"});
  CHECK(paddings("LE") == Lines{"inf"});
}

}  // namespace shardsim::spmd::partition_convolution_test
