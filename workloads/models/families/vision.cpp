// Transformers of images, and pairs of them with text.
#include "workloads/models/families/vision.hpp"

#include "workloads/models/families/encoders.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {

VisionSizes read_vision(const Config& c, std::string_view activation) {
  VisionSizes n;
  n.hidden = c.size("hidden_size", 768);
  n.layers = c.size("num_hidden_layers", 12);
  n.heads = c.size("num_attention_heads", 12);
  n.width = c.size("intermediate_size", 3072);
  n.activation = c.activation("hidden_act", activation);
  n.qkv_bias = c.flag("qkv_bias", true);
  n.dropout = c.rate("hidden_dropout_prob", 0);
  n.attention_dropout = c.rate("attention_probs_dropout_prob|attention_dropout", 0);
  static_cast<void>(c.divided("hidden_size", n.hidden, "num_attention_heads", n.heads));
  return n;
}

Attention vision_attention(const VisionSizes& n, const std::string& name, const std::string& out) {
  Attention attention;
  attention.name = name;
  attention.o = out;
  attention.heads = attention.kv_heads = n.heads;
  attention.head_dim = n.hidden / n.heads;
  set_biases(attention, n.qkv_bias, true);
  attention.dropout = n.attention_dropout;
  attention.bidirectional = true;
  attention.fp32_softmax = false;
  return attention;
}

Mlp vision_mlp(const VisionSizes& n) {
  Mlp mlp;
  mlp.width = n.width;
  mlp.form = MlpForm::plain;
  mlp.activation = n.activation;
  mlp.bias = true;
  mlp.up = "fc1";
  mlp.down = "fc2";
  return mlp;
}

Stack vision_stack(const VisionSizes& n, const LayerKind& layer) {
  Stack stack;
  stack.hidden = n.hidden;
  Layers all = Layers::of(n.layers, [&](std::int64_t) { return layer; });
  stack.kinds = std::move(all.kinds);
  stack.order = std::move(all.order);
  return stack;
}

namespace {

std::int64_t square_size(const Config& c, std::string_view key, std::int64_t otherwise) {
  return c.size(key, otherwise);
}

}  // namespace

PatchEmbedding read_patches(const Config& c, const std::string& at, std::int64_t image,
                            std::int64_t patch) {
  PatchEmbedding patches;
  patches.projection = at + "patch_embeddings.projection";
  patches.channels = c.size("num_channels", 3);
  patches.image = square_size(c, "image_size", image);
  patches.patch = square_size(c, "patch_size", patch);
  static_cast<void>(c.divided("image_size", patches.image, "patch_size", patches.patch));
  patches.tokens = {at + "cls_token"};
  patches.positions = at + "position_embeddings";
  return patches;
}

std::int64_t labels_of(const Config& c) {
  if (c.given("num_labels")) return c.size("num_labels");
  constexpr std::int64_t two = 2;  // transformers' default
  if (const auto names = c.json().find("id2label")) {
    return static_cast<std::int64_t>(names->members().size());
  }
  return two;
}

