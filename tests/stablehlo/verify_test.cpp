// Programs that the parser can read but that contradict themselves. What is asked of each op is in
// the StableHLO specification, under the op's constraints.
#include "stablehlo/verify.hpp"

#include <catch2/catch.hpp>

#include "tests/stablehlo/programs.hpp"

using namespace shardsim::stablehlo;  // NOLINT(google-build-using-namespace)
using Catch::Matchers::Contains;
using shardsim::test::parse_body;

namespace {

constexpr const char* arguments =
    "%a: tensor<4x8xf32>, %i: tensor<3x1xi32>, %j: tensor<i32>, %z: tensor<f32>";

void check_error(const std::string& body, const std::string& expected) {
  INFO(body);
  CHECK_THROWS_WITH(verify(parse_body(arguments, body)), Contains(expected));
}

std::string loop(const std::string& condition, const std::string& body) {
  return "%0 = stablehlo.while(%x = %a) : tensor<4x8xf32>\n cond {\n" + condition + "\n} do {\n" +
         body + "\n}";
}

std::string gather(const std::string& numbers, const std::string& sizes,
                   const std::string& result) {
  return "%0 = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = #stablehlo.gather<" + numbers +
         ">, slice_sizes = array<i64: " + sizes +
         ">}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<" + result + "xf32>";
}

std::string reduce(const std::string& block) {
  return "%0 = stablehlo.reduce(%a init: %z) across dimensions = [1] : (tensor<4x8xf32>, "
         "tensor<f32>) -> tensor<4xf32>\n reducer" +
         block;
}

}  // namespace

TEST_CASE("loops carry what they are given") {
  const std::string yes =
      "%t = stablehlo.constant dense<true> : tensor<i1>\n"
      "stablehlo.return %t : tensor<i1>";
  const std::string same = "stablehlo.return %x : tensor<4x8xf32>";
  CHECK_NOTHROW(verify(parse_body(arguments, loop(yes, same))));
  check_error(loop(same, same), "stablehlo.while: its condition does not return a tensor<i1>");
  check_error(loop(yes, yes), "stablehlo.while: its body returns other types than it takes");
  check_error(loop(yes, "%y = stablehlo.abs %x : tensor<4x8xf32>"),
              "a block does not end in a return");
}

// Also where the op brings a sharding rule of its own, which fits what it has.
TEST_CASE("ops have the operands that they take") {
  check_error("%0 = stablehlo.select %a, %a : tensor<4x8xf32>",
              "stablehlo.select: expected 3 operands and 1 results, found 2 and 1");
  check_error("%0 = stablehlo.add %a : tensor<4x8xf32>",
              "stablehlo.add: expected 2 operands and 1 results, found 1 and 1");
  check_error("%0 = stablehlo.abs %a, %a : tensor<4x8xf32>", "stablehlo.abs: expected 1 operands");
  check_error(
      "%0 = \"stablehlo.dynamic_slice\"(%a) <{slice_sizes = array<i64: 1, 8>}> "
      "{sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, j]) {i=4, j=8, k=1}, "
      "custom>} : (tensor<4x8xf32>) -> tensor<1x8xf32>",
      "stablehlo.dynamic_slice: expected 3 operands and 1 results, found 1 and 1");
}

