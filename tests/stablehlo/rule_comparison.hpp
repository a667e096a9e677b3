// The factor rules of a program that Shardy has propagated: of every op the rule derived from types
// and attributes against the one it carries (sdy.sharding_rule), to the letter; ops that carry none
// get none.
#pragma once

#include <string>

#include "tests/base/golden_files.hpp"

namespace shardsim::test {

// By op. What cannot be read is a failure.
[[nodiscard]] Comparison compare_rules(const std::string& file);

}  // namespace shardsim::test
