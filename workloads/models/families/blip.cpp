// BLIP (arXiv:2201.12086): BERT's layers write of an image, to which each attends beside the words
// before. Images run: what they leave is the encoder's states.
//
// Names and defaults as in transformers 5.23, modeling_blip.py and modeling_blip_text.py.
#include "workloads/models/families/encoders.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision.hpp"

namespace shardsim::models {
namespace {

// A ViT whose queries, keys and values are one matrix, multiplied out.
Stack blip_vision(const Config& c, const std::string& prefix) {
  const VisionSizes n = read_vision(c, "gelu");
  Attention attention = vision_attention(n, "self_attn", "projection");
  attention.form = QkvForm::fused;
  attention.qkv = "qkv";
  attention.plain_only = true;
  c.pass_over({"projection_dim"});
  Stack stack =
      vision_stack(n, {.name = "encoder",
                       .branches = {{.before = layer_norm("layer_norm1"), .body = attention},
                                    {.before = layer_norm("layer_norm2"), .body = vision_mlp(n)}}});
  stack.role = StackRole::encoder;
  stack.prefix = prefix + "encoder.layers";
  PatchEmbedding patches = read_patches(c, prefix + "embeddings.", 384, 16);
  patches.projection = prefix + "embeddings.patch_embedding";
  patches.tokens = {prefix + "embeddings.class_embedding"};
  patches.positions = prefix + "embeddings.position_embedding";
  stack.input = patches;
  stack.norm = layer_norm(prefix + "post_layernorm");
  return stack;
}

// BERT's layers with attention to the image between.
ModelSpec blip_text(const Config& c, const std::string& prefix) {
  const Sizes n = read_sizes(c, {.tied = true, .activation = "gelu"});
  LayerKind layer = bert_layer(c, n);
  for (Branch& branch : layer.branches) branch.dropout = c.rate("hidden_dropout_prob", 0);
  auto& attention = std::get<Attention>(layer.branches[0].body);
  attention.plain_only = true;
  attention.bidirectional = false;
  attention.dropout = c.rate("attention_probs_dropout_prob", 0);
  Branch cross = layer.branches[0];
  auto& crossing = std::get<Attention>(cross.body);
  crossing.name = "crossattention";
  crossing.cross = true;
  cross.joined = layer_norm("crossattention.output.LayerNorm");
  layer.branches.insert(layer.branches.begin() + 1, cross);
  layer.name = "decoder";
  c.pass_over({"encoder_hidden_size", "projection_dim", "label_smoothing", "is_decoder"});
  ModelSpec spec = decoder(n, layer);
  Stack& stack = spec.stacks[0];
  stack.prefix = prefix + "encoder.layer";
  stack.norm = {};
  stack.input = bert_words(c, n, prefix + "embeddings.", c.rate("hidden_dropout_prob", 0));
  return spec;
}

ModelSpec blip(const Config& c) {
  const Config text = part(c, "text_config");
  c.pass_over({"projection_dim", "image_text_hidden_size", "label_smoothing"});
  const std::string at = "text_decoder.cls.predictions.";
  // Either configuration ties.
  const Config& ties = c.flag("tie_word_embeddings", true) ? c : text;
  ModelSpec spec =
      with_masked_head(blip_text(text, "text_decoder.bert."), ties, at + "decoder", at + "bias",
                       at + "transform.dense", at + "transform.LayerNorm");
  spec.head.activation = text.activation("hidden_act", "gelu");
  spec.head.shifted = true;
  spec.head.causal_loss = false;
  text.pass_over({"tie_word_embeddings"});
  spec.stacks.insert(spec.stacks.begin(), blip_vision(part(c, "vision_config"), "vision_model."));
  return spec;
}

}  // namespace

std::vector<Family> blip_families() { return {{"BlipForConditionalGeneration", "blip", blip}}; }

}  // namespace shardsim::models
