#include "sharding/reshard.hpp"

#include <catch2/catch.hpp>

namespace shardsim::reshard_test {

namespace {

const Mesh mesh({{"data", 2}, {"fsdp", 4}, {"model", 8}});
const AxisRef data = mesh.whole(0), fsdp = mesh.whole(1), model = mesh.whole(2);
const std::vector<std::int64_t> shape = {4096, 14336};
constexpr std::int64_t elements = 4096 * 14336;

Sharding split(AxisList rows, AxisList columns, AxisList partial = {}) {
  return {{{std::move(rows), 1}, {std::move(columns), 1}}, std::move(partial)};
}

struct Expected {
  CollectiveKind kind;
  AxisList axes;
  std::int64_t payload;
};

void check(const Sharding& from, const Sharding& to, const std::vector<Expected>& expected) {
  const std::vector<ReshardStep> steps = reshard(shape, from, to);
  REQUIRE(steps.size() == expected.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CHECK(steps[i].kind == expected[i].kind);
    CHECK(steps[i].axes == expected[i].axes);
    CHECK(steps[i].elements == expected[i].payload);
  }
}

}  // namespace

TEST_CASE("One collective per kind of change") {
  using enum CollectiveKind;
  check(split({fsdp}, {}), split({}, {}), {{all_gather, {fsdp}, elements}});
  check(split({}, {}, {model}), split({}, {}), {{all_reduce, {model}, elements}});
  check(split({}, {}, {model}), split({model}, {}), {{reduce_scatter, {model}, elements}});
  // One device's buffer: an eighth of the tensor, before as after.
  check(split({model}, {}), split({}, {model}), {{all_to_all, {model}, elements / 8}});
  check(split({}, {}), split({model}, {fsdp}), {});
  check(split({model}, {}), split({model}, {}), {});
}

TEST_CASE("FSDP with tensor parallelism: the minor axis goes, the major stays") {
  // Every device ends with an eighth: that is the payload of its gather.
  check(split({model, fsdp}, {}), split({model}, {}),
        {{CollectiveKind::all_gather, {fsdp}, elements / 8}});
}

TEST_CASE("HSDP: scatter over the shards first, then all-reduce what is left between replicas") {
  check(split({}, {}, {data, fsdp}), split({fsdp}, {}),
        {{CollectiveKind::reduce_scatter, {fsdp}, elements},
         {CollectiveKind::all_reduce, {data}, elements / 4}});
}

TEST_CASE("Partial sums over several axes are reduced in one call") {
  check(split({}, {}, {data, fsdp}), split({}, {}),
        {{CollectiveKind::all_reduce, {data, fsdp}, elements}});
}

// The header's order: what makes the tensor smaller comes before what is paid for by its size.
TEST_CASE("A sum is reduced over what a slice leaves of it") {
  check(split({}, {}, {data}), split({fsdp}, {}),
        {{CollectiveKind::all_reduce, {data}, elements / 4}});
  check(split({}, {}, {data}), split({fsdp}, {model}),
        {{CollectiveKind::all_reduce, {data}, elements / 32}});
}

TEST_CASE("A sum is scattered before it is sliced, reduced, exchanged and gathered") {
  using enum CollectiveKind;
  check(split({}, {}, {data, model}), split({model}, {fsdp}),
        {{reduce_scatter, {model}, elements}, {all_reduce, {data}, elements / 32}});
  // A quarter, scattered to an eighth of it, goes from columns to rows.
  check(split({}, {fsdp}, {model}), split({model, fsdp}, {}),
        {{reduce_scatter, {model}, elements / 4}, {all_to_all, {fsdp}, elements / 32}});
  check(split({model}, {}, {data}), split({}, {model}),
        {{all_reduce, {data}, elements / 8}, {all_to_all, {model}, elements / 8}});
  // Reduced as an eighth before it is made whole.
  check(split({model}, {}, {data}), split({}, {}),
        {{all_reduce, {data}, elements / 8}, {all_gather, {model}, elements}});
}

TEST_CASE("A gather carries the padding of every shard") {
  // GPT-2's vocabulary over 8: 8 x 6283 = 50264 rows arrive.
  const auto steps = reshard({50257, 768}, split({model}, {}), split({}, {}));
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].elements == 50264 * 768);
}

TEST_CASE("A reduce-scatter takes in the padding of every shard") {
  const auto steps = reshard({50257, 768}, split({}, {}, {model}), split({model}, {}));
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].elements == 50264 * 768);
}

TEST_CASE("Partial sums that the target keeps stay") {
  check(split({}, {}, {data, model}), split({}, {}, {model}),
        {{CollectiveKind::all_reduce, {data}, elements}});
}

TEST_CASE("Axes out of order are gathered and sliced again") {
  check(split({fsdp, model}, {}), split({model}, {}),
        {{CollectiveKind::all_gather, {fsdp, model}, elements}});
}

TEST_CASE("The last step always arrives") {
  const std::vector<AxisList> choices = {{}, {fsdp}, {model}, {fsdp, model}, {model, fsdp}};
  for (const AxisList& a : choices) {
    for (const AxisList& b : choices) {
      const Sharding from = split(a, {}), to = split({}, b);
      const auto steps = reshard(shape, from, to);
      Sharding end = steps.empty() ? from : steps.back().after;
      // What is missing at the end is a local slice: a prefix of what is asked for.
      CHECK(end.dims[0].axes.empty());
      CHECK(is_prefix(end.dims[1].axes, b));
    }
  }
}

}  // namespace shardsim::reshard_test
