// Expectations are rows that libtpu 0.0.51 compiled (tests/golden/tpu_compiler) or follow from the
// definitions in sim/tpu.
#include <catch2/catch.hpp>

#include "sim/tpu/compiler_choice.hpp"
#include "sim/tpu/span.hpp"

namespace shardsim::tpu {
namespace {

Coordinates at(std::int64_t x, std::int64_t y, std::int64_t z = 0) { return {{x, y, z}, 0}; }

// The planes of x and y, first dimension slowest.
std::vector<Coordinates> plane(std::int64_t x_size, std::int64_t y_size, std::int64_t stride = 1) {
  std::vector<Coordinates> devices;
  for (std::int64_t x = 0; x < x_size; ++x) {
    for (std::int64_t y = 0; y < y_size; ++y) devices.push_back(at(stride * x, y));
  }
  return devices;
}

Slice slice(Generation generation, std::array<std::int64_t, 3> sizes, bool wraps) {
  return {generation, sizes, {wraps, wraps, wraps}, 1};
}

Choice choose_for(const Slice& of, const std::vector<Coordinates>& devices, CollectiveKind kind,
                  std::int64_t bytes) {
  Request request;
  request.kind = kind;
  request.bytes = Bytes(bytes);
  return choose(of, describe(of, devices), request).value();
}

}  // namespace

TEST_CASE("a group is told by its devices") {
  const Slice cube = slice(Generation::v5p, {4, 4, 4}, /*wraps=*/true);
  const Group whole = describe(cube, plane(4, 4));
  CHECK(whole.dimensions == std::vector<std::size_t>{0, 1});
  CHECK(whole.whole);
  CHECK(whole.is_closed_plane());
  const Group half = describe(cube, plane(2, 4));
  CHECK(half.box);
  CHECK_FALSE(half.whole_dimensions);
  const Group diagonal = describe(cube, {at(0, 0), at(1, 1)});
  CHECK_FALSE(diagonal.box);
  CHECK_FALSE(diagonal.in_order);
  const Group back = describe(cube, {at(1, 0), at(0, 0)});
  CHECK(back.box);
  CHECK_FALSE(back.in_order);
  Slice cores = cube;
  cores.devices_per_chip = 2;
  CHECK(describe(cores, plane(4, 4)).whole_dimensions);
  CHECK_FALSE(describe(cores, plane(4, 4)).whole);
}

TEST_CASE("a uniform shift: one distance, the shorter way round") {
  const Slice ring = slice(Generation::v5e, {16, 16, 1}, /*wraps=*/true);
  const Slice line = slice(Generation::v5e, {16, 16, 1}, /*wraps=*/false);
  const std::vector<std::pair<Coordinates, Coordinates>> round = {{at(0, 0), at(1, 0)},
                                                                  {at(15, 0), at(0, 0)}};
  CHECK(is_uniform_shift(ring, round));
  CHECK_FALSE(is_uniform_shift(line, round));
  CHECK_FALSE(is_uniform_shift(ring, {{at(0, 0), at(1, 1)}}));
}

// v5p:4x4x4 {"wrap": [1, 1, 1]}|xy all-reduce of 64 MiB: 4 colors, 2 phases, 629146 cycles.
TEST_CASE("a whole plane is reduced in four colors") {
  const Slice cube = slice(Generation::v5p, {4, 4, 4}, /*wraps=*/true);
  const Choice large = choose_for(cube, plane(4, 4), CollectiveKind::all_reduce, 64 * MiB);
  CHECK(large.describe(CollectiveKind::all_reduce) ==
        "RotatedPincerEmitter UniDirectionNDRingStrategy");
  CHECK(large.colors == 4);
  CHECK(large.phases == 2);
  CHECK(large.scheduler_latency.count() == Approx(2 * 67108864.0 / (4 * 93.35e9)).epsilon(1e-4));
  const Choice small = choose_for(cube, plane(4, 4), CollectiveKind::all_reduce, 64 * KiB);
  CHECK(small.describe(CollectiveKind::all_reduce) == "RotatedPincerShortEmitter StrategyND");
}

// v5e:8x8|xy all-gather of 16 MiB ends as an all-reduce, of 32 MiB does not; half a plane never.
TEST_CASE("a gather over a whole flat slice is summed below 32 MiB") {
  const Slice pod = slice(Generation::v5e, {8, 8, 1}, /*wraps=*/false);
  const auto gather = [&](const std::vector<Coordinates>& devices, std::int64_t bytes) {
    return choose_for(pod, devices, CollectiveKind::all_gather, bytes);
  };
  CHECK(gather(plane(8, 8), 16 * MiB).describe(CollectiveKind::all_gather) ==
        "as all-reduce: RotatedPincerEmitter UniDirectionNDRingStrategy");
  const Choice large = gather(plane(8, 8), 32 * MiB);
  CHECK(large.describe(CollectiveKind::all_gather) == "1DAllGatherNonMajorDimImbalanced");
  CHECK(large.asynchronous);
  CHECK(gather(plane(4, 8), 16 * MiB).instruction == Instruction::all_gather);
}

TEST_CASE("limited routing refuses irregular groups, and permutes them synchronously") {
  const Slice pod = slice(Generation::v5e, {8, 8, 1}, /*wraps=*/false);
  Request request;
  CHECK_FALSE(choose(pod, describe(pod, {at(0, 0), at(3, 1), at(2, 5)}), request));
  request.kind = CollectiveKind::collective_permute;
  request.bytes = Bytes(4096);
  const Choice choice = choose(pod, describe(pod, plane(8, 1)), request).value();
  CHECK_FALSE(choice.asynchronous);
  CHECK(choice.describe(CollectiveKind::collective_permute) == "synchronous permute");
}

// v5e:16x16|x reduce-scatter of 64 MiB: 6 spans of 22528 granules, 135168 * 512 bytes; of 4 MiB
// one span.
TEST_CASE("spans of a reduce-scatter") {
  const Spans large = cut_into_spans(Generation::v5e, Bytes(64 * MiB), 16, 16);
  CHECK_FALSE(large.even);
  CHECK(large.padded == Bytes(std::int64_t{135168} * 512));
  CHECK(cut_into_spans(Generation::v5e, Bytes(4 * MiB), 16, 16).even);
  CHECK(cut_into_spans(Generation::v5e, Bytes(std::int64_t{1} << 60), 256, 16).padded >=
        Bytes(std::int64_t{1} << 60));
}

}  // namespace shardsim::tpu
