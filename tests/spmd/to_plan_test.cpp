// What a plan says of what is not known: the rules stand in spmd/to_plan.hpp.
#include "spmd/to_plan.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "spmd/partition.hpp"
#include "spmd/propagation/prepare.hpp"
#include "spmd/propagation/propagate.hpp"

namespace shardsim::spmd {
namespace {

Plan plan_of_body(const std::string& body) {
  stablehlo::Module program = prepare(stablehlo::parse_module(
      "sdy.mesh @mesh = <[\"x\"=4]>\n"
      "func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}) "
      "-> tensor<8x8xf32> {\n" +
          body + "\nreturn %0 : tensor<8x8xf32>\n}\n",
      "test.mlir"));
  propagate(program);
  return plan_of(partition(program));
}

using Catch::Matchers::VectorContains;

}  // namespace

TEST_CASE("an op that nobody knows runs on whole operands, and a note says so") {
  const Plan plan = plan_of_body("%0 = stablehlo.frobnicate %x : tensor<8x8xf32>");
  REQUIRE(plan.collectives.size() == 1);  // f32[8,8]
  CHECK(plan.collectives[0].kind == CollectiveKind::all_gather);
  CHECK(plan.collectives[0].payload == Bytes(256));
  CHECK_THAT(plan.notes, VectorContains(std::string("1 ops stablehlo.frobnicate: unknown, computed "
                                                    "whole on every device; only bytes are "
                                                    "counted")));
}

TEST_CASE("a custom call of unknown meaning likewise") {
  const Plan plan = plan_of_body(
      "%0 = stablehlo.custom_call @mystery(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>");
  REQUIRE(plan.collectives.size() == 1);
  CHECK(plan.collectives[0].kind == CollectiveKind::all_gather);
  CHECK_THAT(plan.notes, VectorContains(std::string("1 custom call of \"mystery\": operations "
                                                    "unknown, only bytes are counted")));
}

TEST_CASE("what a program wants on the host is said to stay on the device") {
  const Plan plan = plan_of_body(
      "%0 = stablehlo.custom_call @annotate_device_placement(%x) "
      "{mhlo.frontend_attributes = {_xla_buffer_placement = \"pinned_host\"}} : "
      "(tensor<8x8xf32>) -> tensor<8x8xf32>");
  CHECK(plan.collectives.empty());
  CHECK_THAT(plan.notes, VectorContains(std::string(
                             "1 annotate_device_placement: what goes to the host and back is taken "
                             "to stay on the device; the compiled program has its copies")));
}

TEST_CASE("ops that are known leave no such note") {
  for (const std::string& note : plan_of_body("%0 = stablehlo.tanh %x : tensor<8x8xf32>").notes) {
    CHECK(note.find("unknown") == std::string::npos);
  }
}

}  // namespace shardsim::spmd
