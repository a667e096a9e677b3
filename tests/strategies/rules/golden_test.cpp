// Every golden case of the rule systems: tests/golden/rules/README.md says where they come from.
#include "golden.hpp"

#include <catch2/catch.hpp>

using namespace shardsim::test;

TEST_CASE("Rule systems answer as the originals do", "[golden]") {
  GoldenFunctions functions;
  add_big_vision(functions);
  add_eformer(functions);
  add_praxis(functions);
  add_pathways(functions);
  add_logical_axes(functions);
  add_named_sharding(functions);
  add_fsdp_tutorial(functions);
  add_collective_costs(functions);
  for (const std::string& name : run_golden_folder("rules", functions)) FAIL_CHECK(name);
}
