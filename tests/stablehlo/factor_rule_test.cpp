// Rules of single ops. Programs that XLA has propagated check the common ones (rules_golden_test);
// here are those that are rare in programs. Expected texts are those of Shardy's own tests for the
// same shapes (openxla/shardy shardy/dialect/sdy/transforms/propagation/test/
// op_sharding_rule_registry.mlir), or, where that says nothing, derived in the comment.
#include <catch2/catch.hpp>

#include "stablehlo/op_rules.hpp"
#include "tests/stablehlo/programs.hpp"

using namespace shardsim::stablehlo;  // NOLINT(google-build-using-namespace)
using shardsim::test::parse_body;

namespace {

// The rule of the last op before the return; "" when it has none, "unknown" when it is not known.
std::string rule_of(const std::string& arguments, const std::string& body) {
  const Module module = parse_body(arguments, body);
  const Function& function = module.functions[0];
  const Op& op = function.op(function.body().ops[function.body().ops.size() - 2]);
  const OpRule rule = factor_rule(module, function, op);
  if (!rule.known) return "unknown";
  return rule.rule ? text_of(*rule.rule) : "";
}

std::string reshape(const std::string& from, const std::string& to) {
  return rule_of("%a: tensor<" + from + "xf32>", "%0 = stablehlo.reshape %a : (tensor<" + from +
                                                     "xf32>) -> tensor<" + to + "xf32>");
}

}  // namespace

TEST_CASE("rules are read back as they were printed") {
  for (const char* text :
       {"([])->([])", "([i, k], [k, j])->([i, j]) {i=8, j=16, k=32} reduction={k}",
        "([ij])->([i, j]) {i=2, j=4}, custom", "([x])->([]) {i=1} bad={x}",
        "([i, j])->([k]) {i=4, j=2, k=1} reduction={i} need_replication={k} permutation={j} "
        "blocked_propagation={i, j}"}) {
    Scanner body(text, "test");
    if (std::string(text).find("bad") != std::string::npos) {
      CHECK_THROWS_AS(parse_factor_rule(body), shardsim::InputError);
    } else {
      CHECK(text_of(parse_factor_rule(body)) == text);
    }
  }
  CHECK(factor_name(17) == "z");
  CHECK(factor_name(18) == "z_1");
  Scanner many("([z_1z_2, z])->([i]) {i=1}", "test");
  CHECK_THROWS_WITH(parse_factor_rule(many), Catch::Contains("20 factors, 1 sizes"));
}

TEST_CASE("reshape: factors common to both sides, as early as they meet") {
  CHECK(reshape("1x1", "1") == "([i, j])->([k]) {i=1, j=1, k=1}");
  CHECK(reshape("2x4", "8") == "([i, j])->([ij]) {i=2, j=4}");
  CHECK(reshape("4x12", "4x2x3x2") == "([i, jkl])->([i, j, k, l]) {i=4, j=2, k=3, l=2}");
  CHECK(reshape("8x4x5", "2x16x5") == "([ij, k, l])->([i, jk, l]) {i=2, j=4, k=4, l=5}");
  CHECK(reshape("3x2", "2x3") == "([i, l])->([j, k]) {i=3, j=2, k=3, l=2}");
  CHECK(reshape("6x4", "4x6") == "([ij, mn])->([ik, ln]) {i=2, j=3, k=2, l=3, m=2, n=2}");
  CHECK(reshape("5x2x5x3", "5x3x5x2") ==
        "([i, j, l, n])->([i, k, m, o]) {i=5, j=2, k=3, l=5, m=5, n=3, o=2}");
  CHECK(reshape("2x3x8", "3x4x4") == "([i, k, mn])->([j, lm, n]) {i=2, j=3, k=3, l=2, m=2, n=4}");
  CHECK(reshape("3x4x4", "2x3x8") == "([i, lm, n])->([j, k, mn]) {i=3, j=2, k=3, l=2, m=2, n=4}");
  CHECK(reshape("4x7x5x8", "14x10x8") ==
        "([ij, l, n, o])->([ik, mn, o]) {i=2, j=2, k=7, l=7, m=2, n=5, o=8}");
  CHECK(reshape("1x8x4", "8x1x4x1") == "([i, j, l])->([j, k, l, m]) {i=1, j=8, k=1, l=4, m=1}");
  CHECK(reshape("32", "8x1x4") == "([ik])->([i, j, k]) {i=8, j=1, k=4}");
  CHECK(reshape("4x0", "0x8").empty());
}

