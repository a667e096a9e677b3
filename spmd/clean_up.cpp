#include <algorithm>
#include <vector>

#include "spmd/builder.hpp"
#include "spmd/partition.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Function;
using stablehlo::OpId;
using stablehlo::Region;

std::size_t at(std::int64_t id) { return static_cast<std::size_t>(id); }

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

// The all-reduce whose every reader is a slice by device that keeps one n-th of it.
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

  [[nodiscard]] bool is_by_device(ValueId value) const {
    const stablehlo::Op* op = function_.definition(value);
    if (op == nullptr) return false;
    if (op->name == "spmd.offset") return true;
    return op->name == "stablehlo.subtract" &&
           (is_by_device(op->operands[0]) || is_by_device(op->operands[1]));
  }

  // The dimension that a slice by device keeps one n-th of; -1 for any other op.
  [[nodiscard]] std::int64_t scattered_dim(const stablehlo::Op& op, std::int64_t group) const {
    if (op.name != "stablehlo.dynamic_slice") return -1;
    const Shape& from = function_.type_of(op.operands[0]).dims;
    const Shape& to = function_.type_of(op.results[0]).dims;
    std::int64_t kept = 1;
    std::int64_t found = -1;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] == to[i]) continue;
      if (from[i] % to[i] != 0 || !is_by_device(op.operands[i + 1])) return -1;
      kept *= from[i] / to[i];
      found = static_cast<std::int64_t>(i);
    }
    return kept == group ? found : -1;
  }

  void spell_one(OpId id) {
    stablehlo::Op& op = function_.ops[at(id)];
    if (op.operands.size() != 1) return;
    const std::vector<OpId>& readers = readers_[at(op.results.front())];
    const stablehlo::Attribute* groups = find(op.attributes, "replica_groups");
    if (readers.empty() || groups == nullptr || groups->items.empty()) return;
    const auto group = static_cast<std::int64_t>(groups->items.front().items.size());
    if (group < 2) return;
    std::int64_t dim = -1;
    for (const OpId reader : readers) {
      dim = scattered_dim(function_.op(reader), group);
      if (dim < 0) return;
    }
    op.name = "stablehlo.reduce_scatter";
    op.attributes.push_back({"scatter_dimension", integer_attribute(dim)});
    // The first slice is the result; what other slices keep is the same.
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
