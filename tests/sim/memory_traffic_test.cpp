#include "sim/collectives/memory_traffic.hpp"

#include <catch2/catch.hpp>

namespace shardsim {
namespace {

// memory_traffic.hpp's table.
TEST_CASE("a collective reads and writes memory for every byte on the wire") {
  constexpr double wire = 100;
  constexpr double nics = 10;
  CHECK(traffic_of_thread_blocks(CollectiveKind::all_gather, wire, 0).total() == 300);
  CHECK(traffic_of_thread_blocks(CollectiveKind::reduce_scatter, wire, 0).total() == 300);
  CHECK(traffic_of_thread_blocks(CollectiveKind::all_reduce, wire, 0).total() == 300);
  CHECK(traffic_of_thread_blocks(CollectiveKind::all_to_all, wire, 0).total() == 400);
  CHECK(traffic_of_thread_blocks(CollectiveKind::collective_permute, wire, nics) ==
        MemoryTraffic{100 + 20, 300});
  CHECK(traffic_of_switches(CollectiveKind::all_reduce, wire, 0).total() == 600);
  CHECK(traffic_of_switches(CollectiveKind::all_gather, wire, nics) == MemoryTraffic{20, 300});
  CHECK(traffic_of_dma(CollectiveKind::all_gather, wire).total() == 200);
  CHECK(traffic_of_dma(CollectiveKind::reduce_scatter, wire).total() == 300);
  CHECK(traffic_of_dma(CollectiveKind::all_reduce, wire).total() == 250);
}

}  // namespace
}  // namespace shardsim
