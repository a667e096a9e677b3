// Which values of two functions are the same, whatever their names and the order of ops: same op,
// same attributes, same operands, all the way up to the arguments.
//
//   %0 = add %arg0, %arg1   %1 = negate %0        classes of %0 and %1 are the same numbers as
//   %5 = add %arg0, %arg1   %6 = negate %5        those of %5 and %6
//
// Equal ops that stand twice have one class; their shardings are compared as a set with repetition.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "stablehlo/module.hpp"

namespace shardsim::test {

class ValueClasses {
 public:
  // By value. A reshard that `skip` names (by op) is the same as its operand.
  std::vector<int> classify(const stablehlo::Function& function,
                            const std::vector<char>& skip = {});
  // How a class was found: op and operands, for messages.
  [[nodiscard]] std::string description(int value_class) const;

 private:
  struct Walk;
  int number(const std::string& key);
  void visit_region(Walk& walk, stablehlo::RegionId region);
  void visit(Walk& walk, stablehlo::OpId id);

  std::map<std::string, int> numbers_;
  std::vector<std::string> keys_;
};

// Without what says nothing: "[{"x"}, {}]" of the dimensions, then parts that are unreduced.
// Nothing given is the same as nothing split.
[[nodiscard]] std::string axes_text(const stablehlo::Value& value);
// The same without names: which piece of each dimension each device holds, so that shardings over
// meshes of other axes can be compared.
[[nodiscard]] std::string pieces_text(const stablehlo::Module& module,
                                      const stablehlo::Value& value);

}  // namespace shardsim::test
