// Memory of small programs against what can be counted by hand; the rules stand in the headers of
// spmd/memory/*.hpp.
#include "spmd/memory/device_memory.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace shardsim::memory_test {
namespace {
using spmd::device_memory;
using spmd::DeviceMemory;
using spmd::MemoryTarget;

constexpr std::int64_t square = 4 * MiB;  // f32[1024,1024]

DeviceMemory memory(const std::string& signature, const std::string& body,
                    MemoryTarget target = MemoryTarget::tpu) {
  return device_memory(
      stablehlo::parse_module("func.func @main(" + signature + " {" + body + "\n}\n", "test.mlir"),
      target);
}

std::int64_t temporaries(const std::string& signature, const std::string& body,
                         MemoryTarget target = MemoryTarget::tpu) {
  return memory(signature, body, target).temporaries.count();
}

}  // namespace

TEST_CASE("elementwise ops vanish into the reduction that reads them") {
  const DeviceMemory answer = memory("%x: tensor<1024x1024xf32>) -> tensor<1024xf32>", R"(
    %y = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %e = stablehlo.exponential %y : tensor<1024x1024xf32>
    %d = stablehlo.multiply %e, %e : tensor<1024x1024xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
    return %r : tensor<1024xf32>)");
  CHECK(answer.arguments == Bytes(square));
  CHECK(answer.outputs == Bytes(4096));  // its own place, no temporary
  CHECK(answer.temporaries == Bytes(square));
  CHECK(answer.peak == Bytes(2 * square + 4096));
  REQUIRE(answer.at_peak.size() == 1);
  CHECK(answer.at_peak[0].type == "tensor<1024x1024xf32>");
  CHECK(answer.at_peak[0].op == "stablehlo.dot_general");
}

TEST_CASE("a TPU pads arrays to tiles, a GPU does not") {
  const std::string body = "\n    return %x : tensor<3x5xf32>";
  const std::string signature = "%x: tensor<3x5xf32>) -> tensor<3x5xf32>";
  CHECK(memory(signature, body, MemoryTarget::tpu).arguments == Bytes(4 * 128 * 4));
  CHECK(memory(signature, body, MemoryTarget::gpu).arguments == Bytes(3 * 5 * 4));
}

TEST_CASE("several results have a table of pointers") {
  const DeviceMemory gpu =
      memory("%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)",
             "\n    return %x, %x : tensor<8xf32>, tensor<8xf32>", MemoryTarget::gpu);
  CHECK(gpu.outputs == Bytes(2 * 32 + 2 * 8));
}

TEST_CASE("an update of a donated argument happens in its place") {
  const std::string body = R"(
    %g = stablehlo.dot_general %p, %p, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %n = stablehlo.subtract %p, %g : tensor<1024x1024xf32>
    return %n : tensor<1024x1024xf32>)";
  for (const char* donation : {"tf.aliasing_output = 0 : i32", "jax.buffer_donor = true"}) {
    const DeviceMemory donated = memory(
        "%p: tensor<1024x1024xf32> {" + std::string(donation) + "}) -> tensor<1024x1024xf32>",
        body);
    CHECK(donated.aliased == Bytes(square));
    CHECK(donated.temporaries == Bytes(square));  // the gradient
    CHECK(donated.peak == Bytes(2 * square));
  }
  CHECK(memory("%p: tensor<1024x1024xf32>) -> tensor<1024x1024xf32>", body).peak ==
        Bytes(3 * square));
}

TEST_CASE("a result that is made while the argument is still read waits beside it") {
  // The dot writes what the caller gets in place of %p; the sum reads %p and comes later.
  CHECK(temporaries("%p: tensor<1024x1024xf32> {tf.aliasing_output = 0 : i32}, %k: "
                    "tensor<1024x1024xf32> {tf.aliasing_output = 1 : i32}) -> "
                    "(tensor<1024x1024xf32>, tensor<1024x1024xf32>)",
                    R"(
    %n = stablehlo.dot_general %p, %k, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %s = stablehlo.dot_general %n, %p, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %n, %s : tensor<1024x1024xf32>, tensor<1024x1024xf32>)") == square);
}

TEST_CASE("a GPU's dot reads memory, a TPU's computes its operand") {
  const std::string body = R"(
    %e = stablehlo.add %x, %x : tensor<1024x1024xf32>
    %y = stablehlo.dot_general %e, %x, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %y : tensor<1024x1024xf32>)";
  const std::string signature = "%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32>";
  CHECK(temporaries(signature, body, MemoryTarget::tpu) == 0);
  CHECK(temporaries(signature, body, MemoryTarget::gpu) == square);
}

