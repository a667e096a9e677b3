#include "sim/collectives/bus_bandwidth.hpp"

#include <cassert>

namespace shardsim {

double bus_bandwidth_factor(CollectiveKind kind, std::int64_t group_size) {
  assert(group_size >= 1);
  const double n = static_cast<double>(group_size);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return (n - 1) / n;
    case CollectiveKind::collective_permute:
    case CollectiveKind::broadcast:
      return 1;
  }
  return 1;
}

Bandwidth algorithm_bandwidth(Bytes payload, Seconds time) {
  return Bandwidth(static_cast<double>(payload.count()) / time.count());
}

Bandwidth bus_bandwidth(CollectiveKind kind, std::int64_t group_size, Bytes payload, Seconds time) {
  return algorithm_bandwidth(payload, time) * bus_bandwidth_factor(kind, group_size);
}

}  // namespace shardsim
