// Rules of ops that rearrange dimensions.
#include <fmt/format.h>

#include <numeric>

#include "base/index.hpp"
#include "stablehlo/rules.hpp"

namespace shardsim::stablehlo {
namespace {

// One side of a reshape while it is taken apart into factors, major to minor.
struct ReshapeSide {
  const Shape& shape;
  std::size_t dim = 0;
  std::int64_t rest = 0;  // of dimension `dim` not yet in factors; 0 before it is looked at
  std::int64_t done = 1;  // product of all factors so far

  [[nodiscard]] bool at_end() const { return dim == shape.size(); }
  [[nodiscard]] bool at_one() const { return !at_end() && rest == 0 && shape[dim] == 1; }
  // What remains of the current dimension; 1 beyond the last.
  std::int64_t remaining() {
    if (at_end()) return 1;
    if (rest == 0) rest = shape[dim];
    return rest;
  }
  void take(std::int64_t factor) {
    done *= factor;
    rest /= factor;
    if (rest == 1) {
      ++dim;
      rest = 0;
    }
  }
};

// The factor with which the side that is behind goes on, so that both meet again as early as they
// can: the ratio between them where it fits, else what the other side's next factor cannot use.
std::int64_t factor_of_side_behind(ReshapeSide& behind, ReshapeSide& ahead) {
  const std::int64_t mine = behind.remaining();
  const std::int64_t ratio = ahead.done / behind.done;
  if (ahead.done % behind.done == 0 && mine % ratio == 0) return ratio;
  const std::int64_t common = std::gcd(mine, ahead.remaining());
  return mine > common ? mine / common : mine;
}

}  // namespace

std::optional<FactorRule> broadcast_rule(const OpView& op) {
  const Shape& input = op.operand(0);
  const Shape& output = op.result(0);
  const std::vector<std::int64_t> targets = op.integers({"dims", "broadcast_dimensions"});
  if (targets.size() != input.size()) op.fail("one dimension of the result per one of the operand");
  std::vector<int> source(output.size(), none);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    source[at(checked(op, output, targets[i]))] = static_cast<int>(i);
  }
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t dim = 0; dim < output.size(); ++dim) {
    int from = source[dim];
    if (from != none && input[at(from)] != output[dim]) {
      // Of size 1, repeated in place.
      if (input[at(from)] != 1) op.fail("operand and result differ in size");
      builder.add({from}, {none}, {1});
      from = none;
    }
    builder.add({from}, {static_cast<int>(dim)}, {output[dim]});
  }
  return builder.build();
}

std::optional<FactorRule> transpose_rule(const OpView& op) {
  const Shape& input = op.operand(0);
  const std::vector<std::int64_t> order = op.integers({"dims", "permutation"});
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int from = checked(op, input, order[i]);
    builder.add({from}, {static_cast<int>(i)}, {input[at(from)]});
  }
  return builder.build();
}

// Both shapes are read from the left in common factors: 8x4 -> 2x16 is [ij, k] -> [i, jk] with 2,
// 4 and 4. Where they have none in common, factors are of one side until the products meet again:
// 3x2 -> 2x3 shares nothing. A tensor without elements has no rule.
std::optional<FactorRule> reshape_rule(const OpView& op) {
  const TensorType& from = op.function().type_of(op.op().operands[0]);
  const TensorType& to = op.function().type_of(op.op().results[0]);
  if (from.elements() != to.elements()) op.fail("number of elements changes");
  if (from.elements() == 0) return std::nullopt;
  ReshapeSide in{from.dims};
  ReshapeSide out{to.dims};
  RuleBuilder builder(op.module(), op.function(), op.op());
  const auto in_dim = [&] { return std::vector{static_cast<int>(in.dim)}; };
  const auto out_dim = [&] { return std::vector{static_cast<int>(out.dim)}; };
  while (!in.at_end() || !out.at_end()) {
    if (in.at_one()) {
      builder.add(in_dim(), {none}, {1});
      ++in.dim;
    } else if (out.at_one()) {
      builder.add({none}, out_dim(), {1});
      ++out.dim;
    } else if (in.done == out.done) {
      const std::int64_t common = std::gcd(in.remaining(), out.remaining());
      if (common > 1) {
        builder.add(in_dim(), out_dim(), {common});
        in.take(common);
        out.take(common);
      } else {
        builder.add(in_dim(), {none}, {in.remaining()});
        builder.add({none}, out_dim(), {out.remaining()});
        in.take(in.remaining());
        out.take(out.remaining());
      }
    } else if (in.done < out.done) {
      const std::int64_t factor = factor_of_side_behind(in, out);
      builder.add(in_dim(), {none}, {factor});
      in.take(factor);
    } else {
      const std::int64_t factor = factor_of_side_behind(out, in);
      builder.add({none}, out_dim(), {factor});
      out.take(factor);
    }
  }
  return builder.build();
}

// Between element types of different width the wider one lacks the last dimension.
std::optional<FactorRule> bitcast_rule(const OpView& op) {
  const Shape& input = op.operand(0);
  const Shape& output = op.result(0);
  const Shape& shorter = input.size() < output.size() ? input : output;
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t dim = 0; dim < shorter.size(); ++dim) {
    builder.add({static_cast<int>(dim)}, {static_cast<int>(dim)}, {shorter[dim]});
  }
  const int last = static_cast<int>(shorter.size());
  if (input.size() > output.size()) {
    builder.add({last}, {none}, {input.back(), FactorKind::need_replication});
  } else if (output.size() > input.size()) {
    builder.add({none}, {last}, {output.back(), FactorKind::need_replication});
  }
  return builder.build();
}

// all_gather, reduce_scatter and all_to_all of a manual computation: dimensions that change their
// size have a factor on either side.
std::optional<FactorRule> resizing_collective_rule(const OpView& op) {
  const std::size_t inputs = op.op().operands.size();
  const std::size_t outputs = op.op().results.size();
  const Shape& input = op.operand(0);
  const Shape& output = op.result(0);
  if (input.size() != output.size()) op.fail("operand and result differ in rank");
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t dim = 0; dim < input.size(); ++dim) {
    if (input[dim] == output[dim]) builder.add_everywhere(static_cast<int>(dim), {input[dim]});
  }
  for (std::size_t dim = 0; dim < input.size(); ++dim) {
    if (input[dim] == output[dim]) continue;
    const int index = static_cast<int>(dim);
    builder.add(dims(inputs, index), dims(outputs, none),
                {input[dim], FactorKind::need_replication});
    builder.add(dims(inputs, none), dims(outputs, index),
                {output[dim], FactorKind::need_replication});
  }
  return builder.build();
}

// The state before and after is whole on every device.
std::optional<FactorRule> rng_bit_generator_rule(const OpView& op) {
  const Shape& state = op.operand(0);
  const Shape& output = op.result(1);
  RuleBuilder builder(op.module(), op.function(), op.op());
  for (std::size_t dim = 0; dim < state.size(); ++dim) {
    const int index = static_cast<int>(dim);
    builder.add({index}, {index, none},
                {state[dim], FactorKind::need_replication, /*blocked=*/true});
  }
  for (std::size_t dim = 0; dim < output.size(); ++dim) {
    builder.add({none}, {none, static_cast<int>(dim)}, {output[dim]});
  }
  return builder.build();
}

}  // namespace shardsim::stablehlo
