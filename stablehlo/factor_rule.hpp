// How the dimensions of an op's operands and results hang together: Shardy's factor representation.
//
//   stablehlo.dot_general (8x32, 32x16) -> 8x16
//     ([i, k], [k, j])->([i, j]) {i=8, j=16, k=32} reduction={k}
//   stablehlo.reshape 2x4 -> 8
//     ([i, j])->([ij]) {i=2, j=4}              a dimension may consist of several factors, major
//     first
//
// A mesh axis splits factors, not dimensions: what shares a factor is split alike. A factor is
//   pass_through      splits all tensors alike, at no cost
//   reduction         is in operands only: splitting it leaves partial sums
//   need_replication  cannot be split by the op as it stands
//   permutation       splitting it sends data between neighbours (slice, pad, reverse, windows)
// and may besides be blocked: no sharding travels along it.
// text_of prints what #sdy.op_sharding_rule<...> holds, to the letter. Factors are named i to z,
// then z_1, z_2, ... in their order. Source: openxla/shardy docs/sharding_representation.md and
// docs/propagation.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stablehlo/module.hpp"

namespace shardsim::stablehlo {

enum class FactorKind { pass_through, reduction, need_replication, permutation };

struct Factor {
  std::int64_t size = 1;
  FactorKind kind = FactorKind::pass_through;
  bool blocked = false;
  friend bool operator==(const Factor&, const Factor&) = default;
};

using DimensionFactors = std::vector<int>;  // indices of factors, major to minor
using TensorFactors = std::vector<DimensionFactors>;

struct FactorRule {
  std::vector<Factor> factors;
  std::vector<TensorFactors> operands;
  std::vector<TensorFactors> results;
  bool custom = false;  // given by the user, as for a custom_call
  friend bool operator==(const FactorRule&, const FactorRule&) = default;
};

[[nodiscard]] std::string factor_name(int factor);
// ([i, k], [k, j])->([i, j]) {i=8, j=16, k=32} reduction={k}
[[nodiscard]] std::string text_of(const FactorRule& rule);
// The inverse of text_of. Throws InputError.
[[nodiscard]] FactorRule parse_factor_rule(Scanner& body);

// Builds a rule factor by factor for the types of one op. `no_dimension` says that a tensor does
// not have the factor. Throws InputError for dimensions that a tensor does not have.
class RuleBuilder {
 public:
  static constexpr int no_dimension = -1;

  RuleBuilder(const Module& module, const Function& function, const Op& op);

  // One entry per operand and per result.
  RuleBuilder& add(const std::vector<int>& operand_dims, const std::vector<int>& result_dims,
                   Factor factor);
  // The same dimension of every tensor that is no scalar.
  RuleBuilder& add_everywhere(int dim, Factor factor);
  // Dimensions that got no factor get one of their own, of size 1.
  [[nodiscard]] FactorRule build();

 private:
  void map(TensorFactors& tensor, int dim, int factor);

  const Module& module_;
  const Op& op_;
  FactorRule rule_;
};

}  // namespace shardsim::stablehlo
