// Rules of custom calls whose meaning is known by their target's name.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "stablehlo/rules.hpp"

namespace shardsim::stablehlo {
namespace {

// Element by element, or kept whole in place: annotations, memory moves, layouts. "Sharding" is how
// GSPMD programs say what Shardy calls a sharding constraint.
constexpr std::array<std::string_view, 14> pointwise_targets{"Sharding",
                                                             "annotate_device_placement",
                                                             "Cholesky",
                                                             "CompactWyHelper",
                                                             "InspectSharding",
                                                             "InvertDiagBlocksLowerTriangular",
                                                             "InvertDiagBlocksUpperTriangular",
                                                             "LayoutConstraint",
                                                             "mhlo.erf",
                                                             "MoveToDevice",
                                                             "MoveToHost",
                                                             "X64SplitHigh",
                                                             "X64SplitLow",
                                                             "xla.megascale.provide_metadata"};

// Known to have no rule: kernels and callbacks run on whole operands, and the borders of a manual
// computation in GSPMD programs change the meaning of shapes.
constexpr std::array<std::string_view, 8> opaque_targets{"tpu_custom_call",
                                                         "xla_python_cpu_callback",
                                                         "xla_python_gpu_callback",
                                                         "xla_ffi_python_cpu_callback",
                                                         "xla_ffi_python_gpu_callback",
                                                         "SPMDFullToShardShape",
                                                         "SPMDShardToFullShape",
                                                         "sdy_testonly"};

template <std::size_t n>
bool is_one_of(const std::array<std::string_view, n>& targets, std::string_view target) {
  return std::find(targets.begin(), targets.end(), target) != targets.end();
}

// The last two dimensions of a batch of matrices.
struct Matrix {
  int row;
  int column;
};

Matrix last_two(const OpView& op, const Shape& shape) {
  if (shape.size() < 2) op.fail("operand is no matrix");
  const int rank = static_cast<int>(shape.size());
  return {rank - 2, rank - 1};
}

void add_batches(const OpView& op, RuleBuilder& builder, const Shape& shape, int count) {
  for (int dim = 0; dim < count; ++dim) builder.add_everywhere(dim, {op.size(shape, dim)});
}

// Eigenvectors like the operand, and one eigenvalue per column.
FactorRule eigh(const OpView& op) {
  op.expect_counts(1, 2);
  const Shape& shape = op.operand(0);
  const auto [row, column] = last_two(op, shape);
  RuleBuilder builder(op.module(), op.function(), op.op());
  add_batches(op, builder, shape, row);
  builder.add({row}, {row, none}, {op.size(shape, row)});
  builder.add({column}, {column, row}, {op.size(shape, column)});
  return builder.build();
}

FactorRule qr(const OpView& op) {
  op.expect_counts(1, 2);
  const Shape& shape = op.operand(0);
  const auto [row, column] = last_two(op, shape);
  const auto whole = [](std::int64_t size) { return Factor{size, FactorKind::need_replication}; };
  RuleBuilder builder(op.module(), op.function(), op.op());
  add_batches(op, builder, shape, row);
  builder.add({row}, {row, none}, whole(op.size(shape, row)));
  builder.add({column}, {column, none}, whole(op.size(shape, column)));
  builder.add({none}, {none, row}, whole(op.size(op.result(1), row)));
  return builder.build();
}

FactorRule householder_product(const OpView& op) {
  op.expect_counts(2, 1);
  const Shape& shape = op.operand(0);
  const auto [row, column] = last_two(op, shape);
  const auto whole = [](std::int64_t size) { return Factor{size, FactorKind::need_replication}; };
  RuleBuilder builder(op.module(), op.function(), op.op());
  add_batches(op, builder, shape, row);
  builder.add({row, none}, {row}, whole(op.size(shape, row)));
  builder.add({column, none}, {column}, whole(op.size(shape, column)));
  builder.add({none, row}, {none}, whole(op.size(op.operand(1), row)));
  return builder.build();
}

// Operand, iota, two initial values; values and indices.
FactorRule approximate_top_k(const OpView& op) {
  op.expect_counts(4, 2);
  const Shape& input = op.operand(0);
  const Shape& output = op.result(0);
  if (input.size() != output.size()) op.fail("operand and result differ in rank");
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t dim = 0; dim < input.size(); ++dim) {
    const int index = static_cast<int>(dim);
    if (input[dim] == output[dim]) {
      builder.add_everywhere(index, {input[dim]});
      continue;
    }
    builder.add({index, index, none, none}, {none, none}, {input[dim]});
    builder.add({none, none, none, none}, {index, index},
                {output[dim], FactorKind::need_replication, /*blocked=*/true});
  }
  return builder.build();
}

// A generator's state is put together by this; it must stay whole, so nothing travels through.
FactorRule x64_combine(const OpView& op) {
  op.expect_counts(2, 1);
  const ValueId combined = op.op().results.front();
  const std::vector<Op>& ops = op.function().ops;
  const bool is_state = std::any_of(ops.begin(), ops.end(), [&](const Op& user) {
    return user.name == "stablehlo.rng_bit_generator" &&
           std::find(user.operands.begin(), user.operands.end(), combined) != user.operands.end();
  });
  FactorRule rule = pointwise(op, op.result(0));
  for (Factor& factor : rule.factors) factor.blocked = is_state;
  return rule;
}

}  // namespace

std::optional<FactorRule> custom_call_rule(const OpView& op, bool& known) {
  known = true;
  const Attribute* callee = op.attribute({"callee", "call_target_name"});
  if (callee == nullptr) op.fail("attribute \"call_target_name\" is missing");
  const std::string& target = callee->text;
  if (is_one_of(opaque_targets, target)) return std::nullopt;
  if (is_one_of(pointwise_targets, target)) return elementwise_rule(op);
  if (target == "Eigh") return eigh(op);
  if (target == "Qr" || target == "QrDecompositionBlock") return qr(op);
  if (target == "ProductOfElementaryHouseholderReflectors") return householder_product(op);
  if (target == "mhlo.topk") return top_k_rule(op);
  if (target == "ApproxTopK" || target == "PartialReduce") return approximate_top_k(op);
  if (target == "X64Combine") return x64_combine(op);
  known = false;
  return std::nullopt;
}

}  // namespace shardsim::stablehlo