namespace {

ModelSpec vit_like(const Config& c, const std::string& prefix,
                   const std::vector<std::string>& tokens) {
  const VisionSizes n = read_vision(c, "gelu");
  Attention attention = vision_attention(n, "attention", "o_proj");
  attention.fp32_softmax = true;
  LayerKind layer{
      .name = "encoder",
      .branches = {
          {.before = layer_norm("layernorm_before"), .body = attention, .dropout = n.dropout},
          {.before = layer_norm("layernorm_after"), .body = vision_mlp(n), .dropout = n.dropout}}};
  ModelSpec spec;
  Stack stack = vision_stack(n, layer);
  stack.prefix = prefix + "layers";
  PatchEmbedding patches = read_patches(c, prefix + "embeddings.", 224, 16);
  patches.tokens.clear();
  const std::string embeddings = prefix + "embeddings.";
  for (const std::string& token : tokens) patches.tokens.push_back(embeddings + token);
  patches.dropout = n.dropout;
  stack.input = patches;
  stack.norm = layer_norm(prefix + "layernorm");
  spec.stacks.push_back(std::move(stack));
  spec.head = {
      .kind = HeadKind::classification, .name = "classifier", .vocab = labels_of(c), .bias = true};
  return spec;
}

ModelSpec vit(const Config& c) { return vit_like(c, "vit.", {"cls_token"}); }
ModelSpec deit(const Config& c) {
  return vit_like(c, "deit.", {"cls_token", "distillation_token"});
}

// The layers alone; a pooler behind them where the class has one.
ModelSpec without_classifier(ModelSpec spec, bool pools) {
  spec.head = {.kind = HeadKind::none};
  if (pools) spec.head = {.kind = HeadKind::pooler, .name = "pooler.dense"};
  return spec;
}

ModelSpec pooled_vit(const Config& c, const std::vector<std::string>& tokens) {
  c.pass_over({"encoder_stride", "pooler_output_size"});
  if (c.text("pooler_act", "tanh") != "tanh") c.fail("pooler_act", "only \"tanh\" is supported");
  return without_classifier(vit_like(c, "", tokens), /*pools=*/true);
}

ModelSpec vit_alone(const Config& c) { return pooled_vit(c, {"cls_token"}); }
ModelSpec deit_alone(const Config& c) { return pooled_vit(c, {"cls_token", "distillation_token"}); }
ModelSpec vit_msn(const Config& c) {
  return without_classifier(vit_like(c, "", {"cls_token"}), /*pools=*/false);
}
// Patches alone: what is masked is told from what is seen, without a row for the whole.
ModelSpec ijepa(const Config& c) {
  return without_classifier(vit_like(c, "", {}), /*pools=*/false);
}

// A learned scale of each branch; the largest has gated MLPs, their width rounded up to eights.
ModelSpec dinov2_like(const Config& c, const std::string& prefix, std::int64_t registers) {
  VisionSizes n = read_vision(c, "gelu");
  n.width = n.hidden * c.size("mlp_ratio", 4);
  Mlp mlp = vision_mlp(n);
  if (c.flag("use_swiglu_ffn", false)) {
    constexpr std::int64_t multiple = 8;
    mlp.form = MlpForm::gated;
    mlp.activation = "silu";
    mlp.width = (n.width * 2 / 3 + multiple - 1) / multiple * multiple;
    mlp.up = "up_proj";
    mlp.down = "down_proj";
  }
  LayerKind layer{
      .name = "encoder",
      .branches = {{.before = layer_norm("norm1"),
                    .body = vision_attention(n, "attention", "o_proj"),
                    .scale = "layer_scale1.lambda1"},
                   {.before = layer_norm("norm2"), .body = mlp, .scale = "layer_scale2.lambda1"}}};
  ModelSpec spec;
  Stack stack = vision_stack(n, layer);
  stack.prefix = prefix + "encoder.layer";
  const std::string at = prefix + "embeddings.";
  PatchEmbedding patches = read_patches(c, at, 224, registers > 0 ? 16 : 14);
  if (c.flag("use_mask_token", true)) patches.mask_token = at + "mask_token";
  if (registers > 0) patches.registers = at + "register_tokens";
  patches.register_rows = registers;
  patches.dropout = n.dropout;
  stack.input = patches;
  stack.norm = layer_norm(prefix + "layernorm");
  spec.stacks.push_back(std::move(stack));
  spec.head.kind = HeadKind::none;
  return spec;
}

// Rotary positions of the patches, a part of the class token's and the registers' rows put before.
ModelSpec dinov3(const Config& c) {
  VisionSizes n = read_vision(c, "gelu");
  Attention attention = vision_attention(n, "attention", "o_proj");
  attention.q_bias = c.flag("query_bias", true);
  attention.k_bias = c.flag("key_bias", false);
  attention.v_bias = c.flag("value_bias", true);
  attention.o_bias = c.flag("proj_bias", true);
  attention.rotary.dims = attention.head_dim;
  attention.rotary.concatenated = true;
  Mlp mlp = vision_mlp(n);
  mlp.form = c.flag("use_gated_mlp", false) ? MlpForm::gated : MlpForm::plain;
  mlp.up = "up_proj";
  mlp.down = "down_proj";
  mlp.bias = c.flag("mlp_bias", true);
  if (c.rate("drop_path_rate", 0) > 0) c.fail("drop_path_rate", "only 0 is supported");
  c.pass_over({"pos_embed_shift", "pos_embed_jitter", "pos_embed_rescale"});
  LayerKind layer{
      .name = "encoder",
      .branches = {
          {.before = layer_norm("norm1"), .body = attention, .scale = "layer_scale1.lambda1"},
          {.before = layer_norm("norm2"), .body = mlp, .scale = "layer_scale2.lambda1"}}};
  ModelSpec spec;
  Stack stack = vision_stack(n, layer);
  stack.prefix = "model.layer";
  PatchEmbedding patches = read_patches(c, "embeddings.", 224, 16);
  patches.projection = "embeddings.patch_embeddings";
  patches.positions.clear();
  patches.registers = "embeddings.register_tokens";
  patches.register_rows = c.count("num_register_tokens", 0);
  if (patches.register_rows == 0) {
    c.fail("num_register_tokens", "a model without registers is not supported");
  }
  spec.apart.push_back({"embeddings.mask_token", {1, 1, n.hidden}});
  stack.input = patches;
  stack.norm = layer_norm("norm");
  spec.stacks.push_back(std::move(stack));
  spec.head.kind = HeadKind::none;
  return spec;
}

// Of the class token and the mean of the patches, side by side.
ModelSpec with_classifier(const Config& c, ModelSpec spec) {
  spec.head = {.kind = HeadKind::classification,
               .name = "classifier",
               .vocab = labels_of(c),
               .bias = true,
               .beside_mean = true};
  return spec;
}

ModelSpec dinov2(const Config& c) { return dinov2_like(c, "", 0); }
ModelSpec dinov2_classifier(const Config& c) {
  return with_classifier(c, dinov2_like(c, "dinov2.", 0));
}
ModelSpec dinov2_registers(const Config& c) {
  return dinov2_like(c, "", c.size("num_register_tokens", 4));
}
ModelSpec dinov2_registers_classifier(const Config& c) {
  return with_classifier(
      c, dinov2_like(c, "dinov2_with_registers.", c.size("num_register_tokens", 4)));
}

}  // namespace

