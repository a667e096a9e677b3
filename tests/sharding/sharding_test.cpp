#include "sharding/sharding.hpp"

#include <catch2/catch.hpp>

namespace shardsim::sharding_test {

namespace {

const Mesh mesh({{"data", 2}, {"fsdp", 8}, {"model", 16}});
const AxisRef fsdp = mesh.whole(1);
const AxisRef model = mesh.whole(2);

}  // namespace

TEST_CASE("A shard has ceil(size / shards) rows, as FSDP2 and XLA pad") {
  // FSDP2's own sizes for GPT-2's vocabulary: 50257 rows are 6283 over 8 and 786 over 64.
  CHECK(shard_size(50257, {{fsdp}, 1}) == 6283);
  CHECK(shard_size(50257, {{fsdp, {2, 1, 8}}, 1}) == 786);
  CHECK(shard_size(3, {{fsdp}, 1}) == 1);
  CHECK(shard_size(4096, {{}, 1}) == 4096);
}

TEST_CASE("Blocks are split one by one: fused QKV of GPT-2 over 8 devices") {
  // 2304 = 3 x 768; each device holds 96 columns of q, of k and of v.
  CHECK(shard_size(2304, {{fsdp}, 3}) == 3 * 96);
}

TEST_CASE("Parts of an axis overlap when their ranges do (Shardy, sub-axes)") {
  const AxisRef major{2, 1, 2};   // model:(1)2
  const AxisRef minor{2, 2, 8};   // model:(2)8
  const AxisRef middle{2, 2, 2};  // model:(2)2
  CHECK(overlap(model, major));
  CHECK(overlap(model, minor));
  CHECK(overlap(minor, middle));
  CHECK_FALSE(overlap(major, minor));
  CHECK_FALSE(overlap(fsdp, model));
  CHECK(merged({major, minor}) == AxisList{model});
  CHECK(merged({minor, major}) == AxisList{minor, major});  // not in order: two parts stay
}

TEST_CASE("Shardings print as a person reads them") {
  Sharding sharding{{{{model, fsdp}, 1}, {{}, 1}}, {mesh.whole(0)}};
  CHECK(to_string(sharding, mesh) == "[model+fsdp, -] partial(data)");
  sharding.dims[1] = {{{2, 1, 2}}, 3};
  sharding.partial.clear();
  CHECK(to_string(sharding, mesh) == "[model+fsdp, model:(1)2 in each of 3]");
}

}  // namespace shardsim::sharding_test
