// Networks that are written down step by step: what follows from a list of steps, derived by hand
// beside each. How families agree with PyTorch is models_golden_test's and tests/oracle's.
#include "workloads/networks/blueprint.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/walk.hpp"
#include "workloads/networks/blueprint_layers.hpp"
#include "workloads/networks/rows.hpp"

using namespace shardsim;
using namespace shardsim::models;

namespace {

std::int64_t bytes_kept(const Eager& e) {
  std::int64_t bytes = 0;
  for (const Saved& saved : e.saved()) bytes += saved.bytes;
  return bytes;
}

// Four layers of one product, of which `read` hand their states to the end as well.
Blueprint layered(const std::vector<std::int64_t>& read) {
  Draft d;
  Ref x = d.rows(d.convolve(patches("cut", 8, 4), d.image(3)));
  std::vector<Ref> ends;
  for (std::int64_t i = 0; i < 4; ++i) {
    d.layer("layers", i, "layer");
    x = d.sum(d.linear({.name = "product", .out = 8}, x), x);
    for (const std::int64_t one : read) {
      if (one == i) ends.push_back(x);
    }
  }
  d.outside("head");
  ends.push_back(x);
  d.sum_loss(d.beside(ends));
  return d.finish({.side = 16});
}

std::vector<std::vector<std::int32_t>> kinds_of(const Blueprint& net) {
  std::vector<std::vector<std::int32_t>> numbers;
  for (const BlueprintBlock& block : blocks_of(net)) {
    if (!block.numbers.empty()) numbers.push_back(block.numbers);
  }
  return numbers;
}

std::string refusal_of(const char* text, std::int64_t image) {
  try {
    const Json json = parse_json(text, "config.json");
    const ModelSpec spec = read_model(JsonReader(json, {"config.json", ""}), "model");
    static_cast<void>(count(spec, {.batch = 1, .image = image}, {"config.json", ""}));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Layers of a list of steps that are alike are one kind") {
  CHECK(kinds_of(layered({})) == std::vector<std::vector<std::int32_t>>{{0, 1, 2, 3}});
  // Layer 1's states go along beside layer 2's, which hands on two values of one that it was given.
  CHECK(kinds_of(layered({1})) == std::vector<std::vector<std::int32_t>>{{0, 1}, {2}, {3}});
}

TEST_CASE("Rows of a picture lie apart, and linear modules copy them for more than one example") {
  const auto kept = [](std::int64_t batch) {
    Draft d;
    Ref x = d.rows(d.convolve(patches("cut", 8, 4), d.image(3)));  // 4 x 4 places of 8
    d.sum_loss(d.linear({.name = "product", .out = 5}, x));
    Eager e({});
    static_cast<void>(run(e, d.finish({.side = 16}), {.batch = batch, .side = 16}));
    return bytes_kept(e);
  };
  // The image is an input; the product keeps what it reads, the convolution's result or its copy.
  CHECK(kept(1) == 16 * 8 * 2);
  CHECK(kept(2) == 2 * 16 * 8 * 2);
}

TEST_CASE("What no loss reads runs forward alone") {
  Draft d;
  const Ref x = d.rows(d.convolve(patches("cut", 8, 4), d.image(3)));
  static_cast<void>(d.linear({.name = "beside", .out = 5}, d.mean(x)));
  d.sum_loss(x);
  Eager e({});
  static_cast<void>(run(e, d.finish({.side = 16}), {.batch = 3, .side = 16}));
  CHECK(e.forward_flops().at("addmm") == 2 * 3 * 8 * 5);
  CHECK(!e.backward_flops().contains("mm"));
  CHECK(e.backward_flops().at("convolution_backward") ==
        2 * 3 * 16 * 8 * (3 * 16));  // the weight's
}

TEST_CASE("Heads attend, each of rows of parts") {
  // 2 examples of 4 x 4 places, 16 rows of 8; q, k and v of 2 heads of 4 from one product.
  Draft d;
  const Ref rows = d.copied_rows(d.convolve(patches("cut", 8, 4), d.image(3)));
  const Ref all = d.linear({.name = "qkv", .out = 24, .heads = 2, .parts = 3}, rows);
  const Ref q = d.norm({NormKind::rms_fused, "norm_q"}, d.width_part(0, 3, all));
  const Ref k = d.turn({.table = "rope"}, d.width_part(1, 3, all));
  const Ref seen = d.attend_heads({}, q, k, d.width_part(2, 3, all));
  d.sum_loss(d.linear({.name = "out", .out = 8}, seen));
  const Blueprint net = d.finish({.side = 16});
  Eager e({.place = {"config.json", ""}});
  static_cast<void>(run(e, net, {.batch = 2, .side = 16}));
  REQUIRE(e.named("norm_q.weight").shape == Shape{4});
  // Attention: 2 products of 2 b h s s d = 2 * 2 * 2 * 16 * 16 * 4.
  CHECK(e.forward_flops().at("_scaled_dot_product_flash_attention") == 2 * 8192);
  // The rows [2, 16, 8], all three parts, q normed, 1 / rms of 2 * 16 * 2 heads, k turned, cos and
  // sin of 16 x 4 in fp32, the result, logsumexp of 2 * 2 * 16 and 24 bytes of random state.
  const std::int64_t width = 2 * 16 * 8 * 2;
  CHECK(bytes_kept(e) == width + 3 * width + width + 2 * 16 * 2 * 4 + width + 2 * 16 * 4 * 4 +
                             width + 2 * 2 * 16 * 4 + 24);
}

TEST_CASE("What a modulation adds to a table is seen as each of its parts") {
  // A vector of 8 and a table [2, 8]: shift and scale of rows [1, 16, 8].
  Draft d;
  const Ref rows = d.copied_rows(d.convolve(patches("cut", 8, 4), d.image(3)));
  const Ref time = d.enter(RowsInput{.name = "time", .width = 8});
  const Ref by = d.table_of_parts("scale_shift_table", 2, time, /*no_batch=*/true);
  const Ref scaled = d.product(rows, d.scaled(d.width_part(1, 2, by)));
  d.sum_loss(d.sum(scaled, d.width_part(0, 2, by)));
  Eager e({.place = {"config.json", ""}});
  static_cast<void>(run(e, d.finish({.side = 16}), {.batch = 1, .side = 16}));
  CHECK(e.named("scale_shift_table").shape == Shape{2, 8});
  // 1 + scale and the rows; sums keep nothing, nor do numbers that enter.
  CHECK(bytes_kept(e) == 8 * 2 + 16 * 8 * 2);
}

TEST_CASE("Rows that are counted by others' are not handed on for it") {
  // The second layer says how many of its rows are the text's by the embedding's value, which
  // nobody else reads: it is live in none of them, and they are one kind.
  Draft d;
  const Ref text = d.linear({.name = "text", .out = 8},
                            d.enter(RowsInput{.name = "states", .rows = 5, .width = 4}));
  const Ref image = d.rows(d.convolve(patches("cut", 8, 4), d.image(3)));
  Ref x = d.behind({text, image});
  for (std::int64_t i = 0; i < 3; ++i) {
    d.layer("layers", i, "layer");
    const Ref part = d.part_like(text, {}, x);
    x = d.behind({part, d.part_like(image, {}, x)});
  }
  d.outside("head");
  d.sum_loss(x);
  const Blueprint net = d.finish({.side = 16});
  CHECK(kinds_of(net) == std::vector<std::vector<std::int32_t>>{{0, 1, 2}});
  for (const BlueprintBlock& block : blocks_of(net)) CHECK(block.live.size() <= 1);
}

TEST_CASE("Zeros around a picture follow TensorFlow's rule") {
  Convolve k = square("k", 4, 3, 2);
  CHECK(zeros_around(k, {16, 16}) == Plane{0, 0});
  k.same = true;
  CHECK(zeros_around(k, {16, 15}) == Plane{1, 2});  // 3 - 2 where 2 divides, else 3 - 15 % 2
}

TEST_CASE("Images of a size without positions are refused") {
  CHECK(refusal_of(R"({"architectures": ["BeitModel"], "image_size": 32, "patch_size": 16})", 48) ==
        "config.json: reads images of 32 alone, for which it has positions; an image of 48 is "
        "another");
  CHECK(refusal_of(R"({"architectures": ["SegformerModel"]})", 48) ==
        "config.json: an image of 48 is no multiple of 32, by which the network makes it smaller");
}
