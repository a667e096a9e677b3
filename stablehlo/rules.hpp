// The rules behind the table of op_rules.cpp, by family.
#pragma once

#include <algorithm>
#include <optional>
#include <type_traits>

#include "stablehlo/factor_rule.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::stablehlo {

using RuleFunction = std::optional<FactorRule> (*)(const OpView&);

// Of a tensor that does not have a factor.
inline constexpr int none = RuleBuilder::no_dimension;

// `dimension` as an index into `shape`; fails when it is none.
[[nodiscard]] int checked(const OpView& op, const Shape& shape, std::int64_t dimension);
template <typename T>
[[nodiscard]] bool contains(const std::vector<T>& values, std::type_identity_t<T> value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}
// Dimensions of `shape` that are in neither list, in order.
[[nodiscard]] std::vector<int> other_dims(const Shape& shape, const std::vector<int>& a,
                                          const std::vector<int>& b);
// `count` tensors that all have the factor in dimension `dim`, or in none.
[[nodiscard]] std::vector<int> dims(std::size_t count, int dim);

// One factor per dimension of `shape`, in every tensor that is no scalar.
[[nodiscard]] FactorRule pointwise(const OpView& op, const Shape& shape);
// The same, where dimensions whose size differs from that in `other` get the factor `mismatch` of
// their size.
[[nodiscard]] FactorRule pointwise_but(const OpView& op, const Shape& shape, const Shape& other,
                                       Factor mismatch);

// rules_pointwise.cpp
[[nodiscard]] std::optional<FactorRule> elementwise_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> clamp_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> reverse_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> pad_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> slice_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> dynamic_slice_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> top_k_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> reduce_window_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> select_and_scatter_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> sort_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> fft_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> cholesky_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> concatenate_rule(const OpView& op);

// rules_shape.cpp
[[nodiscard]] std::optional<FactorRule> broadcast_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> transpose_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> reshape_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> bitcast_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> resizing_collective_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> rng_bit_generator_rule(const OpView& op);

// rules_contraction.cpp
[[nodiscard]] std::optional<FactorRule> dot_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> dot_general_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> convolution_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> reduce_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> triangular_solve_rule(const OpView& op);

// rules_index.cpp
[[nodiscard]] std::optional<FactorRule> gather_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> scatter_rule(const OpView& op);
[[nodiscard]] std::optional<FactorRule> dynamic_update_slice_rule(const OpView& op);

// rules_custom_call.cpp: by target. Nothing, and `known` false, for a target that is not known.
[[nodiscard]] std::optional<FactorRule> custom_call_rule(const OpView& op, bool& known);

}  // namespace shardsim::stablehlo
