#include "plan/mesh.hpp"
#include "plan/mesh_groups.hpp"
#include "plan/read_mesh.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "base/json.hpp"

namespace shardsim {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

TEST_CASE("groups run along an axis, the last axis varies fastest") {
  // Device of (data, model) = 4 * data + model, as numpy.arange(8).reshape(2, 4).
  const Mesh mesh({{"data", 2}, {"model", 4}});
  CHECK(mesh.devices() == 8);
  CHECK(mesh.groups({mesh.whole(1)}) == Groups{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(mesh.groups({mesh.whole(0)}) == Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(mesh.groups({mesh.whole(0), mesh.whole(1)}) == Groups{{0, 1, 2, 3, 4, 5, 6, 7}});
  // The first of the axes is most major: (model, data) walks data fastest.
  CHECK(mesh.groups({mesh.whole(1), mesh.whole(0)}) == Groups{{0, 4, 1, 5, 2, 6, 3, 7}});
  CHECK(mesh.groups({}) == Groups{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}});
}

TEST_CASE("the middle of three axes strides over the last") {
  // Device = 6 a + 2 b + c; along b: steps of 2.
  const Mesh mesh({{"a", 2}, {"b", 3}, {"c", 2}});
  CHECK(mesh.groups({mesh.whole(1)}) == Groups{{0, 2, 4}, {1, 3, 5}, {6, 8, 10}, {7, 9, 11}});
}

TEST_CASE("sub-axes are digits of their axis, as in Shardy") {
  // Shardy, sharding_representation.md: "x":(m)k is the part of size k after a pre-size of m; an
  // axis of 8 as 2 x 4: coordinate = 4 * (1)2 + (2)4.
  const Mesh mesh({{"x", 8}, {"y", 2}});
  const AxisRef major{0, 1, 2};
  const AxisRef minor{0, 2, 4};
  // Device = 2 x + y. Along (1)2 x moves by 4, the device by 8.
  CHECK(mesh.groups({major}) ==
        Groups{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}});
  CHECK(mesh.groups({minor}) ==
        Groups{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}});
  // A middle digit of 2 x 2 x 2: x moves by 2, the device by 4.
  CHECK(mesh.first_group({AxisRef{0, 2, 2}}) == std::vector<std::int64_t>{0, 4});
  // Both parts, major first, are the whole axis.
  CHECK(mesh.groups({major, minor}) == mesh.groups({mesh.whole(0)}));
}

TEST_CASE("names of axes and their parts read back") {
  const Mesh mesh({{"x", 8}, {"y", 2}});
  CHECK(mesh.name_of(mesh.whole(0)) == "x");
  CHECK(mesh.name_of({0, 2, 4}) == "x:(2)4");
  CHECK(mesh.parse("x:(2)4") == AxisRef{0, 2, 4});
  CHECK(mesh.parse("x:(1)8") == mesh.whole(0));
  for (const char* wrong : {"z", "", "x:(3)2", "x:(2)8", "x:(0)2", "x:(2)", "x:(2", "x:()2",
                            "x:(1)2 ", "x:(-1)2", "x:(99999999999999999999)2", "x:)(2"}) {
    CHECK_FALSE(mesh.parse(wrong).has_value());
  }
}

TEST_CASE("a mesh of three axes is read from text") {
  const Json text = "a=2,b=3,c=4";
  CHECK(describe(read_mesh(JsonReader(text, {"mesh.json", ""}))) == "a=2 x b=3 x c=4");
}

TEST_CASE("groups in the iota form of HLO") {
  // xla/hlo/ir/tile_assignment.h: iota reshaped, transposed, read off in rows.
  const Mesh mesh({{"data", 2}, {"model", 4}});
  CHECK(mesh.iota_groups({mesh.whole(1)}) == "[2,4]<=[8]");
  CHECK(mesh.iota_groups({mesh.whole(0)}) == "[4,2]<=[2,4]T(1,0)");
  CHECK(mesh.iota_groups({mesh.whole(0), mesh.whole(1)}) == "[1,8]<=[8]");
  CHECK(mesh.iota_groups({}) == "[8,1]<=[8]");
  CHECK(Mesh({{"one", 1}}).iota_groups({}) == "[1,1]<=[1]");
}

struct Case {
  Mesh mesh;
  std::vector<AxisRef> parts;
};

// A mesh of up to 4 axes whose sizes are products of small primes, and some of its digits.
Case arbitrary_case() {
  Case result;
  std::vector<MeshAxis> axes;
  std::vector<AxisRef> digits;
  const int rank = *rc::gen::inRange(0, 4);
  for (int axis = 0; axis < rank; ++axis) {
    std::int64_t size = 1;
    for (std::int64_t factor : *rc::gen::resize(3, rc::gen::container<std::vector<std::int64_t>>(
                                                       rc::gen::element<std::int64_t>(2, 3)))) {
      digits.push_back({axis, size, factor});
      size *= factor;
    }
    axes.push_back({"axis" + std::to_string(axis), size});
  }
  result.mesh = Mesh(axes);
  for (const AxisRef& digit : digits) {
    if (*rc::gen::arbitrary<bool>()) result.parts.push_back(digit);
  }
  if (*rc::gen::arbitrary<bool>()) std::reverse(result.parts.begin(), result.parts.end());
  return result;
}

// Reads an iota form by its definition, independently of how it was made.
Groups read_iota(const std::string& text) {
  const auto numbers = [](std::string list) {
    std::vector<std::int64_t> result;
    for (std::size_t at = 0; at < list.size();) {
      std::size_t used = 0;
      result.push_back(std::stoll(list.substr(at), &used));
      at += used + 1;
    }
    return result;
  };
  const std::size_t arrow = text.find("<=[");
  const auto shape = numbers(text.substr(1, arrow - 2));
  const std::size_t close = text.find(']', arrow);
  const auto reshape = numbers(text.substr(arrow + 3, close - arrow - 3));
  std::vector<std::int64_t> order(reshape.size());
  std::iota(order.begin(), order.end(), 0);
  if (close + 1 < text.size()) order = numbers(text.substr(close + 3, text.size() - close - 4));

  std::vector<std::int64_t> flat;
  const auto devices = shape[0] * shape[1];
  for (std::int64_t i = 0; i < devices; ++i) {
    // Coordinates of element i in the transposed array, least significant last.
    std::int64_t rest = i;
    std::vector<std::int64_t> coordinate(reshape.size());
    for (std::size_t d = order.size(); d-- > 0;) {
      const auto from = static_cast<std::size_t>(order[d]);
      coordinate[from] = rest % reshape[from];
      rest /= reshape[from];
    }
    std::int64_t device = 0;
    for (std::size_t d = 0; d < reshape.size(); ++d) device = device * reshape[d] + coordinate[d];
    flat.push_back(device);
  }
  Groups groups;
  for (std::int64_t g = 0; g < shape[0]; ++g) {
    groups.emplace_back(flat.begin() + g * shape[1], flat.begin() + (g + 1) * shape[1]);
  }
  return groups;
}

TEST_CASE("groups partition the devices, in equal sizes, each a translation of the first") {
  CHECK(rc::check([] {
    const Case c = arbitrary_case();
    const Groups groups = c.mesh.groups(c.parts);
    std::vector<std::int64_t> all;
    for (const auto& group : groups) {
      RC_ASSERT(static_cast<std::int64_t>(group.size()) == Mesh::size_of(c.parts));
      const auto first = c.mesh.first_group(c.parts);
      for (std::size_t i = 0; i < group.size(); ++i) RC_ASSERT(group[i] - group[0] == first[i]);
      all.insert(all.end(), group.begin(), group.end());
    }
    for (std::size_t g = 1; g < groups.size(); ++g) RC_ASSERT(groups[g - 1][0] < groups[g][0]);
    std::sort(all.begin(), all.end());
    std::vector<std::int64_t> expected(static_cast<std::size_t>(c.mesh.devices()));
    std::iota(expected.begin(), expected.end(), 0);
    RC_ASSERT(all == expected);
  }));
}

// The header's examples, and what is no product of axes.
TEST_CASE("groups are told as axes") {
  const Mesh mesh({{"x", 2}, {"y", 4}});
  const auto axes = [&](const Groups& groups) -> std::string {
    const auto parts = axes_of_groups(mesh, groups);
    if (!parts) return "none";
    std::string text;
    for (const std::string& name : mesh.names_of(*parts)) text += (text.empty() ? "" : ", ") + name;
    return text;
  };
  CHECK(axes({{0, 4}, {1, 5}, {2, 6}, {3, 7}}) == "x");
  CHECK(axes({{3, 7}, {1, 5}, {0, 4}, {2, 6}}) == "x");
  CHECK(axes({{0, 4, 1, 5}, {2, 6, 3, 7}}) == "y:(2)2, x");
  CHECK(axes({{0, 2}, {1, 3}, {4, 6}, {5, 7}}) == "y:(1)2");
  CHECK(axes({{0, 1, 2, 3, 4, 5, 6, 7}}) == "x, y");
  CHECK(axes({}) == "none");
  CHECK(axes({{0, 4}, {1, 5}, {2, 6}}) == "none");          // not all devices
  CHECK(axes({{0, 4}, {1, 5}, {2, 7}, {3, 6}}) == "none");  // not alike
  CHECK(axes({{0, 3}, {1, 2}, {4, 7}, {5, 6}}) == "none");  // three apart
  CHECK(axes({{4, 0}, {5, 1}, {6, 2}, {7, 3}}) == "none");  // counted downwards
}

TEST_CASE("axes that are found have the groups that they were found by") {
  CHECK(rc::check([] {
    const Case c = arbitrary_case();
    Groups groups = c.mesh.groups(c.parts);
    std::reverse(groups.begin(), groups.end());
    const auto found = axes_of_groups(c.mesh, groups);
    RC_ASSERT(found.has_value());
    Groups again = c.mesh.groups(*found);
    std::sort(groups.begin(), groups.end());
    std::sort(again.begin(), again.end());
    RC_ASSERT(again == groups);
  }));
}

TEST_CASE("the iota form lists the same groups") {
  CHECK(rc::check([] {
    const Case c = arbitrary_case();
    RC_ASSERT(read_iota(c.mesh.iota_groups(c.parts)) == c.mesh.groups(c.parts));
  }));
}

}  // namespace
}  // namespace shardsim
