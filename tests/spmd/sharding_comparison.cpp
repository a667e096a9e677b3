#include "tests/spmd/sharding_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/index.hpp"
#include "spmd/manual.hpp"
#include "spmd/propagation/prepare.hpp"
#include "spmd/propagation/propagate.hpp"
#include "spmd/propagation/propagation_graph.hpp"
#include "tests/spmd/value_classes.hpp"

namespace shardsim::test {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

namespace {

// Of a file of propagated/: the program it was made from.
std::optional<std::string> program_of(const std::string& propagated, const std::string& kind = "") {
  const std::filesystem::path path(propagated);
  std::string name = path.filename();
  name.resize(name.find(".mlir"));
  return plain_or_gzip(path.parent_path().parent_path() / "programs" / (name + kind + ".mlir"));
}

const Function& main_of(const Module& module) { return *module.find_function("main"); }

// Constraints by type and sharding: XLA prints them as the reshards that it adds itself.
std::map<std::string, int> constraints_of(const Module& module) {
  std::map<std::string, int> found;
  for (const Function& function : module.functions) {
    for (const Op& op : function.ops) {
      if (op.name != "sdy.sharding_constraint") continue;
      const Value& result = function.values[at(op.results.front())];
      ++found[text_of(result.type) + axes_text(result)];
    }
  }
  return found;
}

// By op: 1 for a reshard that no constraint of the program explains.
std::vector<char> added_reshards(const Function& function,
                                 const std::map<std::string, int>& constraints) {
  std::vector<char> added(function.ops.size(), 0);
  for (std::size_t i = 0; i < function.ops.size(); ++i) {
    const Op& op = function.ops[i];
    if (op.name != "sdy.reshard") continue;
    const Value& result = function.values[at(op.results.front())];
    added[i] = constraints.contains(text_of(result.type) + axes_text(result)) ? 0 : 1;
  }
  return added;
}

// What the program said, and nothing else.
void strip(Module& propagated, const Module& program, const std::vector<char>& added) {
  Function& function = propagated.functions.front();
  for (std::size_t i = 0; i < function.ops.size(); ++i) {
    Op& op = function.ops[i];
    if (op.name == "sdy.reshard" && added[i] == 0) continue;
    for (const ValueId result : op.results) {
      function.values[at(result)].sharding = {};
    }
    for (const RegionId region : op.regions) {
      for (const ValueId argument : function.regions[at(region)].arguments) {
        function.values[at(argument)].sharding = {};
      }
    }
    if (op.name != "sdy.reshard") continue;
    for (Op& reader : function.ops) {
      for (ValueId& operand : reader.operands) {
        if (operand == op.results.front()) operand = op.operands.front();
      }
    }
  }
  for (Region& region : function.regions) {
    std::erase_if(region.ops, [&](OpId id) { return added[at(id)] != 0; });
  }
  const Function& given = main_of(program);
  for (std::size_t i = 0; i < given.body().arguments.size(); ++i) {
    function.values[at(function.body().arguments[i])].sharding =
        given.values[at(given.body().arguments[i])].sharding;
  }
  for (std::size_t i = 0; i < given.results.size(); ++i) {
    function.results[i].sharding = given.results[i].sharding;
  }
}

// XLA's text gives the sharding of a loop's result and none to the arguments of its regions, which
// share it; those of a manual computation stand in its own attributes.
void spell_out(const Module& module, Function& function) {
  const auto value = [&](ValueId id) -> Value& { return function.values[at(id)]; };
  for (const Op& op : function.ops) {
    if (op.name == "stablehlo.while") {
      for (const RegionId region : op.regions) {
        const auto& arguments = function.regions[at(region)].arguments;
        for (std::size_t i = 0; i < arguments.size(); ++i) {
          value(arguments[i]).sharding = value(op.results[i]).sharding;
        }
      }
    } else if (op.name == "sdy.manual_computation") {
      const auto manual = spmd::manual_computation(op, module.place_of(op));
      const spmd::Meshes meshes(module);
      const auto& arguments = function.regions[at(op.regions.front())].arguments;
      for (std::size_t i = 0; i < op.results.size(); ++i) {
        value(op.results[i]).sharding.axes = manual.out[i];
      }
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto outside =
            meshes.resolve(manual.in[i], manual.in[i].dimensions.size(), module.place_of(op));
        const auto axes = meshes.resolve_names(manual.axes, outside.mesh, module.place_of(op));
        value(arguments[i]).sharding.axes =
            meshes.text_form(spmd::without_manual_axes(outside, axes));
      }
    }
  }
}

Comparison compare(const Module& expected_module, const std::vector<char>& added,
                   const Module& actual_module, bool by_pieces = false) {
  const Function& expected = main_of(expected_module);
  const Function& actual = main_of(actual_module);
  ValueClasses classes;
  const auto sharding_text = [&](const Module& module, const Value& value) {
    return by_pieces ? pieces_text(module, value) : axes_text(value);
  };
  const auto collect = [&](const Module& module, const std::vector<int>& numbers,
                           const std::vector<char>& skip) {
    const Function& function = main_of(module);
    std::map<int, std::vector<std::string>> shardings;
    for (std::size_t i = 0; i < function.values.size(); ++i) {
      const Value& value = function.values[i];
      const bool skipped =
          value.defined_by != no_op && !skip.empty() && skip[at(value.defined_by)] != 0;
      if (numbers[i] >= 0 && value.type.is_tensor && !skipped) {
        shardings[numbers[i]].push_back(sharding_text(module, value) + " %" + value.name);
      }
    }
    return shardings;
  };
  const std::vector<char> none;
  const auto wanted = collect(expected_module, classes.classify(expected, added), added);
  auto got = collect(actual_module, classes.classify(actual), none);
  Comparison result;
  const auto without_name = [](const std::string& text) { return text.substr(0, text.rfind('%')); };
  for (const auto& [number, shardings] : wanted) {
    std::vector<std::string>& others = got[number];
    for (const std::string& sharding : shardings) {
      const auto found = std::find_if(others.begin(), others.end(), [&](const std::string& other) {
        return without_name(other) == without_name(sharding);
      });
      if (found != others.end()) {
        ++result.passed;
        others.erase(found);
      } else {
        result.failures.push_back(fmt::format("{} is {}: {}", sharding,
                                              others.empty() ? "not there" : others.front(),
                                              classes.description(number)));
      }
    }
  }
  for (std::size_t i = 0; i < expected.results.size(); ++i) {
    const Value want{"", expected.results[i].type, no_op, 0, expected.results[i].sharding};
    const Value have{"", actual.results[i].type, no_op, 0, actual.results[i].sharding};
    const std::string wanted_text = sharding_text(expected_module, want);
    const std::string text = sharding_text(actual_module, have);
    if (wanted_text == text) {
      ++result.passed;
    } else {
      result.failures.push_back(fmt::format("result {}: {} is {}", i, wanted_text, text));
    }
  }
  return result;
}

Module read_expected(const std::string& file) {
  Module module = read_module(file);
  spell_out(module, module.functions.front());
  return module;
}

}  // namespace

Comparison compare_propagated(const std::string& file) {
  const Module expected = read_expected(file);
  const Module program = read_module(program_of(file).value());
  const std::vector<char> added = added_reshards(main_of(expected), constraints_of(program));
  Module stripped = expected;
  strip(stripped, program, added);
  spmd::propagate(stripped);
  return compare(expected, added, stripped);
}

Comparison compare_prepared(const std::string& file) {
  const Module expected = read_expected(file);
  const Module program = read_module(program_of(file).value());
  Module prepared = spmd::prepare(program);
  spmd::propagate(prepared);
  return compare(expected, {}, prepared);
}

Comparison compare_tiles(const std::string& file) {
  const auto program = program_of(file, ".gspmd");
  if (!program) return {};
  Module prepared = spmd::prepare(read_module(*program));
  spmd::propagate(prepared);
  return compare(read_expected(file), {}, prepared, /*by_pieces=*/true);
}

}  // namespace shardsim::test
