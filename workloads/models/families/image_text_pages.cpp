// More models that read pages: DeepSeek-OCR 2, Granite Vision 4. A step here is one of text alone,
// as image_text.cpp has it.
//
// Source: transformers 5.23.0, modeling_X.py of each.
#include <fmt/format.h>

#include "workloads/models/families/image_text.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

constexpr const char* text_prefix = "model.language_model.";

ModelSpec deepseek_ocr2_text(const Config& c) {
  Sizes n = read_sizes(c, {.hidden = 4096, .width = 11008, .vocab = 102400});
  n.head_dim = c.divided("hidden_size", n.hidden, "num_attention_heads", n.heads);
  const Attention attention = llama_attention(c, n);
  if (!c.given("num_experts_per_tok"))
    c.fail("num_experts_per_tok", "is needed: the class has none");
  Experts experts = deepseek_experts(c, n, 64, 1, 1407, 2);
  experts.router.masked = c.text("topk_method", "greedy") == "group_limited_greedy";
  if (experts.router.masked) read_groups(c, experts.router, 1, 1);
  c.pass_over({"n_group", "topk_group", "head_dim"});
  Mlp mlp = llama_mlp(n);
  mlp.bias = experts.shared->bias = c.flag("mlp_bias", false);
  const std::vector<std::string> types = c.texts("mlp_layer_types");
  if (static_cast<std::int64_t>(types.size()) != n.layers) {
    c.fail("mlp_layer_types", "is needed with an entry for each layer: the class has none");
  }
  return decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                   if (types[static_cast<std::size_t>(i)] == "dense") {
                     return llama_layer(n, "dense", attention, mlp);
                   }
                   return llama_layer(n, "experts", attention, experts);
                 }));
}

// Segment Anything's encoder before Qwen 2's layers, which read learned rows behind its own.
ModelSpec deepseek_ocr2(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = nested(c, "vision_config");
  const Config sam = nested(images, "sam_config");
  const Config rows = nested(images, "encoder_config");
  ModelSpec spec =
      inside(deepseek_ocr2_text(text), text_prefix, "lm_head", is_tied(c, text, false));
  const std::int64_t out = spec.stacks.back().hidden;
  const std::string at = "model.vision_tower.";
  const std::string first = at + "sam_encoder.";
  add_network(spec, sam_encoder(sam, first), sam.json().place());
  std::int64_t in = sam.size("output_channels", 256);
  constexpr std::int64_t taps = 3;
  int number = 0;
  for (const std::int64_t channels : sam.sizes("downsample_channels", {512, 896})) {
    add_convolution(spec, fmt::format("{}proj.conv{}", first, ++number), {channels, in, taps, taps},
                    false);
    in = channels;
  }
  const std::int64_t hidden = rows.size("hidden_size", 4096);
  const std::int64_t heads = rows.size("num_attention_heads", 32);
  const std::int64_t keys = rows.size("num_key_value_heads", heads);
  rows.pass_over(
      {"vocab_size", "use_sliding_window", "max_window_layers", "layer_types", "sliding_window"});
  Stack stack = tower(at + "vision_encoder.layers", hidden, rows.size("num_hidden_layers", 32),
                      heads, rows.size("intermediate_size", 22016),
                      {.norm1 = "input_layernorm",
                       .norm2 = "post_attention_layernorm",
                       .out = "o_proj",
                       .up = "up_proj",
                       .down = "down_proj",
                       .norm = NormKind::rms,
                       .bias = false,
                       .form = MlpForm::gated});
  for (LayerKind& kind : stack.kinds) {
    auto& attention = std::get<Attention>(kind.branches[0].body);
    attention.kv_heads = keys;
    set_biases(attention, true, false);
  }
  add_norm(spec, at + "vision_encoder.norm", hidden, false);
  constexpr std::int64_t of_768 = 144, of_1024 = 256;  // squares of 12 and of 16
  add_table(spec, at + "query_768_resolution", of_768, hidden);
  add_table(spec, at + "query_1024_resolution", of_1024, hidden);
  add_silent(spec, std::move(stack));
  add_linear(spec, "model.multi_modal_projector", out, hidden, true);
  spec.apart.push_back({"model.view_separator", {out}});
  return spec;
}

// Windows of patches that the rows of a Q-Former read: 4/8 is 16 rows for each 64 patches.
ModelSpec granite4_vision(const Config& c) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c, /*several_layers=*/true);
  ModelSpec spec =
      inside(read_as(text, "GraniteForCausalLM"), text_prefix, "lm_head", is_tied(c, text, false));
  const std::int64_t out = spec.stacks.back().hidden;
  const std::int64_t hidden = add_tower(spec, images, "model.vision_tower.", "clip_vision_model");
  const std::string rate = c.text("downsample_rate", "");
  const std::size_t slash = rate.find('/');
  const auto number = [&](const std::string& digits) -> std::int64_t {
    if (digits.empty() || digits.size() > 4 ||
        digits.find_first_not_of("0123456789") != std::string::npos) {
      c.fail("downsample_rate", "is no quotient of two numbers, \"4/8\"");
    }
    return std::stoll(digits);
  };
  const std::int64_t queries = number(slash == std::string::npos ? "" : rate.substr(0, slash));
  const std::int64_t window = number(slash == std::string::npos ? "" : rate.substr(slash + 1));
  const auto pairs = c.json().find("deepstack_layer_map");
  if (!pairs || pairs->is_null()) c.fail("deepstack_layer_map", "is needed: the class has none");
  const Config rows = nested(c, "qformer_config");
  require(rows, {"hidden_size", "num_hidden_layers", "cross_attention_frequency"});
  c.pass_over({"deepstack_layer_map", "spatial_vision_layer", "spatial_target_layers",
               "projector_dropout", "image_seq_length"});
  constexpr std::size_t offsets = 4;
  const auto add_projector = [&](const std::string& at) {
    add_q_former(spec, rows, at + "qformer.", hidden, /*reads_text=*/false);
    add_norm(spec, at + "norm", hidden, true);
    spec.apart.push_back({at + "query", {1, queries * queries, hidden}});
    spec.apart.push_back({at + "image_positions", {1, window * window, hidden}});
    add_linear(spec, at + "out_linear", out, hidden, true);
  };
  for (std::size_t i = 0; i < pairs->elements().size(); ++i) {
    add_projector(fmt::format("model.layerwise_projectors.{}.", i));
  }
  for (std::size_t i = 0; i < offsets; ++i) {
    add_projector(fmt::format("model.spatial_projectors.{}.", i));
  }
  spec.apart.push_back({"model.image_newline", {out}});
  return spec;
}

}  // namespace

std::vector<Family> page_families() {
  return {{"DeepseekOcr2ForConditionalGeneration", "deepseek_ocr2", deepseek_ocr2},
          {"Granite4VisionForConditionalGeneration", "granite4_vision", granite4_vision}};
}

}  // namespace shardsim::models
