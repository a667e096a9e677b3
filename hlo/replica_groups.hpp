// Which devices a collective runs over, in the three spellings of HLO.
//
//   {{0,1},{2,3}}                                      lists
//   [4,2]<=[2,4]T(1,0)                                 iota: 0..7 as 2 x 4, transposed, in rows
//                                                      of 2 -> {0,4} {1,5} {2,6} {3,7}
//   mesh['a'=2,'b'=4] {'b'}                            axes of a mesh -> {0,1,2,3} {4,5,6,7}
//   mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'a'}  the same, position i holding device_ids[i]
//
// A part of an axis is 'b':(1)2, as Shardy writes it. What the numbers mean depends on the
// instruction (openxla/xla, GetCollectiveOpGroupMode):
//
//   channel_id  use_global_device_ids   numbers are         of all devices, groups are
//   no          no                      replicas            one per partition
//   yes         cannot be said          partitions          one per replica
//   yes         no                      replicas            with all partitions of each
//   yes         yes                     flattened devices   as they stand
//
// A flattened device is replica * partitions + partition; that is what the answers hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/cursor.hpp"
#include "plan/mesh.hpp"
#include "plan/mesh_groups.hpp"

namespace shardsim {

using DeviceGroups = std::vector<std::vector<std::int64_t>>;

enum class GroupMode : std::uint8_t {
  cross_replica,
  cross_partition,
  cross_replica_and_partition,
  flattened
};

struct HloDevices {
  std::int64_t replicas = 1;
  std::int64_t partitions = 1;
  [[nodiscard]] std::int64_t count() const { return replicas * partitions; }
};

// The groups as written. Empty text and "{}" give no group, which stands for one of all.
// Throws InputError: no such notation, numbers that do not fit, more than 2^24 devices.
[[nodiscard]] DeviceGroups parse_replica_groups(std::string_view text, const HloSource& source);
// The same as flattened devices. Throws InputError for a device that the module does not have.
[[nodiscard]] DeviceGroups device_groups(std::string_view text, GroupMode mode,
                                         const HloDevices& devices, const HloSource& source);

using DevicePairs = std::vector<std::pair<std::int64_t, std::int64_t>>;
// "{{0,1},{1,2}}" likewise.
[[nodiscard]] DevicePairs device_pairs(std::string_view text, GroupMode mode,
                                       const HloDevices& devices, const HloSource& source);

}  // namespace shardsim
