// Laws that hold for the training graph of every model, whatever its sizes.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <functional>

#include "graph_helpers.hpp"

#include "base/json.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

Json random_llama() {
  const auto kv_heads = *rc::gen::inRange<std::int64_t>(1, 5);
  return {{"model_type", *rc::gen::element<std::string>("llama", "qwen3")},
          {"hidden_size", *rc::gen::inRange<std::int64_t>(1, 50)},
          {"num_hidden_layers", *rc::gen::inRange<std::int64_t>(1, 5)},
          {"num_attention_heads", kv_heads * *rc::gen::inRange<std::int64_t>(1, 5)},
          {"num_key_value_heads", kv_heads},
          {"head_dim", 2 * *rc::gen::inRange<std::int64_t>(1, 9)},
          {"intermediate_size", *rc::gen::inRange<std::int64_t>(1, 90)},
          {"vocab_size", *rc::gen::inRange<std::int64_t>(1, 300)},
          {"tie_word_embeddings", *rc::gen::arbitrary<bool>()}};
}

Json random_gpt2() {
  const auto heads = *rc::gen::inRange<std::int64_t>(1, 5);
  return {{"model_type", "gpt2"},
          {"n_embd", heads * *rc::gen::inRange<std::int64_t>(1, 9)},
          {"n_layer", *rc::gen::inRange<std::int64_t>(1, 5)},
          {"n_head", heads},
          {"n_positions", 64},
          {"vocab_size", *rc::gen::inRange<std::int64_t>(1, 300)},
          {"tie_word_embeddings", *rc::gen::arbitrary<bool>()}};
}

Json random_vit() {
  const auto heads = *rc::gen::inRange<std::int64_t>(1, 5);
  const auto patch = *rc::gen::inRange<std::int64_t>(1, 5);
  return {{"model_type", "big_vision_vit"},
          {"width", heads * *rc::gen::inRange<std::int64_t>(1, 9)},
          {"depth", *rc::gen::inRange<std::int64_t>(1, 5)},
          {"num_heads", heads},
          {"patch_size", {patch, 2}},
          {"image_size", {patch * *rc::gen::inRange<std::int64_t>(1, 5), 6}},
          {"num_classes", *rc::gen::inRange<std::int64_t>(1, 50)},
          {"pool_type", "gap"}};
}

// Llama's sizes for a family whose graph has more: experts, a fused projection of grouped heads, a
// part of each head turned, parallel branches, norms of whole queries.
Json random_kin() {
  Json json = random_llama();
  json["model_type"] = *rc::gen::element<std::string>("mixtral", "gpt_neox", "olmo2", "gemma2");
  if (json["model_type"] == "mixtral") {
    const auto experts = *rc::gen::inRange<std::int64_t>(1, 9);
    json["num_local_experts"] = experts;
    json["num_experts_per_tok"] = *rc::gen::inRange<std::int64_t>(1, experts + 1);
  }
  if (json["model_type"] == "gpt_neox") {
    json["head_dim"] = 4 * *rc::gen::inRange<std::int64_t>(1, 5);
    json["rotary_pct"] = 0.5;
  }
  if (json["model_type"] == "gemma2") json["sliding_window"] = 16;
  return json;
}

Json random_deepseek() {
  const auto size = [](int most) { return *rc::gen::inRange<std::int64_t>(1, most); };
  const std::int64_t experts = size(9);
  const std::int64_t heads = size(5);
  return {{"model_type", "deepseek_v3"},
          {"hidden_size", heads * size(20)},
          {"num_hidden_layers", size(5)},
          {"num_attention_heads", heads},
          {"num_key_value_heads", heads},
          {"q_lora_rank", size(20)},
          {"kv_lora_rank", size(20)},
          {"qk_nope_head_dim", size(9)},
          {"qk_rope_head_dim", 2 * size(9)},
          {"v_head_dim", size(9)},
          {"intermediate_size", size(90)},
          {"moe_intermediate_size", size(9)},
          {"n_routed_experts", experts},
          {"num_experts_per_tok", size(static_cast<int>(experts) + 1)},
          {"n_shared_experts", size(3)},
          {"first_k_dense_replace", size(3)},
          {"vocab_size", size(300)}};
}

