// Models that read pages: GOT-OCR 2, LightOn-OCR, PaddleOCR-VL, Qianfan-OCR, Granite Docling,
// MiniCPM-V 4.6 and its kin for pages. A step here is one of text alone, as image_text.cpp has it.
//
// Source: transformers 5.23.0, modeling_X.py of each.
#include <fmt/format.h>

#include "base/json.hpp"
#include "workloads/models/families/image_text.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

constexpr const char* text_prefix = "model.language_model.";

// Segment Anything's encoder, whose picture two convolutions make smaller.
ModelSpec got_ocr2(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = nested(c, "vision_config");
  c.pass_over({"image_seq_length"});
  ModelSpec spec =
      inside(read_text(text, "qwen2"), text_prefix, "lm_head", tied_anywhere(c, text, true));
  add_network(spec, sam_encoder(images, "model.vision_tower."), images.json().place());
  const std::int64_t channels = images.size("output_channels", 256);
  const std::int64_t out = spec.stacks.back().hidden;
  constexpr std::int64_t taps = 3;
  const std::string at = "model.multi_modal_projector.";
  add_convolution(spec, at + "conv_upsampler1", {2 * channels, channels, taps, taps}, false);
  add_convolution(spec, at + "conv_upsampler2", {out, 2 * channels, taps, taps}, false);
  add_linear(spec, at + "multimodal_projector", out, out, true);
  return spec;
}

// Mistral 3's tower and projector before Qwen3.
ModelSpec lighton_ocr(const Config& c) {
  const Config text = nested(c, "text_config");
  ModelSpec spec =
      inside(read_text(text, "qwen3"), text_prefix, "lm_head", tied_anywhere(c, text, true));
  const std::int64_t hidden = add_pixtral_tower(spec, images_of(c), "model.vision_encoder.");
  const std::int64_t merge = c.size("spatial_merge_size", 2);
  const std::int64_t out = spec.stacks.back().hidden;
  const std::string at = "model.vision_projection.";
  add_norm(spec, at + "norm", hidden, false);
  add_linear(spec, at + "patch_merger.merging_layer", hidden, hidden * merge * merge, false);
  add_linear(spec, at + "linear_1", out, hidden, false);
  add_linear(spec, at + "linear_2", out, out, false);
  return spec;
}

ModelSpec paddleocr_vl(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  ModelSpec spec = inside(read_as(text, "Ernie4_5ForCausalLM"), text_prefix, "lm_head",
                          tied_anywhere(c, text, true));
  const std::int64_t hidden = add_siglip_tower(spec, images, "model.visual.vision_model.",
                                               {.hidden = 1152,
                                                .patch = 14,
                                                .heads = 16,
                                                .head = false,
                                                .image = 384,
                                                .width = 4304,
                                                .layers = 27});
  const std::int64_t merge = images.size("spatial_merge_size", 2);
  const std::int64_t merged = hidden * merge * merge;
  add_norm(spec, "model.projector.pre_norm", hidden, true);
  add_linear(spec, "model.projector.linear_1", merged, merged, true);
  add_linear(spec, "model.projector.linear_2", spec.stacks.back().hidden, merged, true);
  return spec;
}

ModelSpec qianfan_ocr(const Config& c) {
  nested(c, "vision_config").pass_over({"drop_path_rate"});
  return internvl_like(c, "qwen3", /*tied=*/false, "layers");
}

// What makes tokens of squares of patches; features of some layers have a merger of their own.
void add_route(ModelSpec& spec, const std::string& at, std::int64_t in, std::int64_t out,
               std::size_t layers) {
  add_linear(spec, at + "projection", out, in, false);
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string merger = fmt::format("{}deepstack_mergers.{}.", at, i);
    add_norm(spec, merger + "layer_norm", in, true);
    add_linear(spec, merger + "linear_1", out, in, true);
    add_linear(spec, merger + "linear_2", out, out, true);
  }
}

