// Kernels of small programs against what can be counted by hand; the rules stand in
// spmd/memory/kernel_work.hpp.
#include "spmd/memory/kernel_work.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "spmd/to_plan.hpp"

namespace {
using namespace shardsim;  // NOLINT(google-build-using-namespace)
using spmd::MemoryTarget;

// The programs are about f32[1024,1024] and its rows and columns, f32[1024].
constexpr double side = 1024;
constexpr double elements = side * side;
constexpr std::int64_t square = 4 * MiB;
constexpr std::int64_t vector = 4 * KiB;
constexpr std::int64_t half_square = 2 * MiB;  // also bf16[1024,1024]
constexpr std::int64_t scalar = 4;

Plan plan(const std::string& signature, const std::string& body,
          MemoryTarget target = MemoryTarget::tpu) {
  return spmd::plan_of(stablehlo::parse_module("sdy.mesh @mesh = <[\"x\"=2]>\nfunc.func @main(" +
                                                   signature + " {" + body + "\n}\n",
                                               "test.mlir"),
                       target);
}

std::vector<std::string> ops(const Plan& plan) {
  std::vector<std::string> names;
  for (const Kernel& kernel : plan.kernels) names.push_back(kernel.op);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a chain of elementwise ops is computed inside a TPU's dot") {
  const std::string signature =
      "%x: tensor<1024x1024xf32>, %s: tensor<8x1024x1024xf32>, %w: tensor<1024x1024xf32>) -> "
      "tensor<1024x1024xf32>";
  const std::string body = R"(
    %e = stablehlo.exponential %x : tensor<1024x1024xf32>
    %p = stablehlo.slice %s [0:1, 0:1024, 0:1024] : (tensor<8x1024x1024xf32>) -> tensor<1x1024x1024xf32>
    %r = stablehlo.reshape %p : (tensor<1x1024x1024xf32>) -> tensor<1024x1024xf32>
    %m = stablehlo.multiply %e, %r : tensor<1024x1024xf32>
    %y = stablehlo.dot_general %m, %w, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %y : tensor<1024x1024xf32>)";
  const Plan tpu = plan(signature, body);
  REQUIRE(ops(tpu) == Names{"dot_general"});
  CHECK(tpu.kernels[0].bytes == Bytes(4 * square));  // %x, an eighth of %s, %w, %y
  // The multiply costs no time beside the dot.
  CHECK(tpu.kernels[0].flops == Flops(2 * elements * side));
  // A GPU's dot wants the product in memory: the dot alone moves three arrays.
  const Plan gpu = plan(signature, body, MemoryTarget::gpu);
  REQUIRE(ops(gpu) == Names{"multiply", "dot_general"});
  CHECK(gpu.kernels[0].bytes == Bytes(3 * square));
  CHECK(gpu.kernels[0].flops == Flops(elements));
  CHECK(gpu.kernels[1].bytes == Bytes(3 * square));
}

TEST_CASE("operations are counted with the part that is needed, and once per kernel") {
  const stablehlo::Module module = stablehlo::parse_module(R"(
func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024xf32> {
    %a = stablehlo.add %x, %x : tensor<1024x1024xf32>
    %h = stablehlo.slice %a [0:512, 0:1024] : (tensor<1024x1024xf32>) -> tensor<512x1024xf32>
    %q = stablehlo.multiply %h, %h : tensor<512x1024xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<512x1024xf32>, tensor<f32>) -> tensor<1024xf32>
    return %r : tensor<1024xf32>
})",
                                                           "test.mlir");
  const stablehlo::Function& main = module.functions.front();
  spmd::FusedProgram fused(module, main, MemoryTarget::gpu);
  REQUIRE(main.op(4).name == "stablehlo.reduce");
  CHECK_FALSE(fused.is_kernel(0));
  CHECK_FALSE(fused.is_kernel(2));
  REQUIRE(fused.is_kernel(4));
  const spmd::KernelWork work = fused.work_of(4);
  CHECK(work.bytes == Bytes(half_square + vector));
  // Half of the add, the multiply, and one sum less than rows for each column.
  CHECK(work.work.elementwise == Flops(elements / 2 + elements / 2 + (side / 2 - 1) * side));
}

