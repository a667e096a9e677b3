#include <algorithm>

#include "base/index.hpp"
#include "spmd/propagation/function_editor.hpp"
#include "spmd/propagation/op_kinds.hpp"
#include "spmd/propagation/prepare_passes.hpp"

namespace shardsim::spmd {

using stablehlo::Function;
using stablehlo::no_op;
using stablehlo::Op;
using stablehlo::OpId;
using stablehlo::RegionId;
using stablehlo::ValueId;

namespace {

// Ops of a region after what they read, directly or in their own regions.
class Orderer {
 public:
  explicit Orderer(Function& function) : function_(function), placed_(function.ops.size(), 0) {}

  void run() { order(0); }
  [[nodiscard]] bool needs(OpId id) const { return placed_[at(id)] != 0; }

 private:
  struct Pending {
    OpId op;
    std::vector<OpId> needs;  // ops of the same region
    std::size_t next = 0;
  };

  void order(RegionId region) {
    std::vector<OpId>& ops = function_.regions[at(region)].ops;
    std::vector<OpId> roots;
    for (const OpId id : ops) {
      if (id == ops.back() || keeps(function_.op(id))) roots.push_back(id);
    }
    std::vector<OpId> ordered;
    // The terminator is last, whatever has effects of its own before it.
    for (const OpId root : roots) place(root, region, ordered);
    for (const OpId id : ordered) {
      for (const RegionId inner : function_.op(id).regions) order(inner);
    }
    function_.regions[at(region)].ops = std::move(ordered);
  }

  [[nodiscard]] static bool keeps(const Op& op) {
    return op.name == "sdy.sharding_group" || op.name == "stablehlo.outfeed" ||
           op.name == "stablehlo.send";
  }

  void place(OpId root, RegionId region, std::vector<OpId>& ordered) {
    if (placed_[at(root)] != 0) return;
    std::vector<Pending> stack{{root, needs_of(root, region)}};
    while (!stack.empty()) {
      Pending& top = stack.back();
      if (placed_[at(top.op)] != 0) {
        stack.pop_back();
      } else if (top.next < top.needs.size()) {
        const OpId need = top.needs[top.next++];
        if (placed_[at(need)] == 0) stack.push_back({need, needs_of(need, region)});
      } else {
        placed_[at(top.op)] = 1;
        ordered.push_back(top.op);
        stack.pop_back();
      }
    }
  }

  [[nodiscard]] std::vector<OpId> needs_of(OpId id, RegionId region) const {
    std::vector<OpId> needs;
    collect(id, region, needs);
    return needs;
  }

  void collect(OpId id, RegionId region, std::vector<OpId>& needs) const {
    const Op& op = function_.op(id);
    for (const ValueId operand : op.operands) {
      const OpId definition = function_.values[at(operand)].defined_by;
      if (definition != no_op && function_.op(definition).parent == region) {
        needs.push_back(definition);
      }
    }
    for (const RegionId inner : op.regions) {
      for (const OpId nested : function_.regions[at(inner)].ops) collect(nested, region, needs);
    }
  }

  Function& function_;
  std::vector<char> placed_;
};

}  // namespace

void order_from_results(Function& function) {
  Orderer(function).run();
  compact(function);
}

void drop_unneeded(Function& function) {
  Function ordered = function;
  Orderer orderer(ordered);
  orderer.run();
  for (stablehlo::Region& region : function.regions) {
    std::erase_if(region.ops, [&](OpId id) { return !orderer.needs(id); });
  }
  compact(function);
}

}  // namespace shardsim::spmd
