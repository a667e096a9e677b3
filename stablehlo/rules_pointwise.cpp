// Rules where dimension d of one tensor is dimension d of every other.
#include <fmt/format.h>

#include <algorithm>

#include "stablehlo/dimension_numbers.hpp"
#include "stablehlo/rules.hpp"

namespace shardsim::stablehlo {
namespace {

// The tensor that a value is a slice of, or the value.
ValueId before_slice(const OpView& op, ValueId value) {
  const Op* definition = op.function().definition(value);
  const bool is_slice = definition != nullptr && definition->name == "stablehlo.slice" &&
                        !definition->operands.empty();
  return is_slice ? definition->operands.front() : value;
}

// Slices, as jnp.roll puts together, or slices of a tensor and the tensor, as jnp.pad does to wrap:
// neighbours send them.
bool joins_pieces(const OpView& op) {
  const std::vector<ValueId>& operands = op.op().operands;
  const auto is_sliced = [&](ValueId value) { return before_slice(op, value) != value; };
  const ValueId source = before_slice(op, operands.front());
  const bool one_source = std::all_of(operands.begin(), operands.end(), [&](ValueId value) {
    return before_slice(op, value) == source;
  });
  return std::all_of(operands.begin(), operands.end(), is_sliced) ||
         (one_source && std::any_of(operands.begin(), operands.end(), is_sliced));
}

}  // namespace

int checked(const OpView& op, const Shape& shape, std::int64_t dimension) {
  static_cast<void>(op.size(shape, dimension));
  return static_cast<int>(dimension);
}

std::vector<int> dims(std::size_t count, int dim) { return std::vector<int>(count, dim); }

FactorRule pointwise(const OpView& op, const Shape& shape) {
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    builder.add_everywhere(static_cast<int>(dim), {shape[dim]});
  }
  return builder.build();
}

FactorRule pointwise_but(const OpView& op, const Shape& shape, const Shape& other,
                         Factor mismatch) {
  if (shape.size() != other.size()) op.fail("operand and result differ in rank");
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    Factor factor = shape[dim] == other[dim] ? Factor{} : mismatch;
    factor.size = shape[dim];
    builder.add_everywhere(static_cast<int>(dim), factor);
  }
  return builder.build();
}

std::optional<FactorRule> elementwise_rule(const OpView& op) { return pointwise(op, op.result(0)); }

// The bounds may be scalars.
std::optional<FactorRule> clamp_rule(const OpView& op) { return pointwise(op, op.operand(1)); }

std::optional<FactorRule> reverse_rule(const OpView& op) {
  const std::vector<std::int64_t> reversed = op.integers({"dims", "dimensions"});
  const Shape& shape = op.result(0);
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const bool moves = contains(reversed, static_cast<std::int64_t>(dim));
    builder.add_everywhere(static_cast<int>(dim), {shape[dim], moves ? FactorKind::permutation
                                                                     : FactorKind::pass_through});
  }
  return builder.build();
}

std::optional<FactorRule> pad_rule(const OpView& op) {
  return pointwise_but(op, op.operand(0), op.result(0), {1, FactorKind::permutation});
}

// Where a slice begins is known, so that data can be shifted into place.
std::optional<FactorRule> slice_rule(const OpView& op) {
  return pointwise_but(op, op.operand(0), op.result(0), {1, FactorKind::permutation});
}

std::optional<FactorRule> dynamic_slice_rule(const OpView& op) {
  return pointwise_but(op, op.operand(0), op.result(0),
                       {1, FactorKind::need_replication, /*blocked=*/true});
}

std::optional<FactorRule> top_k_rule(const OpView& op) {
  return pointwise_but(op, op.operand(0), op.result(0),
                       {1, FactorKind::need_replication, /*blocked=*/true});
}

// A factor counts windows. Windows of more than one element reach into their neighbours' shards.
std::optional<FactorRule> reduce_window_rule(const OpView& op) {
  const Shape& input = op.operand(0);
  const Shape& output = op.result(0);
  const std::vector<std::int64_t> window = op.integers({"window_dimensions"});
  if (input.size() != output.size() || window.size() != input.size()) {
    op.fail("operand, window and result differ in rank");
  }
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t dim = 0; dim < output.size(); ++dim) {
    const bool alone = window[dim] == 1 && input[dim] == output[dim];
    builder.add_everywhere(static_cast<int>(dim), {output[dim], alone ? FactorKind::pass_through
                                                                      : FactorKind::permutation});
  }
  return builder.build();
}

std::optional<FactorRule> select_and_scatter_rule(const OpView& op) {
  return pointwise_but(op, op.operand(1), op.operand(0), {1, FactorKind::permutation});
}

// The sorted dimension has to be whole; when it is the only one there is nothing else to split, and
// no sharding is sent its way.
std::optional<FactorRule> sort_rule(const OpView& op) {
  const Shape& shape = op.operand(0);
  const std::int64_t sorted = sorted_dim(op);
  bool is_only = true;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    is_only = is_only && (static_cast<std::int64_t>(dim) == sorted || shape[dim] == 1);
  }
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    Factor factor{shape[dim]};
    if (static_cast<std::int64_t>(dim) == sorted) {
      factor = {shape[dim], FactorKind::need_replication, /*blocked=*/is_only};
    }
    builder.add_everywhere(static_cast<int>(dim), factor);
  }
  return builder.build();
}

// The transformed dimensions are the last ones; that of a real transform changes its size.
std::optional<FactorRule> fft_rule(const OpView& op) {
  const Shape& input = op.operand(0);
  const Shape& output = op.result(0);
  const std::size_t transformed = op.integers({"length", "fft_length"}).size();
  if (transformed > input.size() || input.size() != output.size()) {
    op.fail("more dimensions transformed than there are");
  }
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t dim = 0; dim < input.size(); ++dim) {
    Factor factor{input[dim]};
    if (dim >= input.size() - transformed) {
      const bool is_last = dim + 1 == input.size();
      factor = {input[dim], FactorKind::need_replication, is_last && input[dim] != output[dim]};
    }
    builder.add_everywhere(static_cast<int>(dim), factor);
  }
  return builder.build();
}

// All but the last two dimensions are batches.
std::optional<FactorRule> cholesky_rule(const OpView& op) {
  const Shape& shape = op.operand(0);
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const bool is_batch = dim + 2 < shape.size();
    builder.add_everywhere(
        static_cast<int>(dim),
        {shape[dim], is_batch ? FactorKind::pass_through : FactorKind::need_replication});
  }
  return builder.build();
}

std::optional<FactorRule> concatenate_rule(const OpView& op) {
  if (op.op().operands.empty()) op.fail("nothing to concatenate");
  const Shape& shape = op.result(0);
  const std::int64_t joined = op.integer({"dim", "dimension"}, 0);
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    Factor factor{shape[dim]};
    if (static_cast<std::int64_t>(dim) == joined) {
      factor.kind = joins_pieces(op) ? FactorKind::permutation : FactorKind::need_replication;
    }
    builder.add_everywhere(static_cast<int>(dim), factor);
  }
  return builder.build();
}

}  // namespace shardsim::stablehlo