Config part(const Config& c, std::string_view key) {
  if (auto config = c.sub(key)) return *std::move(config);
  c.json().fail(std::string("missing key \"") + std::string(key) + "\"");
}

namespace {

LayerKind clip_layer(const VisionSizes& n, bool causal) {
  Attention attention = vision_attention(n, "self_attn", "out_proj");
  attention.bidirectional = !causal;
  attention.fp32_softmax = true;
  return {.name = "encoder",
          .branches = {{.before = layer_norm("layer_norm1"), .body = attention},
                       {.before = layer_norm("layer_norm2"), .body = vision_mlp(n)}}};
}

}  // namespace

Stack clip_vision(const Config& c, const std::string& prefix, std::int64_t image) {
  const VisionSizes n = read_vision(c, "quick_gelu");
  Stack stack = vision_stack(n, clip_layer(n, /*causal=*/false));
  stack.prefix = prefix + "encoder.layers";
  PatchEmbedding patches = read_patches(c, prefix + "embeddings.", image, 32);
  patches.projection = prefix + "embeddings.patch_embedding";
  patches.bias = false;
  patches.tokens = {prefix + "embeddings.class_embedding"};
  patches.flat_tokens = true;
  patches.positions.clear();
  patches.position_table = prefix + "embeddings.position_embedding";
  patches.norm = layer_norm(prefix + "pre_layrnorm");
  stack.input = patches;
  stack.norm = layer_norm(prefix + "post_layernorm");
  stack.norm_first_only = true;
  return stack;
}

Stack clip_text(const Config& c, const std::string& prefix, std::int64_t places) {
  VisionSizes n = read_vision(c, "quick_gelu");
  n.hidden = c.size("hidden_size", 512);
  n.heads = c.size("num_attention_heads", 8);
  n.width = c.size("intermediate_size", 2048);
  Stack stack = vision_stack(n, clip_layer(n, /*causal=*/true));
  stack.prefix = prefix + "encoder.layers";
  stack.input = TokenEmbedding{.name = prefix + "embeddings.token_embedding",
                               .vocab = c.size("vocab_size", 49408),
                               .width = n.hidden,
                               .positions = prefix + "embeddings.position_embedding",
                               .position_rows = c.size("max_position_embeddings", places),
                               .position_numbers = PositionNumbers::stored};
  stack.norm = layer_norm(prefix + "final_layer_norm");
  stack.picks_row = true;
  return stack;
}

