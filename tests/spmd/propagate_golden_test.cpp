// Shardings after propagation are XLA's (tests/golden/xla/propagated), for every value of every
// program: sharding_comparison.hpp says what is compared.
#include <catch2/catch.hpp>

#include "tests/spmd/sharding_comparison.hpp"

namespace shardsim::test {
namespace {

void run(Comparison (*check)(const std::string&)) {
  for (const std::string& file : golden_programs("xla/propagated")) {
    Comparison result;
    try {
      result = check(file);
    } catch (const std::exception& error) {
      result.failures.emplace_back(error.what());
    }
    report(file, result);
    CHECK(result.failures.empty());
  }
}

}  // namespace

TEST_CASE("propagate: shardings are those of Shardy") { run(compare_propagated); }

TEST_CASE("prepare and propagate: shardings are those of Shardy") { run(compare_prepared); }

TEST_CASE("tiles, prepared and propagated: shardings are those of Shardy") { run(compare_tiles); }

}  // namespace shardsim::test
