// Factors of nccl-tests doc/PERFORMANCE.md, section "Summary"; of sendrecv, src/sendrecv.cu.
#include "sim/collectives/bus_bandwidth.hpp"

#include <catch2/catch.hpp>

namespace shardsim {
namespace {

constexpr CollectiveKind kinds[] = {
    CollectiveKind::all_gather, CollectiveKind::reduce_scatter,     CollectiveKind::all_reduce,
    CollectiveKind::all_to_all, CollectiveKind::collective_permute, CollectiveKind::broadcast};

TEST_CASE("bus bandwidth factors are those of nccl-tests") {
  CHECK(bus_bandwidth_factor(CollectiveKind::all_reduce, 8) == 2.0 * 7 / 8);
  CHECK(bus_bandwidth_factor(CollectiveKind::all_gather, 8) == 7.0 / 8);
  CHECK(bus_bandwidth_factor(CollectiveKind::reduce_scatter, 16) == 15.0 / 16);
  CHECK(bus_bandwidth_factor(CollectiveKind::all_to_all, 80) == 79.0 / 80);
  CHECK(bus_bandwidth_factor(CollectiveKind::collective_permute, 10) == 1);
  CHECK(bus_bandwidth_factor(CollectiveKind::broadcast, 10) == 1);
}

// The document derives the factor as what each of n links must carry; so do a plan's wire bytes.
TEST_CASE("the factor is what a device sends for a byte of payload") {
  for (const CollectiveKind kind : kinds) {
    for (const std::int64_t devices : {2, 3, 8, 72, 512}) {
      const Bytes payload(devices * MiB);
      const Bytes wire = wire_bytes_per_device(kind, devices, payload);
      CHECK(static_cast<double>(wire.count()) ==
            Approx(bus_bandwidth_factor(kind, devices) * static_cast<double>(payload.count())));
    }
  }
}

// A row that nccl-tests printed (NVIDIA/dgxc-benchmarking nccl/README.md @46e4201, 8 H100):
//   8589934592 ... time 31307 us, algbw 274.38, busbw 480.16
TEST_CASE("a printed row of nccl-tests is worked out again") {
  const Bytes size(8 * GiB);
  const Seconds time(31307e-6);
  CHECK(algorithm_bandwidth(size, time).count() == Approx(274.38e9).epsilon(2e-5));
  CHECK(bus_bandwidth(CollectiveKind::all_reduce, 8, size, time).count() ==
        Approx(480.16e9).epsilon(2e-5));
}

}  // namespace
}  // namespace shardsim
