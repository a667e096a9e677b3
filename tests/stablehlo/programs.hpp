// Programs written in place: one function with the given arguments and ops, which returns nothing.
#pragma once

#include <string>

#include "stablehlo/module.hpp"

namespace shardsim::test {

inline stablehlo::Module parse_body(const std::string& arguments, const std::string& body) {
  return stablehlo::parse_module("sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>\nfunc.func @main(" +
                                     arguments + ") {" + body + "\n  return\n}\n",
                                 "test.mlir");
}

}  // namespace shardsim::test
