// Shardings are printed as they were read. Spellings: openxla/shardy
// docs/sharding_representation.md, openxla/xla xla/hlo/ir/hlo_sharding.h.
#include <catch2/catch.hpp>

#include "stablehlo/sharding.hpp"

using namespace shardsim::stablehlo;  // NOLINT(google-build-using-namespace)
using Catch::Matchers::Contains;

namespace {

AxisSharding axes(const std::string& text) {
  Scanner body(text, "test");
  return parse_axis_sharding(body);
}

TileSharding tiles(const std::string& text) {
  Scanner body(text, "test");
  return parse_tile_sharding(body);
}

}  // namespace

TEST_CASE("Shardy's shardings") {
  for (const char* text :
       {R"(@mesh, [])", R"(@mesh, [{}, {?}])", R"(@m, [{"x", "y"}, {"z":(2)4, ?}p1, {}p0])",
        R"(@mesh, [{"x"}], replicated={"y", "z":(1)2})",
        R"(@mesh, [{}], replicated={"y"}, unreduced={"x"})"}) {
    CHECK(text_of(axes(text)) == "<" + std::string(text) + ">");
  }
  const AxisSharding sharding = axes(R"(@m, [{"x", "z": (2)4, ?}p1])");
  REQUIRE(sharding.dimensions.size() == 1);
  CHECK(sharding.mesh == "m");
  CHECK(sharding.dimensions[0].axes == std::vector<AxisPart>{{"x", 1, 0}, {"z", 2, 4}});
  CHECK(sharding.dimensions[0].open);
  CHECK(sharding.dimensions[0].priority == 1);
}

TEST_CASE("GSPMD's shardings") {
  for (const char* text :
       {"{replicated}", "{manual}", "{unknown}", "{maximal device=3}", "{devices=[2,1]0,1}",
        "{devices=[4,2]<=[8]}", "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
        "{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}",
        "{{replicated}, {devices=[2]<=[2]}}"}) {
    CHECK(text_of(tiles(text)) == text);
  }
  const TileSharding sharding = tiles("{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}");
  CHECK(sharding.tiles == std::vector<std::int64_t>{1, 4, 2});
  CHECK(sharding.reshape == std::vector<std::int64_t>{2, 4});
  CHECK(sharding.transpose == std::vector<std::int64_t>{1, 0});
  CHECK(sharding.last_tile_dim_replicate);
}

TEST_CASE("shardings that are none") {
  CHECK_THROWS_WITH(axes(R"(@mesh, [{?, "x"}])"), Contains("expected \"}\""));
  CHECK_THROWS_WITH(axes(R"(@mesh, [{"x"}q])"), Contains("expected \",\""));
  CHECK_THROWS_WITH(axes(R"(@mesh, [{"x"}p])"), Contains("a priority after \"p\""));
  CHECK_THROWS_WITH(axes(R"(@mesh, [{"x":(0)2}])"), Contains("below 1"));
  CHECK_THROWS_WITH(axes(R"(@mesh, [], reduced={"x"})"),
                    Contains("part of a sharding \"reduced\""));
  CHECK_THROWS_WITH(tiles("{frobbed}"), Contains("unknown kind of sharding \"frobbed\""));
  CHECK_THROWS_WITH(tiles("{devices=[2}"), Contains("expected \",\""));
  CHECK_THROWS_WITH(tiles("{replicated} x"), Contains("the end of the sharding"));
}