TEST_CASE("a collective needs its operand in memory, and its result") {
  // bf16[512,1024] cast from f32, gathered to bf16[1024,1024]: 1 + 2 MiB.
  CHECK(temporaries("%x: tensor<512x1024xf32>) -> tensor<1024x1024xbf16>", R"(
    %c = stablehlo.convert %x : (tensor<512x1024xf32>) -> tensor<512x1024xbf16>
    %w = "stablehlo.all_gather"(%c) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<512x1024xbf16>) -> tensor<1024x1024xbf16>
    %y = stablehlo.dot_general %w, %w, contracting_dims = [1] x [0] : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
    return %y : tensor<1024x1024xbf16>)") == 3 * MiB);
}

namespace {

// Four rounds that multiply by a layer's weights and stack what went in.
std::string layers(const std::string& element, const std::string& weights) {
  return R"(
    %c = stablehlo.constant dense<0> : tensor<i32>
    %z = stablehlo.constant dense<0.0> : tensor<)" +
         element + R"(>
    %s = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<)" +
         element + R"(>) -> tensor<4x1024x1024x)" + element + R"(>
    %0:4 = stablehlo.while(%i = %c, %h = %x, %w = %weights, %stack = %s) : tensor<i32>, tensor<1024x1024x)" +
         element + R"(>, tensor<4x1024x1024x)" + weights + R"(>, tensor<4x1024x1024x)" + element +
         R"(>
     cond {
      %n = stablehlo.constant dense<4> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %slice = stablehlo.dynamic_slice %w, %i, %c, %c, sizes = [1, 1024, 1024] : (tensor<4x1024x1024x)" +
         weights + R"(>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x1024x)" + weights +
         R"(>
      %layer = stablehlo.reshape %slice : (tensor<1x1024x1024x)" +
         weights + R"(>) -> tensor<1024x1024x)" + weights + R"(>
      %cast = stablehlo.convert %layer : (tensor<1024x1024x)" +
         weights + R"(>) -> tensor<1024x1024x)" + element + R"(>
      %row = stablehlo.reshape %h : (tensor<1024x1024x)" +
         element + R"(>) -> tensor<1x1024x1024x)" + element + R"(>
      %kept = stablehlo.dynamic_update_slice %stack, %row, %i, %c, %c : (tensor<4x1024x1024x)" +
         element + R"(>, tensor<1x1024x1024x)" + element +
         R"(>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x1024x1024x)" + element + R"(>
      %y = stablehlo.dot_general %h, %cast, contracting_dims = [1] x [0] : (tensor<1024x1024x)" +
         element + R"(>, tensor<1024x1024x)" + element + R"(>) -> tensor<1024x1024x)" + element +
         R"(>
      stablehlo.return %next, %y, %w, %kept : tensor<i32>, tensor<1024x1024x)" +
         element + R"(>, tensor<4x1024x1024x)" + weights + R"(>, tensor<4x1024x1024x)" + element +
         R"(>
    }
    return %0#1, %0#3 : tensor<1024x1024x)" +
         element + R"(>, tensor<4x1024x1024x)" + element + ">";
}

}  // namespace

TEST_CASE("a loop holds its state, stacks in place, and its body comes on top") {
  // Results are outputs, so what is left is the next h while the old one is still read by the dot,
  // and the counter.
  CHECK(temporaries("%x: tensor<1024x1024xf32>, %weights: tensor<4x1024x1024xf32>) -> "
                    "(tensor<1024x1024xf32>, tensor<4x1024x1024xf32>)",
                    layers("f32", "f32")) == square + 512);
}

