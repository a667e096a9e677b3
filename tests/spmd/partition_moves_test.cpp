// What ops that only move data send, and what need not be sent. Payloads and groups by hand, where
// a case says so as XLA's partitioner of jax 0.10.2 prints them.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "local_ops.hpp"

namespace {
using shardsim::test::local_ops;
using shardsim::test::program;
using shardsim::test::sharding;
using Lines = std::vector<std::string>;

struct Line {
  std::string op;    // "stablehlo.tanh %a"
  std::string dims;  // of its sharding
  std::string type;  // ": (tensor<4xf32>) -> tensor<4xf32>"
};

// Of one argument %a; ops are %0, %1, ..., the last is returned.
Lines moves(const std::string& mesh, const std::string& argument, const std::string& dims,
            const std::vector<Line>& lines, const std::string& result) {
  std::string ops;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    ops += fmt::format(
        "  %{} = {} {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>}} {}\n",
        i + 1 == lines.size() ? "r" : std::to_string(i), lines[i].op, lines[i].dims, lines[i].type);
  }
  return local_ops(program(
      mesh, fmt::format("%a: tensor<{}> {{sdy.sharding = {}}}", argument, sharding(dims)), ops,
      fmt::format("tensor<{}> {{sdy.sharding = {}}}", result, sharding(lines.back().dims))));
}

}  // namespace

TEST_CASE("a roll lies as what it rolls: a row goes to the neighbour, then all is gathered") {
  const std::string halves = R"({"x"}, {})";
  CHECK(
      moves(
          R"("x"=2)", "256x16xf32", halves,
          {{"stablehlo.slice %a [1:256, 0:16]", halves,
            ": (tensor<256x16xf32>) -> tensor<255x16xf32>"},
           {"stablehlo.slice %a [0:1, 0:16]", halves, ": (tensor<256x16xf32>) -> tensor<1x16xf32>"},
           {"stablehlo.concatenate %0, %1, dim = 0", "{}, {}",
            ": (tensor<255x16xf32>, tensor<1x16xf32>) -> tensor<256x16xf32>"}},
          "256x16xf32") == Lines{"collective_permute 1x16 {0 1}{1 0}", "all_gather 256x16 {0 1}"});
}

TEST_CASE("other concatenations hand the split of the joined dimension to the others") {
  // Columns of %a become rows, are joined as such, and gathered.
  CHECK(moves(R"("x"=2)", "64x64xf32", R"({}, {"x"})",
              {{"stablehlo.concatenate %a, %a, dim = 1", "{}, {}",
                ": (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x128xf32>"}},
              "64x128xf32") == Lines{"all_to_all 2x32x32 {0 1}", "all_gather 64x128 {0 1}"});
}

TEST_CASE("a sum over several split dimensions is added up along the last of them first") {
  // XLA's AllReduceAlongShardingDims goes from the minor to the major dimension. Devices 4x + y:
  // the four of one x, then the two of one y.
  const Lines sums = moves(R"("x"=2, "y"=4)", "16x32xf32", R"({"x"}, {"y"})",
                           {{"stablehlo.constant dense<0.0>", "", ": tensor<f32>"},
                            {"stablehlo.reduce(%a init: %0) applies stablehlo.add across "
                             "dimensions = [0, 1]",
                             "", ": (tensor<16x32xf32>, tensor<f32>) -> tensor<f32>"}},
                           "f32");
  CHECK(sums == Lines{"all_reduce  {0 1 2 3}{4 5 6 7}", "all_reduce  {0 4}{1 5}{2 6}{3 7}"});
}

TEST_CASE("tiles that hold the same are not sent") {
  const std::string to_matrix = ": (tensor<16xf32>) -> tensor<64x16xf32>";
  const std::string same = ": tensor<64x16xf32>";
  const auto along = [&](const std::string& dims, const std::string& other) {
    return moves(R"("x"=2, "y"=2)", "16xf32", "{}",
                 {{"stablehlo.broadcast_in_dim %a, dims = [1]", dims, to_matrix},
                  {"stablehlo.tanh %0", dims, same},
                  {"stablehlo.tanh %1", other, same},
                  {"stablehlo.negate %2", other, same}},
                 "64x16xf32");
  };
  CHECK(along(R"({"x"}, {})", R"({"y"}, {})").empty());
  // Columns differ.
  CHECK(along(R"({}, {"x"})", R"({}, {"y"})") ==
        Lines{"collective_permute 64x8 {0 0}{1 2}{2 1}{3 3}"});
}

TEST_CASE("a pad and a slice are one exchange where the operand lies as they do") {
  const auto second_half = [](const std::string& operand) {
    return moves(
        R"("x"=2)", "256xf32", operand,
        {{"stablehlo.constant dense<0.0>", "", ": tensor<f32>"},
         {"stablehlo.pad %a, %0, low = [0], high = [1], interior = [0]", R"({"x"})",
          ": (tensor<256xf32>, tensor<f32>) -> tensor<257xf32>"},
         {"stablehlo.slice %1 [128:256]", R"({"x"})", ": (tensor<257xf32>) -> tensor<128xf32>"}},
        "128xf32");
  };
  CHECK(second_half(R"({"x"})") == Lines{"collective_permute 64 {1 0}"});
  // As XLA: tiles of 129 of what is padded; 63 of the wanted 128 elements lie in the wrong one.
  CHECK(second_half("{}") == Lines{"collective_permute 63 {1 0}"});
}

TEST_CASE("rows that no tile ends with are reshaped whole") {
  // Rows of 274 do not begin where tiles of 69 do.
  CHECK(moves(R"("x"=8)", "548xf32", R"({"x"})",
              {{"stablehlo.reshape %a", R"({"x":(1)2}, {"x":(2)4})",
                ": (tensor<548xf32>) -> tensor<2x274xf32>"}},
              "2x274xf32") == Lines{"all_gather 552 {0 1 2 3 4 5 6 7}"});
}

TEST_CASE("one group of all devices counts in their order") {
  CHECK(moves(R"("x"=2, "y"=2)", "1x64xf32", "{}, {}",
              {{"stablehlo.tanh %a", R"({"y", "x"}, {})", ": tensor<1x64xf32>"},
               {"stablehlo.tanh %0", "{}, {}", ": tensor<1x64xf32>"}},
              "1x64xf32") == Lines{"all_reduce 1x64 {0 1 2 3}"});
}

TEST_CASE("a value that two results want whole is gathered once") {
  CHECK(local_ops(shardsim::stablehlo::parse_module(R"(
    sdy.mesh @mesh = <["x"=4]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) ->
        (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
         tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
      return %a, %a : tensor<8xf32>, tensor<8xf32>
    })",
                                                    "test.mlir")) ==
        Lines{"all_gather 8 {0 1 2 3}"});
}
