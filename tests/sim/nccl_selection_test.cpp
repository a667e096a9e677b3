// What NCCL chooses: times by hand, and laws.
#include "sim/nccl/selection.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "nccl_machines.hpp"

namespace shardsim::nccl {
namespace {

using shardsim::testing::h100_communicator;

Request all_reduce(std::int64_t bytes) {
  Request request;
  request.operation = Operation::all_reduce;
  request.bytes = Bytes(bytes);
  return request;
}

const Candidate& candidate(const Selection& selection, Algorithm algorithm, Protocol protocol) {
  for (const Candidate& one : selection.candidates) {
    if (one.algorithm == algorithm && one.protocol == protocol) return one;
  }
  FAIL("not a candidate");
  return selection.candidates[0];
}

void holds(bool passed) { CHECK(passed); }

// Communicators of whole H100 nodes, channels laid by hand: no search for each case.
Communicator arbitrary_communicator() {
  Communicator c;
  c.version = *rc::gen::element(Version::v2_28, Version::v2_29, Version::v2_30);
  c.least_compute_capability = *rc::gen::element(70, 80, 90, 100);
  c.most_compute_capability = c.least_compute_capability;
  c.nodes = *rc::gen::inRange<std::int64_t>(1, 40);
  c.most_ranks_per_node = *rc::gen::inRange<std::int64_t>(c.nodes == 1 ? 2 : 1, 9);
  c.ranks = c.nodes * c.most_ranks_per_node;
  c.cpu = *rc::gen::element(Cpu::intel, Cpu::amd, Cpu::mixed_x86, Cpu::arm, Cpu::power);
  c.nvswitch = *rc::gen::arbitrary<bool>();
  c.plain_tree = *rc::gen::arbitrary<bool>();
  for (ChannelGraph* graph : {&c.ring, &c.tree, &c.nvls}) {
    graph->channels = *rc::gen::inRange<std::int64_t>(1, 33);
    graph->intra = Bandwidth(*rc::gen::inRange(1, 91) * 1e9);
    graph->inter = Bandwidth(*rc::gen::inRange(1, 97) * 1e9);
    graph->intra_path = *rc::gen::element(PathType::nvlink, PathType::pcie_host);
    graph->same_channels = *rc::gen::arbitrary<bool>();
  }
  c.nvls.intra_path = PathType::nvlink;  // there is no NVSwitch without
  c.ring_channels = 2 * c.ring.channels;
  return c;
}

Request arbitrary_request() {
  Request request;
  request.operation = static_cast<Operation>(*rc::gen::inRange(0, operations));
  request.bytes = Bytes(*rc::gen::inRange<std::int64_t>(1, 4 * GiB));
  request.fp8 = *rc::gen::arbitrary<bool>();
  return request;
}

}  // namespace

TEST_CASE("a small all-reduce goes by the latency, a large one by the switch") {
  const Communicator c = h100_communicator(4, 1);
  const Selection small = select(c, all_reduce(64 * KiB), {});
  // Tree LL 10.4 us and, at 64 KiB, 0.6 of 331.2 / 3.8 / 2 GB/s; Ring LL 10.2 us and 94 GB/s.
  CHECK(candidate(small, Algorithm::tree, Protocol::ll).time.count() * 1e6 ==
        Approx(10.4 + 65.536 / (0.6 * 331.2 / 3.8 / 2)));
  CHECK(small.choice().algorithm == Algorithm::ring);
  CHECK(small.choice().protocol == Protocol::ll);
  CHECK(small.choice().time.count() * 1e6 == Approx(10.2 + 65.536 / 94));
  // 1 GiB: ring 240 GB/s, NVLS on eight GPUs 476 * 8/14 against a ring's 360 * 8/14.
  const Selection large = select(h100_communicator(8, 1), all_reduce(GiB), {});
  CHECK(large.choice().algorithm == Algorithm::nvls);
  CHECK(large.choice().bandwidth.count() / 1e9 == Approx(8 * 40 * 0.85 * 7 / 8 * 2 * 8 / 14));
}

TEST_CASE("two nodes reduce in their switches and trees between") {
  const Selection selection = select(h100_communicator(16, 2), all_reduce(GiB), {});
  CHECK(selection.choice().algorithm == Algorithm::nvls_tree);
  CHECK(selection.choice().protocol == Protocol::simple);
}

TEST_CASE("a multi-node ring's plateau") {
  Communicator c = h100_communicator(16, 2);
  REQUIRE(c.ring_channels == 16);
  const auto latency = [&](std::int64_t bytes) {
    return candidate(select(c, all_reduce(bytes), {}), Algorithm::ring, Protocol::simple)
               .latency.count() *
           1e6;
  };
  // 64 B for each of 16 * 16 parts: from 16 KiB on.
  CHECK(latency(16 * KiB - 1) == Approx(131.6));
  CHECK(latency(16 * KiB) == Approx(131.6 * 1.4));
  c.least_compute_capability = c.most_compute_capability = 70;
  CHECK(latency(16 * KiB) == Approx(131.6 * 1.9));
}

TEST_CASE("tree factors begin and end where NCCL's do") {
  const Communicator c = h100_communicator(8, 1);
  const auto factor = [&](std::int64_t bytes, Protocol protocol) {
    const Selection selection = select(c, all_reduce(bytes), {});
    const auto table = tuning_table(c, Operation::all_reduce);
    const auto plain = std::find_if(table.begin(), table.end(), [&](const Estimate& estimate) {
      return estimate.algorithm == Algorithm::tree && estimate.protocol == protocol;
    });
    return candidate(selection, Algorithm::tree, protocol).bandwidth.count() /
           plain->bandwidth.count();
  };
  // The table's columns are powers of two from 64 B: index floor(log2(bytes / 64)).
  CHECK(factor(63, Protocol::simple) == Approx(1));            // none
  CHECK(factor(64, Protocol::simple) == Approx(0.9));          // 0
  CHECK(factor(256 * KiB, Protocol::ll) == Approx(0.4));       // 12
  CHECK(factor(MiB - 1, Protocol::ll) == Approx(0.4));         // 13
  CHECK(factor(MiB, Protocol::ll) == Approx(0.5));             // 14
  CHECK(factor(4 * MiB, Protocol::ll128) == Approx(0.8));      // 16
  CHECK(factor(4 * MiB - 1, Protocol::ll128) == Approx(0.6));  // 15
  CHECK(factor(512 * MiB - 1, Protocol::simple) == Approx(0.9));
  CHECK(factor(512 * MiB, Protocol::simple) == Approx(1));
}

TEST_CASE("rings of more than 8 ranks are the last resort for fp8") {
  Request request = all_reduce(GiB);
  request.fp8 = true;
  request.switch_reduces = false;  // so that trees are all there is besides
  const Selection selection = select(h100_communicator(16, 2), request, {});
  CHECK(selection.choice().algorithm == Algorithm::tree);
  const Selection eight = select(h100_communicator(8, 1), request, {});
  CHECK(eight.choice().algorithm == Algorithm::ring);
}

TEST_CASE("a user may force algorithm and protocol") {
  Request request = all_reduce(GiB);
  request.forced.algorithm = Algorithm::tree;
  const Communicator c = h100_communicator(8, 1);
  CHECK(select(c, request, {}).candidates.size() == 3);
  CHECK(select(c, request, {}).choice().algorithm == Algorithm::tree);
  request.forced.protocol = Protocol::ll;
  CHECK(select(c, request, {}).candidates.size() == 1);
}

TEST_CASE("forcing LL128 lifts its conditions") {
  Communicator c = h100_communicator(8, 1);
  c.ring.intra_path = PathType::pcie_host;
  Request request = all_reduce(MiB);
  request.forced = {Algorithm::ring, Protocol::ll128};
  CHECK(select(c, request, {}).choice().protocol == Protocol::ll128);
}

TEST_CASE("forcing what cannot be used says why") {
  const Place place{"experiment.json", "/nccl"};
  Request request = all_reduce(GiB);
  request.forced.algorithm = Algorithm::nvls_tree;
  CHECK_THROWS_WITH(select(h100_communicator(8, 1), request, place),
                    "experiment.json: /nccl: NCCL cannot use NVLSTree for AllReduce on these 8 "
                    "ranks: one node has no tree of nodes");
  request.forced = {Algorithm::nvls, Protocol::ll};
  CHECK_THROWS_WITH(select(h100_communicator(8, 1), request, place),
                    "experiment.json: /nccl: NCCL cannot use NVLS with LL for AllReduce on these 8 "
                    "ranks: NVLS speaks Simple only");
  request.forced = {Algorithm::nvls, {}};
  request.switch_reduces = false;
  CHECK_THROWS_WITH(select(h100_communicator(8, 1), request, place),
                    Catch::Contains("NVSwitch cannot reduce this type"));
}

TEST_CASE("laws of the tuner", "[property]") {
  holds(rc::check("the choice is the fastest, and the first of those", [] {
    const Selection selection = select(arbitrary_communicator(), arbitrary_request(), {});
    for (std::size_t i = 0; i < selection.candidates.size(); ++i) {
      RC_ASSERT(selection.candidates[i].time >= selection.choice().time);
      if (i < selection.chosen) RC_ASSERT(selection.candidates[i].time > selection.choice().time);
    }
  }));
  // Trees alone have factors of size that may rise and make a larger array faster.
  holds(rc::check("but for trees, more bytes take no less time", [] {
    const Communicator c = arbitrary_communicator();
    Request request = arbitrary_request();
    const Selection less = select(c, request, {});
    request.bytes += Bytes(*rc::gen::inRange<std::int64_t>(0, GiB));
    const Selection more = select(c, request, {});
    RC_ASSERT(less.candidates.size() == more.candidates.size());
    for (std::size_t i = 0; i < less.candidates.size(); ++i) {
      const Algorithm algorithm = less.candidates[i].algorithm;
      if (algorithm == Algorithm::tree || algorithm == Algorithm::nvls_tree) continue;
      RC_ASSERT(more.candidates[i].time >= less.candidates[i].time);
    }
  }));
  holds(rc::check("more channels never lower a ring's bandwidth", [] {
    Communicator c = arbitrary_communicator();
    const Operation operation = arbitrary_request().operation;
    const std::vector<Estimate> fewer = tuning_table(c, operation, {Algorithm::ring, {}});
    c.ring.channels += *rc::gen::inRange<std::int64_t>(0, 33);
    const std::vector<Estimate> more = tuning_table(c, operation, {Algorithm::ring, {}});
    RC_ASSERT(fewer.size() == more.size());
    for (std::size_t i = 0; i < fewer.size(); ++i) {
      RC_ASSERT(more[i].bandwidth >= fewer[i].bandwidth);
      RC_ASSERT(more[i].latency == fewer[i].latency);
    }
  }));
  holds(rc::check("forced, a pair takes the time that it has among the others", [] {
    const Communicator c = arbitrary_communicator();
    Request request = arbitrary_request();
    const Selection free = select(c, request, {});
    const std::size_t i = *rc::gen::inRange<std::size_t>(0, free.candidates.size());
    request.forced = {free.candidates[i].algorithm, free.candidates[i].protocol};
    RC_ASSERT(select(c, request, {}).choice().time == free.candidates[i].time);
  }));
  holds(rc::check("everything enabled has a bandwidth and a latency", [] {
    for (const Estimate& estimate :
         tuning_table(arbitrary_communicator(), arbitrary_request().operation)) {
      RC_ASSERT(estimate.bandwidth > Bandwidth(0));
      RC_ASSERT(estimate.latency > Seconds(0));
    }
  }));
}

}  // namespace shardsim::nccl
