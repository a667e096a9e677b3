// Changes to the ops of a function: clones, moves, erasures, replaced values.
//
// New ops and values are appended to the function's vectors, and their places noted; commit() puts
// the regions in order, in one pass. Until then `regions` shows the old order. compact() drops what
// no region holds and numbers the rest in the order of the text.
#pragma once

#include <vector>

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// One operand of one op.
struct Use {
  stablehlo::OpId op = stablehlo::no_op;
  std::size_t operand = 0;
};

// By value: its uses in the order of the text.
[[nodiscard]] std::vector<std::vector<Use>> uses_of(const stablehlo::Function& function);
// By value: how many operands it is.
[[nodiscard]] std::vector<int> reader_counts(const stablehlo::Function& function);
// All ops, an op before those in its regions.
[[nodiscard]] std::vector<stablehlo::OpId> ops_in_order(const stablehlo::Function& function);

class FunctionEditor {
 public:
  explicit FunctionEditor(stablehlo::Function& function);

  // A copy of an op without regions, with results of its own. It has no place yet.
  stablehlo::OpId clone(stablehlo::OpId op);
  // A new op of one result, in the region of `near`. It has no place yet.
  stablehlo::OpId create(stablehlo::Op op, stablehlo::TensorType result, stablehlo::OpId near);
  void place_before(stablehlo::OpId op, stablehlo::OpId anchor);
  void place_after(stablehlo::OpId op, stablehlo::OpId anchor);
  void place_first(stablehlo::OpId op, stablehlo::RegionId region);
  void erase(stablehlo::OpId op);
  // erase and place_... of an op that is there.
  void take_out(stablehlo::OpId op) { erase(op); }
  void commit();

 private:
  struct Around {
    std::vector<stablehlo::OpId> before;
    std::vector<stablehlo::OpId> after;
    bool erased = false;
  };
  Around& around(stablehlo::OpId op);
  void emit(stablehlo::OpId op, std::vector<stablehlo::OpId>& order);

  stablehlo::Function& function_;
  std::vector<Around> around_;                       // by op
  std::vector<std::vector<stablehlo::OpId>> first_;  // by region
};

// Ids in the order of the text, without what is in no region. Results are named by number.
void compact(stablehlo::Function& function);

}  // namespace shardsim::spmd
