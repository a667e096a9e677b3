#include "stablehlo/operand_counts.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "stablehlo/op_rules.hpp"

namespace shardsim::stablehlo {
namespace {

struct Counts {
  std::string_view name;
  std::size_t operands;
  std::size_t results;
};

constexpr auto fixed_counts = std::to_array<Counts>({
    {"chlo.constant", 0, 1},
    {"chlo.top_k", 1, 2},
    {"mhlo.topk", 1, 2},
    {"sdy.constant", 0, 1},
    {"sdy.reshard", 1, 1},
    {"sdy.sharding_constraint", 1, 1},
    {"stablehlo.bitcast_convert", 1, 1},
    {"stablehlo.broadcast_in_dim", 1, 1},
    {"stablehlo.cholesky", 1, 1},
    {"stablehlo.clamp", 3, 1},
    {"stablehlo.collective_broadcast", 1, 1},
    {"stablehlo.collective_permute", 1, 1},
    {"stablehlo.constant", 0, 1},
    {"stablehlo.convolution", 2, 1},
    {"stablehlo.dot", 2, 1},
    {"stablehlo.dot_general", 2, 1},
    {"stablehlo.fft", 1, 1},
    {"stablehlo.gather", 2, 1},
    {"stablehlo.get_tuple_element", 1, 1},
    {"stablehlo.iota", 0, 1},
    {"stablehlo.pad", 2, 1},
    {"stablehlo.partition_id", 0, 1},
    {"stablehlo.replica_id", 0, 1},
    {"stablehlo.reshape", 1, 1},
    {"stablehlo.reverse", 1, 1},
    {"stablehlo.rng", 3, 1},
    {"stablehlo.rng_bit_generator", 1, 2},
    {"stablehlo.select_and_scatter", 3, 1},
    {"stablehlo.slice", 1, 1},
    {"stablehlo.transpose", 1, 1},
    {"stablehlo.triangular_solve", 2, 1},
});

constexpr auto binary_ops = std::to_array<std::string_view>({"add",
                                                             "and",
                                                             "atan2",
                                                             "compare",
                                                             "complex",
                                                             "divide",
                                                             "maximum",
                                                             "minimum",
                                                             "multiply",
                                                             "next_after",
                                                             "or",
                                                             "polygamma",
                                                             "power",
                                                             "remainder",
                                                             "shift_left",
                                                             "shift_right_arithmetic",
                                                             "shift_right_logical",
                                                             "subtract",
                                                             "xor",
                                                             "zeta"});

// Of the ops that are elementwise and no collective.
std::size_t elementwise_operands(std::string_view name) {
  if (name == "select") return 3;
  return std::find(binary_ops.begin(), binary_ops.end(), name) != binary_ops.end() ? 2 : 1;
}

// Operands of an op whose number depends on what it is given; nothing: any number.
std::optional<std::size_t> operands_of_variadic(const OpView& op) {
  const std::string_view name = op.op().name;
  const std::size_t results = op.op().results.size();
  if (name == "stablehlo.dynamic_slice") return 1 + op.operand(0).size();
  if (name == "stablehlo.dynamic_update_slice") return 2 + op.operand(0).size();
  if (name == "stablehlo.reduce" || name == "stablehlo.reduce_window") return 2 * results;
  if (name == "stablehlo.scatter") return 2 * results + 1;
  constexpr std::array<std::string_view, 6> alike = {
      "stablehlo.all_gather", "stablehlo.all_reduce",     "stablehlo.all_to_all",
      "stablehlo.sort",       "stablehlo.reduce_scatter", "stablehlo.cross-replica-sum"};
  if (std::find(alike.begin(), alike.end(), name) != alike.end()) return results;
  return std::nullopt;
}

}  // namespace

void check_operand_counts(const OpView& op) {
  const std::string_view name = op.op().name;
  const std::size_t results = op.op().results.size();
  const auto fixed =
      std::lower_bound(fixed_counts.begin(), fixed_counts.end(), name,
                       [](const Counts& row, std::string_view key) { return row.name < key; });
  if (fixed != fixed_counts.end() && fixed->name == name) {
    return op.expect_counts(fixed->operands, fixed->results);
  }
  if (const std::optional<std::size_t> operands = operands_of_variadic(op)) {
    return op.expect_counts(*operands, std::max(results, std::size_t{1}));
  }
  if (is_elementwise(name)) {
    op.expect_counts(elementwise_operands(name.substr(name.find('.') + 1)), 1);
  }
}

}  // namespace shardsim::stablehlo
