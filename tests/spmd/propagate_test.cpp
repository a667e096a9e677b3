// Propagation by small programs. Every expectation is what XLA of jaxlib 0.10.2 makes of the same
// text (its dump after Shardy's propagation), unless the test says otherwise.
#include "spmd/propagation/propagate.hpp"

#include <catch2/catch.hpp>

#include "tests/spmd/programs.hpp"

namespace {
using namespace shardsim::test;  // NOLINT(google-build-using-namespace)
using Axes = std::vector<std::string>;

shardsim::stablehlo::Module propagated(const std::string& main) {
  shardsim::stablehlo::Module module = program(main);
  shardsim::spmd::propagate(module);
  return module;
}

std::string add_of(const std::string& lhs, const std::string& rhs) {
  return "(%a: tensor<8x8xf32> " + lhs + ", %b: tensor<8x8xf32> " + rhs +
         ") -> tensor<8x8xf32> {\n"
         "  %0 = stablehlo.add %a, %b : tensor<8x8xf32>\n"
         "  return %0 : tensor<8x8xf32>\n}";
}

std::string dot_of(const std::string& rows) {
  return "(%a: tensor<" + rows +
         "x4xf32> S<[{\"y\"}, {?}]>, %b: tensor<4x16xf32> S<[{?}, {\"y\"}]>)"
         " -> tensor<" +
         rows +
         "x16xf32> {\n"
         "  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
         "(tensor<" +
         rows + "x4xf32>, tensor<4x16xf32>) -> tensor<" + rows +
         "x16xf32>\n"
         "  return %0 : tensor<" +
         rows + "x16xf32>\n}";
}

TEST_CASE("of two factors that want one axis, the larger source wins") {
  CHECK(result_axes(propagated(dot_of("8"))) == Axes{R"([{}, {"y"}])"});
  CHECK(result_axes(propagated(dot_of("32"))) == Axes{R"([{"y"}, {}])"});
}

TEST_CASE("elementwise ops come before dots") {
  const auto module = propagated(R"((%a: tensor<8x8xf32> S<[{"x"}, {?}]>, %b: tensor<8x8xf32>)
      -> (tensor<8x8xf32> S<[{?}, {"x"}]>) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.negate %0 : tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  })");
  CHECK(axes_of(module, "stablehlo.dot_general") == Axes{R"([{}, {"x"}])"});
  CHECK(argument_axes(module) == Axes{R"([{"x"}, {}])", R"([{}, {"x"}])"});
}

TEST_CASE("what is read twice waits for what is read once") {
  const auto module = propagated(R"((%a: tensor<8x8xf32> S<[{"x", ?}, {?}]>)
      -> (tensor<8x8xf32>, tensor<8x8xf32> S<[{?}, {"x", ?}]>) {
    %0 = stablehlo.negate %a : tensor<8x8xf32>
    %1 = stablehlo.exponential %0 : tensor<8x8xf32>
    %2 = stablehlo.sine %0 : tensor<8x8xf32>
    %3 = stablehlo.cosine %2 : tensor<8x8xf32>
    return %1, %3 : tensor<8x8xf32>, tensor<8x8xf32>
  })");
  CHECK(axes_of(module, "stablehlo.negate") == Axes{R"([{"x"}, {}])"});
  CHECK(axes_of(module, "stablehlo.sine") == Axes{R"([{}, {"x"}])"});
}

TEST_CASE("an axis is cut where a reshape cuts the dimension") {
  const auto module = propagated(R"((%a: tensor<8x3xf32> S<[{"y"}, {}]>) -> tensor<2x4x3xf32> {
    %0 = stablehlo.reshape %a : (tensor<8x3xf32>) -> tensor<2x4x3xf32>
    return %0 : tensor<2x4x3xf32>
  })");
  CHECK(axes_of(module, "stablehlo.reshape") == Axes{R"([{"y":(1)2}, {"y":(2)2}, {}])"});
  // Parts of axes do not leave the program unasked.
  CHECK(result_axes(module) == Axes{"[{}, {}, {}]"});
}

TEST_CASE("a part of an axis is in conflict with the whole") {
  for (const char* part : {R"(S<[{?}, {"y":(1)2}]>)", R"(S<[{?}, {"y":(2)2}]>)"}) {
    CHECK(result_axes(propagated(add_of(R"(S<[{"y"}, {?}]>)", part))) == Axes{R"([{"y"}, {}])"});
  }
}

