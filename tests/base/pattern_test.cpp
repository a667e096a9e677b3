#include "base/pattern.hpp"

#include <catch2/catch.hpp>

using namespace shardsim;

TEST_CASE("Patterns are searched, as re.search") {
  CHECK(Pattern("(gate|up)_proj", {}).search("model.layers.0.mlp.up_proj.weight"));
  CHECK(Pattern(R"(layers\.\d+\.mlp)", {}).search("model.layers.31.mlp.down_proj.weight"));
  CHECK_FALSE(Pattern("^layers", {}).search("model.layers.0"));
  CHECK(Pattern("", {}).search("anything"));
}

TEST_CASE("An invalid pattern says what and where") {
  REQUIRE_THROWS_WITH(
      Pattern("(gate", {"a.json", "/strategy/rules/0"}),
      "a.json: /strategy/rules/0: pattern \"(gate\" is not a regular expression: missing closing "
      "parenthesis at position 5");
}