TEST_CASE("what two kernels read is computed in both") {
  const Plan both = plan("%x: tensor<1024x1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>)", R"(
    %n = stablehlo.negate %x : tensor<1024x1024xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%n init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
    %s = stablehlo.reduce(%n init: %zero) applies stablehlo.maximum across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
    return %r, %s : tensor<1024xf32>, tensor<1024xf32>)");
  REQUIRE(ops(both) == Names{"reduce", "reduce"});
  for (const Kernel& kernel : both.kernels) {
    CHECK(kernel.bytes.count() == square + vector);
    CHECK(kernel.flops == Flops(elements + (side - 1) * side));
  }
}

TEST_CASE("a GPU keeps a sum of three arrays that three kernels read") {
  // Computed in each: 3 * 3 arrays read. Written once: 3 read, 1 written, 3 read.
  const std::string signature =
      "%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>, %c: tensor<1024x1024xf32>) -> "
      "(tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>)";
  const std::string body = R"(
    %0 = stablehlo.add %a, %b : tensor<1024x1024xf32>
    %1 = stablehlo.add %0, %c : tensor<1024x1024xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
    %s = stablehlo.reduce(%1 init: %zero) applies stablehlo.maximum across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
    %t = stablehlo.reduce(%1 init: %zero) applies stablehlo.minimum across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
    return %r, %s, %t : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>)";
  const Plan gpu = plan(signature, body, MemoryTarget::gpu);
  REQUIRE(ops(gpu) == Names{"add", "reduce", "reduce", "reduce"});
  CHECK(gpu.kernels[0].bytes == Bytes(4 * square));
  CHECK(gpu.kernels[0].flops == Flops(2 * elements));
  CHECK(gpu.kernels[1].bytes == Bytes(square + vector));
  CHECK(ops(plan(signature, body)) == Names{"reduce", "reduce", "reduce"});
}

// Round i: ys[i] = xs[i] + xs[i].
const std::string loop_signature = "%xs: tensor<8x1024x1024xf32>) -> tensor<8x1024x1024xf32>";
std::string loop_body(const std::string& index) {
  return R"(
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %ys = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8x1024x1024xf32>
    %0:3 = stablehlo.while(%i = %zero, %s = %xs, %t = %ys) : tensor<i32>, tensor<8x1024x1024xf32>, tensor<8x1024x1024xf32>
     cond {
      %n = stablehlo.constant dense<8> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %k = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %seven = stablehlo.constant dense<7> : tensor<i32>
      %back = stablehlo.subtract %seven, %i : tensor<i32>
      %2 = stablehlo.dynamic_slice %s, )" +
         index +
         R"(, %k, %k, sizes = [1, 1024, 1024] : (tensor<8x1024x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x1024xf32>
      %3 = stablehlo.add %2, %2 : tensor<1x1024x1024xf32>
      %4 = stablehlo.dynamic_update_slice %t, %3, )" +
         index +
         R"(, %k, %k : (tensor<8x1024x1024xf32>, tensor<1x1024x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x1024x1024xf32>
      %5 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %5, %s, %4 : tensor<i32>, tensor<8x1024x1024xf32>, tensor<8x1024x1024xf32>
    }
    return %0#2 : tensor<8x1024x1024xf32>)";
}

const Kernel& kernel(const Plan& plan, const std::string& op) {
  for (const Kernel& one : plan.kernels) {
    if (one.op == op) return one;
  }
  throw std::out_of_range(op);
}

