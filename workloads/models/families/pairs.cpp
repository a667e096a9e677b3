// Images with text as pairs that are told apart one by one (SigLIP), and images that are completed
// (masked autoencoders).
#include <cmath>

#include <utility>

#include "workloads/models/families/classifiers.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision.hpp"
#include "workloads/models/families/vision_rows.hpp"
#include "workloads/networks/rows.hpp"

namespace shardsim::models {
namespace {

LayerKind siglip_layer(const VisionSizes& n) {
  Attention attention = vision_attention(n, "self_attn", "out_proj");
  attention.fp32_softmax = true;
  return {.name = "encoder",
          .branches = {{.before = layer_norm("layer_norm1"), .body = attention},
                       {.before = layer_norm("layer_norm2"), .body = vision_mlp(n)}}};
}

// `flat`: SigLIP 2's images come as rows of patches, of as many as its table has positions.
Stack siglip_vision(const Config& c, const std::string& prefix, bool flat) {
  const VisionSizes n = read_vision(c, "gelu_pytorch_tanh");
  Stack stack = vision_stack(n, siglip_layer(n));
  stack.prefix = prefix + "encoder.layers";
  PatchEmbedding patches;
  const std::string at = prefix + "embeddings.";
  if (flat) {
    patches.channels = c.size("num_channels", 3);
    patches.patch = c.size("patch_size", 16);
    const std::int64_t rows = c.size("num_patches", 256);
    const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(rows))));
    if (side * side != rows) c.fail("num_patches", "is no square");
    patches.image = side * patches.patch;
    patches.flat_pixels = true;
  } else {
    patches = read_patches(c, at, 224, 16);
    patches.tokens.clear();
    patches.positions.clear();
  }
  patches.projection = at + "patch_embedding";
  patches.position_table = at + "position_embedding";
  stack.input = patches;
  stack.norm = layer_norm(prefix + "post_layernorm");
  if (c.flag("vision_use_head", true)) {
    stack.pool = AttentionPool{.name = prefix + "head",
                               .heads = n.heads,
                               .norm = layer_norm("layernorm"),
                               .mlp = vision_mlp(n)};
  }
  return stack;
}

Stack siglip_text(const Config& c, const std::string& prefix) {
  const VisionSizes n = read_vision(c, "gelu_pytorch_tanh");
  Stack stack = vision_stack(n, siglip_layer(n));
  stack.prefix = prefix + "encoder.layers";
  stack.input = TokenEmbedding{.name = prefix + "embeddings.token_embedding",
                               .vocab = c.size("vocab_size", 32000),
                               .width = n.hidden,
                               .positions = prefix + "embeddings.position_embedding",
                               .position_rows = c.size("max_position_embeddings", 64),
                               .position_numbers = PositionNumbers::stored};
  stack.norm = layer_norm(prefix + "final_layer_norm");
  stack.picks_last = true;
  stack.project = prefix + "head";
  stack.project_width = c.size("projection_size", n.hidden);
  stack.project_bias = true;
  return stack;
}

ModelSpec siglip_pair(const Config& c, bool flat) {
  // A class's defaults where the file leaves a part out.
  ModelSpec spec;
  spec.stacks.push_back(siglip_vision(part(c, "vision_config"), "vision_model.", flat));
  spec.stacks.push_back(siglip_text(part(c, "text_config"), "text_model."));
  spec.head.kind = HeadKind::pairs;
  return spec;
}

ModelSpec siglip(const Config& c) { return siglip_pair(c, /*flat=*/false); }
ModelSpec siglip2(const Config& c) { return siglip_pair(c, /*flat=*/true); }

ModelSpec siglip_images(const Config& c, bool flat) {
  ModelSpec spec;
  spec.stacks.push_back(siglip_vision(c, "", flat));
  spec.head.kind = HeadKind::none;
  return spec;
}

// Sorted: classes of the mean of all patches. The pooling head runs all the same.
ModelSpec siglip_classifier_of(const Config& c, bool flat) {
  if (const auto text = c.sub("text_config")) {  // which does not run
    text->pass_over({"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                     "max_position_embeddings", "hidden_act", "vocab_size", "attention_dropout",
                     "projection_size"});
  }
  ModelSpec spec;
  Stack stack = siglip_vision(part(c, "vision_config"), "vision_model.", flat);
  stack.pool_unread = stack.pool.has_value();
  spec.stacks.push_back(std::move(stack));
  spec.head = classifier_of(c, "classifier", HeadRows::mean, 0);
  return spec;
}

ModelSpec siglip_classifier(const Config& c) { return siglip_classifier_of(c, /*flat=*/false); }
ModelSpec siglip2_classifier(const Config& c) { return siglip_classifier_of(c, /*flat=*/true); }

ModelSpec siglip_vision_alone(const Config& c) { return siglip_images(c, /*flat=*/false); }
ModelSpec siglip2_vision_alone(const Config& c) { return siglip_images(c, /*flat=*/true); }

LayerKind mae_layer(const VisionSizes& n) {
  Attention attention = vision_attention(n, "attention", "o_proj");
  attention.fp32_softmax = true;
  return {
      .name = "encoder",
      .branches = {
          {.before = layer_norm("layernorm_before"), .body = attention, .dropout = n.dropout},
          {.before = layer_norm("layernorm_after"), .body = vision_mlp(n), .dropout = n.dropout}}};
}