TEST_CASE("a TPU casts a stack of weights once, before the loop") {
  // bf16 of all four layers (8 MiB), the next h (2 MiB), the counter.
  CHECK(temporaries("%x: tensor<1024x1024xbf16>, %weights: tensor<4x1024x1024xf32>) -> "
                    "(tensor<1024x1024xbf16>, tensor<4x1024x1024xbf16>)",
                    layers("bf16", "f32")) == 8 * MiB + 2 * MiB + 512);
}

namespace {

const std::string square_dot =
    " : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>";

std::int64_t temporaries_in(Bytes capacity, const std::string& text, MemoryTarget target) {
  return device_memory(stablehlo::parse_module(text, "test.mlir"), target, capacity)
      .temporaries.count();
}

}  // namespace

TEST_CASE("what is added to a dot is written by a TPU in its place") {
  // A residual stream: the last sum and the next dot, 4 MiB each, not every dot.
  CHECK(temporaries("%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32>", R"(
    %a = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0])" + square_dot +
                                                                               R"(
    %1 = stablehlo.add %x, %a : tensor<1024x1024xf32>
    %b = stablehlo.dot_general %1, %x, contracting_dims = [1] x [0])" + square_dot +
                                                                               R"(
    %2 = stablehlo.add %1, %b : tensor<1024x1024xf32>
    %c = stablehlo.dot_general %2, %x, contracting_dims = [1] x [0])" + square_dot +
                                                                               R"(
    %3 = stablehlo.add %2, %c : tensor<1024x1024xf32>
    return %3 : tensor<1024x1024xf32>)") == 2 * square);
}

TEST_CASE("of what a TPU keeps in two orders a dot reads the one that it contracts last") {
  // bf16 of a softmax-like array, read by dots over its rows and over its columns: 2 MiB twice. The
  // first of them, of 16 MiB, runs while the second order waits for the other.
  CHECK(temporaries("%x: tensor<1024x1024xf32>, %w: tensor<1024x4096xbf16>, %v: "
                    "tensor<1024x1024xbf16>) -> (tensor<f32>, tensor<f32>)",
                    R"(
    %d = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0])" +
                        square_dot + R"(
    %e = stablehlo.exponential %d : tensor<1024x1024xf32>
    %c = stablehlo.convert %e : (tensor<1024x1024xf32>) -> tensor<1024x1024xbf16>
    %a = stablehlo.dot_general %c, %w, contracting_dims = [1] x [0] : (tensor<1024x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<1024x4096xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<1024x4096xf32>, tensor<f32>) -> tensor<f32>
    %b = stablehlo.dot_general %c, %v, contracting_dims = [0] x [0] : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xf32>
    %s = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<f32>
    return %r, %s : tensor<f32>, tensor<f32>)") == 2 * 2 * MiB + 16 * MiB);
}

TEST_CASE("a TPU with too little memory copies no argument before what replaces it is gathered") {
  const std::string text = R"(
    func.func @main(%p: tensor<1024x1024xf32> {tf.aliasing_output = 0 : i32}) -> tensor<1024x1024xf32> {
    %y = stablehlo.dot_general %p, %p, contracting_dims = [1] x [0])" +
                           square_dot + R"(
    %h = stablehlo.slice %y [0:512, 0:1024] : (tensor<1024x1024xf32>) -> tensor<512x1024xf32>
    %n = "stablehlo.all_gather"(%h) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<512x1024xf32>) -> tensor<1024x1024xf32>
    return %n : tensor<1024x1024xf32>
    })";
  // Copy of %p and %y, beside %p itself.
  CHECK(temporaries_in(Bytes(3 * square), text, MemoryTarget::tpu) == 2 * square);
  // %y and its half, or the half and what is gathered.
  CHECK(temporaries_in(Bytes(3 * square - 1), text, MemoryTarget::tpu) == square + square / 2);
}

