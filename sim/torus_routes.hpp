// Messages routed over a torus one link at a time: x first, then y, then z, each the shorter way
// round (when both ways are alike, up from even and down from odd coordinates). Exact loads for
// patterns that no axis describes.
//
// Example: a ring of 4 chips without wraparound, each sending to the next and the last to the
// first: the longest route has 3 hops, and every link carries one message.
//
// Cost: O(hops) for a message, O(devices * dimensions) memory.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collective_cost.hpp"

namespace shardsim {

class TorusRoutes {
 public:
  explicit TorusRoutes(const Placement& placement);

  // One message between two positions of the mesh; none when they are the same. Messages of
  // different sizes count by their weight.
  void add(std::int64_t source, std::int64_t target, std::int64_t weight = 1);
  // The number of the chip at a position of the mesh: x + size of x * (y + size of y * z).
  [[nodiscard]] std::int64_t chip(std::int64_t position) const;
  // Its x, y(, z).
  [[nodiscard]] std::vector<std::int64_t> coordinates(std::int64_t position) const;

  [[nodiscard]] std::int64_t busiest() const;  // weight of the messages on the most loaded link
  [[nodiscard]] std::int64_t longest() const { return longest_; }  // hops
  [[nodiscard]] std::vector<int> dimensions() const;               // that carry any message

 private:
  const Mesh& mesh_;
  const std::vector<std::vector<TorusSpan>>& spans_;
  const TorusShape& torus_;
  std::vector<std::int64_t> strides_;   // of the chip number, by dimension
  std::vector<std::int64_t> messages_;  // by chip, dimension, direction
  std::int64_t longest_ = 0;
};

}  // namespace shardsim
