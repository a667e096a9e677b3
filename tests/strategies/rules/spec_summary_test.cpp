#include "strategies/specs/spec_summary.hpp"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "sharding/partition_spec.hpp"
#include "strategies/rules/submesh_index.hpp"
#include "tests/strategies/rules/arbitrary_sharding.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

ParameterLeaf leaf_of(std::vector<std::int64_t> shape, DType dtype = DType::f32) {
  ParameterLeaf leaf;
  leaf.name = "w";
  leaf.shape = std::move(shape);
  leaf.dtype = dtype;
  return leaf;
}

SpecSummary summary_of(const std::vector<ParameterLeaf>& leaves,
                       const std::vector<PartitionSpec>& specs, const Mesh& mesh) {
  std::vector<Sharding> shardings;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    shardings.push_back(to_sharding(specs[i], leaves[i].shape.size(), mesh, {}));
  }
  return summarize_specs({"test", leaves}, shardings, mesh);
}

// Bytes that every device holds, counted row by row: chunk i of n has the rows from i * ceil(N/n).
std::vector<std::int64_t> held_bytes(const ParameterLeaf& leaf, const PartitionSpec& spec,
                                     const Mesh& mesh) {
  std::vector<std::int64_t> held(static_cast<std::size_t>(mesh.devices()),
                                 size_of(leaf.dtype).count());
  for (std::size_t d = 0; d < leaf.shape.size(); ++d) {
    const std::int64_t shards = axes_size(spec[d].axes, mesh, {});
    const std::int64_t full = (leaf.shape[d] + shards - 1) / shards;
    const std::vector<std::int64_t> chunk = submesh_device_index(spec[d].axes, mesh, {});
    for (std::size_t device = 0; device < held.size(); ++device) {
      std::int64_t rows = 0;
      for (std::int64_t row = chunk[device] * full; row < (chunk[device] + 1) * full; ++row) {
        if (row < leaf.shape[d]) ++rows;
      }
      held[device] *= rows;
    }
  }
  return held;
}

}  // namespace

// The example of the header, worked out there.
TEST_CASE("Uneven shards: the first device holds the most, the last the least") {
  const SpecSummary summary = summary_of({leaf_of({10, 3}), leaf_of({3})}, {{{"fsdp"}, {"tp"}}, {}},
                                         Mesh({{"fsdp", 4}, {"tp", 2}}));
  CHECK(summary.bytes == Bytes(132));
  CHECK(summary.max_bytes_per_device == Bytes(36));
  CHECK(summary.min_bytes_per_device == Bytes(16));
  CHECK(summary.mean_bytes_per_device == Approx(27));
  CHECK(summary.balance() == Approx(0.75));
  CHECK(summary.replication_overhead() == Approx(36.0 * 8 / 132));
  CHECK(summary.indivisible == std::vector<std::size_t>{0});
  CHECK(summary.sharded_parameters == 30);
  CHECK(summary.replicated_parameters == 3);

  // w: 8 shards of 24 B make 192 B, of which a device receives 7/8. b: 2 * 7/8 * 12 B.
  const Mesh mesh({{"fsdp", 4}, {"tp", 2}});
  const AxisList both = {mesh.whole(0), mesh.whole(1)};
  CHECK(summary.communication ==
        std::vector<SpecCollective>{
            {CollectiveKind::all_gather, both, 8, 1, Bytes(192), Bytes(168)},
            {CollectiveKind::reduce_scatter, both, 8, 1, Bytes(192), Bytes(168)},
            {CollectiveKind::all_reduce, both, 8, 1, Bytes(12), Bytes(21)},
        });
}

// The example of the header: half of w's 256 B is gathered by each device, of which it receives
// 3/4; b[8], 32 B whole everywhere, is summed over fsdp alone: 2 * 3/4 of it. Over tp nothing is
// sent.
TEST_CASE("Axes that are no data axes are not gathered over") {
  const Mesh mesh({{"fsdp", 4}, {"tp", 2}});
  const ParameterTree tree{"test", {leaf_of({8, 8}), leaf_of({8})}};
  const std::vector<Sharding> shardings = {to_sharding({{"fsdp"}, {"tp"}}, 2, mesh, {}),
                                           to_sharding({}, 1, mesh, {})};
  const AxisList fsdp = {mesh.whole(0)};
  const SpecSummary summary = summarize_specs(tree, shardings, mesh, fsdp);
  CHECK(summary.communication ==
        std::vector<SpecCollective>{
            {CollectiveKind::all_gather, fsdp, 4, 1, Bytes(128), Bytes(96)},
            {CollectiveKind::reduce_scatter, fsdp, 4, 1, Bytes(128), Bytes(96)},
            {CollectiveKind::all_reduce, fsdp, 4, 1, Bytes(32), Bytes(48)},
        });
  CHECK(summary.kept_split == AxisList{mesh.whole(1)});
  CHECK(summary.kept_split_leaves == 1);
}

