#include "hlo/cost.hpp"

#include <catch2/catch.hpp>

#include "fixture.hpp"
#include "hlo/convolution.hpp"

namespace shardsim {
namespace {

double flops(const std::string& lines, const std::string& name) {
  const HloModule module = test::module_of(lines, 1);
  return HloCostModel(module).operations(test::find(module, name)).flops.count();
}

}  // namespace

TEST_CASE("a dot has two operations per multiply-add") {
  CHECK(
      flops("  %a = f32[4,8,512]{2,1,0} parameter(0)\n  %b = f32[4,512,2048]{2,1,0} parameter(1)\n"
            "  ROOT %d = f32[4,8,2048]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, "
            "lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}\n",
            "d") == 2.0 * 4 * 8 * 2048 * 512);
}

// Four products of [8, 512] x [512, 2048].
TEST_CASE("a kernel that is one dot has its product, and none that is two") {
  const std::string operands =
      "  %a = f32[4,8,512]{2,1,0} parameter(0)\n  %b = f32[4,512,2048]{2,1,0} parameter(1)\n";
  const std::string dot =
      " = f32[4,8,2048]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, lhs_contracting_dims={2}, "
      "rhs_batch_dims={0}, rhs_contracting_dims={1}\n";
  const HloModule one = test::module_of(operands + "  ROOT %d" + dot, 1);
  CHECK(HloCostModel(one).kernel(test::find(one, "d")).product == Product{4, 8, 2048, 512});

  const std::string fused = "%two (a: f32[4,8,512], b: f32[4,512,2048]) -> f32[4,8,2048] {\n" +
                            operands + "  %c" + dot + "  %d" + dot +
                            "  ROOT %s = f32[4,8,2048]{2,1,0} add(%c, %d)\n}\n\n";
  const HloModule two = test::module_of(
      operands + "  ROOT %f = f32[4,8,2048]{2,1,0} fusion(%a, %b), kind=kOutput, calls=%two\n", 1,
      fused);
  const Kernel kernel = HloCostModel(two).kernel(test::find(two, "f"));
  CHECK(kernel.kernel_class == KernelClass::matmul);
  CHECK_FALSE(kernel.product.has_value());
}

TEST_CASE("a matmul printed as a convolution has the matmul's operations") {
  // bf16[128,4096] x bf16[8,512,4096]: contraction over 8 x 512, window of 8.
  CHECK(flops("  %a = bf16[8,128,512]{2,1,0} parameter(0)\n"
              "  %b = bf16[8,512,1024]{2,1,0} parameter(1)\n"
              "  ROOT %c = bf16[1,128,1024]{2,1,0} convolution(%a, %b), window={size=8}, "
              "dim_labels=0bf_0io->0bf\n",
              "c") == Approx(2.0 * 128 * 1024 * 8 * 512));
}

TEST_CASE("padding and holes of a window do not count") {
  // 3 wide, padded by one on each side, over 4: 2 + 3 + 3 + 2 pairs.
  CHECK(valid_positions({3, 1, 1, 1, 1}, 4, 4) == 10);
  // Stride 2 without padding over 7: all of 3 x 3.
  CHECK(valid_positions({3, 2, 0, 1, 1}, 7, 3) == 9);
  // A base dilation of 2 puts a hole between the elements: positions 0, 2, 4 of 5 hold input.
  CHECK(valid_positions({1, 1, 0, 2, 1}, 3, 5) == 3);
  CHECK(valid_positions({2, 1, 0, 2, 1}, 3, 4) == 4);
  CHECK(valid_positions({2, 2, 1, 2, 1}, 3, 3) == 3);
}

TEST_CASE("reductions, elementwise and transcendental operations") {
  const std::string lines =
      "  %p = f32[8,64]{1,0} parameter(0)\n  %z = f32[] constant(0)\n"
      "  %r = f32[8]{0} reduce(%p, %z), dimensions={1}, to_apply=%add\n"
      "  %e = f32[8,64]{1,0} exponential(%p)\n"
      "  %t = f32[64,8]{1,0} transpose(%e), dimensions={1,0}\n"
      "  ROOT %m = f32[8,64]{1,0} multiply(%e, %p)\n";
  CHECK(flops(lines, "r") == 8 * 63);
  CHECK(flops(lines, "m") == 512);
  CHECK(flops(lines, "t") == 0);
  CHECK(flops(lines, "e") == 0);
  const HloModule module = test::module_of(lines, 1);
  HloCostModel costs(module);
  CHECK(costs.operations(test::find(module, "e")).transcendentals == Flops(512));
  CHECK(costs.bytes(test::find(module, "m")) == Bytes(6144));
}

TEST_CASE("a fusion reads what it slices and writes what it updates") {
  const HloModule module = test::module_of(
      "  %stack = f32[32,64]{1,0} parameter(0)\n  %i = s32[] parameter(1)\n"
      "  %read = f32[1,64]{1,0} fusion(%stack, %i), kind=kLoop, calls=%slice\n"
      "  ROOT %write = f32[32,64]{1,0} fusion(%stack, %read, %i), kind=kLoop, calls=%update\n",
      1,
      "%slice (s: f32[32,64], i: s32[]) -> f32[1,64] {\n"
      "  %s = f32[32,64]{1,0} parameter(0)\n  %n = s32[] parameter(1)\n  %o = s32[] constant(0)\n"
      "  ROOT %ds = f32[1,64]{1,0} dynamic-slice(%s, %n, %o), dynamic_slice_sizes={1,64}\n}\n"
      "%update (s2: f32[32,64], u: f32[1,64], i2: s32[]) -> f32[32,64] {\n"
      "  %s2 = f32[32,64]{1,0} parameter(0)\n  %u = f32[1,64]{1,0} parameter(1)\n"
      "  %n2 = s32[] parameter(2)\n  %o2 = s32[] constant(0)\n"
      "  ROOT %dus = f32[32,64]{1,0} dynamic-update-slice(%s2, %u, %n2, %o2)\n}\n");
  HloCostModel costs(module);
  CHECK(costs.bytes(test::find(module, "read")) == Bytes(256 + 4 + 256));
  CHECK(costs.bytes(test::find(module, "write")) == Bytes(256 + 4 + 256));
}

TEST_CASE("custom calls: products are counted, strangers named") {
  const HloModule module = test::module_of(
      "  %a = bf16[128,512]{1,0} parameter(0)\n  %b = bf16[512,256]{1,0} parameter(1)\n"
      "  %g = (bf16[128,256]{1,0}, s8[1024]{0}) custom-call(%a, %b), "
      "custom_call_target=\"__cublas$lt$matmul\", backend_config={\"gemm_backend_config\":"
      "{\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"1\"],"
      "\"rhs_contracting_dimensions\":[\"0\"]}}}\n"
      "  ROOT %k = bf16[8]{0} custom-call(%a), custom_call_target=\"my_kernel\"\n",
      1);
  HloCostModel costs(module);
  const Kernel product = costs.kernel(test::find(module, "g"));
  CHECK(product.flops == Flops(2.0 * 128 * 256 * 512));
  CHECK(product.kernel_class == KernelClass::matmul);
  CHECK(costs.operations(test::find(module, "k")).unknown == "custom call \"my_kernel\"");
}

}  // namespace shardsim
