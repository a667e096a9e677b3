// Which device sends what to which when an array goes from one mesh and sharding to another.
//
//   8 x 4 elements, source devices 0..3 with dims {{a}, {}} (2 rows each), target devices 4..5 with
//   dims {{}, {b}} (2 columns each): every target device needs 2 x 2 elements of every source
//   device, 8 messages of 4 elements.
//
// A device's shard is a box: in every dimension chunk i of n, rows [i c, (i + 1) c) with
// c = ceil(size / n); the last chunks may be short or empty. What a target device needs of one
// shard of the source is one box as well, so there is at most one message between two devices.
//
// Who sends: the target device itself if it holds the piece (same id; nothing moves), else a holder
// in the target's domain (its node), else any; equal holders take turns. That is what
// jax.device_put does between meshes as far as the bytes go: every target device fetches its own
// shard, replicas are not made out of each other.
//
// Cost: O(messages + devices).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/units.hpp"
#include "sharding/sharding.hpp"

namespace shardsim {

// The devices of a mesh by id; devices[position] with positions row-major.
struct DeviceMesh {
  Mesh mesh;
  std::vector<std::int64_t> devices;
  friend bool operator==(const DeviceMesh&, const DeviceMesh&) = default;
};
// With the ids first, first + 1, ...
[[nodiscard]] DeviceMesh numbered(const Mesh& mesh, std::int64_t first);

// Whether a device is in both.
[[nodiscard]] bool share_devices(const DeviceMesh& a, const DeviceMesh& b);

struct DimRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
  friend bool operator==(const DimRange&, const DimRange&) = default;
};
// What the device at `position` holds, by dimension. `blocks` are 1 and nothing is partial.
[[nodiscard]] std::vector<DimRange> index_ranges(const std::vector<std::int64_t>& shape,
                                                 const Sharding& sharding, const Mesh& mesh,
                                                 std::int64_t position);

struct Message {
  std::int64_t source = 0;  // device ids; the same: the piece stays where it is
  std::int64_t target = 0;
  Bytes bytes{0};
};

struct ShardedArray {
  const DeviceMesh& on;
  const Sharding& sharding;
};

// How many messages `for_each_message` finds: quick, whatever their number.
[[nodiscard]] double count_messages(const std::vector<std::int64_t>& shape,
                                    const ShardedArray& source, const ShardedArray& target);

// Visits by target device in the order of its mesh, then by shard of the source. `domain`: of a
// device id; within one domain the network is fast.
void for_each_message(const std::vector<std::int64_t>& shape, Bytes element,
                      const ShardedArray& source, const ShardedArray& target,
                      const std::function<std::int64_t(std::int64_t device)>& domain,
                      const std::function<void(const Message&)>& visit);

}  // namespace shardsim
