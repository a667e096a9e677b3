#include "strategies/layout/projection.hpp"

#include <catch2/catch.hpp>

namespace shardsim::projection_test {

namespace {

// Llama-3.1-8B's attention: 8 key/value heads, 4 query heads each, 128 wide.
const std::vector<Label> labels = {{"kv_heads", 8},  {"group", 4}, {"head_dim", 128},
                                   {"vocab", 50257}, {"qkv", 3},   {"heads", 12}};
constexpr LabelId kv_heads = 0, group = 1, head_dim = 2, vocab = 3, qkv = 4, heads = 5;
const Dim q_rows = {kv_heads, group, head_dim};

Sharding on(std::vector<AxisRef> axes, std::int64_t blocks = 1) {
  return {{{std::move(axes), blocks}}, {}};
}
AxisRef axis(std::int64_t size) { return {0, 1, size}; }

}  // namespace

TEST_CASE("An axis that fits the major factor falls on it") {
  CHECK(project(on({axis(8)}), {q_rows}, labels) == FactorAxes{{kv_heads, {axis(8)}}});
  CHECK(project(on({axis(4)}), {q_rows}, labels) == FactorAxes{{kv_heads, {axis(4)}}});
}

TEST_CASE("A larger axis is split: 16 devices over 8 key/value heads") {
  // Shard r of 16 holds rows [256 r, 256 (r+1)): head r / 2, half (r mod 2) of its group.
  const FactorAxes expected{{kv_heads, {{0, 1, 8}}}, {group, {{0, 8, 2}}}};
  CHECK(project(on({axis(16)}), {q_rows}, labels) == expected);
}

TEST_CASE("What cuts across a factor cannot be projected, but a single factor is padded") {
  CHECK(project(on({axis(3)}), {q_rows}, labels).empty());
  CHECK(project(on({axis(8)}), {{vocab}}, labels) == FactorAxes{{vocab, {axis(8)}}});
}

TEST_CASE("Fused QKV: a contiguous split cuts across q, k and v; blocks do not") {
  CHECK(project(on({axis(4)}), {{qkv, heads}}, labels).empty());
  CHECK(project(on({axis(4)}, 3), {{qkv, heads}}, labels) == FactorAxes{{heads, {axis(4)}}});
}

TEST_CASE("sharding_of is the inverse where a dimension can express the factors") {
  for (const std::int64_t size : {2, 4, 8, 16, 32, 64}) {
    const Sharding sharding = on({axis(size)});
    CHECK(sharding_of({q_rows}, project(sharding, {q_rows}, labels), labels) == sharding);
  }
  CHECK(sharding_of({{qkv, heads}}, {{heads, {axis(4)}}}, labels) == on({axis(4)}, 3));
  // A minor factor behind a half-split major one has no contiguous or blocked form: left out.
  CHECK(sharding_of({q_rows}, {{kv_heads, {{0, 1, 4}}}, {group, {{1, 1, 2}}}}, labels) ==
        on({{0, 1, 4}}));
}

}  // namespace shardsim::projection_test