Stack mae_encoder(const Config& c, const std::string& prefix) {
  const VisionSizes n = read_vision(c, "gelu");
  Stack stack = vision_stack(n, mae_layer(n));
  stack.prefix = prefix + "layers";
  PatchEmbedding patches = read_patches(c, prefix + "embeddings.", 224, 16);
  patches.fixed_positions = true;
  patches.kept = static_cast<std::int64_t>(static_cast<double>(patches.patches()) *
                                           (1 - c.rate("mask_ratio", 0.75)));
  stack.input = patches;
  stack.norm = layer_norm(prefix + "layernorm");
  return stack;
}

ModelSpec vit_mae(const Config& c) {
  c.pass_over({"decoder_hidden_size", "decoder_num_hidden_layers", "decoder_num_attention_heads",
               "decoder_intermediate_size", "norm_pix_loss"});
  ModelSpec spec;
  spec.stacks.push_back(mae_encoder(c, ""));
  spec.head.kind = HeadKind::none;
  return spec;
}

// An encoder of the quarter that is seen, a narrower decoder of all, the missing pixels.
ModelSpec vit_mae_pretraining(const Config& c) {
  ModelSpec spec;
  spec.stacks.push_back(mae_encoder(c, "vit."));
  spec.stacks[0].role = StackRole::encoder;
  VisionSizes n = read_vision(c, "gelu");
  n.hidden = c.size("decoder_hidden_size", 512);
  n.layers = c.size("decoder_num_hidden_layers", 8);
  n.heads = c.size("decoder_num_attention_heads", 16);
  n.width = c.size("decoder_intermediate_size", 2048);
  static_cast<void>(
      c.divided("decoder_hidden_size", n.hidden, "decoder_num_attention_heads", n.heads));
  c.pass_over({"norm_pix_loss"});  // the target's scale
  Stack stack = vision_stack(n, mae_layer(n));
  stack.prefix = "decoder.decoder_layers";
  const auto& patches = std::get<PatchEmbedding>(spec.stacks[0].input);
  stack.input = MaskedRows{.project = "decoder.decoder_embed",
                           .mask_token = "decoder.mask_token",
                           .positions = "decoder.decoder_pos_embed",
                           .rows = patches.rows()};
  stack.norm = layer_norm("decoder.decoder_norm");
  spec.head = {.kind = HeadKind::pixels,
               .name = "decoder.decoder_pred",
               .vocab = patches.patch * patches.patch * patches.channels,
               .bias = true};
  spec.stacks.push_back(std::move(stack));
  return spec;
}

// I-JEPA's: classes of the mean of all patches.
ModelSpec ijepa_classifier(const Config& c) {
  const VisionSizes n = read_vision(c, "gelu");
  const std::int64_t image = c.size("image_size", 224);
  const std::int64_t patch = c.size("patch_size", 16);
  static_cast<void>(c.divided("image_size", image, "patch_size", patch));
  const std::string at = "ijepa.embeddings.";
  Draft d;
  Ref x = d.rows(d.convolve(patches(at + "patch_embeddings.projection", n.hidden, patch),
                            d.image(c.size("num_channels", 3))));
  x = d.drop(n.dropout, d.table(at + "position_embeddings", x));
  x = d.norm(row_norm("ijepa.layernorm"), vit_layers(d, n, "ijepa.", x));
  d.classes(d.linear({.name = "classifier", .out = labels_of(c)}, d.mean(x)));
  ModelSpec spec;
  spec.network = d.finish({.side = image, .coarsest = patch, .takes_one_side = true});
  spec.head.kind = HeadKind::none;
  return spec;
}

// CLIP's images sorted: classes of the mean of all patches, in front of the norm.
ModelSpec clip_classifier(const Config& c) {
  c.pass_over({"projection_dim"});
  if (const auto text = c.sub("text_config")) {  // which does not run
    text->pass_over({"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                     "max_position_embeddings", "hidden_act", "vocab_size", "attention_dropout"});
  }
  ModelSpec spec;
  Stack stack = clip_vision(part(c, "vision_config"), "vision_model.");
  stack.norm_first_only = false;
  const Norm idle = std::exchange(stack.norm, {});
  spec.stacks.push_back(std::move(stack));
  spec.head = {.kind = HeadKind::classification,
               .name = "classifier",
               .vocab = labels_of(c),
               .bias = true,
               .idle_norm = idle,
               .rows = HeadRows::mean_of_further};
  return spec;
}

}  // namespace

std::vector<Family> pair_families() {
  return {{"CLIPForImageClassification", "clip", clip_classifier},
          {"MetaClip2ForImageClassification", "metaclip_2", clip_classifier},
          {"SiglipModel", "siglip", siglip},
          {"SiglipVisionModel", "siglip_vision_model", siglip_vision_alone},
          {"SiglipForImageClassification", "siglip", siglip_classifier},
          {"Siglip2Model", "siglip2", siglip2},
          {"Siglip2ForImageClassification", "siglip2", siglip2_classifier},
          {"Siglip2VisionModel", "siglip2_vision_model", siglip2_vision_alone},
          {"IJepaForImageClassification", "ijepa", ijepa_classifier},
          {"ViTMAEForPreTraining", "vit_mae", vit_mae_pretraining},
          {"ViTMAEModel", "vit_mae", vit_mae}};
}

}  // namespace shardsim::models
