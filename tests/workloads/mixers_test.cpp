// FLOPs of parts of layers that are written once, against the formulas that their headers derive.
#include "workloads/layers/mixers.hpp"

#include <catch2/catch.hpp>

#include <cstdint>

#include "workloads/layers/count_sketch.hpp"
#include "workloads/layers/hyper_connections.hpp"

using namespace shardsim;
using namespace shardsim::models;

namespace {

struct MixerStep {
  std::int64_t batch, tokens, hidden;
};

std::int64_t forward_flops(const Mixer& mixer, const MixerStep& step) {
  Eager e({.place = {"config.json", ""}});
  Context context;
  context.batch = step.batch;
  context.sequence = step.tokens;
  e.open_layer("layers.0", "mixer");
  const Value x = e.make({step.batch, step.tokens, step.hidden}, DType::bf16, /*grad=*/true);
  const Value y = run(e, mixer, x, context);
  CHECK(y.shape == x.shape);
  e.close_layer();
  std::int64_t sum = 0;
  for (const auto& [op, flops] : e.forward_flops()) sum += flops;
  return sum;
}

}  // namespace

TEST_CASE("Windows in chunks cost their chunks' products") {
  const std::int64_t b = 2, t = 64, h = 32, n = 4, d = 8, w = 8;
  const Mixer mixer{WindowedAttention{.heads = n, .head_dim = d, .window = 2 * w}};
  const std::int64_t projections = 4 * 2 * b * t * h * h;
  const std::int64_t scores = 2 * b * n * (t / w - 1) * (2 * w) * (2 * w) * d;
  const std::int64_t context = 2 * b * n * t * 3 * w * d;
  CHECK(forward_flops(mixer, {b, t, h}) == projections + scores + context);
  CHECK_THROWS_WITH(forward_flops(mixer, {b, t + 1, h}),
                    Catch::Contains("a sequence that is no multiple of the window, 16"));
}

TEST_CASE("Blocks cost their neighbours, the ends and what is picked at random") {
  const std::int64_t b = 2, h = 32, n = 4, d = 8, block = 4, random = 2, blocks = 12;
  const std::int64_t t = blocks * block;
  const Mixer mixer{BlockAttention{.heads = n, .head_dim = d, .block = block, .random = random}};
  const std::int64_t projections = 4 * 2 * b * t * h * h;
  const std::int64_t seen = 2 * blocks + 2 * (4 + random) + (blocks - 4) * (5 + random);
  CHECK(forward_flops(mixer, {b, t, h}) == projections + b * n * 4 * d * block * block * seen);
  // Of no more than 5 + 2 * 2 blocks all pairs.
  const std::int64_t few = 9 * block;
  CHECK(forward_flops(mixer, {b, few, h}) == 4 * 2 * b * few * h * h + b * n * 4 * d * few * few);
}

TEST_CASE("Attention beside a convolution of values costs all pairs and the taps") {
  const std::int64_t b = 2, t = 16, h = 32, n = 4, d = 8, taps = 5;
  const Mixer mixer{FilteredAttention{.heads = n, .head_dim = d, .taps = taps}};
  const std::int64_t projections = 4 * 2 * b * t * h * h;
  CHECK(forward_flops(mixer, {b, t, h}) ==
        projections + 4 * b * n * t * t * d + 2 * b * t * h * taps);
}

TEST_CASE("Lightning attention is linear in the tokens") {
  const std::int64_t b = 1, h = 32, n = 4, d = 8, c = 16;
  const Mixer mixer{LightningAttention{.heads = n, .head_dim = d, .block = c}};
  for (const std::int64_t t : {16, 64, 128}) {
    const std::int64_t projections = 5 * 2 * b * t * h * n * d;
    CHECK(forward_flops(mixer, {b, t, h}) == projections + 4 * b * n * t * d * (c + d));
  }
}

TEST_CASE("Compressed attention costs its projections, and keys and entries of all queries") {
  const std::int64_t b = 2, t = 64, h = 32, n = 8, d = 16, r = 12, g = 4, o = 10, m = 16;
  CompressedAttention attention{.heads = n,
                                .head_dim = d,
                                .q_rank = r,
                                .rotary_dims = 8,
                                .window = 8,
                                .groups = g,
                                .out_rank = o};
  const std::int64_t projections = 2 * b * t * (h * r + r * n * d + h * d + n * d * o + g * o * h);
  CHECK(forward_flops(Mixer{attention}, {b, t, h}) == projections + 4 * b * n * d * t * t);
  attention.compressor = Compressor{.tokens = m};
  const std::int64_t entries = projections + 2 * b * t * 2 * h * d;
  CHECK(forward_flops(Mixer{attention}, {b, t, h}) == entries + 4 * b * n * d * t * (t + t / m));
  // Overlapping entries have twice the products, their index its own, and scores of all of them.
  const std::int64_t heads = 3, di = 8;
  attention.compressor->index = EntryIndex{.heads = heads, .head_dim = di, .chosen = 2};
  const std::int64_t index =
      2 * b * t * (4 * h * di + r * heads * di + h * heads + heads * di * (t / m));
  CHECK(forward_flops(Mixer{attention}, {b, t, h}) ==
        projections + 2 * b * t * 4 * h * d + index + 4 * b * n * d * t * (t + t / m));
}