// HSDP: shards of 32/4 = 8 B are gathered over fsdp and reduced once more over the replicas.
TEST_CASE("Gradients of a split tensor are all-reduced over the axes that replicate it") {
  const Mesh mesh({{"dp", 2}, {"one", 1}, {"fsdp", 4}});
  const SpecSummary summary =
      summary_of({leaf_of({8}), leaf_of({8}, DType::i32)}, {{{"fsdp"}}, {{"one"}}}, mesh);
  CHECK(summary.communication ==
        std::vector<SpecCollective>{
            {CollectiveKind::all_gather, {mesh.whole(2)}, 4, 1, Bytes(32), Bytes(24)},
            {CollectiveKind::reduce_scatter, {mesh.whole(2)}, 4, 1, Bytes(32), Bytes(24)},
            {CollectiveKind::all_reduce, {mesh.whole(0)}, 2, 1, Bytes(8), Bytes(8)},
        });
  CHECK(summary.sharded_leaves == 1);  // an axis of one device splits nothing
}

// Fused QKV of 3 blocks of 6 rows over 4 devices: 2 2 2 0 rows of each block.
TEST_CASE("Blocks are split each on its own") {
  const Mesh mesh({{"tp", 4}});
  const Sharding sharding{{{{mesh.whole(0)}, 3}}, {}};
  const SpecSummary summary = summarize_specs({"test", {leaf_of({18})}}, {sharding}, mesh);
  CHECK(summary.max_bytes_per_device == Bytes(24));
  CHECK(summary.min_bytes_per_device == Bytes(0));
  CHECK(summary.mean_bytes_per_device == Approx(18));
  CHECK(summary.indivisible == std::vector<std::size_t>{0});
}

TEST_CASE("No parameters: nothing is out of balance") {
  const SpecSummary summary = summary_of({leaf_of({0, 4})}, {{{"a"}}}, Mesh({{"a", 4}}));
  CHECK(summary.balance() == 1);
  CHECK(summary.replication_overhead() == 1);
  CHECK(summary.communication.empty());
}

TEST_CASE("A tree of more than 2^60 bytes is refused") {
  const std::int64_t size = std::int64_t{1} << 59;
  CHECK_THROWS_AS(summary_of({leaf_of({size})}, {{}}, Mesh({{"a", 4}})), InputError);
}

TEST_CASE("What is left of the mesh when parts of axes are taken out") {
  const Mesh mesh({{"x", 8}, {"y", 3}});
  const AxisRef middle{0, 2, 2};
  CHECK(axes_without({middle}, mesh) == AxisList{{0, 1, 2}, {0, 4, 2}, {1, 1, 3}});
  CHECK(axes_without({{0, 2, 4}, mesh.whole(1)}, mesh) == AxisList{{0, 1, 2}});
  CHECK(axes_without({mesh.whole(1), mesh.whole(0)}, mesh).empty());
}

TEST_CASE("Memory per device agrees with counting every device's rows", "[property]") {
  CHECK(rc::check([] {
    const Mesh mesh = *arbitrary_mesh();
    std::vector<ParameterLeaf> leaves;
    std::vector<PartitionSpec> specs;
    std::vector<std::int64_t> held(static_cast<std::size_t>(mesh.devices()), 0);
    const int count = *rc::gen::inRange(1, 4);
    for (int i = 0; i < count; ++i) {
      leaves.push_back(*arbitrary_leaf());
      specs.push_back(*arbitrary_spec(mesh, leaves.back().shape.size()));
      const std::vector<std::int64_t> bytes = held_bytes(leaves.back(), specs.back(), mesh);
      for (std::size_t device = 0; device < held.size(); ++device) held[device] += bytes[device];
    }
    const SpecSummary summary = summary_of(leaves, specs, mesh);
    RC_ASSERT(summary.max_bytes_per_device.count() == *std::max_element(held.begin(), held.end()));
    RC_ASSERT(summary.min_bytes_per_device.count() == *std::min_element(held.begin(), held.end()));
    double sum = 0;
    for (const std::int64_t bytes : held) sum += static_cast<double>(bytes);
    const double mean = sum / static_cast<double>(mesh.devices());
    RC_ASSERT(std::abs(summary.mean_bytes_per_device - mean) <= 1e-9 * std::max(1.0, mean));
  }));
}
