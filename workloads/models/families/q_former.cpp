// Models whose images reach a text model through a few learned rows, which a BERT with attention to
// the images makes of them, the Q-Former: BLIP-2 (arXiv:2301.12597) and InstructBLIP
// (arXiv:2305.06500). A step here is one of text alone, as image_text.cpp has it.
#include <fmt/format.h>

#include "base/json.hpp"
#include "workloads/models/families/image_text.hpp"

namespace shardsim::models {
namespace {

std::int64_t add_blip_tower(ModelSpec& spec, const Config& images) {
  const std::string at = "vision_model.";
  const std::int64_t hidden = images.size("hidden_size", 1408);
  const std::int64_t patch = images.size("patch_size", 14);
  constexpr std::int64_t channels = 3;
  const std::int64_t side =
      images.divided("image_size", images.size("image_size", 224), "patch_size", patch);
  spec.apart.push_back({at + "embeddings.class_embedding", {1, 1, hidden}});
  spec.apart.push_back({at + "embeddings.position_embedding", {1, side * side + 1, hidden}});
  spec.apart.push_back(
      {at + "embeddings.patch_embedding.weight", {hidden, channels, patch, patch}});
  spec.apart.push_back({at + "embeddings.patch_embedding.bias", {hidden}});
  add_norm(spec, at + "post_layernorm", hidden, true);
  if (!images.flag("qkv_bias", true)) images.fail("qkv_bias", "false is not supported");
  images.pass_over({"attention_dropout", "dropout", "projection_dim", "initializer_factor"});
  add_silent(spec,
             tower(at + "encoder.layers", hidden, images.size("num_hidden_layers", 39),
                   images.size("num_attention_heads", 16), images.size("intermediate_size", 6144),
                   {.out = "projection", .qkv = "qkv"}));
  return hidden;
}

}  // namespace

std::int64_t add_q_former(ModelSpec& spec, const Config& c, const std::string& at,
                          std::int64_t images, bool reads_text) {
  const std::int64_t hidden = c.size("hidden_size", 768);
  const std::int64_t width = c.size("intermediate_size", 3072);
  static_cast<void>(
      c.divided("hidden_size", hidden, "num_attention_heads", c.size("num_attention_heads", 12)));
  const std::int64_t every = c.size("cross_attention_frequency", 2);
  if (reads_text) {
    spec.apart.push_back(
        {at + "embeddings.word_embeddings.weight", {c.size("vocab_size", 30522), hidden}, true});
    spec.apart.push_back({at + "embeddings.position_embeddings.weight",
                          {c.size("max_position_embeddings", 512), hidden},
                          true});
    add_norm(spec, at + "embeddings.layernorm", hidden, true);
  } else {
    add_norm(spec, at + "layernorm", hidden, true);
  }
  // What the images' width is says their own configuration.
  c.pass_over({"encoder_hidden_size", "hidden_act", "hidden_dropout_prob",
               "attention_probs_dropout_prob", "vocab_size", "max_position_embeddings",
               "use_qformer_text_input", "pad_token_id"});
  const auto onto = [&](const std::string& name, std::int64_t in) {
    add_linear(spec, name + ".dense", hidden, in, true);
    add_norm(spec, name + ".LayerNorm", hidden, true);
  };
  for (std::int64_t i = 0; i < c.layers("num_hidden_layers", 12); ++i) {
    const std::string layer = fmt::format("{}encoder.layer.{}.", at, i);
    const auto attend = [&](const std::string& name, std::int64_t seen) {
      add_linear(spec, layer + name + ".attention.query", hidden, hidden, true);
      add_linear(spec, layer + name + ".attention.key", hidden, seen, true);
      add_linear(spec, layer + name + ".attention.value", hidden, seen, true);
      onto(layer + name + ".output", hidden);
    };
    attend("attention", hidden);
    if (i % every == 0) attend("crossattention", images);
    for (const char* suffix : {"", "_query"}) {
      if (suffix[0] == '\0' && !reads_text) continue;
      add_linear(spec, layer + "intermediate" + suffix + ".dense", width, hidden, true);
      onto(layer + "output" + suffix, width);
    }
  }
  return hidden;
}

namespace {

ModelSpec with_q_former(const Config& c, bool reads_text) {
  c.pass_over({"use_decoder_only_language_model", "image_text_hidden_size", "num_query_tokens"});
  const Config text = nested(c, "text_config");
  const std::string type = text.text("model_type", "opt");
  if (type != "opt" && type != "llama") {
    text.fail("model_type",
              fmt::format("\"{}\" is not supported behind a Q-Former; supported are opt and llama",
                          type));
  }
  // OPT ties its head where nothing is said; this class has what its text model has.
  ModelSpec spec = inside(read_text(text, "opt"), "language_model.model.", "language_model.lm_head",
                          text.flag("tie_word_embeddings", type == "opt"));
  const std::int64_t out = spec.stacks.back().hidden;
  const std::int64_t images = add_blip_tower(spec, images_of(c));
  const std::int64_t hidden =
      add_q_former(spec, nested(c, "qformer_config"), "qformer.", images, reads_text);
  spec.apart.push_back({"query_tokens", {1, c.size("num_query_tokens", 32), hidden}});
  add_linear(spec, "language_projection", out, hidden, true);
  return spec;
}

ModelSpec blip_2(const Config& c) {
  const bool reads_text = nested(c, "qformer_config").flag("use_qformer_text_input", false);
  if (reads_text) c.fail("qformer_config", "with \"use_qformer_text_input\" is not supported");
  return with_q_former(c, /*reads_text=*/false);
}

ModelSpec instruct_blip(const Config& c) { return with_q_former(c, /*reads_text=*/true); }

}  // namespace

std::vector<Family> q_former_families() {
  return {{"Blip2ForConditionalGeneration", "blip-2", blip_2},
          {"InstructBlipForConditionalGeneration", "instructblip", instruct_blip},
          {"InstructBlipVideoForConditionalGeneration", "instructblipvideo", instruct_blip}};
}

}  // namespace shardsim::models
