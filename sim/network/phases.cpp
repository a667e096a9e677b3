#include "sim/network/phases.hpp"

namespace shardsim::network {

std::vector<std::int32_t> shift(std::int64_t ranks, std::int64_t by) {
  std::vector<std::int32_t> target;
  target.reserve(static_cast<std::size_t>(ranks));
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    target.push_back(static_cast<std::int32_t>((rank + by) % ranks));
  }
  return target;
}

}  // namespace shardsim::network
