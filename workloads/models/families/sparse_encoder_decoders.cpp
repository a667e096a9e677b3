// Encoders with decoders whose layers have experts: Switch Transformers, NLLB.
#include <functional>

#include "workloads/models/families/encoder_decoders.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

// Each layer of a stack anew, by number.
void remake(Stack& stack, const std::function<LayerKind(LayerKind, std::int64_t)>& make) {
  Layers layers;
  for (std::size_t i = 0; i < stack.order.size(); ++i) {
    const LayerKind& before = stack.kinds[static_cast<std::size_t>(stack.order[i])];
    layers.add(make(before, static_cast<std::int64_t>(i)));
  }
  stack.kinds = std::move(layers.kinds);
  stack.order = std::move(layers.order);
}

// Of as many MLPs as there are experts, without gates, modules of their own.
Experts experts_like(const Config& c, const Mlp& mlp, std::int64_t number, std::int64_t per_token) {
  Experts experts;
  experts.name = mlp.name;
  experts.experts = c.size("num_experts", number);
  experts.per_token = per_token;
  experts.width = mlp.width;
  experts.activation = mlp.activation;
  experts.gate = ExpertsGate::plain;
  experts.matrices = ExpertMatrices::modules;
  experts.bias = mlp.bias;
  experts.gate_up = mlp.up;
  experts.down = mlp.down;
  experts.inner_dropout = mlp.inner_dropout;
  experts.router = {.name = "router.classifier",
                    .fp32 = c.text("router_dtype", "float32") == "float32",
                    .bias = c.flag("router_bias", false)};
  if (experts.per_token > experts.experts) c.fail("num_experts", "is less than a token visits");
  return experts;
}

// Of experts, which no layer may have. How many rows one takes, and in which order, changes
// nothing: routing is taken as balanced.
void pass_over_experts(const Config& c) {
  c.pass_over({"num_experts", "router_dtype", "router_bias", "expert_capacity",
               "router_ignore_padding_tokens", "add_router_probs"});
}

// Every so many layers: of a stack with `sparse` of them.
std::int64_t switch_step(const Config& c, const std::string& side, std::int64_t layers) {
  const std::int64_t sparse = c.count("num_sparse_" + side + "_layers", 3);
  c.pass_over({"encoder_sparse_step", "decoder_sparse_step"});  // made of these
  return sparse > 0 ? layers / sparse : layers;
}

// T5 whose token visits one of an MLP's experts.
ModelSpec switch_transformers(const Config& c) {
  pass_over_experts(c);
  ModelSpec spec = t5_like(c, {});
  if (!c.flag("tie_word_embeddings", true)) untie_tables(spec);
  for (Stack& stack : spec.stacks) {
    const bool decodes = stack.role == StackRole::main;
    const std::int64_t step = switch_step(c, decodes ? "decoder" : "encoder",
                                          static_cast<std::int64_t>(stack.order.size()));
    remake(stack, [&](LayerKind layer, std::int64_t i) {
      auto mlp = std::get<Mlp>(layer.branches.back().body);
      mlp.name = decodes ? "layer.2.mlp" : "layer.1.mlp";
      mlp.activation = c.activation("dense_act_fn", "relu");
      layer.branches.back().body = mlp;
      if (step > 0 && (step == 1 || i % step == 1)) {
        layer.name += ", experts";
        layer.branches.back().body = experts_like(c, mlp, 8, 1);
      }
      return layer;
    });
  }
  return spec;
}

ModelSpec nllb_moe(const Config& c) {
  // How the second expert is chosen, and what is dropped.
  c.pass_over({"second_expert_policy", "normalize_router_prob_before_dropping",
               "batch_prioritized_routing", "moe_eval_capacity_token_fraction",
               "moe_token_dropout"});
  pass_over_experts(c);
  ModelSpec spec = m2m100(c);
  for (Stack& stack : spec.stacks) {
    const bool decodes = stack.role == StackRole::main;
    const std::int64_t step = c.count(decodes ? "decoder_sparse_step" : "encoder_sparse_step", 4);
    remake(stack, [&](LayerKind layer, std::int64_t i) {
      if (decodes) {
        std::get<Attention>(layer.branches[1].body).name = "cross_attention";
        layer.branches[1].before.name = "cross_attention_layer_norm";
      }
      Branch& last = layer.branches.back();
      last.before.name = "ff_layer_norm";
      auto mlp = std::get<Mlp>(last.body);
      mlp.name = "ffn";
      last.body = mlp;
      last.dropout = mlp.inner_dropout;  // the class has one rate for both
      if (step > 0 && (i + 1) % step == 0) {
        layer.name += ", experts";
        Experts experts = experts_like(c, mlp, 128, 2);
        experts.router.renormalize = Renormalize::clamped;
        last.body = experts;
      }
      return layer;
    });
  }
  return spec;
}

}  // namespace

std::vector<Family> sparse_encoder_decoder_families() {
  return {
      {"SwitchTransformersForConditionalGeneration", "switch_transformers", switch_transformers},
      {"NllbMoeForConditionalGeneration", "nllb-moe", nllb_moe}};
}

}  // namespace shardsim::models
