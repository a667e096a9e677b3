// Small programs over mesh x=2, y=4, and what became of their values.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/index.hpp"
#include "stablehlo/module.hpp"
#include "tests/spmd/value_classes.hpp"

namespace shardsim::test {

// A module with that mesh and a function @main. In `main`, S<...> is short for
// {sdy.sharding = #sdy.sharding<@mesh, ...>}.
inline stablehlo::Module program(std::string main) {
  for (std::size_t at = main.find("S<"); at != std::string::npos; at = main.find("S<", at + 1)) {
    const std::size_t end = main.find("]>", at);
    const std::size_t close = main.find('>', end + 1 < main.size() ? end : at);
    main.insert(close + 1, "}");
    main.replace(at, 2, "{sdy.sharding = #sdy.sharding<@mesh, ");
  }
  return stablehlo::parse_module(
      "module @test {\n  sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>\n  func.func public @main" + main +
          "\n}",
      "test.mlir");
}

inline const stablehlo::Function& main_of(const stablehlo::Module& module) {
  return *module.find_function("main");
}

// Of the arguments of @main, or its results: the axes of each dimension.
inline std::vector<std::string> argument_axes(const stablehlo::Module& module) {
  std::vector<std::string> axes;
  for (const stablehlo::ValueId id : main_of(module).body().arguments) {
    axes.push_back(axes_text(main_of(module).values[at(id)]));
  }
  return axes;
}

inline std::vector<std::string> result_axes(const stablehlo::Module& module) {
  std::vector<std::string> axes;
  for (const stablehlo::FunctionResult& result : main_of(module).results) {
    axes.push_back(axes_text({"", result.type, stablehlo::no_op, 0, result.sharding}));
  }
  return axes;
}

// Of the results of all ops of that name, in the order of the text.
inline std::vector<std::string> axes_of(const stablehlo::Module& module, const std::string& op) {
  std::vector<std::string> axes;
  for (const stablehlo::Op& made : main_of(module).ops) {
    if (made.name != op) continue;
    for (const stablehlo::ValueId id : made.results) {
      axes.push_back(axes_text(main_of(module).values[at(id)]));
    }
  }
  return axes;
}

}  // namespace shardsim::test
