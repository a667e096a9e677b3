// Steps of inference of every model of tests/golden/models that makes tokens: a decoding step keeps
// what the description's walk counts (walk.hpp), of 16 tokens, which no window cuts.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/json.hpp"
#include "tests/base/golden_files.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/graph/model_graph.hpp"
#include "workloads/models/walk.hpp"

namespace shardsim::test {
namespace {

std::int64_t cached_bytes(const Workload& workload) {
  std::int64_t bytes = 0;
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    const Tensor& tensor = workload.tensors[t];
    if (tensor.role != TensorRole::cache) continue;
    const Block& block = workload.blocks[static_cast<std::size_t>(tensor.block)];
    bytes += workload.bytes(static_cast<TensorId>(t)).count() * block.instances();
  }
  return bytes;
}

std::int64_t bytes_of(const Workload& workload, const Operand& operand) {
  return workload.bytes(operand.tensor).count();
}

// Parts of layers that are written once have steps of training alone.
bool has_mixers(const models::ModelSpec& spec) {
  for (const models::Stack& stack : spec.stacks) {
    for (const models::LayerKind& kind : stack.kinds) {
      for (const models::Branch& branch : kind.branches) {
        if (std::holds_alternative<models::Mixer>(branch.body)) return true;
      }
    }
  }
  return false;
}

}  // namespace

TEST_CASE("A decoding step keeps what the model's description says") {
  constexpr std::int64_t batch = 2, context = 15;
  int models_seen = 0;
  for (const std::string& path : golden_files(golden_folder("models"), ".json")) {
    const Json record = load_json(path);
    if (!record.is_object() || !record.contains("config")) continue;
    const JsonReader config(record["config"], {path, "/config"});
    const models::ModelSpec spec = models::read_model(config, path);
    const bool makes_tokens = !spec.network && spec.head.kind == models::HeadKind::language;
    if (!makes_tokens || models::has_encoder(spec) || has_mixers(spec)) continue;
    INFO(std::filesystem::path(path).stem().string());
    const models::ModelCounts n = models::count(spec, {.batch = 1, .sequence = 1}, config.place());
    WorkloadOptions options{.batch = batch, .sequence = 1};
    options.cache = TokenCache{.context = context, .places = context + 1};
    CHECK(cached_bytes(models::build_graph(spec, options, config.place())) ==
          batch * ((context + 1) * n.cache_bytes_per_token + n.state_bytes));
    ++models_seen;
  }
  CHECK(models_seen > 70);
}

// DeepSeek-V3.2's, by hand: 16 layers keep 512 + 64 numbers and 128 of the index; GLM's next layers
// see what the index before them has picked, and have no keys of one.
TEST_CASE("An index of keys has a cache of its own, and attention reads what it picks") {
  constexpr std::int64_t batch = 2, context = 4095;
  const std::int64_t layers = 16;
  const auto decoding = [&](Json more) {
    Json config = {{"hidden_size", 512},
                   {"intermediate_size", 1024},
                   {"num_hidden_layers", layers},
                   {"num_attention_heads", 8},
                   {"n_routed_experts", 16},
                   {"num_experts_per_tok", 2},
                   {"n_group", 1},
                   {"topk_group", 1},
                   {"q_lora_rank", 256},
                   {"vocab_size", 1024},
                   {"index_n_heads", 4},
                   {"index_topk", 256},
                   {"max_position_embeddings", 8192}};
    config.update(more);
    const JsonReader reader(config, {"m.json", ""});
    WorkloadOptions options{.batch = batch, .sequence = 1};
    options.cache = TokenCache{.context = context, .places = context + 1};
    return models::build_graph(models::read_model(reader, "m.json"), options, reader.place());
  };
  const auto picked = [](const Workload& workload) {
    std::int64_t all = 0;
    std::int64_t few = 0;
    for (const Block& block : workload.blocks) {
      for (const Op& op : block.forward) {
        if (op.function != Function::attention) continue;
        const bool is_few = bytes_of(workload, op.operands[1]) == batch * 256 * 576 * 2;
        (is_few ? few : all) += block.instances();
      }
    }
    return std::pair{few, all};
  };
  const Workload each = decoding({{"model_type", "deepseek_v32"}});
  CHECK(cached_bytes(each) == batch * (context + 1) * layers * (512 + 64 + 128) * 2);
  CHECK(picked(each) == std::pair<std::int64_t, std::int64_t>{layers, 0});
  const Workload some = decoding({{"model_type", "glm_moe_dsa"}, {"index_topk_freq", 4}});
  CHECK(picked(some) == std::pair<std::int64_t, std::int64_t>{layers, 0});
  CHECK(cached_bytes(some) < cached_bytes(each));
}

}  // namespace shardsim::test
