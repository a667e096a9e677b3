#include "workloads/models/families/families.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/json.hpp"

namespace shardsim::models {
namespace {

// The first family that `matches`.
template <class Matches>
const Family* find_family(const Matches& matches) {
  const std::vector<Family>& all = families();
  const auto found = std::find_if(all.begin(), all.end(), matches);
  return found == all.end() ? nullptr : &*found;
}

// How much two names have in common: pairs of neighbouring letters (Dice's coefficient).
double likeness(std::string_view a, std::string_view b) {
  if (a.size() < 2 || b.size() < 2) return 0;
  std::size_t common = 0;
  for (std::size_t i = 0; i + 1 < a.size(); ++i) {
    if (b.find(a.substr(i, 2)) != std::string_view::npos) ++common;
  }
  return 2.0 * static_cast<double>(common) / static_cast<double>(a.size() + b.size() - 2);
}

[[noreturn]] void fail_unknown(const JsonReader& value, bool by_architecture) {
  constexpr std::size_t shown = 3;
  const std::string wanted = value.string();
  std::vector<std::string_view> names;
  for (const Family& family : families()) {
    names.push_back(by_architecture ? family.architecture : family.model_type);
  }
  std::stable_sort(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return likeness(wanted, a) > likeness(wanted, b);
  });
  names.erase(std::unique(names.begin(), names.end()), names.end());
  names.resize(std::min(names.size(), shown));
  value.fail(fmt::format(
      "unknown architecture \"{}\"; the nearest known are {} (shardsim model list shows "
      "all). A step of any model can be read as a StableHLO program: shardsim import "
      "stablehlo",
      wanted, fmt::join(names, ", ")));
}

// In the order in which they are listed.
constexpr std::array tables = {dense_families,
                               gemma_families,
                               classic_families,
                               expert_families,
                               state_space_families,
                               encoder_families,
                               encoder_decoder_families,
                               vision_families,
                               image_text_families,
                               image_text_kin_families,
                               recent_image_text_families,
                               modernbert_families,
                               llama_kin_families,
                               experts_kin_families,
                               classic_kin_families,
                               hybrid_families,
                               shared_block_families,
                               delta_rule_families,
                               windowed_expert_families,
                               t5gemma_families,
                               convolutional_families,
                               diffusion_families,
                               recent_expert_families,
                               experts_of_heads_families,
                               latent_families,
                               recurrent_families,
                               encoder_kin_families,
                               sparse_encoder_decoder_families,
                               pair_families,
                               recent_gemma_families,
                               gemma3n_families,
                               omni_families,
                               more_encoder_families,
                               phi4_multimodal_families,
                               beit_families,
                               segformer_families,
                               swin2_families,
                               depth_families,
                               speech_families,
                               detr_families,
                               convolutional_kin_families,
                               pyramid_families,
                               segment_anything_families,
                               video_families,
                               mobilevit_families,
                               pvt2_families,
                               lightning_families,
                               encoder_decoder_kin_families,
                               mixed_encoder_families,
                               permuted_encoder_families,
                               block_attention_families,
                               long_t5_families,
                               q_former_families,
                               document_families,
                               audio_text_families,
                               sparse_image_text_families,
                               more_image_text_families,
                               image_word_families,
                               grounded_image_text_families,
                               backbone_families,
                               cvt_families,
                               deepseek_v4_families,
                               megatron_families,
                               praxis_families,
                               yolos_families,
                               glpn_families,
                               z_image_families,
                               blip_families,
                               tiny_autoencoder_families,
                               upernet_families,
                               layoutlm3_families,
                               owl_families,
                               sam2_families,
                               rt_detr_families,
                               doge_families,
                               cohere_compass_families,
                               latest_image_text_families,
                               latest_latent_families,
                               page_families,
                               recent_encoder_families,
                               encoder_pair_families,
                               roberta_kin_families,
                               page_encoder_families,
                               retrieval_families,
                               lilt_families};

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> all = [] {
    std::vector<Family> list;
    for (const auto& table : tables) {
      const std::vector<Family> some = table();
      list.insert(list.end(), some.begin(), some.end());
    }
    const std::vector<Family> derived = derived_families(list);
    const std::vector<Family> bases = base_families(list);
    const std::vector<Family> choices = choice_families(list);
    for (const std::vector<Family>* more : {&derived, &bases, &choices}) {
      list.insert(list.end(), more->begin(), more->end());
    }
    return list;
  }();
  return all;
}

const Family& family_of(const JsonReader& config) {
  if (const auto list = config.find("architectures")) {
    const std::vector<JsonReader> entries = list->elements();
    if (entries.empty()) list->fail("is empty");
    const std::string name = entries[0].string();
    // One class may serve several families, which model_type then tells apart.
    const auto type = config.find("model_type");
    const std::string family = type ? type->string() : std::string();
    const Family* both = find_family(
        [&](const Family& f) { return f.architecture == name && f.model_type == family; });
    if (both != nullptr) return *both;
    const Family* found = find_family([&](const Family& f) { return f.architecture == name; });
    if (found != nullptr) return *found;
    fail_unknown(entries[0], /*by_architecture=*/true);
  }
  if (const auto name = config.find("_class_name")) {
    const std::string wanted = name->string();
    const Family* found = find_family([&](const Family& f) { return f.architecture == wanted; });
    if (found != nullptr) return *found;
    fail_unknown(*name, /*by_architecture=*/true);
  }
  const auto type = config.find("model_type");
  if (!type) {
    config.fail("says neither \"architectures\" nor \"model_type\": not a model's description");
  }
  const std::string name = type->string();
  const Family* found = find_family([&](const Family& f) { return f.model_type == name; });
  if (found != nullptr) return *found;
  fail_unknown(*type, /*by_architecture=*/false);
}

namespace {

// A causal model of text may be given the configuration of one that reads images, too.
ModelSpec read_text(const Family& family, const Config& c) {
  const auto text = c.sub("text_config");
  const bool nests_text_itself = family.architecture == "FuyuForCausalLM";
  const bool is_nested = text && !nests_text_itself &&
                         family.architecture.ends_with("ForCausalLM") && !c.given("hidden_size");
  if (!is_nested) return family.read(c);
  c.pass_over({"vision_config", "audio_config", "vq_config", "tie_word_embeddings"});
  return family.read(*text);
}

}  // namespace

ModelSpec read_model(const JsonReader& config, const std::string& name, AskedKeys* asked) {
  const Family& family = family_of(config);
  ModelSpec spec = read_text(family, Config(config, /*nested=*/false, asked));
  spec.name = name;
  spec.architecture = family.architecture;
  spec.family = family.model_type;
  return spec;
}

}  // namespace shardsim::models