// State-space and linear mixers: fused kernels that make some of it again, groups, chunks.
Json random_mixer() {
  const auto size = [](int most) { return *rc::gen::inRange<std::int64_t>(1, most); };
  const std::int64_t heads = size(4);
  const std::int64_t layers = size(5);
  Json json{{"num_hidden_layers", layers}, {"vocab_size", size(300)}};
  const int family = *rc::gen::inRange(0, 4);
  if (family == 0) {
    json.merge_patch({{"model_type", "mamba"},
                      {"hidden_size", size(50)},
                      {"state_size", size(20)},
                      {"time_step_rank", size(9)}});
    return json;
  }
  if (family == 1) {
    const std::int64_t groups = size(4);
    const std::int64_t dim = size(9);
    json.merge_patch({{"model_type", "mamba2"},
                      {"hidden_size", groups * heads * dim},
                      {"num_heads", 2 * groups * heads},
                      {"head_dim", dim},
                      {"state_size", size(20)},
                      {"n_groups", groups},
                      {"chunk_size", size(40)}});
    return json;
  }
  json.merge_patch({{"hidden_size", heads * 2 * size(9)},
                    {"num_attention_heads", heads},
                    {"num_key_value_heads", heads}});
  if (family == 2) {
    json["model_type"] = "lfm2";
    json["block_ff_dim"] = size(90);
    json["layer_types"] = Json(static_cast<std::size_t>(layers), "conv");
    json["layer_types"][0] = "full_attention";
    return json;
  }
  const std::int64_t keys = size(5);
  json.merge_patch({{"model_type", "qwen3_5_text"},
                    {"head_dim", 8},
                    {"intermediate_size", size(90)},
                    {"full_attention_interval", size(4)},
                    {"linear_num_key_heads", keys},
                    {"linear_num_value_heads", keys * size(4)},
                    {"linear_key_head_dim", size(20)},
                    {"linear_value_head_dim", size(20)}});
  return json;
}

Workload random_training_graph() {
  const int family = *rc::gen::inRange(0, 6);
  const Json json = family == 0   ? random_llama()
                    : family == 1 ? random_gpt2()
                    : family == 2 ? random_vit()
                    : family == 3 ? random_kin()
                    : family == 4 ? random_deepseek()
                                  : random_mixer();
  WorkloadOptions options;
  options.batch = *rc::gen::inRange<std::int64_t>(1, 9);
  if (family != 2) options.sequence = *rc::gen::inRange<std::int64_t>(1, 65);
  options.compute_dtype = *rc::gen::element(DType::bf16, DType::f32);
  Workload w = build_workload({"random", "random.json", OwnedJson(json)}, options);
  using Policy = Rematerialization::Policy;
  add_backward(w, {*rc::gen::element(Policy::none, Policy::full, Policy::selective), {}});
  add_optimizer(w, {});
  return w;
}

void for_random_graphs(const char* law, const std::function<void(const Workload&)>& check) {
  CHECK(rc::check(law, [&] { check(random_training_graph()); }));
}

}  // namespace

TEST_CASE("Values are made once, and before they are read") {
  for_random_graphs("made before read", [](const Workload& w) {
    std::vector<bool> there(w.tensors.size());
    for (std::size_t t = 0; t < w.tensors.size(); ++t) {
      const TensorRole role = w.tensors[t].role;
      there[t] = is_given(role) || role == TensorRole::parameter;
    }
    const auto arrive = [&](TensorId tensor) {
      RC_ASSERT(!there[static_cast<std::size_t>(tensor)]);
      there[static_cast<std::size_t>(tensor)] = true;
    };
    const auto walk = [&](const std::vector<Op>& ops) {
      for (const Op& op : ops) {
        for (const Operand& operand : op.operands)
          RC_ASSERT(there[static_cast<std::size_t>(operand.tensor)]);
        for (const Operand& result : op.results) arrive(result.tensor);
      }
    };
    for (const Block& block : w.blocks) {
      for (const TensorId carry : block.carries_in) arrive(carry);
      walk(block.forward);
    }
    for (auto block = w.blocks.rbegin(); block != w.blocks.rend(); ++block) {
      for (std::size_t t = 0; t < w.tensors.size(); ++t) {
        // The gradient of what the block carries out comes from the block after it; nothing in the
        // block makes it.
        const bool entering = w.tensors[t].role == TensorRole::activation_gradient &&
                              std::count(block->carries_out.begin(), block->carries_out.end(),
                                         w.tensors[t].primal) > 0;
        if (entering) arrive(static_cast<TensorId>(t));
      }
      walk(block->backward);
    }
  });
}

