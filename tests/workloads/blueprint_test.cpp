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
