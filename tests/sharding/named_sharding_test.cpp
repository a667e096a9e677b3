// Laws of who holds what; the numbers that JAX answers are golden cases.
#include "sharding/named_sharding.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>

#include <rapidcheck.h>

#include "base/json.hpp"
#include "sharding/partition_spec.hpp"
#include "sharding/shardy_sharding.hpp"

namespace shardsim::named_sharding_test {
namespace {

const Place place{"test", ""};

struct Case {
  Mesh mesh;
  std::vector<std::int64_t> shape;
  Sharding sharding;
};

// Up to three axes of two factors each, in any order on up to three dimensions of any size; factors
// may stay unused.
Case arbitrary_case() {
  Case c;
  std::vector<MeshAxis> axes;
  AxisList parts;
  const int rank = *rc::gen::inRange(0, 4);
  for (int axis = 0; axis < rank; ++axis) {
    const auto major = *rc::gen::inRange<std::int64_t>(1, 4);
    const auto minor = *rc::gen::inRange<std::int64_t>(1, 3);
    axes.push_back({"axis" + std::to_string(axis), major * minor});
    parts.push_back({axis, 1, major});
    parts.push_back({axis, major, minor});
  }
  c.mesh = Mesh(axes);
  c.sharding = replicated(*rc::gen::inRange<std::size_t>(0, 4));
  for (DimSharding& dim : c.sharding.dims) {
    dim.blocks = *rc::gen::inRange<std::int64_t>(1, 3);
    c.shape.push_back(dim.blocks * *rc::gen::inRange<std::int64_t>(0, 8));
  }
  while (!parts.empty() && !c.shape.empty()) {
    const auto taken = parts.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(parts));
    const auto d = *rc::gen::inRange<std::size_t>(0, c.shape.size() + 1);
    if (d < c.shape.size()) c.sharding.dims[d].axes.push_back(*taken);
    parts.erase(taken);
  }
  return c;
}

// Calls `visit` with the flat index of every element in the product of `ranges`.
template <typename Visit>
void for_each_element(const std::vector<std::int64_t>& shape, const std::vector<IndexRange>& ranges,
                      const Visit& visit, std::size_t d = 0, std::int64_t offset = 0) {
  if (d == shape.size()) return visit(static_cast<std::size_t>(offset));
  for (std::int64_t block = 0; block < ranges[d].blocks; ++block) {
    for (std::int64_t i = ranges[d].begin; i < ranges[d].end; ++i) {
      const std::int64_t at = block * ranges[d].block_size + i;
      for_each_element(shape, ranges, visit, d + 1, offset * shape[d] + at);
    }
  }
}

TEST_CASE("Shards tile the tensor once per replica, also when they do not divide it") {
  CHECK(rc::check([] {
    const Case c = arbitrary_case();
    const DeviceIndex index(c.shape, c.sharding, c.mesh);
    const auto elements =
        std::accumulate(c.shape.begin(), c.shape.end(), std::int64_t{1}, std::multiplies<>());
    std::vector<std::int64_t> holders(static_cast<std::size_t>(elements));
    for (std::int64_t device = 0; device < c.mesh.devices(); ++device) {
      for_each_element(c.shape, index.ranges(device), [&](std::size_t i) { ++holders[i]; });
    }
    const std::int64_t replicas = replicas_per_shard(c.sharding, c.mesh);
    for (const std::int64_t count : holders) RC_ASSERT(count == replicas);
  }));
}

TEST_CASE("No device holds more than the shard shape, and the first device holds that") {
  CHECK(rc::check([] {
    const Case c = arbitrary_case();
    const DeviceIndex index(c.shape, c.sharding, c.mesh);
    const std::vector<std::int64_t> largest = shard_shape(c.shape, c.sharding);
    for (std::int64_t device = 0; device < c.mesh.devices(); ++device) {
      const std::vector<IndexRange> ranges = index.ranges(device);
      for (std::size_t d = 0; d < ranges.size(); ++d) {
        const std::int64_t held = ranges[d].blocks * (ranges[d].end - ranges[d].begin);
        RC_ASSERT(held <= largest[d]);
        if (device == 0) RC_ASSERT(held == largest[d]);
      }
    }
  }));
}

TEST_CASE("Devices with the same part are numbered 0, 1, 2 ... in their order") {
  CHECK(rc::check([] {
    const Case c = arbitrary_case();
    const DeviceIndex index(c.shape, c.sharding, c.mesh);
    const std::vector<std::int64_t> ids = index.replica_ids();
    std::map<std::vector<IndexRange>, std::int64_t> next;
    for (std::int64_t device = 0; device < c.mesh.devices(); ++device) {
      RC_ASSERT(ids[static_cast<std::size_t>(device)] == next[index.ranges(device)]++);
    }
    for (const auto& [part, count] : next) {
      RC_ASSERT(count % replicas_per_shard(c.sharding, c.mesh) == 0);
    }
  }));
}

// OpSharding's definition: tile t in row-major order is held by the replicas of its entry.
TEST_CASE("A tile assignment lists every device once, at the chunks that it holds") {
  CHECK(rc::check([] {
    const Case c = arbitrary_case();
    const auto tiles = tile_assignment(c.sharding, c.mesh);
    RC_ASSERT(tiles.has_value() != is_fully_replicated(c.sharding));
    if (!tiles) return;
    RC_ASSERT(std::ssize(tiles->devices) == c.mesh.devices());
    RC_ASSERT(std::set<std::int64_t>(tiles->devices.begin(), tiles->devices.end()).size() ==
              tiles->devices.size());
    const DeviceIndex index(c.shape, c.sharding, c.mesh);
    const std::int64_t replicas = replicas_per_shard(c.sharding, c.mesh);
    for (std::size_t i = 0; i < tiles->devices.size(); ++i) {
      std::int64_t tile = 0;
      for (std::size_t d = 0; d < c.shape.size(); ++d) {
        tile = tile * tiles->dims[d] + index.chunk(tiles->devices[i], d);
      }
      RC_ASSERT(tile == static_cast<std::int64_t>(i) / replicas);
    }
  }));
}

TEST_CASE("Chunks of a dimension add up to it") {
  CHECK(rc::check([] {
    const auto size = *rc::gen::inRange<std::int64_t>(0, 100);
    const auto shards = *rc::gen::inRange<std::int64_t>(1, 40);
    const std::vector<std::int64_t> sizes = chunk_sizes(size, shards);
    RC_ASSERT(std::ssize(sizes) == shards);
    RC_ASSERT(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == size);
    RC_ASSERT(std::is_sorted(sizes.rbegin(), sizes.rend()));
  }));
}

TEST_CASE("An indivisible dimension is named with its shards") {
  const Mesh mesh({{"x", 4}, {"y", 2}});
  const Sharding sharding = to_sharding({{"x"}, {"y"}}, 2, mesh, place);
  try {
    check_divides({8, 3}, sharding, place);
    FAIL("nothing was thrown");
  } catch (const IndivisibleError& error) {
    CHECK(error.dimension() == 1);
    CHECK(error.shards_per_dim() == std::vector<std::int64_t>{4, 2});
    CHECK(error.type() == "IndivisibleError");
  }
  CHECK_NOTHROW(check_divides({0, 2}, sharding, place));  // as in JAX: nothing divides
}

Sharding read_shardy(const std::string& text, const Mesh& mesh) {
  const Json json = parse_json(text, "test");
  return read_shardy_sharding({json, place}, mesh);
}

// By the list of invariants in openxla/shardy docs/sharding_representation.md and its attributes'
// documentation (TensorShardingAttr, SubAxisInfoAttr).
TEST_CASE("Shardy's invariants") {
  const Mesh mesh({{"x", 12}, {"y", 2}});
  CHECK_NOTHROW(read_shardy(R"([["x:(1)2"], ["x:(4)3"], ["y", "?"], ["?"]])", mesh));
  CHECK_NOTHROW(read_shardy(R"([["x:(2)6", "x:(1)2"]])", mesh));  // no neighbours in this order
  for (const char* broken : {
           R"([["z"]])",                   // no such axis
           R"([["x:(1)5"]])",              // 5 does not divide 12
           R"([["x:(8)2"]])",              // beyond the axis
           R"([["x:(2)1"]])",              // one device
           R"([["x:(1)12"]])",             // is x
           R"([["x"], ["x:(1)2"]])",       // overlap
           R"([["y", "y"]])",              // twice
           R"([["x:(1)2", "x:(2)3"]])",    // is x:(1)6
           R"([["x:(1)2"], ["x:(3)2"]])",  // no factoring of 12 has both
       }) {
    INFO(broken);
    CHECK_THROWS_AS(read_shardy(broken, mesh), RuleError);
  }
  const Sharding sharding = read_shardy(R"([["x:(1)2"]])", mesh);
  const auto check_replicated = [&](const char* text) {
    const Json json = parse_json(text, "test");
    check_replicated_axes({json, place}, sharding, mesh);
  };
  CHECK_NOTHROW(check_replicated(R"(["x:(2)6", "y"])"));
  CHECK_THROWS_AS(check_replicated(R"(["y", "x:(2)6"])"), RuleError);  // order of the mesh
  CHECK_THROWS_AS(check_replicated(R"(["x"])"), RuleError);            // overlaps x:(1)2
}

}  // namespace
}  // namespace shardsim::named_sharding_test
