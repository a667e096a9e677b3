#include <algorithm>
#include <vector>

#include "base/index.hpp"
#include "spmd/builder.hpp"
#include "spmd/partition.hpp"
#include "spmd/propagation/constants.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Function;
using stablehlo::OpId;
using stablehlo::Region;

// Marks what the results of a region need, from its end to its beginning.
class Liveness {
 public:
  explicit Liveness(Function& function)
      : function_(function), needed_(function.values.size(), false) {}

  void sweep(RegionId id) {
    Region& region = function_.regions[at(id)];
    std::vector<OpId> kept;
    for (std::size_t i = region.ops.size(); i-- > 0;) {
      const OpId op = region.ops[i];
      const bool last = i + 1 == region.ops.size();
      if (!last && !is_needed(op)) continue;
      for (const ValueId operand : function_.op(op).operands) needed_[at(operand)] = true;
      for (const RegionId inner : function_.op(op).regions) sweep(inner);
      kept.push_back(op);
    }
    std::reverse(kept.begin(), kept.end());
    region.ops = std::move(kept);
  }

 private:
  [[nodiscard]] bool is_needed(OpId id) const {
    const stablehlo::Op& op = function_.op(id);
    return std::any_of(op.results.begin(), op.results.end(),
                       [&](ValueId result) { return needed_[at(result)]; });
  }

  Function& function_;
  std::vector<bool> needed_;
};

// By dimension, then by device of the program (one entry: the same on all).
using Starts = std::vector<std::vector<std::int64_t>>;

// The all-reduce whose readers all slice the same n-th by device. Whether the devices of a group
// keep different parts is not asked: so do `import hlo` and the reference counts read XLA's text.
class ReduceScatters {
 public:
  explicit ReduceScatters(Function& function) : function_(function) {
    readers_.resize(function.values.size());
    mark(0);
  }

  void spell(RegionId id) {
    for (const OpId op : function_.regions[at(id)].ops) {
      for (const RegionId inner : function_.op(op).regions) spell(inner);
      if (function_.op(op).name == "stablehlo.all_reduce") spell_one(op);
    }
  }

 private:
  void mark(RegionId id) {
    for (const OpId op : function_.regions[at(id)].ops) {
      for (const ValueId operand : function_.op(op).operands) readers_[at(operand)].push_back(op);
      for (const RegionId inner : function_.op(op).regions) mark(inner);
    }
  }

  // A scalar by device of the program; one entry where all devices have the same. Empty for what is
  // computed otherwise.
  [[nodiscard]] std::vector<std::int64_t> by_device(ValueId value) const {
    const stablehlo::Op* op = function_.definition(value);
    if (op == nullptr) return {};
    if (op->name == "spmd.offset") {
      std::vector<std::int64_t> result;
      for (const auto& item : find(op->attributes, "by_device")->items) {
        result.push_back(item.integer);
      }
      return result;
    }
    if (op->name == "stablehlo.constant") {
      const auto number = splat_number(*op, function_.type_of(value).element);
      return number ? std::vector{static_cast<std::int64_t>(*number)} : std::vector<std::int64_t>{};
    }
    if (op->name != "stablehlo.subtract") return {};
    const std::vector<std::int64_t> lhs = by_device(op->operands[0]);
    const std::vector<std::int64_t> rhs = by_device(op->operands[1]);
    if (lhs.empty() || rhs.empty()) return {};
    std::vector<std::int64_t> result;
    for (std::size_t i = 0; i < std::max(lhs.size(), rhs.size()); ++i) {
      result.push_back(lhs[i % lhs.size()] - rhs[i % rhs.size()]);
    }
    return result;
  }

  // Where a slice begins that keeps one n-th, by dimension and device; empty for any other op.
  [[nodiscard]] Starts starts_of(const stablehlo::Op& op, std::int64_t group) const {
    if (op.name != "stablehlo.dynamic_slice") return {};
    const TensorType& from = function_.type_of(op.operands[0]);
    const TensorType& to = function_.type_of(op.results[0]);
    if (to.elements() * group != from.elements()) return {};
    Starts starts;
    for (std::size_t i = 0; i < from.dims.size(); ++i) {
      starts.push_back(from.dims[i] == to.dims[i] ? std::vector<std::int64_t>{0}
                                                  : by_device(op.operands[i + 1]));
      if (starts.back().empty() || from.dims[i] % to.dims[i] != 0) return {};
    }
    return starts;
  }

  void spell_one(OpId id) {
    stablehlo::Op& op = function_.ops[at(id)];
    if (op.operands.size() != 1) return;
    const std::vector<OpId>& readers = readers_[at(op.results.front())];
    const stablehlo::Attribute* groups = find(op.attributes, "replica_groups");
    if (readers.empty() || groups == nullptr || groups->items.empty()) return;
    const auto group = static_cast<std::int64_t>(groups->items.front().items.size());
    const Starts starts = starts_of(function_.op(readers.front()), group);
    if (group < 2 || starts.empty()) return;
    for (const OpId reader : readers) {
      if (starts_of(function_.op(reader), group) != starts) return;
    }
    op.name = "stablehlo.reduce_scatter";
    stablehlo::Attribute list;
    list.kind = stablehlo::Attribute::Kind::list;
    for (const auto& dim : starts) list.items.push_back(integers_attribute(dim));
    op.attributes.push_back({"spmd.starts", std::move(list)});
    const TensorType type = function_.type_of(function_.op(readers.front()).results.front());
    function_.values[at(op.results.front())].type = type;
    for (const OpId reader : readers) {
      stablehlo::Op& slice = function_.ops[at(reader)];
      slice.name = "spmd.copy";
      slice.operands.resize(1);
      slice.attributes.clear();
    }
  }

  Function& function_;
  std::vector<std::vector<OpId>> readers_;
};

}  // namespace

void clean_up(stablehlo::Module& local) {
  Function& function = local.functions.front();
  Liveness(function).sweep(0);
  ReduceScatters(function).spell(0);
  Liveness(function).sweep(0);
}

}  // namespace shardsim::spmd
