#include "tests/stablehlo/rule_comparison.hpp"

#include <fmt/format.h>

#include <utility>

#include "stablehlo/op_rules.hpp"

namespace shardsim::test {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

namespace {

// Why the rule of the op is not the one it carries; empty when it is.
std::string difference(const Module& module, const Function& function, const Op& op) {
  const Attribute* given = find(op.attributes, "sdy.sharding_rule");
  const OpRule derived = factor_rule(module, function, op);
  const std::string expected = given == nullptr ? "" : given->text;
  const std::string actual = derived.rule ? text_of(*derived.rule) : "";
  if (!derived.known) return fmt::format("line {}: unknown {}", op.line, op.name);
  if (actual != expected) {
    return fmt::format("line {}: {}: expected \"{}\", actual \"{}\"", op.line, op.name, expected,
                       actual);
  }
  if (given == nullptr) return "";
  Scanner body(given->text, module.file, op.line);
  return text_of(parse_factor_rule(body)) == expected
             ? ""
             : fmt::format("line {}: \"{}\" is not read back", op.line, expected);
}

}  // namespace

Comparison compare_rules(const std::string& file) {
  Comparison result;
  try {
    const Module module = read_module(file);
    for (const Function& function : module.functions) {
      for (const Op& op : function.ops) {
        std::string found = difference(module, function, op);
        if (found.empty()) {
          ++result.passed;
        } else {
          result.failures.push_back(std::move(found));
        }
      }
    }
  } catch (const std::exception& error) {
    result.failures.emplace_back(error.what());
  }
  return result;
}

}  // namespace shardsim::test
