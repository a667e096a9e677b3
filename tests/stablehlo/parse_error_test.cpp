// Text that is no program: a clear error with its line, never a crash, whatever is cut or changed.
#include <catch2/catch.hpp>

#include "base/gzip.hpp"
#include "stablehlo/flops.hpp"
#include "stablehlo/op_rules.hpp"
#include "tests/stablehlo/programs.hpp"

using namespace shardsim::stablehlo;  // NOLINT(google-build-using-namespace)
using Catch::Matchers::Contains;
using shardsim::InputError;
using shardsim::test::parse_body;

namespace {

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

// All that a reader of foreign text may do: give a result or an InputError.
void use(const std::string& text) {
  try {
    const Module module = parse_module(text, "fuzz.mlir");
    static_cast<void>(unknown_ops(module));
    for (const Function& function : module.functions) static_cast<void>(work_of(module, function));
  } catch (const InputError&) {
    // What it is for.
  }
}

}  // namespace

TEST_CASE("errors name file and line, and what was expected") {
  const auto error = [](const std::string& body, const std::string& expected) {
    INFO(body);
    CHECK_THROWS_WITH(parse_body("%a: tensor<4x8xf32>", body), Contains(expected));
  };
  error("\n  %0 = stablehlo.add %a, %b : tensor<4x8xf32>", "test.mlir: line 3: unknown value %b");
  error("%0 = stablehlo.add %a, %a : tensor<4x?xf32>", "line 2: dynamic dimension");
  error("%0 = stablehlo.add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
        "%a is tensor<4x8xf32>, not tensor<4xf32>");
  error("%0:2 = stablehlo.abs %a : (tensor<4x8xf32>) -> tensor<4x8xf32>", "2 results, but 1 types");
  error("%a = stablehlo.abs %a : tensor<4x8xf32>", "%a is defined twice");
  error("%0 = frob %a : tensor<4x8xf32>", "unknown op \"frob\"");
  error("%0 = call @g(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>", "unknown function @g");
  error("%0 = call @man(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>", "did you mean \"main\"");
  error("%0 = call @main(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>", "takes or gives other types");
  error("%0 = sdy.sharding_constraint %a <@mesg, [{}, {}]> : tensor<4x8xf32>",
        "unknown mesh @mesg, did you mean \"mesh\"");
  error("%0 = sdy.sharding_constraint %a <@mesh, [{}]> : tensor<4x8xf32>",
        "%0 has 2 dimensions, its sharding 1");
  error("return\n^bb1:\n  return", "a region with several blocks");
  error("%0 = stablehlo.iota dim = : tensor<4xi32>", "expected an attribute, found \": tensor");
  error("%0 = stablehlo.iota dim = 0, dim = 1 : tensor<4xi32>", "\"dim\" of stablehlo.iota given");
  error("%0 = stablehlo.constant dense<[1> : tensor<4xi32>", "expected \"]\", found \">\"");
  error("%0 = stablehlo.constant dense<\"1> : tensor<4xi32>", "string without end");
  CHECK_THROWS_WITH(parse_module("", "a.mlir"), Contains("a.mlir: line 1: a program without"));
  CHECK_THROWS_WITH(parse_module("module { func.func @f(tensor<4xf32>)", "a.mlir"),
                    Contains("has no body"));
  CHECK_THROWS_WITH(parse_module("HloModule jit_f", "a.mlir"),
                    Contains("expected \"func.func\" or \"sdy.mesh\", found \"HloModule jit_f\""));
}