TEST_CASE("dimensions and bounds are those of the tensors") {
  check_error("%0 = stablehlo.slice %a [0:4, 2:9] : (tensor<4x8xf32>) -> tensor<4x7xf32>",
              "stablehlo.slice: no slice [2:9:1] of 8 elements in dimension 1");
  check_error("%0 = stablehlo.slice %a [0:4, 2:8:4] : (tensor<4x8xf32>) -> tensor<4x1xf32>",
              "stablehlo.slice: its result is [4, 2], not [4, 1]");
  check_error(
      "%0 = \"stablehlo.slice\"(%a) <{start_indices = array<i64: 0>, limit_indices = "
      "array<i64: 4, 8>, strides = array<i64: 1, 1>}> : (tensor<4x8xf32>) -> "
      "tensor<4x8xf32>",
      "stablehlo.slice: start_indices has 1 numbers for 2 dimensions");
  check_error(
      "%0 = stablehlo.pad %a, %z, low = [1, 0], high = [0, -2], interior = [1, 0] : "
      "(tensor<4x8xf32>, tensor<f32>) -> tensor<8x8xf32>",
      "stablehlo.pad: its result is [8, 6], not [8, 8]");  // 1 + 4 + 3, 8 - 2
  check_error("%0 = stablehlo.transpose %a, dims = [0, 0] : (tensor<4x8xf32>) -> tensor<4x4xf32>",
              "stablehlo.transpose: permutation: dimension 0 twice");
  check_error("%0 = stablehlo.reverse %a, dims = [2] : tensor<4x8xf32>",
              "stablehlo.reverse: dimensions: no dimension 2");
  check_error(
      "%0 = stablehlo.concatenate %a, %a, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) "
      "-> tensor<8x9xf32>",
      "stablehlo.concatenate: its result is [8, 8], not [8, 9]");
  check_error(
      "%0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1] : "
      "(tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>",
      "stablehlo.dot_general: its result is [4, 4], not [4, 8]");
  check_error(
      "%0 = stablehlo.dynamic_slice %a, %j, %j, sizes = [4, 9] : "
      "(tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x9xf32>",
      "stablehlo.dynamic_slice: its slice is larger than its operand");
  check_error("%0 = stablehlo.convert %a : (tensor<4x8xf32>) -> tensor<8x4xbf16>",
              "stablehlo.convert: operand 0 is [4, 8], its result [8, 4]");
  const std::string nhwc =
      "%0 = stablehlo.convolution(%p, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = ";
  const std::string types = " : (tensor<4x8x2xf32>, tensor<3x2x5xf32>) -> tensor<4x";
  const std::string groups = " {batch_group_count = 1 : i64, feature_group_count = 1 : i64}";
  const auto check_convolution = [&](const std::string& window, const std::string& group,
                                     const std::string& result, const std::string& expected) {
    INFO(window);
    CHECK_THROWS_WITH(verify(parse_body("%p: tensor<4x8x2xf32>, %k: tensor<3x2x5xf32>",
                                        nhwc + window + group + types + result + "xf32>")),
                      Contains(expected));
  };
  check_convolution("{stride = [0]}", groups, "6x5", "unlikely stride or dilation");
  check_convolution("{stride = [2, 2]}", groups, "3x5", "2 numbers where its window needs 1");
  check_convolution("{pad = [[1, 1]]}", groups, "6x5", "its result is [4, 8, 5], not [4, 6, 5]");
  check_convolution("{stride = [1]}",
                    " {batch_group_count = 1 : i64, feature_group_count = 2 : i64}", "6x5",
                    "its kernel takes another number of features than its input has");
  check_error(
      "%0 = \"stablehlo.reduce_window\"(%a, %z) <{window_dimensions = array<i64: 1, 3>, "
      "window_strides = array<i64: 1, 2>}> ({\n^bb0(%l: tensor<f32>, %r: tensor<f32>):\n"
      "%t = stablehlo.add %l, %r : tensor<f32>\nstablehlo.return %t : tensor<f32>\n}) : "
      "(tensor<4x8xf32>, tensor<f32>) -> tensor<4x4xf32>",
      "stablehlo.reduce_window: its result is [4, 3], not [4, 4]");  // (8 - 3) / 2 + 1
  // Also where the op brings a sharding rule of its own.
  check_error(
      "%0 = \"stablehlo.sort\"(%a) <{dimension = 2 : i64}> ({\n^bb0(%l: tensor<f32>, %r: "
      "tensor<f32>):\n%t = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>"
      "\nstablehlo.return %t : tensor<i1>\n}) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, "
      "j])->([i, j]) {i=4, j=8}, custom>} : (tensor<4x8xf32>) -> tensor<4x8xf32>",
      "stablehlo.sort: dimension 2 of a tensor of rank 2");
}

TEST_CASE("ops of the partitioner are none of a program") {
  check_error("%0 = \"spmd.rotate\"(%a) {dim = 7} : (tensor<4x8xf32>) -> tensor<4x8xf32>",
              "spmd.rotate: stands for steps of the partitioner only");
}

TEST_CASE("reducers combine scalars and read nothing from outside") {
  const std::string types = "(%x: tensor<f32>, %y: tensor<f32>) {\n";
  CHECK_NOTHROW(
      verify(parse_body(arguments, reduce(types + "%s = stablehlo.add %x, %y : tensor<f32>\n"
                                                  "stablehlo.return %s : tensor<f32>\n}"))));
  check_error(reduce(types + "%s = stablehlo.add %x, %z : tensor<f32>\n"
                             "stablehlo.return %s : tensor<f32>\n}"),
              "line 2: stablehlo.reduce: its block reads %z from outside");
  check_error(reduce(types + "stablehlo.return %x, %y : tensor<f32>, tensor<f32>\n}"),
              "its block returns too few or too many values");
}

TEST_CASE("the numbers of a gather fit its tensors") {
  const std::string rows =
      "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1";
  CHECK_NOTHROW(verify(parse_body(arguments, gather(rows, "1, 8", "3x8"))));
  check_error(gather(rows, "1, 9", "3x9"), "a slice of 9 of dimension 1, of 8");
  check_error(gather(rows, "2, 8", "3x8"), "a slice of 2 of dimension 0, of 4");
  check_error(gather(rows, "1, 8", "3x7"), "results are no slices of its sizes");
  check_error(gather(rows, "1, 8", "2x8"), "as many slices as indices");
  check_error(gather(rows, "1", "3x8"), "slice_sizes of another rank");
  check_error(gather("offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1], "
                     "index_vector_dim = 1",
                     "1, 8", "3x8"),
              "an index has 1 parts for 2 dimensions");
  check_error(gather("offset_dims = [1], collapsed_slice_dims = [2], start_index_map = [0], "
                     "index_vector_dim = 1",
                     "1, 8", "3x8"),
              "dimension 2 of a tensor of rank 2");
}

TEST_CASE("meshes have each device once, and not too many") {
  const auto error = [](const std::string& mesh, const std::string& expected) {
    CHECK_THROWS_WITH(parse_module("module @m {\n  sdy.mesh @mesh = <" + mesh +
                                       ">\n  func.func public @main() {\n    return\n  }\n}",
                                   "test.mlir"),
                      Contains(expected));
  };
  error("[\"x\"=1048577]", "line 2: more than 1048576 devices");
  error("[\"x\"=3000000000, \"y\"=3000000000]", "more than 1048576 devices");
  error("[\"x\"=2], device_ids=[1, 1]", "not each of 0, 1, 2, ... once");
  error("[\"x\"=2], device_ids=[0]", "1 numbers are listed, not 2");
}