namespace {

ModelSpec clip_pair(const Config& c, Stack text, std::int64_t usual_width = 512) {
  ModelSpec spec;
  spec.stacks.push_back(clip_vision(part(c, "vision_config"), "vision_model."));
  spec.stacks.push_back(std::move(text));
  spec.head = {.kind = HeadKind::contrastive,
               .vocab = c.size("projection_dim", usual_width),
               .projections = {"visual_projection", "text_projection"}};
  return spec;
}

ModelSpec clip(const Config& c) {
  return clip_pair(c, clip_text(part(c, "text_config"), "text_model."));
}

// BERT beside the images, of which the first row is read.
ModelSpec chinese_clip(const Config& c) {
  ModelSpec bert = bert_like(part(c, "text_config"), "text_model.", /*roberta=*/false);
  bert.stacks[0].norm_first_only = true;
  return clip_pair(c, std::move(bert.stacks[0]));
}

// XLM-RoBERTa beside the images, all of whose rows are projected and the first one read.
ModelSpec alt_clip(const Config& c) {
  const Config text = part(c, "text_config");
  text.pass_over({"pooler_fn"});
  ModelSpec roberta = bert_like(text, "text_model.roberta.", /*roberta=*/true);
  auto& input = std::get<TokenEmbedding>(roberta.stacks[0].input);
  input.type_rows = text.size("type_vocab_size", 1);
  Stack& stack = roberta.stacks[0];
  stack.prefix = "text_model.roberta.encoder.layers";
  stack.norm = layer_norm("text_model.pre_LN");
  stack.project = "text_model.transformation";
  stack.project_width = text.size("project_dim", 768);
  stack.project_bias = stack.projects_rows = true;
  stack.picks_last = true;  // a view of one row
  return clip_pair(c, std::move(stack), 768);
}

// One side of a pair, projected or not.
ModelSpec one_side(const Config& c, Stack stack, const std::string& projection) {
  ModelSpec spec;
  if (projection.empty()) {
    c.pass_over({"projection_dim"});
  } else {
    stack.project = projection;
    stack.project_width = c.size("projection_dim", 512);
  }
  spec.stacks.push_back(std::move(stack));
  spec.head.kind = HeadKind::none;
  return spec;
}

// A file may hold both sides' configurations.
Config side_of(const Config& c, std::string_view key) {
  auto own = c.sub(key);
  return own ? *std::move(own) : c;
}

ModelSpec clip_text_alone(const Config& c) {
  return one_side(c, clip_text(side_of(c, "text_config"), ""), "");
}
ModelSpec clip_text_projected(const Config& c) {
  return one_side(c, clip_text(side_of(c, "text_config"), "text_model."), "text_projection");
}
ModelSpec clip_vision_alone(const Config& c) {
  return one_side(c, clip_vision(side_of(c, "vision_config"), ""), "");
}
ModelSpec clip_vision_projected(const Config& c) {
  return one_side(c, clip_vision(side_of(c, "vision_config"), "vision_model."),
                  "visual_projection");
}

}  // namespace

std::vector<Family> vision_families() {
  return {{"ViTForImageClassification", "vit", vit},
          {"DeiTForImageClassification", "deit", deit},
          {"Dinov2Model", "dinov2", dinov2},
          {"Dinov2ForImageClassification", "dinov2", dinov2_classifier},
          {"Dinov2WithRegistersModel", "dinov2_with_registers", dinov2_registers},
          {"Dinov2WithRegistersForImageClassification", "dinov2_with_registers",
           dinov2_registers_classifier},
          {"DINOv3ViTModel", "dinov3_vit", dinov3},
          {"ViTModel", "vit", vit_alone},
          {"DeiTModel", "deit", deit_alone},
          {"ViTMSNForImageClassification", "vit_msn", vit},
          {"ViTMSNModel", "vit_msn", vit_msn},
          {"IJepaModel", "ijepa", ijepa},
          {"CLIPModel", "clip", clip},
          {"MetaClip2Model", "metaclip_2", clip},
          {"ChineseCLIPModel", "chinese_clip", chinese_clip},
          {"AltCLIPModel", "altclip", alt_clip},
          {"CLIPTextModel", "clip_text_model", clip_text_alone},
          {"CLIPTextModelWithProjection", "clip_text_model", clip_text_projected},
          {"CLIPVisionModel", "clip_vision_model", clip_vision_alone},
          {"CLIPVisionModelWithProjection", "clip_vision_model", clip_vision_projected}};
}

}  // namespace shardsim::models
