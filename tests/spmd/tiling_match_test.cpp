// Pairs of tilings, by hand: which devices hold what.
#include "spmd/tiling/tiling_match.hpp"

#include <catch2/catch.hpp>

namespace {
using namespace shardsim::spmd;  // NOLINT(google-build-using-namespace)
}  // namespace

TEST_CASE("dimensions of one tensor as those of another") {
  // [4,2] over (m, k), transposed to (k, m): tile (k, m) where (m, k) was.
  const Tiling mk = Tiling::tiled({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(match_dims(mk, {1, 0}, {1, 0}) == Tiling::tiled({2, 4}, {0, 2, 4, 6, 1, 3, 5, 7}));
  // k has no counterpart and is split; m has none, but is whole.
  CHECK(match_dims(mk, {0, -1}, {0}) == std::nullopt);
  const Tiling k_only = Tiling::tiled({1, 8}, {0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(match_dims(k_only, {-1, 0}, {1, -1}) == Tiling::tiled({8, 1}, k_only.devices()));
  // Replicas stay replicas.
  const Tiling partial = Tiling::tiled({1, 2}, {0, 1, 2, 3});
  CHECK(match_dims(partial, {-1, 0}, {1}) == Tiling::tiled({2}, {0, 1, 2, 3}));
}

TEST_CASE("finer tilings") {
  const Tiling halves = Tiling::tiled({2}, {0, 1, 2, 3});    // 0 and 1 have the first half
  const Tiling quarters = Tiling::tiled({4}, {0, 1, 2, 3});  // within it
  const Tiling crossed = Tiling::tiled({4}, {0, 2, 1, 3});   // 2 has the second quarter
  CHECK(is_finer_or_equal({8}, quarters, halves));
  CHECK_FALSE(is_finer_or_equal({8}, halves, quarters));
  CHECK_FALSE(is_finer_or_equal({8}, crossed, halves));
  CHECK(is_finer_or_equal({8}, crossed, Tiling()));
  // 6 in quarters of 2 against halves of 3: the second quarter, 2..4, crosses the middle.
  CHECK_FALSE(is_finer_or_equal({6}, quarters, halves));
}

TEST_CASE("merged tilings") {
  // Rows over {0 1}{2 3}, columns over {0 2}{1 3}: each device has one quarter.
  const Tiling rows = Tiling::tiled({2, 1}, {0, 1, 2, 3});
  const Tiling columns = Tiling::tiled({1, 2}, {0, 2, 1, 3});
  CHECK(merge_tilings(rows, columns, 4) == Tiling::tiled({2, 2}, {0, 1, 2, 3}));
  CHECK(merge_tilings(rows, columns, 5) == std::nullopt);
  // Eight devices 4a + 2b + c: rows over c, columns over b, two replicas over a.
  CHECK(merge_tilings(Tiling::tiled({2, 1}, {0, 2, 4, 6, 1, 3, 5, 7}),
                      Tiling::tiled({1, 2}, {0, 1, 4, 5, 2, 3, 6, 7}),
                      4) == Tiling::tiled({2, 2}, {0, 4, 2, 6, 1, 5, 3, 7}));
  // Columns over the same devices as rows: nobody has row 0 and column 1.
  CHECK(merge_tilings(rows, Tiling::tiled({1, 2}, {0, 1, 2, 3}), 4) == std::nullopt);
}

TEST_CASE("groups of devices in a tiling") {
  const Tiling grid = Tiling::tiled({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(dims_of_groups(grid, {{0, 1, 2, 3}, {4, 5, 6, 7}}) == Dims{0});
  CHECK(dims_of_groups(grid, {{1, 5}, {0, 4}, {2, 6}, {3, 7}}) == Dims{1});
  CHECK(dims_of_groups(grid, {{0, 1, 4, 5}, {2, 3, 6, 7}}) == std::nullopt);
  // Single devices: every dimension that is split.
  CHECK(dims_of_groups(Tiling::tiled({1, 2}, {1, 0}), {{0}, {1}}) == Dims{1});

  // Two tiles of four replicas; each group has both tiles twice, at the same places.
  const Tiling partial = Tiling::tiled({2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto grouped = group_replicas_into(partial, {{0, 1, 4, 5}, {2, 3, 6, 7}});
  REQUIRE(grouped.has_value());
  CHECK(grouped->tiling == Tiling::tiled({2}, {0, 1, 2, 3}));
  CHECK(ungroup(*grouped) == partial);
  // The first group would have four replicas of the first tile.
  CHECK(group_replicas_into(partial, {{0, 1, 2, 3}, {4, 5, 6, 7}}) == std::nullopt);

  CHECK(same_groups({{0, 1}, {2, 3}}, {{1, 0}, {2, 3}}));
  CHECK_FALSE(same_groups({{0, 1}, {2, 3}}, {{2, 3}, {0, 1}}));
}

TEST_CASE("reversed tilings") {
  const Tiling grid = Tiling::tiled({2, 2}, {0, 1, 2, 3});
  CHECK(reversed(grid, {0}) == Tiling::tiled({2, 2}, {2, 3, 0, 1}));
  CHECK(reversed(grid, {0, 1}) == Tiling::tiled({2, 2}, {3, 2, 1, 0}));
}
