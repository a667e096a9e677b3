// A mesh: devices along named axes, as jax.sharding.Mesh and torch's DeviceMesh.
//
//   Mesh mesh({{"data", 2}, {"model", 4}});       8 devices; the last axis varies fastest
//   mesh.groups({axis "model"})  -> {0 1 2 3} {4 5 6 7}
//   mesh.groups({axis "data"})   -> {0 4} {1 5} {2 6} {3 7}
//
// An AxisRef is a whole axis or a part of one. An axis of size 8 seen as 2 x 4 (major x minor) has
// the sub-axes x:(1)2 (major) and x:(2)4 (minor): `pre_size` is the product of the sizes more major
// than the part. This is Shardy's notation (docs/sharding_representation.md of openxla/shardy).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardsim {

struct MeshAxis {
  std::string name;
  std::int64_t size = 1;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

struct AxisRef {
  int axis = 0;               // index into Mesh::axes()
  std::int64_t pre_size = 1;  // 1 for a whole axis and for the most major part
  std::int64_t size = 1;
  friend auto operator<=>(const AxisRef&, const AxisRef&) = default;
};

class Mesh {
 public:
  Mesh() = default;
  // Axis names are unique and sizes positive (asserted: readers have checked).
  explicit Mesh(std::vector<MeshAxis> axes);

  [[nodiscard]] const std::vector<MeshAxis>& axes() const { return axes_; }
  [[nodiscard]] std::int64_t devices() const { return devices_; }
  [[nodiscard]] std::optional<int> find(std::string_view name) const;
  [[nodiscard]] AxisRef whole(int axis) const;
  [[nodiscard]] bool is_whole(const AxisRef& part) const;

  // "model", or "model:(1)2" for a part.
  [[nodiscard]] std::string name_of(const AxisRef& part) const;
  // The inverse of name_of; nothing for an unknown axis and for a part that does not divide it.
  [[nodiscard]] std::optional<AxisRef> parse(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> names_of(const std::vector<AxisRef>& parts) const;
  [[nodiscard]] static std::int64_t size_of(const std::vector<AxisRef>& parts);

  // The groups that one collective over `parts` runs in: each lists its devices with the first of
  // `parts` most major; groups are ordered by their first device. Cost: O(devices).
  [[nodiscard]] std::vector<std::vector<std::int64_t>> groups(
      const std::vector<AxisRef>& parts) const;
  // Only the group of device 0; by symmetry of the mesh every other is a translation of it.
  [[nodiscard]] std::vector<std::int64_t> first_group(const std::vector<AxisRef>& parts) const;

  // The same groups in HLO's iota form, [groups,group_size]<=[reshape]T(transpose): the device
  // numbers reshaped, transposed, and read off in rows. Cost: O(axes).
  //   groups of "model" above: "[2,4]<=[8]"     of "data": "[4,2]<=[2,4]T(1,0)"
  [[nodiscard]] std::string iota_groups(const std::vector<AxisRef>& parts) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::vector<MeshAxis> axes_;
  std::int64_t devices_ = 1;
};

}  // namespace shardsim