TEST_CASE("RWKV's branches cost their matrices") {
  const std::int64_t b = 2, t = 48, h = 32, w = 24, f = 80;
  CHECK(forward_flops(Mixer{RwkvTimeMix{w}}, {b, t, h}) == 2 * b * t * 4 * h * w);
  CHECK(forward_flops(Mixer{RwkvChannelMix{f}}, {b, t, h}) == 2 * b * t * (2 * h * f + h * h));
}

// Of n streams: maps of 2n + n^2 numbers, and streams mixed by n^2 of them; of independent ones
// maps of 2n alone.
TEST_CASE("Hyper-connections cost maps of all streams, and their mixing") {
  const std::int64_t b = 2, t = 16, h = 32, n = 4;
  for (const bool independent : {false, true}) {
    Eager e({.place = {"config.json", ""}});
    Context context;
    context.batch = b;
    context.sequence = t;
    const HyperConnections hyper{.streams = n, .balancings = 3, .independent = independent};
    CountSketch s(e, context);
    const Node streams =
        s.enter(e.make({b, t, n, h}, DType::bf16, /*grad=*/true), stream_axes(s, hyper, h));
    const HyperMaps maps = read_streams(s, hyper, "hc", streams);
    CHECK(s.value(maps.read).shape == Shape{b, t, h});
    CHECK(s.value(write_streams(s, hyper, maps, maps.read)).shape == Shape{b, t, n, h});
    std::int64_t sum = 0;
    for (const auto& [op, flops] : e.forward_flops()) sum += flops;
    const std::int64_t numbers = 2 * n + (independent ? 0 : n * n);
    const std::int64_t mixing = independent ? 0 : 2 * b * t * n * n * h;
    CHECK(sum == 2 * b * t * n * h * numbers + mixing);
  }
}

TEST_CASE("Neighbours, and sums of blocks beside them") {
  const std::int64_t b = 2, t = 64, h = 32, n = 4, d = 8, radius = 7;
  const LocalAttention near{.heads = n, .head_dim = d, .radius = radius, .buckets = 8};
  const std::int64_t projections = 4 * 2 * b * t * h * n * d;
  CHECK(forward_flops(Mixer{near}, {b, t, h}) ==
        projections + 4 * b * n * d * t * 3 * (radius + 1));
  LocalAttention far = near;
  far.global_block = 16;
  const std::int64_t sums = t / far.global_block;
  CHECK(forward_flops(Mixer{far}, {b, t, h}) ==
        projections + 4 * b * n * d * t * (3 * (radius + 1) + sums) + 4 * b * sums * h * n * d +
            2 * b * t * sums * h);
}

TEST_CASE("A mask made of values costs its product and the kernel's scores") {
  const std::int64_t b = 2, t = 16, h = 32, n = 4, kv = 2, d = 8;
  DynamicMaskAttention attention{.heads = n, .kv_heads = kv, .head_dim = d, .kept = 4};
  attention.rotary.dims = d;
  attention.norm = {NormKind::rms, ""};
  const std::int64_t projections = 2 * b * t * h * (2 * n * d + 2 * kv * d);
  const std::int64_t mask = 2 * b * t * kv * d * kv;
  const std::int64_t scores = 4 * b * n * t * t * d;
  CHECK(forward_flops(Mixer{attention}, {b, t, h}) == projections + mask + scores);
}

TEST_CASE("Experts that are rows of tables cost two products of a token's rows") {
  const std::int64_t b = 2, t = 16, h = 32, width = 24, keys = 5, chosen = 3;
  const Mixer mixer{
      RetrievedExperts{.width = width, .experts = 27, .keys = keys, .per_token = chosen}};
  const std::int64_t dense = 3 * 2 * b * t * h * width;
  const std::int64_t router = 2 * b * t * h * 2 * keys;
  CHECK(forward_flops(mixer, {b, t, h}) == dense + router + 2 * 2 * b * t * chosen * h);
}