TEST_CASE("dot of vectors and matrices") {
  const auto dot = [](const std::string& a, const std::string& b, const std::string& out) {
    return rule_of("%a: tensor<" + a + "xf32>, %b: tensor<" + b + "xf32>",
                   "%0 = stablehlo.dot %a, %b : (tensor<" + a + "xf32>, tensor<" + b +
                       "xf32>) -> tensor<" + out + "f32>");
  };
  CHECK(dot("32", "32", "") == "([i], [i])->([]) {i=32} reduction={i}");
  CHECK(dot("32", "32x16", "16x") == "([j], [j, i])->([i]) {i=16, j=32} reduction={j}");
  CHECK(dot("8x32", "32", "8x") == "([i, j], [j])->([i]) {i=8, j=32} reduction={j}");
  CHECK(rule_of("%a: tensor<2x4x8x4x64x32xf32>, %b: tensor<16x32x64x4x2xf32>",
                R"(%0 = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<
                lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [4, 3],
                lhs_contracting_dimensions = [5, 4], rhs_contracting_dimensions = [1, 2]>}> :
                (tensor<2x4x8x4x64x32xf32>, tensor<16x32x64x4x2xf32>) -> tensor<2x4x8x4x16xf32>)") ==
        "([i, j, k, l, o, n], [m, n, o, j, i])->([i, j, k, l, m]) "
        "{i=2, j=4, k=8, l=4, m=16, n=32, o=64} reduction={n, o}");
}

TEST_CASE("convolution: windows and groups") {
  const auto conv = [](const std::string& a, const std::string& b, const std::string& out,
                       const std::string& groups) {
    const std::string types = "(tensor<" + a + ">, tensor<" + b + ">) -> tensor<" + out + ">";
    return rule_of("%a: tensor<" + a + ">, %b: tensor<" + b + ">",
                   "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->"
                   "[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {" +
                       groups + "} : " + types);
  };
  CHECK(conv("2x224x224x192xf32", "3x3x192x64xf32", "2x112x112x64xf32", "") ==
        "([i, jk, lm, n], [k, m, n, o])->([i, j, l, o]) {i=2, j=112, k=2, l=112, m=2, n=192, o=64} "
        "reduction={k, m, n} permutation={j, l}");
  CHECK(conv("2x224x224x192xf32", "112x112x192x64xf32", "2x57x57x64xf32", "") ==
        "([i, jk, lm, n], [j, l, n, o])->([i, k, m, o]) {i=2, j=112, k=2, l=112, m=2, n=192, o=64} "
        "reduction={j, l, n} permutation={k, m}");
  CHECK(conv("8x224x224x192xf32", "3x3x192x256xf32", "2x112x112x256xf32",
             "batch_group_count = 4 : i64") ==
        "([ij, kl, mn, o], [l, n, o, ip])->([j, k, m, ip]) "
        "{i=4, j=2, k=112, l=2, m=112, n=2, o=192, p=64} reduction={l, n, o} permutation={k, m}");
  CHECK(conv("8x224x224x192xf32", "3x3x12x256xf32", "8x112x112x256xf32",
             "feature_group_count = 16 : i64") ==
        "([i, jk, lm, no], [k, m, o, np])->([i, j, l, np]) "
        "{i=8, j=112, k=2, l=112, m=2, n=16, o=12, p=16} reduction={k, m, o} permutation={j, l}");
}

