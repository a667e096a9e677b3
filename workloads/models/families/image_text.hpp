// What the descriptions of models that read images beside text share: the text model under another
// name, towers of images, which have their parameters and do not run, and projectors between.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {

// A nested configuration that has to be there; that of images, without what does not run.
[[nodiscard]] Config nested(const Config& c, std::string_view key);
[[nodiscard]] Config images_of(const Config& c, bool several_layers = false);
// Keys whose defaults are not those of the class that a text model is read as.
void require(const Config& text, std::initializer_list<std::string_view> keys);
// The text model under `to` in place of "model."; its head where `head` says.
[[nodiscard]] ModelSpec inside(ModelSpec spec, const std::string& to, const std::string& head,
                               bool tied);
// Rotary tables of each example's places in three dimensions, made once for all text layers.
void set_tables_by_example(ModelSpec& spec);
// Which configuration says that embedding and head are one: the model's alone, as most classes read
// it, the text's alone, or either.
enum class TiedBy : std::uint8_t { model, text, either };
[[nodiscard]] bool is_tied(const Config& c, const Config& text, bool otherwise,
                           TiedBy by = TiedBy::model);
// Whose text model it is: by text_config's model_type.
[[nodiscard]] ModelSpec read_text(const Config& text, std::string_view otherwise);
// As this class, whatever its model_type says.
[[nodiscard]] ModelSpec read_as(const Config& text, std::string_view architecture);
// Where an image's token is none of the vocabulary, the class copies the tokens' numbers.
void copy_numbers_of_images(const Config& c, ModelSpec& spec, std::int64_t usual_token);
// Before the text's stack, which stays the last.
void add_silent(ModelSpec& spec, Stack stack);
void add_linear(ModelSpec& spec, const std::string& name, std::int64_t out, std::int64_t in,
                bool bias);
void add_norm(ModelSpec& spec, const std::string& name, std::int64_t width, bool bias);
// A convolution of this weight; a table of embeddings.
void add_convolution(ModelSpec& spec, const std::string& name, Shape weight, bool bias);
void add_table(ModelSpec& spec, const std::string& name, std::int64_t rows, std::int64_t width);
// The parameters and buffers of a network that does not run.
void add_network(ModelSpec& spec, const Blueprint& network, const Place& place);

// A stack of images' encoder layers.
struct TowerNames {
  std::string norm1 = "layer_norm1", norm2 = "layer_norm2";
  std::string attention = "self_attn", out = "out_proj";
  std::string up = "fc1", down = "fc2";
  std::string qkv{};  // fused under this name
  NormKind norm = NormKind::layer;
  bool bias = true;  // of products, and of norms that have one
  MlpForm form = MlpForm::plain;
  std::string mlp = "mlp";
};

[[nodiscard]] Stack tower(const std::string& prefix, std::int64_t hidden, std::int64_t layers,
                          std::int64_t heads, std::int64_t width, const TowerNames& names);
// Where a class's defaults are not SigLIP's; `flat`: patches come as rows of pixels (SigLIP 2).
struct SiglipDefaults {
  std::int64_t hidden = 768;
  std::int64_t patch = 16;
  std::int64_t heads = 12;
  bool head = true;
  bool flat = false;
  std::int64_t image = 224, width = 3072, layers = 12;
  bool places = true;  // a table of places
};

// Towers under `at`; their width.
std::int64_t add_siglip_tower(ModelSpec& spec, const Config& images, const std::string& at,
                              const SiglipDefaults& usual = {});
std::int64_t add_pixtral_tower(ModelSpec& spec, const Config& images, const std::string& at);
// By vision_config's model_type: CLIP's, SigLIP's or Pixtral's.
std::int64_t add_tower(ModelSpec& spec, const Config& images, const std::string& at,
                       std::string_view otherwise);
// A convolution over patches of two frames; the width of patches that are merged.
std::int64_t add_qwen_patches(ModelSpec& spec, const Config& images, const std::string& at,
                              std::int64_t hidden, std::int64_t usual_patch);
// Qwen2.5-VL's tower, with RMS norms and gated MLPs, and what merges its patches; queries, keys and
// values by one product or, of Qwen2.5-Omni, three.
void add_qwen2_5_images(ModelSpec& spec, const Config& images, const std::string& at,
                        std::int64_t usual_kv_heads = 0, bool fused = true);
// InternVL's around a text model; `layers` of its tower.
[[nodiscard]] ModelSpec internvl_like(const Config& c, std::string_view text, bool tied,
                                      const std::string& layers);
// Mistral 3's: squares of patches are merged.
void add_pixtral_projector(ModelSpec& spec, const Config& c, std::int64_t hidden);
// LLaVA's projector, from `in` to the text's width.
void add_two_linears(ModelSpec& spec, const Config& c, std::int64_t in);

// A Q-Former's layers under `at`, which attend to rows so wide; its width. `reads_text`:
// instructions, beside the learned rows.
std::int64_t add_q_former(ModelSpec& spec, const Config& c, const std::string& at,
                          std::int64_t images, bool reads_text);

// What a configuration of sounds leaves out.
struct AudioSizes {
  std::int64_t hidden = 1280, bins = 128, layers = 32, heads = 20, width = 5120;
};
// Whisper's encoder under `at`; its width.
std::int64_t add_audio_tower(ModelSpec& spec, const Config& audio, const std::string& at,
                             const AudioSizes& usual = {});

// What Qwen3's models that see call the parts of what merges patches, and the list of those that
// merge layers on the way.
struct QwenMergers {
  std::string_view norm, first, second, deep;
};
// Their tower, and what stands between it and the text.
void add_qwen3_images(ModelSpec& spec, const Config& images, const QwenMergers& names,
                      std::size_t usual_deep);

// Qwen3-VL's around a text model; so many of its tower's layers are read on their own where the
// file lists none.
[[nodiscard]] ModelSpec qwen3_vl_like(const Config& c,
                                      const std::function<ModelSpec(const Config&)>& read,
                                      std::size_t usual_deep);

}  // namespace shardsim::models
