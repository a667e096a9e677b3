// Mesh axes as propagation compares them: by number, whole or in part, and lists of them.
//
//   mesh x=4, y=2      "x" is {0, 1, 4}      "x":(1)2 is {0, 1, 2}      "x":(2)2 is {0, 2, 2}
//
// A part covers what lies between pre_size and pre_size * size of its axis. {0, 1, 2} is a prefix
// of {0, 1, 4}, and {0, 1, 2} followed by {0, 2, 2} is the same as {0, 1, 4}: lists are kept
// merged. Source: openxla/shardy docs/sharding_representation.md, "Axis splitting and sub-axes".
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace shardsim::spmd {

struct Axis {
  int index = 0;  // in the mesh
  std::int64_t pre_size = 1;
  std::int64_t size = 1;

  [[nodiscard]] std::int64_t end() const { return pre_size * size; }
  friend bool operator==(const Axis&, const Axis&) = default;
};

using Axes = std::vector<Axis>;  // major to minor

[[nodiscard]] bool overlap(const Axis& a, const Axis& b);
// `outer` covers all that `inner` does.
[[nodiscard]] bool contains(const Axis& outer, const Axis& inner);
// Both begin at the same place of one axis, and `prefix` is not longer. Equal parts are prefixes.
[[nodiscard]] bool is_prefix(const Axis& prefix, const Axis& axis);
// The largest prefix of `axis` that shares nothing with `other`; nothing when they begin together.
[[nodiscard]] std::optional<Axis> prefix_without(const Axis& axis, const Axis& other);
[[nodiscard]] std::optional<Axis> prefix_without(const Axis& axis, const Axes& others);

// Appends, or lengthens the last entry when `axis` continues it.
void append(Axes& axes, const Axis& axis);
// The product of the sizes.
[[nodiscard]] std::int64_t total_size(const Axes& axes);

// Of lists: `prefix` ends within or at the end of `axes` and agrees with it so far.
[[nodiscard]] bool is_prefix(const Axes& prefix, const Axes& axes);
[[nodiscard]] bool is_strict_prefix(const Axes& prefix, const Axes& axes);

}  // namespace shardsim::spmd
