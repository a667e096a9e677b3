// Every op of programs that Shardy has propagated carries the rule that Shardy used
// (tests/golden/xla/propagated): the rule derived from types and attributes is that rule, to the
// letter, and ops that carry none get none.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "stablehlo/op_rules.hpp"
#include "tests/stablehlo/golden_files.hpp"

namespace {
using namespace shardsim::stablehlo;  // NOLINT(google-build-using-namespace)

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

TEST_CASE("factor rules are those of Shardy") {
  for (const std::string& file : shardsim::test::golden_programs("xla/propagated")) {
    int passed = 0;
    std::vector<std::string> failures;
    try {
      const Module module = read_module(file);
      for (const Function& function : module.functions) {
        for (const Op& op : function.ops) {
          std::string found = difference(module, function, op);
          if (found.empty()) {
            ++passed;
          } else {
            failures.push_back(std::move(found));
          }
        }
      }
    } catch (const std::exception& error) {
      failures.emplace_back(error.what());
    }
    shardsim::test::report(file, passed, failures);
    CHECK(failures.empty());
  }
}