// Idefics 3's tower before Granite; a coarse way to the text and a fine one.
ModelSpec granite_docling(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  c.pass_over({"density_router_threshold", "density_router_loss_weight"});
  ModelSpec spec = inside(read_as(text, "GraniteForCausalLM"), "model.text_model.", "lm_head",
                          tied_anywhere(c, text, true));
  const std::int64_t hidden =
      add_siglip_tower(spec, images, "model.vision_model.", {.head = false, .image = 512});
  const std::int64_t out = images.size("out_hidden_size", 1024);
  const std::int64_t scale = images.size("scale_factor", 4);
  const std::size_t deep = images.given("deepstack_visual_indexes")
                               ? images.integers("deepstack_visual_indexes").size()
                               : 3;
  const std::string at = "model.vision_model.connector.";
  add_norm(spec, at + "ln_in", hidden, true);
  add_route(spec, at + "coarse.", hidden * scale * scale, out, deep);
  if (images.flag("use_fine_route", true)) {
    const std::int64_t half = scale / 2;
    add_route(spec, at + "fine.", hidden * half * half, out, deep);
  }
  add_norm(spec, at + "ln_mid", out, true);
  add_linear(spec, at + "mlp_fc2", out, out, false);
  add_norm(spec, at + "ln_out", out, true);
  if (const auto router = c.optional_size("density_router_hidden_size", std::nullopt)) {
    add_linear(spec, "model.density_router.att", 1, hidden, true);
    add_norm(spec, "model.density_router.norm", hidden, true);
    add_linear(spec, "model.density_router.fc1", *router, hidden, true);
    add_linear(spec, "model.density_router.fc2", 1, *router, true);
  }
  return spec;
}

// SigLIP's tower, within which windows of patches attend and are merged, before Qwen3.5.
ModelSpec minicpm_v(const Config& c, bool tied) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  c.pass_over(
      {"insert_layer_id", "image_size", "drop_vision_last_layer", "downsample_mode", "patch_size"});
  images.pass_over({"insert_layer_id"});
  ModelSpec spec =
      inside(read_text(text, "qwen3_5_text"), text_prefix, "lm_head", tied_anywhere(c, text, tied));
  const std::string at = "model.vision_tower.";
  const std::int64_t hidden = add_siglip_tower(spec, images, at, {.head = false});
  const std::vector<std::int64_t> window = images.sizes("window_kernel_size", {2, 2});
  const std::vector<std::int64_t> merge = c.sizes("merge_kernel_size", {2, 2});
  if (window.size() != 2) images.fail("window_kernel_size", "is not rows and columns");
  if (merge.size() != 2) c.fail("merge_kernel_size", "is not rows and columns");
  const std::int64_t square = window[0] * window[1];
  const std::string merger = at + "vit_merger.";
  for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
    add_linear(spec, merger + "self_attn." + name, hidden, hidden, true);
  }
  const std::int64_t inner = images.size("intermediate_size", 3072) * square;
  add_norm(spec, merger + "layer_norm1", hidden, true);
  add_norm(spec, merger + "pre_norm", hidden * square, true);
  add_linear(spec, merger + "linear_1", inner, hidden * square, true);
  add_linear(spec, merger + "linear_2", hidden, inner, true);
  const std::int64_t merged = hidden * merge[0] * merge[1];
  const std::int64_t times = c.size("merger_times", 1);
  for (std::int64_t i = 0; i < times; ++i) {
    const std::string layer = fmt::format("model.merger.mlp.{}.", i);
    add_norm(spec, layer + "pre_norm", merged, true);
    add_linear(spec, layer + "linear_1", merged, merged, true);
    add_linear(spec, layer + "linear_2", i + 1 < times ? hidden : spec.stacks.back().hidden, merged,
               true);
  }
  return spec;
}

ModelSpec minicpmv4_6(const Config& c) { return minicpm_v(c, /*tied=*/false); }
ModelSpec minicpm_ocr(const Config& c) { return minicpm_v(c, /*tied=*/true); }

}  // namespace

std::vector<Family> document_families() {
  return {{"GotOcr2ForConditionalGeneration", "got_ocr2", got_ocr2},
          {"LightOnOcrForConditionalGeneration", "lighton_ocr", lighton_ocr},
          {"PaddleOCRVLForConditionalGeneration", "paddleocr_vl", paddleocr_vl},
          {"QianfanOCRForConditionalGeneration", "qianfan_ocr", qianfan_ocr},
          {"GraniteDoclingForConditionalGeneration", "granite_docling", granite_docling},
          {"MiniCPMV4_6ForConditionalGeneration", "minicpmv4_6", minicpmv4_6},
          {"MiniCPMV4_7ForConditionalGeneration", "minicpmv4_7", minicpmv4_6},
          {"MiniCPMOcrForConditionalGeneration", "minicpm_ocr", minicpm_ocr}};
}

}  // namespace shardsim::models