TEST_CASE("broadcast, transpose, bitcast, reverse, pad, slice") {
  CHECK(rule_of("%a: tensor<2x3x5x1x7xf32>",
                "%0 = stablehlo.broadcast_in_dim %a, dims = [0, 2, 1, 3, 4] : "
                "(tensor<2x3x5x1x7xf32>) -> tensor<2x5x3x11x7x13xf32>") ==
        "([i, k, j, l, n])->([i, j, k, m, n, o]) {i=2, j=5, k=3, l=1, m=11, n=7, o=13}");
  CHECK(rule_of("%a: tensor<256x32x64x100xf32>",
                "%0 = stablehlo.transpose %a, dims = [3, 1, 0, 2] : (tensor<256x32x64x100xf32>) -> "
                "tensor<100x32x256x64xf32>") ==
        "([k, j, l, i])->([i, j, k, l]) {i=100, j=32, k=256, l=64}");
  CHECK(rule_of("%a: tensor<4x2x2xui32>",
                "%0 = stablehlo.bitcast_convert %a : (tensor<4x2x2xui32>) -> tensor<4x2xui64>") ==
        "([i, j, k])->([i, j]) {i=4, j=2, k=2} need_replication={k}");
  CHECK(rule_of("%a: tensor<4x2xui64>",
                "%0 = stablehlo.bitcast_convert %a : (tensor<4x2xui64>) -> tensor<4x2x2xui32>") ==
        "([i, j])->([i, j, k]) {i=4, j=2, k=2} need_replication={k}");
  // Reversed dimensions send every shard to the opposite device.
  CHECK(rule_of("%a: tensor<4x32x8xf32>",
                "%0 = stablehlo.reverse %a, dims = [1] : tensor<4x32x8xf32>") ==
        "([i, j, k])->([i, j, k]) {i=4, j=32, k=8} permutation={j}");
  CHECK(rule_of("%a: tensor<28x28x16xf32>, %z: tensor<f32>",
                "%0 = stablehlo.pad %a, %z, low = [1, -1, 0], high = [1, -1, 0], interior = "
                "[0, 0, 0] : (tensor<28x28x16xf32>, tensor<f32>) -> tensor<30x26x16xf32>") ==
        "([i, j, k], [])->([i, j, k]) {i=28, j=28, k=16} permutation={i, j}");
  CHECK(rule_of("%a: tensor<32x4x8xf32>",
                "%0 = stablehlo.slice %a [0:32, 1:2, 4:8:2] : (tensor<32x4x8xf32>) -> "
                "tensor<32x1x2xf32>") ==
        "([i, j, k])->([i, j, k]) {i=32, j=4, k=8} permutation={j, k}");
}

TEST_CASE("scalars among operands have no factors") {
  CHECK(rule_of("%a: tensor<f32>, %b: tensor<4x8xf32>",
                "%0 = stablehlo.clamp %a, %b, %a : (tensor<f32>, tensor<4x8xf32>, tensor<f32>) -> "
                "tensor<4x8xf32>") == "([], [i, j], [])->([i, j]) {i=4, j=8}");
  CHECK(rule_of("%a: tensor<i1>, %b: tensor<4x8xf32>",
                "%0 = stablehlo.select %a, %b, %b : tensor<i1>, tensor<4x8xf32>") ==
        "([], [i, j], [i, j])->([i, j]) {i=4, j=8}");
}

