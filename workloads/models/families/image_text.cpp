// Models that read images and text. A step here is one of text alone: the images' part counts with
// its parameters and does not run.
#include "workloads/models/families/image_text.hpp"
#include "base/json.hpp"

namespace shardsim::models {
namespace {

ModelSpec llava(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec = inside(read_text(text, "llama"), "model.language_model.", "lm_head",
                          is_tied(c, text, false, TiedBy::either));
  add_two_linears(spec, c, add_tower(spec, images, "model.vision_tower.", "clip_vision_model"));
  return spec;
}

ModelSpec gemma3(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec =
      inside(gemma3_text(text), "model.language_model.", "lm_head", is_tied(c, text, true));
  constexpr std::int64_t usual_image_token = 262144;  // configuration_gemma3.py
  copy_numbers_of_images(c, spec, usual_image_token);
  const std::int64_t hidden = add_siglip_tower(spec, images, "model.vision_tower.");
  spec.apart.push_back({"model.multi_modal_projector.mm_input_projection_weight",
                        {hidden, spec.stacks.back().hidden}});
  add_norm(spec, "model.multi_modal_projector.mm_soft_emb_norm", hidden, false);
  return spec;
}

ModelSpec mistral3(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  // Whatever its text says.
  ModelSpec spec = inside(read_text(text, "mistral"), "model.language_model.", "lm_head",
                          c.flag("tie_word_embeddings", true));
  add_pixtral_projector(spec, c, add_pixtral_tower(spec, images, "model.vision_tower."));
  return spec;
}

ModelSpec qwen2_vl(const Config& c) {
  const auto own = c.sub("text_config");
  const Config& text = own ? *own : c;
  const Config images = images_of(c);
  ModelSpec spec = inside(qwen2(text), "model.language_model.", "lm_head",
                          is_tied(c, text, false, TiedBy::either));
  set_tables_by_example(spec);
  const std::int64_t hidden = images.size("embed_dim", 1280);
  const std::string at = "model.visual.";
  const std::int64_t merged = add_qwen_patches(spec, images, at, hidden, 14);
  add_norm(spec, at + "merger.ln_q", hidden, true);
  add_linear(spec, at + "merger.mlp.0", merged, merged, true);
  add_linear(spec, at + "merger.mlp.2", images.size("hidden_size", 3584), merged, true);
  add_silent(
      spec,
      tower(
          at + "blocks", hidden, images.size("depth", 32), images.size("num_heads", 16),
          hidden * images.size("mlp_ratio", 4),
          {.norm1 = "norm1", .norm2 = "norm2", .attention = "attn", .out = "proj", .qkv = "qkv"}));
  return spec;
}

ModelSpec qwen2_5_vl(const Config& c) {
  const auto own = c.sub("text_config");
  const Config& text = own ? *own : c;
  ModelSpec spec = inside(qwen2(text), "model.language_model.", "lm_head",
                          is_tied(c, text, false, TiedBy::either));
  set_tables_by_example(spec);
  add_qwen2_5_images(spec, images_of(c), "model.visual.");
  return spec;
}

ModelSpec qwen3_vl(const Config& c) { return qwen3_vl_like(c, qwen3, 3); }
ModelSpec qwen3_vl_moe(const Config& c) { return qwen3_vl_like(c, qwen3_vl_moe_text, 3); }
ModelSpec llama4(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec = inside(llama4_text(text), "language_model.model.", "language_model.lm_head",
                          is_tied(c, text, false, TiedBy::text));
  const std::int64_t hidden = images.size("hidden_size", 768);
  const std::int64_t patch = images.size("patch_size", 14);
  const std::int64_t side = images.size("image_size", 448) / patch;
  const std::int64_t in = images.size("projector_input_dim", 4096);
  images.pass_over({"pixel_shuffle_ratio"});  // intermediate_size says the width that it gives
  const std::string at = "vision_model.";
  spec.apart.push_back({at + "class_embedding", {hidden}});
  spec.apart.push_back({at + "positional_embedding_vlm", {side * side + 1, hidden}});
  add_linear(spec, at + "patch_embedding.linear", hidden,
             images.size("num_channels", 3) * patch * patch, false);
  add_norm(spec, at + "layernorm_pre", hidden, true);
  add_norm(spec, at + "layernorm_post", hidden, true);
  const std::int64_t width = images.size("intermediate_size", 5632);
  const std::int64_t out = images.size("projector_output_dim", 4096);
  add_linear(spec, at + "vision_adapter.mlp.fc1", in, width, false);
  add_linear(spec, at + "vision_adapter.mlp.fc2", out, out, false);
  add_linear(spec, "multi_modal_projector.linear_1", spec.stacks[0].hidden,
             images.size("vision_output_dim", 7680), false);
  add_silent(
      spec,
      tower(at + "model.layers", hidden, images.size("num_hidden_layers", 34),
            images.size("num_attention_heads", 16), width,
            {.norm1 = "input_layernorm", .norm2 = "post_attention_layernorm", .out = "o_proj"}));
  return spec;
}

}  // namespace

std::vector<Family> image_text_families() {
  return {{"LlavaForConditionalGeneration", "llava", llava},
          {"Gemma3ForConditionalGeneration", "gemma3", gemma3},
          {"Mistral3ForConditionalGeneration", "mistral3", mistral3},
          {"Qwen2VLForConditionalGeneration", "qwen2_vl", qwen2_vl},
          {"Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", qwen2_5_vl},
          {"Qwen3VLForConditionalGeneration", "qwen3_vl", qwen3_vl},
          {"Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", qwen3_vl_moe},
          {"Llama4ForConditionalGeneration", "llama4", llama4}};
}

}  // namespace shardsim::models