TEST_CASE("a GPU with too little memory turns what it gathers at once") {
  const std::string gather =
      R"( <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<1024x512xf32>) -> tensor<1024x1024xf32>)";
  const std::string text = R"(
    func.func @main(%p: tensor<1024x1024xf32> {tf.aliasing_output = 0 : i32}, %q: tensor<1024x1024xf32> {tf.aliasing_output = 1 : i32}, %a: tensor<1024x512xf32>, %b: tensor<1024x512xf32>) -> (tensor<1024x1024xf32>, tensor<1024x1024xf32>) {
    %g = "stablehlo.all_gather"(%a))" +
                           gather + R"(
    %h = "stablehlo.all_gather"(%b))" +
                           gather + R"(
    return %g, %h : tensor<1024x1024xf32>, tensor<1024x1024xf32>
    })";
  // 12 MiB of arguments. 95 % of (80 % of 30 MiB - 12 MiB) is 11.4 MiB, of 20 MiB 3.8 MiB.
  CHECK(temporaries_in(Bytes(30 * MiB), text, MemoryTarget::gpu) == 2 * square);
  CHECK(temporaries_in(Bytes(20 * MiB), text, MemoryTarget::gpu) == square);
}

TEST_CASE("a dot waits behind a loop when it forms a ring with its reduce_scatter") {
  const auto text = [](const std::string& reduced) {
    return R"(
    %d = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0])" +
           square_dot + R"(
    %w = stablehlo.dot_general %d, %x, contracting_dims = [0] x [0])" +
           square_dot + R"(
    %r = "stablehlo.reduce_scatter"(%w) <{scatter_dimension = 0 : i64, replica_groups = [[0, 1, 2, 3], [4, 5, 6, 7]]}> ({
    ^bb0(%u: tensor<f32>, %v: tensor<f32>):
      %t = stablehlo.add %u, %v : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }) : (tensor<1024x1024xf32>) -> tensor<256x1024xf32>
    %a = "stablehlo.all_reduce"(%r) <{replica_groups = [[0, 4], [1, 5], [2, 6], [3, 7]]}> ({
    ^bb0(%u: tensor<f32>, %v: tensor<f32>):
      %t = stablehlo.add %u, %v : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }) : (tensor<256x1024xf32>) -> tensor<256x1024xf32>
    %e = stablehlo.dot_general %d, %x, contracting_dims = [1] x [0])" +
           square_dot + R"(
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %c, %h = %e) : tensor<i32>, tensor<1024x1024xf32>
     cond {
      %n = stablehlo.constant dense<4> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %y = stablehlo.dot_general %h, %h, contracting_dims = [1] x [0])" +
           square_dot + R"(
      stablehlo.return %next, %y : tensor<i32>, tensor<1024x1024xf32>
    }
    return %)" +
           reduced + ", %0#1 : tensor<256x1024xf32>, tensor<1024x1024xf32>";
  };
  const std::string signature =
      "%x: tensor<1024x1024xf32>) -> (tensor<256x1024xf32>, tensor<1024x1024xf32>)";
  // %d and %e, and in the loop the next %h and the counter.
  CHECK(temporaries(signature, text("r")) == 3 * square + 512);
  // The all_reduce: no ring. %d is gone, its quarter waits for the all_reduce.
  CHECK(temporaries(signature, text("a")) == 2 * square + square / 4 + 512);
}

TEST_CASE("what memory cannot be counted of is an error with its place") {
  CHECK_THROWS_WITH(device_memory(stablehlo::parse_module("func.func @f() { return }", "a.mlir"),
                                  MemoryTarget::tpu),
                    "a.mlir: no function @main");
  CHECK_THROWS_WITH(device_memory(stablehlo::parse_module(R"(
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  })",
                                                          "test.mlir"),
                                  MemoryTarget::tpu),
                    "test.mlir: line 3: a call: memory is counted after inlining");
  CHECK_THROWS_WITH(memory("%x: tensor<4xf32> {tf.aliasing_output = 3 : i32}) -> tensor<4xf32>",
                           "\n    return %x : tensor<4xf32>"),
                    "test.mlir: line 1: argument 0 of @main: tf.aliasing_output names no result");
}

}  // namespace shardsim::memory_test
