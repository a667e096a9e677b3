#include "base/counting_loop.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <string>

using namespace shardsim;  // NOLINT(google-build-using-namespace)

// Expected is what a loop of so few values does when it is run.
TEST_CASE("rounds are those of the loop itself") {
  const std::map<std::string, std::function<bool(std::int64_t, std::int64_t)>> directions = {
      {"LT", std::less<>()},
      {"LE", std::less_equal<>()},
      {"GT", std::greater<>()},
      {"GE", std::greater_equal<>()},
      {"NE", std::not_equal_to<>()}};
  constexpr std::int64_t far = 20;
  for (const auto& [direction, holds] : directions) {
    for (std::int64_t first = -5; first <= 5; ++first) {
      for (std::int64_t step = -3; step <= 3; ++step) {
        std::int64_t rounds = 0;
        while (rounds < far && holds(first + rounds * step, 2)) ++rounds;
        CAPTURE(direction, first, step);
        CHECK(counted_rounds(first, step, direction, 2).value_or(far) == rounds);
      }
    }
  }
  CHECK_FALSE(counted_rounds(0, 1, "EQ", 0));
}

TEST_CASE("a comparison with its sides exchanged") {
  CHECK(mirrored("LE") == "GE");
  CHECK(mirrored("GT") == "LT");
  CHECK(mirrored("NE") == "NE");
}
