#include "hlo/replica_groups.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace shardsim::replica_groups_test {
namespace {

DeviceGroups parse(std::string_view text) { return parse_replica_groups(text, {text, "test"}); }

const Mesh two_by_four({{"x", 2}, {"y", 4}});

std::vector<std::string> axes(const Mesh& mesh, const DeviceGroups& groups) {
  const auto parts = axes_of_groups(mesh, groups);
  return parts ? mesh.names_of(*parts) : std::vector<std::string>{"none"};
}

}  // namespace

// Expected: hlo_parser_test.cc and replica_group_test.cc of openxla/xla, and the definition of the
// iota form in hlo/ir/tile_assignment.h there.
TEST_CASE("replica groups have three spellings") {
  CHECK(parse("{{0,4},{1,5}}") == DeviceGroups{{0, 4}, {1, 5}});
  CHECK(parse("{}").empty());
  CHECK(parse("[4,2]<=[2,4]T(1,0)") == DeviceGroups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(parse("[1,4]<=[4]") == DeviceGroups{{0, 1, 2, 3}});
  CHECK(parse("[3,10]<=[6,5]T(1,0)") == DeviceGroups{{0, 5, 10, 15, 20, 25, 1, 6, 11, 16},
                                                     {21, 26, 2, 7, 12, 17, 22, 27, 3, 8},
                                                     {13, 18, 23, 28, 4, 9, 14, 19, 24, 29}});
  CHECK(parse("mesh['axis_0'=2,'axis_1'=2] {'axis_1'}") == DeviceGroups{{0, 1}, {2, 3}});
  CHECK(parse("mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}") ==
        DeviceGroups{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
}

TEST_CASE("a mesh of groups may be reordered and its axes cut") {
  const DeviceGroups groups =
      parse("mesh['a'=2,'b'=4,'c'=4,'d'=2], device_ids=([4,16]T(1,0)) {'a','b':(1)2,'d'}");
  REQUIRE(groups.size() == 8);
  CHECK(groups[0] == std::vector<std::int64_t>{0, 16, 4, 20, 8, 24, 12, 28});
  CHECK(groups[7] == std::vector<std::int64_t>{35, 51, 39, 55, 43, 59, 47, 63});
}

TEST_CASE("what is no list of groups is refused") {
  for (const char* text :
       {"0,1", "[2,4]<=[9]", "[8]<=[8]", "[2,4]<=[2,4]T(0,0)", "mesh['a'=2]", "{{}}",
        "mesh['a'=2] {'b'}", "mesh['a'=2] {'a','a'}", "mesh['a'=8] {'a':(1)3}", "[0,4]<=[0]",
        "mesh['a'=2], device_ids=(0) {'a'}", "mesh['a'=2,'a'=2] {'a'}", "[1,99999999999]<=[9]"}) {
    CHECK_THROWS_AS(parse(text), InputError);
  }
}

TEST_CASE("the mode says what the numbers mean") {
  // Two replicas of two partitions; flattened device = replica * 2 + partition.
  const HloDevices devices{2, 2};
  const auto groups = [&](std::string_view text, GroupMode mode) {
    return device_groups(text, mode, devices, {text, "test"});
  };
  CHECK(groups("{{0,1}}", GroupMode::cross_replica) == DeviceGroups{{0, 2}, {1, 3}});
  CHECK(groups("{{0,1}}", GroupMode::cross_partition) == DeviceGroups{{0, 1}, {2, 3}});
  CHECK(groups("{{0},{1}}", GroupMode::cross_replica_and_partition) ==
        DeviceGroups{{0, 1}, {2, 3}});
  CHECK(groups("{{0,3},{1,2}}", GroupMode::flattened) == DeviceGroups{{0, 3}, {1, 2}});
  CHECK(groups("{}", GroupMode::flattened) == DeviceGroups{{0, 1, 2, 3}});
  CHECK_THROWS_AS(groups("{{0,2}}", GroupMode::cross_replica), InputError);
  CHECK_THROWS_AS(groups("{{0,0}}", GroupMode::flattened), InputError);
  CHECK_THROWS_AS(groups("{{0,1},{2}}", GroupMode::flattened), InputError);
  const std::string_view pairs = "{{0,1},{1,0}}";
  CHECK(device_pairs(pairs, GroupMode::cross_partition, devices, {pairs, "test"}) ==
        DevicePairs{{0, 1}, {2, 3}, {1, 0}, {3, 2}});
}

TEST_CASE("groups are told by the axes of a mesh") {
  CHECK(axes(two_by_four, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}) == std::vector<std::string>{"x"});
  CHECK(axes(two_by_four, {{4, 5, 6, 7}, {0, 1, 2, 3}}) == std::vector<std::string>{"y"});
  CHECK(axes(two_by_four, {{0, 1, 2, 3, 4, 5, 6, 7}}) == std::vector<std::string>{"x", "y"});
  CHECK(axes(two_by_four, {{0, 4, 1, 5, 2, 6, 3, 7}}) == std::vector<std::string>{"y", "x"});
  CHECK(axes(two_by_four, {{0, 1}, {2, 3}, {4, 5}, {6, 7}}) == std::vector<std::string>{"y:(2)2"});
  CHECK(axes(two_by_four, {{0, 4, 1, 5}, {2, 6, 3, 7}}) == std::vector<std::string>{"y:(2)2", "x"});
  CHECK(axes(two_by_four, {{0, 1}, {2, 3}, {4, 5}, {7, 6}}) == std::vector<std::string>{"none"});
  CHECK(axes(two_by_four, {{0, 3}, {1, 2}, {4, 7}, {5, 6}}) == std::vector<std::string>{"none"});
  CHECK(axes(Mesh({{"device", 8}}), {{0, 2}, {1, 3}, {4, 6}, {5, 7}}) ==
        std::vector<std::string>{"device:(2)2"});
  CHECK(axes(Mesh({{"a", 2}, {"one", 1}, {"b", 3}}), {{0, 1, 2}, {3, 4, 5}}) ==
        std::vector<std::string>{"b"});
}

}  // namespace shardsim::replica_groups_test
