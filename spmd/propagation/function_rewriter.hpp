// Builds a function anew from another one, op by op: the base of passes that replace, inline and
// fold. An op is copied with its operands renamed unless rewrite() does something else.
//
//   class Fold : public FunctionRewriter {
//     bool rewrite(const Op& op) override {      // true: done with it
//       if (op is x + 0) { replace(op.results[0], renamed(op.operands[0])); return true; }
//       return false;
//     }
//   };
//
// Complexity: linear in the ops of the source.
#pragma once

#include <vector>

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

class FunctionRewriter {
 public:
  virtual ~FunctionRewriter() = default;
  FunctionRewriter() = default;
  FunctionRewriter(const FunctionRewriter&) = delete;
  FunctionRewriter& operator=(const FunctionRewriter&) = delete;

  [[nodiscard]] stablehlo::Function run(const stablehlo::Function& source);

 protected:
  // True when the op has been dealt with: all its results that are read are replaced.
  virtual bool rewrite(const stablehlo::Op& op) = 0;

  [[nodiscard]] const stablehlo::Function& source() const { return *source_; }
  [[nodiscard]] stablehlo::Function& target() { return target_; }
  // Of an op of the source with one result.
  [[nodiscard]] const stablehlo::TensorType& result_type(const stablehlo::Op& op) const {
    return source_->type_of(op.results.front());
  }
  // Of a value of the source: the one that stands for it.
  [[nodiscard]] stablehlo::ValueId renamed(stablehlo::ValueId value) const;
  [[nodiscard]] std::vector<stablehlo::ValueId> renamed(
      const std::vector<stablehlo::ValueId>& values) const;
  void replace(stablehlo::ValueId old, stablehlo::ValueId by);
  [[nodiscard]] const stablehlo::TensorType& target_type(stablehlo::ValueId value) const {
    return target_.type_of(value);
  }
  // The op of the target that makes a value, or null.
  [[nodiscard]] const stablehlo::Op* target_definition(stablehlo::ValueId value) const {
    return target_.definition(value);
  }

  // The op with its regions, operands renamed.
  stablehlo::OpId copy(const stablehlo::Op& op);
  // A loop without the operands that `keep` leaves out: their results and region arguments are the
  // operands themselves.
  stablehlo::OpId copy_loop(const stablehlo::Op& loop, const std::vector<char>& keep);
  // An op with one region without the operands that `keep` leaves out; nothing in the region reads
  // their arguments.
  stablehlo::OpId copy_without_inputs(const stablehlo::Op& op, const std::vector<char>& keep);
  // A new op of one result where the rewriter is; `op.operands` are values of the target.
  stablehlo::ValueId create(stablehlo::Op op, stablehlo::TensorType type);
  // A new op with one region that takes `arguments` and does what `callee` does; its terminator is
  // `end`. Its results.
  std::vector<stablehlo::ValueId> create_around(stablehlo::Op op,
                                                const std::vector<stablehlo::TensorType>& results,
                                                const stablehlo::Function& callee,
                                                const std::string& end);
  // The ops of another function's body in place of a call: values of the target for its arguments,
  // and what it returns.
  std::vector<stablehlo::ValueId> splice(const stablehlo::Function& callee,
                                         const std::vector<stablehlo::ValueId>& arguments);
  [[nodiscard]] stablehlo::RegionId target_region() const { return region_; }

 private:
  // What is copied; null: everything.
  struct Kept {
    const std::vector<char>* inputs = nullptr;
    const std::vector<char>* outputs = nullptr;
  };
  void copy_region(stablehlo::RegionId from, stablehlo::RegionId to, const Kept& keep);
  stablehlo::OpId copy(const stablehlo::Op& op, const Kept& keep);

  const stablehlo::Function* source_ = nullptr;
  std::vector<stablehlo::ValueId> names_;  // by value of the source
  stablehlo::Function target_;
  stablehlo::RegionId region_ = 0;
};

}  // namespace shardsim::spmd
