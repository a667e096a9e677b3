// Attention over a sequence that is split: what is sent against the arithmetic of each method, what
// is computed the same by all of them.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "model_step.hpp"

namespace shardsim::context_test {
namespace {

using Catch::Matchers::Contains;

// Two layers of Llama 3.1 8B: 32 heads of queries, 8 of keys and values, of 128.
constexpr std::int64_t layers = 2, sequence = 8192, devices = 4;

Plan plan_with(const Json& context, std::int64_t tokens = sequence, int key_heads = 8) {
  const Json config = {
      {"base", "llama-3.1-8b"}, {"num_hidden_layers", layers}, {"num_key_value_heads", key_heads}};
  const Json json = {{"name", "megatron"}, {"context", context}};
  const Mesh mesh({{"cp", devices}});
  const Step step{.batch = 1, .sequence = tokens};
  return compile(build_step(load_model_config(JsonReader(config, {"model", ""}), ""), step), step,
                 mesh, read_strategy(JsonReader(json, {"strategy", ""}), mesh))
      .plan;
}

std::int64_t sent(const Plan& plan, CollectiveKind kind) {
  return test::payload(plan, [&](const Collective& c) { return c.kind == kind; });
}

std::string error_of(const Json& context, std::int64_t tokens, int key_heads) {
  try {
    (void)plan_with(context, tokens, key_heads);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

constexpr std::int64_t keys = sequence / devices * 8 * 128 * 2;  // of one device, in bf16
const Json two_by_two = {{"method", "ring+all-to-all"}, {"head_devices", 2}};
constexpr std::int64_t queries = sequence / devices * 32 * 128 * 2;

}  // namespace

TEST_CASE("What is left out of a split sequence is said") {
  const auto warnings = [](const Json& model, const char* method, std::int64_t axis) {
    const Json json = {{"name", "fsdp2"}};
    const Json with = {{"name", "fsdp2"}, {"context", {{"method", method}}}};
    const Mesh mesh({{"dp", 2}, {"cp", axis}});
    const Step step{.batch = 2, .sequence = sequence};
    return compile(build_step(load_model_config(JsonReader(model, {"model", ""}), ""), step), step,
                   mesh, read_strategy(JsonReader(axis > 1 ? with : json, {"strategy", ""}), mesh))
        .warnings;
  };
  const auto says = [](const std::vector<std::string>& all, const char* words) {
    return std::any_of(all.begin(), all.end(), [&](const std::string& one) {
      return one.find(words) != std::string::npos;
    });
  };
  const Json windows = {{"base", "mistral-7b-v0.1"}, {"num_hidden_layers", 2}};  // of 4,096
  CHECK(says(warnings(windows, "ring", 4), "in a ring all keys go round, of windows too"));
  CHECK_FALSE(says(warnings(windows, "all-gather", 4), "of windows too"));
  const Json plain = {{"base", "llama-3.1-8b"}, {"num_hidden_layers", 2}};
  CHECK_FALSE(says(warnings(plain, "ring", 4), "of windows too"));
}

// Megatron-Core 0.16, ssm/mamba_context_parallel.py and mamba_mixer.py: z, x, B, C and steps by an
// all-to-all each, the result by another; gradients of them all. Nemotron 3 Nano has 64 heads of 64
// in 8 groups with a state of 128. A prefill's norm is behind the exchange, and so is z again.
TEST_CASE("State-space layers exchange heads for the sequence") {
  constexpr std::int64_t tokens = 8192, wide = 64 * 64, state = 8 * 128, heads = 64;
  const auto exchanged = [&](const char* kind, std::int64_t context, std::int64_t model) {
    const Json config = {{"base", "nemotron-3-nano-30b-a3b"}, {"num_hidden_layers", 1}};
    const Mesh mesh({{"cp", context}, {"tp", model}});
    Step step{.batch = 1, .sequence = tokens};
    if (kind == std::string("prefill")) step.kind = StepKind::prefill;
    const Json json = {{"name", "megatron"}};
    const Plan plan =
        compile(build_step(load_model_config(JsonReader(config, {"model", ""}), ""), step), step,
                mesh, read_strategy(JsonReader(json, {"strategy", ""}), mesh))
            .plan;
    const auto is_one = [](const Collective& c) { return c.kind == CollectiveKind::all_to_all; };
    return std::pair{test::count(plan, is_one), test::payload(plan, is_one)};
  };
  const std::int64_t two = tokens / 2 * 2;  // bytes of a number of each token of one of two devices
  CHECK(exchanged("train", 2, 1) == std::pair{12L, 2 * two * (3 * wide + 2 * state + heads)});
  CHECK(exchanged("prefill", 2, 1) == std::pair{7L, two * (4 * wide + 2 * state + heads)});
  // A group on each device of the model: both of the sequence read its b and c.
  CHECK(exchanged("train", 2, 8) ==
        std::pair{12L, 2 * two * (3 * wide / 8 + 2 * 2 * state / 8 + heads / 8)});
  CHECK(exchanged("train", 1, 8).first == 0);
}

TEST_CASE("A state along a split sequence is refused where nothing hands it on") {
  const auto refused = [](const Json& model, const Json& strategy, std::int64_t devices) {
    const Mesh mesh({{"cp", devices}});
    const Step step{.batch = 1, .sequence = 12288};
    try {
      (void)compile(build_step(load_model_config(JsonReader(model, {"model", ""}), ""), step), step,
                    mesh, read_strategy(JsonReader(strategy, {"strategy", ""}), mesh));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Json mixed = {{"base", "nemotron-3-nano-30b-a3b"}, {"num_hidden_layers", 6}};
  const Json megatron = {{"name", "megatron"}}, torch = {{"name", "fsdp2"}};
  CHECK_THAT(refused(mixed, torch, 2), Contains("/context: model.layers.{}.mixer.conv1d hands a "
                                                "state along the sequence"));
  CHECK_THAT(refused(mixed, megatron, 3),
             Contains("64 heads of model.layers.{}.mixer.scan do not go evenly over 3 devices"));
  const Json by_channel = {{"architectures", {"MambaForCausalLM"}},
                           {"model_type", "mamba"},
                           {"hidden_size", 256},
                           {"num_hidden_layers", 1},
                           {"vocab_size", 512}};
  CHECK_THAT(refused(by_channel, megatron, 2),
             Contains("of which heads are exchanged in Mamba 2 alone"));
  CHECK(refused(mixed, megatron, 2).empty());
}

TEST_CASE("In a ring keys and values go round, and backward their gradients come home") {
  const Plan plan = plan_with({{"method", "ring"}});
  // Forward and backward three messages of both, and backward four of their gradients.
  CHECK(sent(plan, CollectiveKind::collective_permute) == layers * (3 + 3 + 4) * 2 * keys);
  for (const Collective& c : plan.collectives) {
    if (c.kind != CollectiveKind::collective_permute) continue;
    using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;
    CHECK(c.source_targets == Pairs{{0, 1}, {1, 2}, {2, 3}, {3, 0}});
  }
}

TEST_CASE("Parts are gathered at once, and gradients of keys and values travel in fp32") {
  const Plan plan =
      plan_with({{"method", "ring"}, {"rotation", "all-gather"}, {"gradients", "fp32"}});
  // Forward and backward one gather of both; backward four messages of both, of four bytes.
  CHECK(test::count(plan, [](const Collective& c) {
          return c.kind == CollectiveKind::all_gather && c.payload == Bytes(devices * 2 * keys);
        }) == layers * 2);
  CHECK(sent(plan, CollectiveKind::collective_permute) == layers * 4 * 2 * (2 * keys));
}

// Ulysses: queries, keys, values there and the result back; backward the gradients of all.
TEST_CASE("Heads take the place of the sequence in eight exchanges") {
  const Plan plan = plan_with({{"method", "all-to-all"}});
  CHECK(sent(plan, CollectiveKind::all_to_all) == layers * 2 * (2 * queries + 2 * keys));
  CHECK(test::count(plan, [](const Collective& c) {
          return c.kind == CollectiveKind::all_to_all;
        }) == layers * 8);
}

// USP, Megatron-Core's a2a+p2p: two neighbours exchange heads, after which each has half of them
// and half of the sequence: as many bytes as before, in rings of two.
TEST_CASE("Rings of groups that exchange heads send what both of them do") {
  const Plan plan = plan_with(two_by_two);
  CHECK(sent(plan, CollectiveKind::all_to_all) == layers * 2 * (2 * queries + 2 * keys));
  // A message of keys and values in either pass, and backward two of their gradients.
  CHECK(sent(plan, CollectiveKind::collective_permute) == layers * (1 + 1 + 2) * 2 * keys);
  for (const Collective& c : plan.collectives) {
    using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;
    if (c.kind == CollectiveKind::all_to_all) CHECK(c.axes == AxisList{{0, 2, 2}});
    if (c.kind != CollectiveKind::collective_permute) continue;
    CHECK(c.source_targets == Pairs{{0, 2}, {2, 0}, {1, 3}, {3, 1}});
  }
  // As many devices as divide the heads of keys: 2 of 4, of which all are 4.
  CHECK(plan_with({{"method", "ring+all-to-all"}}, sequence, 2).collectives ==
        plan_with(two_by_two, sequence, 2).collectives);
  CHECK(sent(plan_with({{"method", "ring+all-to-all"}}), CollectiveKind::collective_permute) == 0);
}

TEST_CASE("Gathered keys are gathered again in backward, or kept") {
  const Plan again = plan_with({{"method", "all-gather"}});
  const Plan kept = plan_with({{"method", "all-gather"}, {"keeps", "gathered"}});
  const auto gathers_of_keys = [](const Plan& plan) {
    return test::count(plan, [](const Collective& c) {
      return c.kind == CollectiveKind::all_gather && c.payload == Bytes(devices * keys);
    });
  };
  CHECK(gathers_of_keys(again) == layers * 4);
  CHECK(gathers_of_keys(kept) == layers * 2);
}

TEST_CASE("All methods compute the same, but for parts in order") {
  const double gathered = test::attention_flops(plan_with({{"method", "all-gather"}}));
  for (const char* method : {"ring", "all-to-all"}) {
    CHECK(test::attention_flops(plan_with({{"method", method}})) == Approx(gathered));
  }
  CHECK(test::attention_flops(plan_with(two_by_two)) == Approx(gathered));
  // The last device: half of its own part, and all of the three before, of which a balanced one has
  // half: (1/2 + 3) / (1/2 + 3/2).
  const Plan in_order = plan_with({{"method", "ring"}, {"balanced", false}});
  CHECK(test::attention_flops(in_order) == Approx(gathered * 3.5 / 2));
}

TEST_CASE("What a split sequence asks of a model") {
  CHECK_THAT(error_of({{"method", "ring"}}, 8196, 8),
             Contains("/context: a sequence of 8196 does not divide into 8 parts for 4 devices"));
  CHECK_THAT(error_of({{"method", "all-to-all"}}, 8192, 2),
             Contains("/context: 2 heads (kv_heads) do not go evenly over 4 devices"));
  CHECK_THAT(error_of({{"method", "ring+all-to-all"}, {"head_devices", 3}}, 8192, 8),
             Contains("/context/head_devices: heads cannot be split over 3 neighbours of the 4"));
  CHECK_THAT(error_of({{"method", "ring+all-to-all"}, {"head_devices", 4}}, 8192, 2),
             Contains("2 heads (kv_heads) do not go evenly over 4 devices, which "
                      "\"ring+all-to-all\" splits them over"));
  CHECK_THAT(error_of({{"method", "ring"}, {"head_devices", 2}}, 8192, 8),
             Contains("/context/head_devices: is of the method \"ring+all-to-all\""));
  CHECK_THAT(error_of({{"method", "all-gather"}, {"rotation", "messages"}}, 8192, 8),
             Contains("/context/rotation: is of the method \"ring\""));
}

}  // namespace shardsim::context_test