TEST_CASE("a loop reads slices of a stack and updates one in place") {
  const Plan gpu = plan(loop_signature, loop_body("%i"), MemoryTarget::gpu);
  CHECK(kernel(gpu, "dynamic_update_slice").bytes.count() == 2 * square + scalar);  // %i
  CHECK(kernel(gpu, "broadcast_in_dim").bytes == Bytes(8 * square));
  // Of the 4 kernels, compare, add and the update run in every round.
  CHECK(ops(gpu) == Names{"broadcast_in_dim", "compare", "dynamic_update_slice", "add"});
  CHECK(gpu.programs[0].tasks.size() == 1 + 3 * 8);
}

TEST_CASE("a TPU does not fill what a loop writes from the first slice to the last") {
  CHECK(ops(plan(loop_signature, loop_body("%i"))) ==
        Names{"compare", "dynamic_update_slice", "add"});
  const Plan backwards = plan(loop_signature, loop_body("%back"));
  CHECK(kernel(backwards, "broadcast_in_dim").bytes == Bytes(8 * square));
}

TEST_CASE("an update of what nobody else has in memory writes all of it") {
  const Plan fresh = plan("%u: tensor<1024x1024xf32>) -> tensor<8x1024x1024xf32>", R"(
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %k = stablehlo.constant dense<0> : tensor<i32>
    %z = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8x1024x1024xf32>
    %r = stablehlo.reshape %u : (tensor<1024x1024xf32>) -> tensor<1x1024x1024xf32>
    %0 = stablehlo.dynamic_update_slice %z, %r, %k, %k, %k : (tensor<8x1024x1024xf32>, tensor<1x1024x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x1024x1024xf32>
    return %0 : tensor<8x1024x1024xf32>)");
  REQUIRE(ops(fresh) == Names{"dynamic_update_slice"});
  CHECK(fresh.kernels[0].bytes == Bytes(9 * square));
}

// Of eight parts of what a dot made one is read, elsewhere, and written over.
TEST_CASE("an update of a view of what is in memory writes the part") {
  const Plan viewed = plan(
      "%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>, %u: tensor<1x128x1024xf32>) -> "
      "tensor<8x128x1024xf32>",
      R"(
    %k = stablehlo.constant dense<0> : tensor<i32>
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %v = stablehlo.reshape %y : (tensor<1024x1024xf32>) -> tensor<8x128x1024xf32>
    %0 = stablehlo.dynamic_update_slice %v, %u, %k, %k, %k : (tensor<8x128x1024xf32>, tensor<1x128x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x128x1024xf32>
    return %0 : tensor<8x128x1024xf32>)");
  CHECK(kernel(viewed, "dynamic_update_slice").bytes.count() == 2 * square / 8);
}

TEST_CASE("a dot waits for the collective behind what is fused into it") {
  const Plan gathered = plan(
      "%x: tensor<512x1024xf32>, %w: tensor<1024x1024xf32>) -> "
      "tensor<1024x1024xf32>",
      R"(
    %g = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<512x1024xf32>) -> tensor<1024x1024xf32>
    %e = stablehlo.exponential %g : tensor<1024x1024xf32>
    %n = stablehlo.negate %w : tensor<1024x1024xf32>
    %y = stablehlo.dot_general %e, %n, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %y : tensor<1024x1024xf32>)");
  const Program& program = gathered.programs[0];
  REQUIRE(program.tasks.size() == 2);
  CHECK(program.tasks[0].kind == TaskKind::collective);
  REQUIRE(program.after(program.tasks[1]).size() == 1);
  CHECK(program.after(program.tasks[1])[0] == 0);
}

TEST_CASE("a dot runs at the rate of its operands, not of what it adds up in") {
  const Plan scores = plan("%q: tensor<1024x1024xbf16>) -> tensor<1024x1024xf32>", R"(
    %y = stablehlo.dot_general %q, %q, contracting_dims = [1] x [1] : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xf32>
    return %y : tensor<1024x1024xf32>)");
  REQUIRE(scores.kernels.size() == 1);
  CHECK(scores.kernels[0].dtype == DType::bf16);
  CHECK(scores.kernels[0].bytes == Bytes(half_square + square));
}
