#include "spmd/tiling/axes.hpp"

#include <catch2/catch.hpp>

#include "spmd/propagation/factor_propagation.hpp"
#include "spmd/propagation/projection.hpp"

namespace {
using namespace shardsim::spmd;  // NOLINT(google-build-using-namespace)
using shardsim::stablehlo::Factor;
using shardsim::stablehlo::FactorKind;

// An axis of size 8 and its parts.
constexpr Axis whole{0, 1, 8};
constexpr Axis major_part{0, 1, 2};
constexpr Axis middle{0, 2, 2};
constexpr Axis minor_part{0, 4, 2};

TEST_CASE("parts of an axis overlap where they cover the same") {
  CHECK(overlap(whole, middle));
  CHECK_FALSE(overlap(major_part, middle));
  CHECK_FALSE(overlap(whole, Axis{1, 1, 8}));
  CHECK(contains(whole, minor_part));
  CHECK_FALSE(contains(minor_part, whole));
  CHECK(is_prefix(major_part, whole));
  CHECK_FALSE(is_prefix(middle, whole));
}

TEST_CASE("what of an axis is free of another is a prefix") {
  CHECK(prefix_without(whole, minor_part) == Axis{0, 1, 4});
  CHECK(prefix_without(whole, middle) == Axis{0, 1, 2});
  CHECK(prefix_without(whole, major_part) == std::nullopt);
  CHECK(prefix_without(middle, minor_part) == middle);
  CHECK(prefix_without(whole, Axes{minor_part, middle}) == Axis{0, 1, 2});
}

TEST_CASE("parts that follow each other are one") {
  Axes axes;
  append(axes, major_part);
  append(axes, middle);
  CHECK(axes == Axes{{0, 1, 4}});
  append(axes, Axis{1, 1, 3});
  append(axes, minor_part);
  CHECK(axes == Axes{{0, 1, 4}, {1, 1, 3}, {0, 4, 2}});
  CHECK(total_size(axes) == 24);
}

TEST_CASE("prefixes of lists end inside an axis or between two") {
  const Axes axes{{1, 1, 2}, whole};
  CHECK(is_strict_prefix(Axes{}, axes));
  CHECK(is_strict_prefix(Axes{{1, 1, 2}}, axes));
  CHECK(is_strict_prefix(Axes{{1, 1, 2}, major_part}, axes));
  CHECK_FALSE(is_strict_prefix(axes, axes));
  CHECK_FALSE(is_prefix(Axes{whole}, axes));
}

// The example of projection.hpp: 2x4 <- 8 over an axis of size 4.
TEST_CASE("dimensions become factors and factors dimensions") {
  const std::vector<Factor> factors{{2, FactorKind::pass_through, false},
                                    {4, FactorKind::pass_through, false}};
  const TensorSharding flat{0, {{Axes{{0, 1, 4}}, false}}, {}, {}};
  const TensorProjection projection = project({{0, 1}}, factors, &flat);
  CHECK(projection.factors[0].axes == Axes{{0, 1, 2}});
  CHECK(projection.factors[1].axes == Axes{{0, 2, 2}});
  CHECK(unproject(projection, {{0, 1}}, factors, 0) == flat);
  const TensorSharding split = unproject(projection, {{0}, {1}}, factors, 0);
  CHECK(split.dimensions[0].axes == Axes{{0, 1, 2}});
  CHECK(split.dimensions[1].axes == Axes{{0, 2, 2}});
}

// 3 does not divide 4: the axis overflows the first factor and stays with the dimension.
TEST_CASE("axes that do not fit a factor overflow it") {
  const std::vector<Factor> factors{{4, FactorKind::pass_through, false},
                                    {6, FactorKind::pass_through, false}};
  const TensorSharding flat{0, {{Axes{{0, 1, 3}}, true}}, {}, {}};
  const TensorProjection projection = project({{0, 1}}, factors, &flat);
  CHECK(projection.factors[0].axes.empty());
  CHECK(projection.factors[0].overflow == Axes{{0, 1, 3}});
  CHECK(projection.factors[1].closed);
  CHECK(unproject(projection, {{0, 1}}, factors, 0).dimensions == flat.dimensions);
}

TEST_CASE("directions add up and cut down") {
  CHECK(either(Direction::forward, Direction::backward) == Direction::both);
  CHECK(either(Direction::none, Direction::backward) == Direction::backward);
  CHECK(both_of(Direction::forward, Direction::backward) == Direction::none);
  CHECK(both_of(Direction::both, Direction::backward) == Direction::backward);
}

}  // namespace
