// Messages routed over a torus one link at a time: x first, then y, then z, each the shorter way
// round (when both ways are alike, up from even and down from odd coordinates), then from device to
// device of a chip. Exact loads for patterns that no axis describes. The devices of a chip share
// its links. On a twisted torus the fewest hops are taken, along dimensions that twist first.
//
// Example: a ring of 4 chips without wraparound, each sending to the next and the last to the
// first: the longest route has 3 hops, and every link carries one message.
//
// Cost: O(hops) for a message, O(devices * dimensions) memory.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/placement.hpp"

namespace shardsim {

class TorusRoutes {
 public:
  explicit TorusRoutes(const Placement& placement);

  // One message between two positions of the mesh; none when they are the same. Messages of
  // different sizes count by their weight.
  void add(std::int64_t source, std::int64_t target, std::int64_t weight = 1);
  // The number of the device at a position of the mesh: x + size of x * (y + size of y * z), and
  // that many chips further the next devices of chips.
  [[nodiscard]] std::int64_t device(std::int64_t position) const;
  // Its x, y(, z)(, device of the chip).
  [[nodiscard]] std::vector<std::int64_t> coordinates(std::int64_t position) const;

  [[nodiscard]] std::int64_t chip_hops(std::int64_t source, std::int64_t target) const;
  [[nodiscard]] std::size_t chip_dimensions() const { return chip_dimensions_; }  // x, y(, z)

  [[nodiscard]] std::int64_t busiest() const;  // weight of the messages on the most loaded link
  // Until all links are done with their messages, of so many bytes per weight.
  [[nodiscard]] Seconds transfer_time(double bytes) const;
  // The part of that time in which the busiest link of a dimension is at work, up or down.
  [[nodiscard]] double busy(int dimension, bool up) const;
  [[nodiscard]] std::int64_t longest() const { return longest_; }  // hops
  [[nodiscard]] std::vector<int> dimensions() const;               // that carry any message

 private:
  [[nodiscard]] std::int64_t shorter_way(std::size_t dimension, std::int64_t from,
                                         std::int64_t to) const;
  [[nodiscard]] std::vector<std::int64_t> way(std::vector<std::int64_t> from,
                                              const std::vector<std::int64_t>& to,
                                              unsigned closed) const;
  [[nodiscard]] std::vector<std::int64_t> shortest_way(const std::vector<std::int64_t>& from,
                                                       const std::vector<std::int64_t>& to) const;
  // Seconds for a byte per weight.
  [[nodiscard]] double time_of(std::size_t link) const;
  void load(const std::vector<std::int64_t>& at, std::size_t dimension, bool up,
            std::int64_t weight);
  void advance(std::vector<std::int64_t>& at, std::size_t dimension, std::int64_t step) const;

  const Mesh& mesh_;
  const std::vector<std::vector<TorusSpan>>& spans_;
  const TorusProfile& profile_;
  std::vector<std::int64_t> sizes_;  // device_sizes()
  std::vector<bool> wraps_;          // by dimension as the sizes
  std::int64_t chips_ = 1;
  std::vector<bool> twists_;            // by dimension
  std::size_t chip_dimensions_ = 0;     // the dimensions that are links between chips
  std::vector<std::int64_t> strides_;   // of the device number, by dimension
  std::vector<std::int64_t> messages_;  // by device, dimension, direction; of links between chips
                                        // at their first device
  std::int64_t longest_ = 0;
};

}  // namespace shardsim