TEST_CASE("closed dimensions stay as they are") {
  const auto module = propagated(add_of(R"(S<[{"x"}, {"y"}]>)", "S<[{?}, {}]>"));
  CHECK(argument_axes(module) == Axes{R"([{"x"}, {"y"}])", R"([{"x"}, {}])"});
  CHECK(result_axes(module) == Axes{R"([{"x"}, {"y"}])"});
}

TEST_CASE("replicated axes stay out") {
  const auto module =
      propagated(add_of(R"(S<[{"x"}, {"y"}]>)",
                        R"({sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}], replicated={"x"}>})"));
  CHECK(argument_axes(module) == Axes{R"([{"x"}, {"y"}])", R"([{}, {"y"}])"});
}

TEST_CASE("a later user priority waits") {
  const std::string rhs = R"(S<[{}, {"x"}]>)";
  CHECK(result_axes(propagated(add_of(R"(S<[{"x"}, {}]>)", rhs))) == Axes{R"([{"x"}, {}])"});
  CHECK(result_axes(propagated(add_of(R"(S<[{"x"}p1, {}]>)", rhs))) == Axes{R"([{}, {"x"}])"});
  const auto both =
      propagated(add_of(R"(S<[{"x", ?}p1, {"y", ?}p0]>)", R"(S<[{"y", ?}p1, {?}p0]>)"));
  CHECK(argument_axes(both) == Axes{R"([{"x"}, {"y"}])", R"([{"y"}, {}])"});
  CHECK(result_axes(both) == Axes{R"([{}, {"y"}])"});
}

TEST_CASE("a sharding group has one sharding") {
  const auto module = propagated(R"((%a: tensor<8x8xf32> S<[{"x"}, {}]>, %b: tensor<8x8xf32>)
      -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %0 = stablehlo.negate %a : tensor<8x8xf32>
    sdy.sharding_group %0 group_id=7 : tensor<8x8xf32>
    sdy.sharding_group %b group_id=7 : tensor<8x8xf32>
    %1 = stablehlo.exponential %b : tensor<8x8xf32>
    return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
  })");
  CHECK(argument_axes(module) == Axes{R"([{"x"}, {}])", R"([{"x"}, {}])"});
  CHECK(axes_of(module, "stablehlo.exponential") == Axes{R"([{"x"}, {}])"});
}

TEST_CASE("arrays enter and leave in equal shares") {
  const auto module = propagated(R"((%a: tensor<6x8xf32> S<[{"y"}, {}]>) -> tensor<6x8xf32> {
    %0 = stablehlo.negate %a : tensor<6x8xf32>
    return %0 : tensor<6x8xf32>
  })");
  CHECK(argument_axes(module) == Axes{R"([{"y":(1)2}, {}])"});
  CHECK(axes_of(module, "stablehlo.negate") == Axes{R"([{"y"}, {}])"});
  CHECK(result_axes(module) == Axes{"[{}, {}]"});
}

TEST_CASE("a constant carries no sharding from one reader to another") {
  const auto module = propagated(R"((%a: tensor<8x8xf32> S<[{"x"}, {}]>,
      %b: tensor<8x8xf32> S<[{}, {"y"}]>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %c = stablehlo.constant dense<2.0> : tensor<f32>
    %d = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
    %0 = stablehlo.multiply %a, %d : tensor<8x8xf32>
    %1 = stablehlo.multiply %b, %d : tensor<8x8xf32>
    return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
  })");
  CHECK(axes_of(module, "stablehlo.broadcast_in_dim") == Axes{R"([{"x"}, {}])", R"([{}, {"y"}])"});
  CHECK(axes_of(module, "stablehlo.constant").size() == 1);
}

TEST_CASE("a constraint holds for its operand unless another says otherwise") {
  const auto one = propagated(R"((%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.negate %a : tensor<8x8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  })");
  CHECK(axes_of(one, "stablehlo.negate") == Axes{R"([{"x"}, {}])"});
  const auto two = propagated(R"((%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %0 = stablehlo.negate %a : tensor<8x8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    %2 = sdy.sharding_constraint %0 <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
    return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
  })");
  CHECK(axes_of(two, "stablehlo.negate") == Axes{R"([{"x"}, {"y"}])"});
}

