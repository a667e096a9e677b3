#include <algorithm>
#include <array>

#include "spmd/partitioner.hpp"

namespace shardsim::spmd {
namespace {

struct Row {
  std::string_view op;
  Handler handler;
};

// Whatever is not listed here, and is no loop, branch or call, runs whole on every device.
constexpr std::array rows{
    Row{"stablehlo.broadcast_in_dim", partition_broadcast},
    Row{"stablehlo.concatenate", partition_concatenate},
    Row{"stablehlo.convolution", partition_convolution},
    Row{"stablehlo.custom_call", partition_custom_call},
    Row{"stablehlo.dot", partition_dot_general},
    Row{"stablehlo.dot_general", partition_dot_general},
    Row{"stablehlo.dynamic_slice", partition_dynamic_slice},
    Row{"stablehlo.dynamic_update_slice", partition_dynamic_update_slice},
    Row{"stablehlo.gather", partition_gather},
    Row{"stablehlo.iota", partition_iota},
    Row{"stablehlo.pad", partition_pad},
    Row{"stablehlo.reduce", partition_reduce},
    Row{"stablehlo.reduce_window", partition_reduce_window},
    Row{"stablehlo.reshape", partition_reshape},
    Row{"stablehlo.reverse", partition_reverse},
    Row{"stablehlo.scatter", partition_scatter},
    Row{"stablehlo.select_and_scatter", partition_select_and_scatter},
    Row{"stablehlo.slice", partition_slice},
    Row{"stablehlo.sort", partition_sort},
    Row{"stablehlo.transpose", partition_transpose},
    Row{"spmd.rotate", partition_rotate},
    Row{"mhlo.topk", partition_custom_call},
    Row{"chlo.top_k", partition_custom_call},
};

constexpr std::array<std::string_view, 64> elementwise = {"stablehlo.abs",
                                                          "stablehlo.add",
                                                          "stablehlo.and",
                                                          "stablehlo.atan2",
                                                          "stablehlo.cbrt",
                                                          "stablehlo.ceil",
                                                          "stablehlo.clamp",
                                                          "stablehlo.compare",
                                                          "stablehlo.complex",
                                                          "stablehlo.convert",
                                                          "stablehlo.cosine",
                                                          "stablehlo.count_leading_zeros",
                                                          "stablehlo.divide",
                                                          "stablehlo.exponential",
                                                          "stablehlo.exponential_minus_one",
                                                          "stablehlo.floor",
                                                          "stablehlo.imag",
                                                          "stablehlo.is_finite",
                                                          "stablehlo.log",
                                                          "stablehlo.log_plus_one",
                                                          "stablehlo.logistic",
                                                          "stablehlo.maximum",
                                                          "stablehlo.minimum",
                                                          "stablehlo.multiply",
                                                          "stablehlo.negate",
                                                          "stablehlo.not",
                                                          "stablehlo.or",
                                                          "stablehlo.popcnt",
                                                          "stablehlo.power",
                                                          "stablehlo.real",
                                                          "stablehlo.reduce_precision",
                                                          "stablehlo.remainder",
                                                          "stablehlo.round_nearest_afz",
                                                          "stablehlo.round_nearest_even",
                                                          "stablehlo.rsqrt",
                                                          "stablehlo.select",
                                                          "stablehlo.shift_left",
                                                          "stablehlo.shift_right_arithmetic",
                                                          "stablehlo.shift_right_logical",
                                                          "stablehlo.sign",
                                                          "stablehlo.sine",
                                                          "stablehlo.sqrt",
                                                          "stablehlo.subtract",
                                                          "stablehlo.tan",
                                                          "stablehlo.tanh",
                                                          "stablehlo.xor",
                                                          "chlo.square",
                                                          "chlo.erf",
                                                          "chlo.erf_inv",
                                                          "chlo.erfc",
                                                          "chlo.lgamma",
                                                          "chlo.digamma",
                                                          "chlo.acos",
                                                          "chlo.acosh",
                                                          "chlo.asin",
                                                          "chlo.asinh",
                                                          "chlo.atan",
                                                          "chlo.atanh",
                                                          "chlo.cosh",
                                                          "chlo.sinh",
                                                          "chlo.tan",
                                                          "chlo.is_inf",
                                                          "sdy.reshard",
                                                          "sdy.sharding_constraint"};

}  // namespace

Handler handler_of(const stablehlo::Op& op) {
  const bool listed =
      std::find(elementwise.begin(), elementwise.end(), op.name) != elementwise.end();
  if (listed && op.results.size() == 1) return partition_elementwise;
  for (const Row& row : rows) {
    if (row.op == op.name) return row.handler;
  }
  return nullptr;
}

bool is_explicit_collective(std::string_view name) {
  return name == "stablehlo.all_reduce" || name == "stablehlo.all_gather" ||
         name == "stablehlo.reduce_scatter" || name == "stablehlo.all_to_all" ||
         name == "stablehlo.collective_permute" || name == "stablehlo.collective_broadcast";
}

TensorType local_result(const OpView& op, std::size_t index, const Tiling& tiling) {
  TensorType type = op.function().type_of(op.op().results[index]);
  type.dims = shard_shape(type.dims, tiling);
  return type;
}

}  // namespace shardsim::spmd
