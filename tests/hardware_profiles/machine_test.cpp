#include "hardware_profiles/machine.hpp"

#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "hardware_profiles/profile_io.hpp"

using namespace shardsim;  // NOLINT(google-build-using-namespace)

namespace {

Machine machine_of(const std::string& name, std::int64_t devices,
                   const std::optional<std::string>& topology = std::nullopt) {
  return make_machine(load_profile(name, {}), devices, topology, {});
}

std::string slice_of(const std::string& name, std::int64_t devices) {
  return shape_text(machine_of(name, devices).torus.value().sizes);
}

using Wraps = std::vector<bool>;

}  // namespace

TEST_CASE("the first milestone's machines are shipped, sorted by name") {
  CHECK(shipped_profiles() == std::vector<std::string>{"dgx-a100", "dgx-h100", "tpu-v2", "tpu-v3",
                                                       "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e",
                                                       "tpu7x"});
}

TEST_CASE("devices fill the nodes of a cluster; one node may be used in part") {
  for (std::int64_t devices = 1; devices <= 8; ++devices) {
    CHECK(machine_of("dgx-h100", devices).nodes == 1);
  }
  CHECK(machine_of("dgx-h100", 16).nodes == 2);
  CHECK(machine_of("dgx-a100", 24).nodes == 3);
  CHECK(machine_of("dgx-h100", 16384).nodes == 2048);
  CHECK(machine_of("dgx-h100", 16).devices == 16);
  CHECK_FALSE(machine_of("dgx-h100", 16).torus.has_value());
}

// The 2-D slice shapes of https://docs.cloud.google.com/tpu/docs/v5e.
TEST_CASE("v5e has one slice for every legal count") {
  const std::vector<std::pair<std::int64_t, std::string>> table{
      {1, "1x1"},  {4, "2x2"},  {8, "2x4"},    {16, "4x4"},
      {32, "4x8"}, {64, "8x8"}, {128, "8x16"}, {256, "16x16"}};
  for (const auto& [devices, shape] : table) CHECK(slice_of("tpu-v5e", devices) == shape);
}

// The single-slice shapes of https://docs.cloud.google.com/tpu/docs/v5p; 2x2x4 is what GKE calls
// the slice of 16 chips. The full pod is 16 x 20 x 28 = 8960.
TEST_CASE("v5p takes the most cubic slice") {
  const std::vector<std::pair<std::int64_t, std::string>> table{
      {4, "2x2x1"},       {8, "2x2x2"},      {16, "2x2x4"},      {32, "2x4x4"},
      {64, "4x4x4"},      {128, "4x4x8"},    {256, "4x8x8"},     {512, "8x8x8"},
      {1024, "8x8x16"},   {2048, "8x16x16"}, {4096, "16x16x16"}, {6144, "16x16x24"},
      {8960, "16x20x28"}, {192, "4x4x12"},   {768, "8x8x12"}};
  for (const auto& [devices, shape] : table) CHECK(slice_of("tpu-v5p", devices) == shape);
}

TEST_CASE("a topology picks among slices of the same size") {
  CHECK(machine_of("tpu-v5p", 256, "4x4x16").torus->sizes == std::vector<std::int64_t>{4, 4, 16});
  CHECK(machine_of("tpu-v5e", 8, "2x4").torus->sizes == std::vector<std::int64_t>{2, 4});
  CHECK(machine_of("tpu-v5p", 64).nodes == 1);
}

// MaxText's accelerator_to_spec_map.py: the wrap of each topology.
TEST_CASE("dimensions close to rings where the shape allows it") {
  CHECK(machine_of("tpu-v5e", 16).torus->wraps == Wraps{false, false});
  CHECK(machine_of("tpu-v5e", 64).torus->wraps == Wraps{false, false});
  CHECK(machine_of("tpu-v5e", 128).torus->wraps == Wraps{false, true});
  CHECK(machine_of("tpu-v5e", 256).torus->wraps == Wraps{true, true});
  const Wraps none{false, false, false};
  const Wraps all{true, true, true};
  for (const std::int64_t devices : {4, 8, 16, 32}) {
    CHECK(machine_of("tpu-v5p", devices).torus->wraps == none);
  }
  for (const std::int64_t devices : {64, 128, 192, 2048, 8960}) {
    CHECK(machine_of("tpu-v5p", devices).torus->wraps == all);
  }
}

// mesh_assignment.hpp's rules by hand: tensor=4 takes x (no pair multiplies to 4), fsdp=4 takes y,
// data=8 takes z.
TEST_CASE("axes of whole dimensions have stride 1") {
  const TorusShape torus = machine_of("tpu-v5p", 128).torus.value();
  const auto spans = assign_mesh(torus, {8, 4, 4}, {});
  CHECK(spans == std::vector<std::vector<TorusSpan>>{{{2, 8, 1}}, {{1, 4, 1}}, {{0, 4, 1}}});
}

// 4 is a quarter of x, then 64 takes y whole and the other quarters of x, 4 devices apart.
TEST_CASE("the last axis of a shared dimension has the neighbouring devices") {
  const TorusShape torus = machine_of("tpu-v5e", 256).torus.value();
  const auto spans = assign_mesh(torus, {64, 4}, {});
  CHECK(spans == std::vector<std::vector<TorusSpan>>{{{0, 4, 4}, {1, 16, 1}}, {{0, 4, 1}}});
}

TEST_CASE("axes of size 1 walk nowhere") {
  const TorusShape torus = machine_of("tpu-v5e", 1).torus.value();
  CHECK(assign_mesh(torus, {1, 1}, {}) == std::vector<std::vector<TorusSpan>>{{}, {}});
  CHECK(assign_mesh(torus, {}, {}).empty());
}

// A law: the spans of all axes together number every device of the torus exactly once.
TEST_CASE("an assignment is a bijection") {
  const std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>> meshes{
      {64, {2, 2, 2, 8}}, {64, {2, 1, 32}},  {256, {16, 16}},
      {192, {6, 32}},     {192, {2, 3, 32}}, {32, {8, 4}}};
  for (const auto& [devices, logical] : meshes) {
    const TorusShape torus = machine_of("tpu-v5p", devices).torus.value();
    const auto spans = assign_mesh(torus, logical, {});
    std::set<std::vector<std::int64_t>> positions{{0, 0, 0}};
    for (const auto& axis : spans) {
      for (const TorusSpan& span : axis) {
        std::set<std::vector<std::int64_t>> next;
        for (std::vector<std::int64_t> position : positions) {
          for (std::int64_t i = 0; i < span.size; ++i) {
            next.insert(position);
            position[static_cast<std::size_t>(span.dimension)] += span.stride;
          }
        }
        positions = next;
      }
    }
    CHECK(positions.size() == static_cast<std::size_t>(devices));
    for (const auto& position : positions) {
      for (std::size_t d = 0; d < 3; ++d) CHECK(position[d] < torus.sizes[d]);
    }
  }
}
