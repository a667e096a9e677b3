// Work of programs against derivations, and against XLA's own count.
#include "stablehlo/flops.hpp"

#include <catch2/catch.hpp>

#include "tests/stablehlo/programs.hpp"

using namespace shardsim::stablehlo;  // NOLINT(google-build-using-namespace)
using shardsim::Flops;
using shardsim::test::parse_body;

namespace {

Work work_of_main(const Module& module) {
  return work_of(module, *module.find_function("main")).work;
}

Work work_of_golden(const std::string& name) {
  return work_of_main(
      read_module(SHARDSIM_SOURCE_DIR "/tests/golden/xla/programs/" + name + ".mlir.gz"));
}

}  // namespace

TEST_CASE("a convolution counts the positions of its window that meet the input") {
  // Per spatial dimension of 5 with padding 1: the outer taps meet 4 outputs, the middle one 5: 13.
  const Module module = parse_body("%a: tensor<2x5x5x3xf32>, %k: tensor<3x3x3x7xf32>", R"(
    %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} : (tensor<2x5x5x3xf32>, tensor<3x3x3x7xf32>) -> tensor<2x5x5x7xf32>)");
  CHECK(work_of_main(module).matmul == Flops{2.0 * 2 * 7 * 3 * 13 * 13});
}

TEST_CASE("loops run their trip count, of branches the dearest counts, calls are followed") {
  const Module module = parse_module(R"(
  func.func @main(%a: tensor<8xf32>, %p: tensor<i32>) -> tensor<8xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %c, %x = %a) : tensor<i32>, tensor<8xf32>
     cond {
      %n = stablehlo.constant dense<10> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %n = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %i, %n : tensor<i32>
      %2 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
      stablehlo.return %1, %2 : tensor<i32>, tensor<8xf32>
    }
    %3 = "stablehlo.case"(%p) ({
      stablehlo.return %0#1 : tensor<8xf32>
    }, {
      %4 = stablehlo.exponential %a : tensor<8xf32>
      stablehlo.return %4 : tensor<8xf32>
    }) : (tensor<i32>) -> tensor<8xf32>
    return %3 : tensor<8xf32>
  }
  func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.multiply %a, %a : tensor<8xf32>
    return %0 : tensor<8xf32>
  })",
                                     "test.mlir");
  // Each round: the comparison, the counter, 8 products.
  CHECK(work_of_main(module) == Work{Flops{0}, Flops{10 * (1 + 1 + 8)}, Flops{8}});
}

// The counts are those of flops_algorithms.hpp's formulas by hand.
TEST_CASE("transforms, decompositions and sorts count the operations of their algorithms") {
  const Module transforms =
      parse_body("%a: tensor<8x1024xcomplex<f32>>, %r: tensor<8x1024xf32>", R"(
    %0 = stablehlo.fft %a, type = FFT, length = [1024] : (tensor<8x1024xcomplex<f32>>) -> tensor<8x1024xcomplex<f32>>
    %1 = stablehlo.fft %r, type = RFFT, length = [1024] : (tensor<8x1024xf32>) -> tensor<8x513xcomplex<f32>>
    %2 = stablehlo.fft %a, type = FFT, length = [8, 1024] : (tensor<8x1024xcomplex<f32>>) -> tensor<8x1024xcomplex<f32>>)");
  CHECK(work_of_main(transforms).elementwise ==
        Flops{8 * 1024 * (5.0 * 10 + 2.5 * 10 + 5.0 * (3 + 10))});

  const Module matrices = parse_body("%a: tensor<2x6x6xf32>, %b: tensor<2x6x5xf32>", R"(
    %0 = stablehlo.cholesky %a, lower = true : tensor<2x6x6xf32>
    %1 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x6x6xf32>, tensor<2x6x5xf32>) -> tensor<2x6x5xf32>)");
  CHECK(work_of_main(matrices).elementwise == Flops{2 * (6 * 6 * 6 / 3.0 + 6 * 6 * 5)});

  // Rows of 1000: 10 rounds of merging, each compares every element once.
  const Module sort = parse_body("%a: tensor<4x1000xf32>", R"(
    %0 = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) : (tensor<4x1000xf32>) -> tensor<4x1000xf32>)");
  CHECK(work_of_main(sort).elementwise == Flops{4 * 1000 * 10});
}

// Pooling 8 to 4 by windows of 2: one comparison and one sum for each of the 4.
TEST_CASE("the gradient of a pooling searches and adds") {
  const Module module = parse_body("%a: tensor<8xf32>, %s: tensor<4xf32>, %i: tensor<f32>", R"(
    %0 = "stablehlo.select_and_scatter"(%a, %s, %i) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }, {
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<8xf32>, tensor<4xf32>, tensor<f32>) -> tensor<8xf32>)");
  CHECK(work_of_main(module).elementwise == Flops{4 + 4});
}

TEST_CASE("a random number counts as a transcendental function") {
  const Module module = parse_body("%s: tensor<2xui64>", R"(
    %0, %1 = stablehlo.rng_bit_generator %s, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<16xui32>))");
  CHECK(work_of_main(module) == Work{Flops{0}, Flops{0}, Flops{16}});
}

// flops of Compiled.cost_analysis() (jaxlib 0.10.2, host platform) of the program partitioned over
// 8 devices, times 8. These programs are split evenly and exchange nothing, so that all devices
// together do what one would.
TEST_CASE("elementwise work and reductions are XLA's count exactly") {
  struct Row {
    const char* name;
    double flops_per_device;
  };
  for (const Row& row : {Row{"rmsnorm_batch", 1048832}, Row{"softmax_batch", 1048320},
                         Row{"gather_rows_batched", 4480}, Row{"embedgrad_fsdp", 262912}}) {
    INFO(row.name);
    CHECK(work_of_golden(row.name).elementwise == Flops{8 * row.flops_per_device});
  }
}

// The same of programs of matrix products. The host computes bfloat16 in float32 and its
// conversions count, so do the sums of what is exchanged: up to 2 % more.
TEST_CASE("matrix products and convolutions are what XLA counts") {
  struct Row {
    const char* name;
    double flops_per_device;
  };
  for (const Row& row :
       {Row{"matmul_1d_xn_nx", 269942784}, Row{"conv_patch_fsdp", 1853349888},
        Row{"conv_3x3_spatial", 2407940096}, Row{"convgrad_patch_dp", 3701170176},
        Row{"attention_fsdp_tp_gqa", 3798917120}, Row{"mlpgrad_fsdp_tp", 15123611648.0}}) {
    INFO(row.name);
    const double ratio = 8 * row.flops_per_device / work_of_golden(row.name).matmul.count();
    CHECK(ratio >= 1);
    CHECK(ratio <= 1.02);
  }
}