TEST_CASE("gather and scatter with windows that are cut") {
  CHECK(rule_of("%a: tensor<3x4x2x5xf32>, %i: tensor<2x3x3xi64>",
                R"(%0 = "stablehlo.gather"(%a, %i) {dimension_numbers = #stablehlo.gather<
                offset_dims = [2, 3, 4], collapsed_slice_dims = [0], start_index_map = [1, 0, 3],
                index_vector_dim = 2>, slice_sizes = array<i64: 1, 2, 2, 1>} :
                (tensor<3x4x2x5xf32>, tensor<2x3x3xi64>) -> tensor<2x3x2x2x1xf32>)") ==
        "([o, k, l, m], [i, j, p])->([i, j, k, l, n]) {i=2, j=3, k=4, l=2, m=5, n=1, o=3, p=3} "
        "reduction={m, o} need_replication={k, n, p} blocked_propagation={k}");
  // Two inputs share the rule of one. The window's 2 of 4 is cut: the input keeps its factor k, the
  // updates have l, which must be whole. Batches of the updates are summed.
  CHECK(rule_of("%a: tensor<3x4x2xi32>, %b: tensor<3x4x2xf32>, %i: tensor<2x3x2xi64>, "
                "%u: tensor<2x3x2x2xi32>, %v: tensor<2x3x2x2xf32>",
                R"(%0:2 = "stablehlo.scatter"(%a, %b, %i, %u, %v) ({
                  ^bb0(%c: tensor<i32>, %d: tensor<f32>, %e: tensor<i32>, %f: tensor<f32>):
                    stablehlo.return %e, %f : tensor<i32>, tensor<f32>
                }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2, 3],
                inserted_window_dims = [0], scatter_dims_to_operand_dims = [1, 0],
                index_vector_dim = 2>} : (tensor<3x4x2xi32>, tensor<3x4x2xf32>, tensor<2x3x2xi64>,
                tensor<2x3x2x2xi32>, tensor<2x3x2x2xf32>) ->
                (tensor<3x4x2xi32>, tensor<3x4x2xf32>))") ==
        "([n, k, m], [n, k, m], [i, j, o], [i, j, l, m], [i, j, l, m])->([n, k, m], [n, k, m]) "
        "{i=2, j=3, k=4, l=2, m=2, n=3, o=2} reduction={i, j} need_replication={l, o}");
}

TEST_CASE("windows, sort, concatenation") {
  // Three windows of 3 x 1 x 3 rows; a window of one element reaches nowhere.
  CHECK(rule_of("%a: tensor<48x48x3xf32>, %z: tensor<f32>",
                R"(%0 = "stablehlo.reduce_window"(%a, %z) <{window_dimensions = array<i64: 3, 1, 3>,
                window_strides = array<i64: 3, 1, 3>}> ({
                  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
                    stablehlo.return %b : tensor<f32>
                }) : (tensor<48x48x3xf32>, tensor<f32>) -> tensor<16x48x1xf32>)") ==
        "([i, j, k], [])->([i, j, k]) {i=16, j=48, k=1} permutation={i, k}");
  const auto sort = [](const std::string& shape, const std::string& dimension) {
    const std::string type = "tensor<" + shape + "xf32>";
    return rule_of("%a: " + type, R"(%0 = "stablehlo.sort"(%a) ({
                  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
                    %1 = stablehlo.compare GT, %b, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
                    stablehlo.return %1 : tensor<i1>
                }) {dimension = )" + dimension +
                                      " : i64} : (" + type + ") -> " + type);
  };
  CHECK(sort("4x32x8", "0") == "([i, j, k])->([i, j, k]) {i=4, j=32, k=8} need_replication={i}");
  CHECK(sort("1x4x1", "1") ==
        "([i, j, k])->([i, j, k]) {i=1, j=4, k=1} need_replication={j} blocked_propagation={j}");
  // concat(slice(a), a) is made of one tensor; concat(a, b) of two.
  const std::string sliced =
      "%s = stablehlo.slice %a [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>\n";
  const auto concatenate = [&](const std::string& second) {
    return rule_of("%a: tensor<4x8xf32>, %b: tensor<4x8xf32>",
                   sliced + "%0 = stablehlo.concatenate %s, %" + second +
                       ", dim = 0 : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>");
  };
  CHECK(concatenate("a") == "([i, j], [i, j])->([i, j]) {i=6, j=8} permutation={i}");
  CHECK(concatenate("b") == "([i, j], [i, j])->([i, j]) {i=6, j=8} need_replication={i}");
}

