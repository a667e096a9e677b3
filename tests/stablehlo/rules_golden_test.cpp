// Every op of programs that Shardy has propagated (tests/golden/xla/propagated) carries the rule
// that Shardy used: it is the rule that is derived here.
#include <catch2/catch.hpp>

#include "tests/stablehlo/rule_comparison.hpp"

namespace shardsim::test {

TEST_CASE("factor rules are those of Shardy") {
  for (const std::string& file : golden_programs("xla/propagated")) {
    const Comparison result = compare_rules(file);
    report(file, result);
    CHECK(result.failures.empty());
  }
}

}  // namespace shardsim::test
