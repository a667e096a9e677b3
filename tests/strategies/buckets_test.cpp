// Buckets against the arithmetic of Megatron-Core's and DeepSpeed's rules; what is registered as
// one parameter against Megatron's module tree.
#include "strategies/runtime/buckets.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

#include "model_step.hpp"
#include "strategies/runtime/registration.hpp"

namespace shardsim::buckets_test {
namespace {

const AxisList data = {{0, 1, 8}};

std::vector<BufferedParameter> of_sizes(const std::vector<std::int64_t>& sizes) {
  std::vector<BufferedParameter> parameters;
  for (const std::int64_t size : sizes) {
    BufferedParameter parameter;
    parameter.tensors = {static_cast<TensorId>(parameters.size())};
    parameter.elements = size;
    parameter.axes = data;
    parameters.push_back(parameter);
  }
  return parameters;
}

std::vector<std::int64_t> elements(const std::vector<Bucket>& buckets) {
  std::vector<std::int64_t> sizes;
  for (const Bucket& bucket : buckets) sizes.push_back(bucket.elements);
  return sizes;
}

std::vector<Bucket> cut(const std::vector<BufferedParameter>& parameters,
                        const GradientBuffer& rule, bool of_first_stage) {
  return cut_into_buckets(parameters, rule, {}, of_first_stage, size_of(DType::f32));
}

GradientBuffer limited(BucketCloses closes) {
  GradientBuffer rule;
  rule.bucket_elements = 100;
  rule.closes = closes;
  return rule;
}

}  // namespace

// By hand: 60 and 50 reach 100 together; before 50 would take it over, 60 is closed alone.
TEST_CASE("A bucket ends with the parameter that reaches its limit, or before it") {
  const auto parameters = of_sizes({60, 50, 30, 300, 10});
  CHECK(elements(cut(parameters, limited(BucketCloses::after), true)) ==
        std::vector<std::int64_t>{110, 330, 10});
  CHECK(elements(cut(parameters, limited(BucketCloses::before), true)) ==
        std::vector<std::int64_t>{60, 80, 300, 10});
}

TEST_CASE(
    "Without a limit all is one bucket, as on stages behind the first where the rule says so") {
  GradientBuffer rule = limited(BucketCloses::after);
  const auto parameters = of_sizes({60, 50, 30});
  rule.buckets_of_first_stage_alone = true;
  CHECK(elements(cut(parameters, rule, false)) == std::vector<std::int64_t>{140});
  rule.bucket_elements = 0;
  CHECK(elements(cut(parameters, rule, true)) == std::vector<std::int64_t>{140});
}

// 60 to 64, then 50: 114, up to 128; 30 alone up to 128.
TEST_CASE("Parameters begin and buckets end at multiples") {
  GradientBuffer rule = limited(BucketCloses::after);
  rule.parameter_multiple = 64;
  rule.bucket_multiple = 128;
  CHECK(elements(cut(of_sizes({60, 50, 30}), rule, true)) == std::vector<std::int64_t>{128, 128});
}

TEST_CASE("A parameter that two stages have is a bucket of its own") {
  GradientBuffer rule = limited(BucketCloses::after);
  rule.shared_apart = true;
  auto parameters = of_sizes({10, 20, 30});
  parameters[1].is_shared = true;
  CHECK(elements(cut(parameters, rule, true)) == std::vector<std::int64_t>{10, 20, 30});
}

TEST_CASE("What is reduced over other axes is another buffer") {
  auto parameters = of_sizes({60, 50, 30, 20});
  parameters[1].axes = parameters[3].axes = {{0, 2, 4}};
  CHECK(elements(cut(parameters, limited(BucketCloses::after), true)) ==
        std::vector<std::int64_t>{90, 70});
}

// Neighbours share: of 8 devices in 2 x 4, four shards are the minor axis, two a half of it.
TEST_CASE("Shards are neighbours on the axes") {
  const AxisList axes = {{0, 1, 2}, {1, 1, 4}};
  CHECK(split_shards(axes, 8).across.empty());
  CHECK(split_shards(axes, 4).within == AxisList{{1, 1, 4}});
  CHECK(split_shards(axes, 4).across == AxisList{{0, 1, 2}});
  CHECK(split_shards(axes, 2).within == AxisList{{1, 2, 2}});
  CHECK(split_shards(axes, 2).across == AxisList{{0, 1, 2}, {1, 1, 2}});
}

// 16 devices in 2 instances of 8: experts, of which 4 devices have the same, are in 2 of 2, and
// where 2 have them each has its state whole.
TEST_CASE("Experts' state lies as often as all other") {
  const FlatOptimizer optimizer{.shards = 8, .instances = 2};
  CHECK(sharers(optimizer, {{0, 1, 16}}) == 8);
  CHECK(sharers(optimizer, {{0, 1, 4}}) == 2);
  CHECK(sharers(optimizer, {{0, 1, 2}}) == 1);
}

std::string registered(const Workload& workload, std::size_t block, bool local) {
  std::string text;
  for (const RegisteredParameter& parameter : registered_parameters(workload, block, local)) {
    for (const TensorId id : parameter) {
      const std::string& name = workload.tensors[static_cast<std::size_t>(id)].name;
      const std::string module = name.substr(0, name.rfind('.'));
      text += module.substr(module.rfind('.') + 1) + " ";
    }
    text += "| ";
  }
  return text;
}

// megatron/core/models/gpt: TransformerLayer registers its norm, attention (linear_proj first, then
// linear_qkv), norm and MLP (linear_fc1, linear_fc2).
TEST_CASE("Parameters of a layer in the order of Megatron's modules") {
  const Workload workload = test::training_workload("llama-3.1-8b", test::usual_step());
  CHECK(registered(workload, 1, false) ==
        "input_layernorm | o_proj | q_proj k_proj v_proj | post_attention_layernorm | gate_proj "
        "up_proj | down_proj | ");
}

// MLASelfAttention of megatron/core/transformer/multi_latent_attention.py: in the local
// specification both norms are behind the products, in Transformer Engine's within the second ones.
TEST_CASE("Norms of latents in the order of Megatron's modules") {
  const Workload workload = test::training_workload("deepseek-v3", test::usual_step());
  const std::string feed_forward = "post_attention_layernorm | gate_proj up_proj | down_proj | ";
  CHECK(registered(workload, 1, true) ==
        "input_layernorm | o_proj | q_a_proj | q_b_proj | kv_a_proj_with_mqa | kv_b_proj | "
        "q_a_layernorm | kv_a_layernorm | " +
            feed_forward);
  CHECK(registered(workload, 1, false) ==
        "input_layernorm | o_proj | q_a_proj | q_a_layernorm | q_b_proj | kv_a_proj_with_mqa | "
        "kv_a_layernorm | kv_b_proj | " +
            feed_forward);
}

// 20 elements over two devices are parts of 10. The second parameter is in both of {6, 8, 6}, whole
// each time, so that the first has most, in pieces of 6 and 4; dealt out by turns they are 6, 6, 8.
TEST_CASE("A part has room for all of each parameter that it has some of", "[strategies]") {
  FlatOptimizer optimizer;
  optimizer.shards = 2;
  const PartSize size = largest_part(of_sizes({6, 8, 6}), data, {}, optimizer);
  CHECK(size.whole == 14);
  CHECK(size.largest == 6);
  CHECK(largest_part(of_sizes({10, 4, 4, 2}), data, {}, optimizer).whole == 10);
  CHECK(largest_part(of_sizes({30}), data, {}, optimizer).largest == 15);
  optimizer.deals_out = true;
  CHECK(largest_part(of_sizes({6, 8, 6}), data, {}, optimizer).whole == 14);
}

// By hand, 8 devices with parts of 32 of 256: 100 are of parts 0 to 3, 28 of part 3, 128 of 4 to 7.
TEST_CASE("Calls of what several devices have parts of are of pieces side by side") {
  GradientBuffer rule = limited(BucketCloses::before);
  rule.bucket_multiple = 16;
  const auto list = of_sizes({100, 28, 128});
  FlatOptimizer optimizer;
  optimizer.gathers_together = true;
  std::vector<Bucket> buckets = {{{list[1]}, data, 32}, {{list[0]}, data, 112}};
  buckets.push_back({{list[2]}, data, 128});
  cut_at_parts(buckets, list, rule, optimizer);
  std::vector<std::vector<std::pair<std::int64_t, bool>>> calls;
  for (const Bucket& bucket : buckets) {
    calls.emplace_back();
    for (const BucketPiece& piece : bucket.pieces) {
      calls.back().emplace_back(piece.elements, piece.is_joined);
    }
  }
  CHECK(calls[0] == std::vector<std::pair<std::int64_t, bool>>{{28, false}});
  CHECK(calls[1] == std::vector<std::pair<std::int64_t, bool>>{{100, true}});
  CHECK(calls[2] == std::vector<std::pair<std::int64_t, bool>>{{128, true}});
}

// Part 3, 96 to 127, has four of the first and all of the second.
TEST_CASE("The part that has something of most has room for all of each") {
  GradientBuffer rule = limited(BucketCloses::before);
  rule.bucket_multiple = 16;
  const PartSize size = largest_part(of_sizes({100, 28, 100, 28}), data, rule, FlatOptimizer{});
  CHECK(size.whole == 128);
  CHECK(size.members == std::vector<std::size_t>{0, 1});
  CHECK(size.largest == 28);
}

}  // namespace shardsim::buckets_test