TEST_CASE("linear algebra") {
  CHECK(rule_of("%a: tensor<2x4x8x8xf32>",
                "%0 = stablehlo.cholesky %a, lower = true : (tensor<2x4x8x8xf32>) -> "
                "tensor<2x4x8x8xf32>") ==
        "([i, j, k, l])->([i, j, k, l]) {i=2, j=4, k=8, l=8} need_replication={k, l}");
  const auto solve = [](const std::string& left, const std::string& transpose,
                        const std::string& b) {
    const std::string types = "(tensor<8x3x3xf32>, tensor<" + b + "xf32>) -> tensor<" + b + "xf32>";
    return rule_of("%a: tensor<8x3x3xf32>, %b: tensor<" + b + "xf32>",
                   "%0 = \"stablehlo.triangular_solve\"(%a, %b) {left_side = " + left +
                       ", transpose_a = #stablehlo<transpose " + transpose + ">} : " + types);
  };
  const std::string sizes = " {i=8, j=3, k=5, l=3} need_replication={j, k, l}";
  const std::string right_sizes = " {i=8, j=5, k=3, l=3} need_replication={j, k, l}";
  CHECK(solve("true", "NO_TRANSPOSE", "8x3x5") == "([i, j, l], [i, j, k])->([i, l, k])" + sizes);
  CHECK(solve("true", "TRANSPOSE", "8x3x5") == "([i, l, j], [i, j, k])->([i, l, k])" + sizes);
  CHECK(solve("false", "NO_TRANSPOSE", "8x5x3") ==
        "([i, l, k], [i, j, k])->([i, j, l])" + right_sizes);
  CHECK(solve("false", "TRANSPOSE", "8x5x3") ==
        "([i, k, l], [i, j, k])->([i, j, l])" + right_sizes);
  // The 33 values of a real transform of 64 are no split of it.
  CHECK(rule_of("%a: tensor<8x32x64xf32>",
                "%0 = stablehlo.fft %a, type = RFFT, length = [32, 64] : (tensor<8x32x64xf32>) -> "
                "tensor<8x32x33xcomplex<f32>>") ==
        "([i, j, k])->([i, j, k]) {i=8, j=32, k=64} need_replication={j, k} "
        "blocked_propagation={k}");
}

TEST_CASE("random bits: the state stays whole") {
  CHECK(rule_of("%s: tensor<4xui32>",
                "%0, %1 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<4xui32>) -> "
                "(tensor<4xui32>, tensor<16x8xui32>)") ==
        "([i])->([i], [j, k]) {i=4, j=16, k=8} need_replication={i} blocked_propagation={i}");
}

TEST_CASE("custom calls by their target") {
  const auto call = [](const std::string& target, const std::string& attributes) {
    return rule_of("%a: tensor<4x2xf32>", "%0 = stablehlo.custom_call @" + target + "(%a) {" +
                                              attributes +
                                              "} : (tensor<4x2xf32>) -> tensor<2x4xf32>");
  };
  CHECK(call("MoveToHost", "") == "([i, j])->([i, j]) {i=2, j=4}");
  CHECK(call("tpu_custom_call", "").empty());
  CHECK(call("foo", "") == "unknown");
  CHECK(call("foo",
             "sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([j, i]) {i=4, j=2}, custom>") ==
        "([i, j])->([j, i]) {i=4, j=2}, custom");
  CHECK(rule_of("%a: tensor<8x4x4xf32>",
                "%0:2 = stablehlo.custom_call @Eigh(%a) : (tensor<8x4x4xf32>) -> "
                "(tensor<8x4x4xf32>, tensor<8x4xf32>)") ==
        "([i, j, k])->([i, j, k], [i, k]) {i=8, j=4, k=4}");
  const Module module = parse_body("%a: tensor<4xf32>",
                                   "%0 = stablehlo.custom_call @foo(%a) : (tensor<4xf32>) -> "
                                   "tensor<4xf32> %1 = my.op %0 : tensor<4xf32>");
  CHECK(unknown_ops(module) ==
        std::map<std::string, int>{{"my.op", 1}, {"stablehlo.custom_call @foo", 1}});
}
