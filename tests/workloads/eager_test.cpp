// The operators of the eager walk: FLOPs and kept storages derived by hand beside each.
#include "workloads/eager/eager.hpp"

#include <catch2/catch.hpp>

using namespace shardsim;
using namespace shardsim::models;

namespace {

std::int64_t saved_bytes(const Eager& e) {
  std::int64_t bytes = 0;
  for (const Saved& saved : e.saved()) bytes += saved.bytes;
  return bytes;
}

Value activation(Eager& e, const Shape& shape) { return e.make(shape, DType::bf16, true); }

}  // namespace

TEST_CASE("A linear layer counts two operations a multiply-add and keeps its input once") {
  Eager e({});
  const Value x = activation(e, {2, 8, 16});
  for (const char* name : {"q", "k"}) {
    const Scope at(e, name);
    e.linear(x, e.parameter("weight", {32, 16}));
  }
  // 2 matmuls of 16 rows by [16, 32]: 2 * 16 * 16 * 32 each; twice that backward.
  CHECK(e.forward_flops().at("mm") == 2 * 2 * 16 * 16 * 32);
  CHECK(e.backward_flops().at("mm") == 2 * 2 * 2 * 16 * 16 * 32);
  CHECK(saved_bytes(e) == 2 * 8 * 16 * 2);
  CHECK(e.parameters()[1].name == "k.weight");
}

TEST_CASE("An input needs no gradient and is not counted as kept") {
  Eager e({});
  const Value x = e.input(DType::bf16, {4, 16});
  e.linear(x, e.parameter("weight", {32, 16}));
  CHECK(e.backward_flops().at("mm") == 2 * 4 * 16 * 32);  // of the weight alone
  CHECK(saved_bytes(e) == 0);
}

TEST_CASE("A product keeps a factor where the other learns") {
  Eager e({});
  const Value x = activation(e, {4, 16});
  e.multiply(x, e.constant(DType::f32, {4, 1}));
  CHECK(saved_bytes(e) == 4 * 4);  // the constant
  e.multiply(x, activation(e, {4, 16}));
  CHECK(saved_bytes(e) == 4 * 4 + 2 * (4 * 16 * 2));
}

TEST_CASE("A view is kept with the whole of its storage") {
  Eager e({});
  const Value both = activation(e, {4, 32});
  e.apply(Eager::view(both, {4, 16}), Keeps::input);
  e.apply(Eager::view(both, {4, 16}), Keeps::input);
  CHECK(saved_bytes(e) == 4 * 32 * 2);
}

TEST_CASE("A depthwise convolution's weight gradient is counted without its groups") {
  // FlopCounterMode's conv_backward: 2 * places * out * in * kernel, whatever the groups.
  Eager e({});
  const Value x = activation(e, {1, 8, 10});
  e.convolution(x, e.parameter("weight", {8, 1, 3}), {10});
  CHECK(e.forward_flops().at("convolution") == 2 * 10 * 8 * 1 * 3);
  CHECK(e.backward_flops().at("convolution_backward") == 2 * 10 * 8 * 3 + 2 * 10 * 8 * 8 * 3);
}

TEST_CASE("Modules that do not run have parameters and cost nothing") {
  Eager e({});
  e.mute(true);
  const Value x = activation(e, {4, 16});
  e.linear(x, e.parameter("weight", {32, 16}));
  CHECK(e.forward_flops().empty());
  CHECK(e.saved().empty());
  CHECK(e.parameters().size() == 1);
}

TEST_CASE("Sizes beyond 63 bits are an error with its place") {
  Eager e({.place = {"config.json", ""}});
  const std::int64_t large = std::int64_t{1} << 40;
  CHECK_THROWS_WITH(e.make({large, large}, DType::bf16, true),
                    "config.json: the model's sizes multiply to more than can be counted");
}
