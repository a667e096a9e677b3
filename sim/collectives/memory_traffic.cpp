#include "sim/collectives/memory_traffic.hpp"

namespace shardsim {
namespace {

// By byte.
struct Accesses {
  double out = 0;
  double in = 0;
};

constexpr double nic_accesses = 2;

// An all-reduce scatters one half of its bytes and gathers the other.
Accesses of_bytes_sent(CollectiveKind kind, Accesses gather, Accesses scatter, Accesses message) {
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
      return gather;
    case CollectiveKind::reduce_scatter:
      return scatter;
    case CollectiveKind::all_reduce:
      return {(gather.out + scatter.out) / 2, (gather.in + scatter.in) / 2};
    case CollectiveKind::all_to_all:
    case CollectiveKind::collective_permute:
      break;
  }
  return message;
}

Accesses of_switches(CollectiveKind kind) {
  constexpr double half = 3;
  switch (kind) {
    case CollectiveKind::reduce_scatter:
      return {half, 0};
    case CollectiveKind::all_gather:
      return {0, half};
    default:
      return {half, half};
  }
}

MemoryTraffic times(const Accesses& accesses, double bytes, double nics) {
  return {accesses.out * bytes + nic_accesses * nics, accesses.in * bytes};
}

}  // namespace

MemoryTraffic traffic_of_thread_blocks(CollectiveKind kind, double wire, double nics) {
  return times(of_bytes_sent(kind, {0, 3}, {1, 2}, {1, 3}), wire, nics);
}

MemoryTraffic traffic_of_switches(CollectiveKind kind, double payload, double nics) {
  return times(of_switches(kind), payload, nics);
}

MemoryTraffic traffic_of_dma(CollectiveKind kind, double wire) {
  return times(of_bytes_sent(kind, {1, 1}, {1, 2}, {1, 1}), wire, 0);
}

}  // namespace shardsim