TEST_CASE("tensors and nesting have limits") {
  const auto type = [](const std::string& dims) { return "%a: tensor<" + dims + "f32>"; };
  CHECK_NOTHROW(parse_body(type("9007199254740992x"), ""));
  CHECK_NOTHROW(parse_body(type("0x9007199254740993x"), ""));
  CHECK_THROWS_WITH(parse_body(type("9007199254740993x"), ""), Contains("too many elements"));
  CHECK_THROWS_WITH(parse_body(type("3037000500x3037000500x"), ""), Contains("too many elements"));
  CHECK_THROWS_WITH(parse_body(type("99999999999999999999x"), ""), Contains("too large"));

  constexpr int deep = 100'000;
  use("module attributes {a = " + repeated("[", deep));
  use("module attributes {a = " + repeated("{a = ", deep));
  use("module attributes {a = dense<" + repeated("<", deep));
  use("func.func @f() { " + repeated("\"a.b\"() ({ ", deep));
  use("func.func @f(%a: tensor<" + repeated("complex<", deep));
  CHECK_THROWS_WITH(parse_body("", repeated("\"a.b\"() ({ ", deep)), Contains("nested too deeply"));
}

TEST_CASE("ops whose attributes contradict their types are errors of the rule") {
  const auto error = [](const std::string& arguments, const std::string& op,
                        const std::string& expected) {
    INFO(op);
    const Module module = parse_body(arguments, op);
    const Function& function = module.functions[0];
    CHECK_THROWS_WITH(factor_rule(module, function, function.op(0)), Contains(expected));
  };
  const std::string matrix = "%a: tensor<4x8xf32>";
  error(matrix, "%0 = stablehlo.transpose %a, dims = [1, 2] : (tensor<4x8xf32>) -> tensor<8x4xf32>",
        "stablehlo.transpose: dimension 2 of a tensor of rank 2");
  error(matrix, "%0 = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<31xf32>",
        "number of elements changes");
  error(matrix,
        "%0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<4x8xf32>, "
        "tensor<4x8xf32>) -> tensor<4x8xf32>",
        "dimensions 1 and 0 of the operands differ in size");
  error(matrix,
        "%0 = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<5x8xf32>",
        "differ in size");
  error(matrix, "%0 = stablehlo.transpose %a : (tensor<4x8xf32>) -> tensor<8x4xf32>",
        "attribute \"dims\" is missing");
  error(matrix, "%0 = stablehlo.tanh %a : (tensor<4x8xf32>) -> tensor<4x8x2xf32>",
        "dimension 2 of a tensor of rank 2");
}

TEST_CASE("a function that calls itself has no work") {
  const Module module = parse_body("", "call @main() : () -> ()");
  CHECK_THROWS_WITH(work_of(module, module.functions[0]), Contains("@main calls itself"));

  std::string chain = "func.func @f0() { return }";
  for (int i = 1; i < 20'000; ++i) {
    chain += "func.func @f" + std::to_string(i) + "() { call @f" + std::to_string(i - 1) +
             "() : () -> () return }";
  }
  const Module deep = parse_module(chain, "test.mlir");
  CHECK_THROWS_WITH(work_of(deep, deep.functions.back()), Contains("nested too deeply"));
}

// Every prefix, and single characters replaced by those that mean something; seeds are fixed.
TEST_CASE("damaged programs end in an error or a module") {
  const std::string folder = SHARDSIM_SOURCE_DIR "/tests/golden/xla/propagated/";
  for (const char* name : {"manual_fsdp_step", "conv_patch_fsdp", "cond_collective",
                           "gather_rows_batched", "embedgrad_fsdp", "pipeline_shift_data"}) {
    const std::string text = shardsim::read_maybe_gzip(folder + name + ".mlir.gz");
    const std::size_t step = text.size() / 150 + 1;
    for (std::size_t end = 0; end < text.size(); end += step) use(text.substr(0, end));
    constexpr std::string_view replacements = "<>()[]{}%#@\",:=-x0912 \n";
    std::uint32_t random = 1;
    for (int i = 0; i < 300; ++i) {
      std::string damaged = text;
      for (int j = 0; j < 2; ++j) {
        random = random * 1664525u + 1013904223u;
        const std::size_t at = (random >> 8) % damaged.size();
        random = random * 1664525u + 1013904223u;
        damaged[at] = replacements[(random >> 8) % replacements.size()];
      }
      use(damaged);
    }
  }
}