TEST_CASE("Storage that is taken over is not read again") {
  for_random_graphs("in place", [](const Workload& w) {
    for (const Block& block : w.blocks) {
      std::set<TensorId> overwritten;
      for (const Op& op : block.backward) {
        for (const Operand& operand : op.operands) RC_ASSERT(!overwritten.contains(operand.tensor));
        if (!op.in_place.empty()) overwritten.insert(op.operands[0].tensor);
      }
    }
  });
}

TEST_CASE("A gradient looks like what it is the gradient of") {
  for_random_graphs("same dims and dtype", [](const Workload& w) {
    for (const Tensor& tensor : w.tensors) {
      if (tensor.primal == no_tensor) continue;
      RC_ASSERT(tensor.dims == at(w, tensor.primal).dims);
      if (tensor.role != TensorRole::optimizer_state)
        RC_ASSERT(tensor.dtype == at(w, tensor.primal).dtype);
    }
  });
}

TEST_CASE("Ops see tensors at their shape") {
  for_random_graphs("operand shapes", [](const Workload& w) {
    for (const Block& block : w.blocks) {
      for (const auto* ops : {&block.forward, &block.backward, &block.optimizer}) {
        for (const Op& op : *ops) {
          for (const auto* operands : {&op.operands, &op.results}) {
            for (const Operand& operand : *operands) {
              RC_ASSERT(w.shape(operand.dims) == w.shape(at(w, operand.tensor).dims));
            }
          }
        }
      }
    }
  });
}

TEST_CASE("Every parameter is updated with a gradient that its last backward op made") {
  for_random_graphs("complete gradients", [](const Workload& w) {
    std::size_t updates = 0;
    for (const Block& block : w.blocks) {
      for (const Op& update : block.optimizer) {
        ++updates;
        const TensorId gradient = update.operands.back().tensor;
        TensorId last = no_tensor;
        for (auto b = w.blocks.rbegin(); b != w.blocks.rend(); ++b) {
          for (const Op& op : b->backward) {
            for (const Operand& result : op.results) {
              const Tensor& tensor = at(w, result.tensor);
              const bool is_gradient = tensor.role == TensorRole::parameter_gradient;
              if (is_gradient && tensor.primal == update.operands[0].tensor) last = result.tensor;
            }
          }
        }
        RC_ASSERT(gradient == last);
      }
    }
    RC_ASSERT(updates == parameters(w).size());
  });
}

TEST_CASE("A contraction's gradients span the space of the contraction") {
  // dx = dy w and dw = dy x run over the same factors as y = x w.
  for_random_graphs("same factors", [](const Workload& w) {
    for (const Block& block : w.blocks) {
      for (const Op& forward : block.forward) {
        if (kind_of(forward) != OpKind::einsum) continue;
        const std::vector<LabelId> made_of = factors(forward);
        const std::set<LabelId> space(made_of.begin(), made_of.end());
        for (const Op& op : block.backward) {
          if (kind_of(op) != OpKind::einsum || op.name != forward.name || op.recompute) continue;
          const std::vector<LabelId> labels = factors(op);
          RC_ASSERT(std::set<LabelId>(labels.begin(), labels.end()) == space);
        }
      }
    }
  });
}

TEST_CASE("Rematerialization changes neither gradients nor the model's operations") {
  CHECK(rc::check("same gradients", [] {
    const Json json = random_llama();
    const auto graph = [&](Rematerialization::Policy policy) {
      Workload w = build_workload({"random", "random.json", OwnedJson(json)}, {2, 8, DType::bf16});
      add_backward(w, {policy, {}});
      return w;
    };
    const auto own_ops = [](const Workload& w) {
      std::vector<std::string> ops;
      for (const Block& block : w.blocks) {
        for (const Op& op : block.backward) {
          if (!op.recompute) ops.push_back(op.name + " " + std::string(name_of(op.function)));
        }
      }
      return ops;
    };
    const Workload none = graph(Rematerialization::Policy::none);
    for (const auto policy :
         {Rematerialization::Policy::full, Rematerialization::Policy::selective}) {
      const Workload w = graph(policy);
      RC_ASSERT(own_ops(w) == own_ops(none));
      RC_ASSERT(model_flops(w) == model_flops(none));
      RC_ASSERT(kept_bytes(w) <= kept_bytes(none));
    }
  }));
}