TEST_CASE("who reads after a chain of constraints reads its end") {
  const auto module = propagated(R"((%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %0 = stablehlo.negate %a : tensor<8x8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
    %3 = stablehlo.exponential %0 : tensor<8x8xf32>
    return %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>
  })");
  CHECK(axes_of(module, "stablehlo.negate") == Axes{R"([{"x"}, {}])"});
  CHECK(axes_of(module, "stablehlo.exponential") == Axes{R"([{}, {"y"}])"});
}

TEST_CASE("a barrier lets axes through one way") {
  const auto module = propagated(R"((%a: tensor<8x8xf32> S<[{"x", ?}, {?}]>)
      -> (tensor<8x8xf32> S<[{?}, {"y", ?}]>) {
    %0 = sdy.propagation_barrier %a allowed_direction=FORWARD : tensor<8x8xf32>
    %1 = stablehlo.negate %0 : tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  })");
  CHECK(argument_axes(module) == Axes{R"([{"x"}, {}])"});
  CHECK(axes_of(module, "sdy.propagation_barrier") == Axes{R"([{"x"}, {"y"}])"});
}

TEST_CASE("what goes around a loop has one sharding") {
  const auto module = propagated(R"((%a: tensor<8x8xf32>, %b: tensor<8x8xf32> S<[{"x"}, {?}]>)
      -> tensor<8x8xf32> {
    %0 = stablehlo.while(%v = %a) : tensor<8x8xf32>
    cond {
      %t = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %1 = stablehlo.add %v, %b : tensor<8x8xf32>
      stablehlo.return %1 : tensor<8x8xf32>
    }
    return %0 : tensor<8x8xf32>
  })");
  CHECK(argument_axes(module) == Axes{R"([{"x"}, {}])", R"([{"x"}, {}])"});
  CHECK(axes_of(module, "stablehlo.while") == Axes{R"([{"x"}, {}])"});
}

TEST_CASE("axes that are not manual go through a manual computation") {
  const auto module = propagated(R"((%a: tensor<8x8xf32>)
      -> (tensor<8x8xf32> S<[{"x"}, {"y"}]>) {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x", ?}, {?}]>]
        out_shardings=[<@mesh, [{"x", ?}, {?}]>] manual_axes={"x"} (%b: tensor<4x8xf32>) {
      %1 = stablehlo.negate %b : tensor<4x8xf32>
      sdy.return %1 : tensor<4x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  })");
  CHECK(argument_axes(module) == Axes{R"([{"x"}, {"y"}])"});
  CHECK(axes_of(module, "stablehlo.negate") == Axes{R"([{}, {"y"}])"});
  CHECK(axes_of(module, "sdy.manual_computation") == Axes{R"([{"x"}, {"y"}])"});
}

// By Shardy's documentation (propagation.md, "Priorities"): no rule, so nothing to wait for.
TEST_CASE("a program without shardings is replicated") {
  const auto module = propagated(add_of("", ""));
  CHECK(argument_axes(module) == Axes{"[{}, {}]", "[{}, {}]"});
}

TEST_CASE("shardings that do not fit are refused") {
  const auto error = [](const std::string& sharding, const std::string& message) {
    CHECK_THROWS_WITH(propagated(add_of(sharding, "")), Catch::Contains(message));
  };
  error(R"(S<[{"z"}, {}]>)", R"(unknown axis "z")");
  error(R"(S<[{"x"}, {"x"}]>)", R"(axis "x" is used twice)");
  error(R"(S<[{"y"}, {"y":(2)2}]>)", R"(axis "y":(2)2 is used twice)");
  error(R"(S<[{"y":(1)3}, {}]>)", R"("y":(1)3 is no part of an axis of size 4)");
  error(R"(S<[{"x"}]>)", "%a has 2 dimensions, its sharding 1");
  error(R"({sdy.sharding = #sdy.sharding<@mehs, [{}, {}]>})",
        R"(unknown mesh @mehs, did you mean "mesh"?)");
}

TEST_CASE("a group of values with different shardings is refused") {
  CHECK_THROWS_WITH(
      propagated(R"((%a: tensor<8xf32> S<[{"x"}]>, %b: tensor<8xf32> S<[{"y"}]>) -> tensor<8xf32> {
    sdy.sharding_group %a group_id=3 : tensor<8xf32>
    sdy.sharding_group %b group_id=3 : tensor<8xf32>
    return %a : tensor<8xf32>
  })"),
      Catch::Contains("sharding group 3: its values are given different shardings"));
}

}  // namespace
