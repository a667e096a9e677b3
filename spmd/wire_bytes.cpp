#include "spmd/wire_bytes.hpp"

#include <set>
#include <vector>

#include "base/index.hpp"
#include "stablehlo/loops.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Function;
using stablehlo::Op;
using stablehlo::OpId;
using stablehlo::RegionId;
using stablehlo::ValueId;

double region_bytes(const Function& function, RegionId id) {
  double bytes = 0;
  for (const OpId op_id : function.regions[at(id)].ops) {
    const Op& op = function.op(op_id);
    bytes += wire_bytes(function, op);
    const bool is_loop = op.name == "stablehlo.while";
    const double rounds = is_loop ? static_cast<double>(trip_count(function, op).value_or(1)) : 1.0;
    for (const RegionId inner : op.regions) bytes += rounds * region_bytes(function, inner);
  }
  return bytes;
}

}  // namespace

double wire_bytes(const Function& function, const Op& op) {
  const stablehlo::Attribute* groups = find(op.attributes, "replica_groups");
  const bool permutes = op.name == "stablehlo.collective_permute";
  if (op.operands.empty() || (groups == nullptr && !permutes)) return 0;
  const stablehlo::TensorType& in = function.type_of(op.operands.front());
  const double bytes = static_cast<double>(in.elements()) *
                       static_cast<double>(bits_of(in.dtype.value_or(DType::f32))) / 8;
  if (permutes) return bytes;
  const double n = groups->items.empty() ? 1 : static_cast<double>(groups->items[0].items.size());
  if (op.name == "stablehlo.all_gather") return (n - 1) * bytes;
  return (op.name == "stablehlo.all_reduce" ? 2 : 1) * (n - 1) / n * bytes;
}

double wire_bytes_between(const Function& function, ValueId from, ValueId to) {
  double bytes = 0;
  std::vector<ValueId> open = {to};
  std::set<ValueId> seen;
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    if (value <= from || !seen.insert(value).second) continue;
    const Op* op = function.definition(value);
    if (op == nullptr) continue;
    bytes += wire_bytes(function, *op);
    open.insert(open.end(), op->operands.begin(), op->operands.end());
  }
  return bytes;
}

double wire_bytes(const stablehlo::Module& local) {
  return region_bytes(local.functions.front(), 0);
}

}  // namespace shardsim::spmd
