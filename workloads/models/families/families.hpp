// The families of models that are known: one function each that reads a config.json of the family
// and describes the model. Adding one is a function in a file of families/ and a row in the table
// of its file; every key, default and name is in that function.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "workloads/models/families/config.hpp"
#include "workloads/models/spec.hpp"

namespace shardsim::models {

struct Family {
  // An entry of "architectures", "LlamaForCausalLM", or diffusers' "_class_name".
  std::string architecture;
  std::string model_type;  // "llama"
  std::function<ModelSpec(const Config& config)> read;
};

// In the order of the tables.
[[nodiscard]] const std::vector<Family>& families();

// By "architectures" or "_class_name", else by "model_type". Throws InputError: unknown, with the
// nearest known ones.
[[nodiscard]] ModelSpec read_model(const JsonReader& config, const std::string& name,
                                   AskedKeys* asked = nullptr);
[[nodiscard]] const Family& family_of(const JsonReader& config);

// The tables, a file each.
[[nodiscard]] std::vector<Family> dense_families();
[[nodiscard]] std::vector<Family> gemma_families();
[[nodiscard]] std::vector<Family> classic_families();
[[nodiscard]] std::vector<Family> expert_families();
[[nodiscard]] std::vector<Family> state_space_families();
[[nodiscard]] std::vector<Family> hybrid_families();
[[nodiscard]] std::vector<Family> shared_block_families();
[[nodiscard]] std::vector<Family> delta_rule_families();
[[nodiscard]] std::vector<Family> windowed_expert_families();
[[nodiscard]] std::vector<Family> t5gemma_families();
[[nodiscard]] std::vector<Family> convolutional_families();
[[nodiscard]] std::vector<Family> diffusion_families();
[[nodiscard]] std::vector<Family> llama_kin_families();
[[nodiscard]] std::vector<Family> experts_kin_families();
[[nodiscard]] std::vector<Family> classic_kin_families();
[[nodiscard]] std::vector<Family> encoder_families();
[[nodiscard]] std::vector<Family> encoder_decoder_families();
[[nodiscard]] std::vector<Family> vision_families();
[[nodiscard]] std::vector<Family> image_text_families();
[[nodiscard]] std::vector<Family> image_text_kin_families();
[[nodiscard]] std::vector<Family> recent_image_text_families();
[[nodiscard]] std::vector<Family> megatron_families();
[[nodiscard]] std::vector<Family> praxis_families();
[[nodiscard]] std::vector<Family> modernbert_families();
[[nodiscard]] std::vector<Family> recent_expert_families();
[[nodiscard]] std::vector<Family> experts_of_heads_families();
[[nodiscard]] std::vector<Family> latent_families();
[[nodiscard]] std::vector<Family> recurrent_families();
[[nodiscard]] std::vector<Family> encoder_kin_families();
[[nodiscard]] std::vector<Family> sparse_encoder_decoder_families();
[[nodiscard]] std::vector<Family> pair_families();
[[nodiscard]] std::vector<Family> recent_gemma_families();
[[nodiscard]] std::vector<Family> gemma3n_families();
[[nodiscard]] std::vector<Family> omni_families();
[[nodiscard]] std::vector<Family> more_encoder_families();
[[nodiscard]] std::vector<Family> phi4_multimodal_families();
[[nodiscard]] std::vector<Family> beit_families();
[[nodiscard]] std::vector<Family> pvt2_families();
[[nodiscard]] std::vector<Family> mobilevit_families();
[[nodiscard]] std::vector<Family> video_families();
[[nodiscard]] std::vector<Family> segment_anything_families();
[[nodiscard]] std::vector<Family> pyramid_families();
[[nodiscard]] std::vector<Family> convolutional_kin_families();
[[nodiscard]] std::vector<Family> detr_families();
[[nodiscard]] std::vector<Family> speech_families();
[[nodiscard]] std::vector<Family> depth_families();
[[nodiscard]] std::vector<Family> segformer_families();
[[nodiscard]] std::vector<Family> swin2_families();
[[nodiscard]] std::vector<Family> lightning_families();
[[nodiscard]] std::vector<Family> encoder_decoder_kin_families();
[[nodiscard]] std::vector<Family> mixed_encoder_families();
[[nodiscard]] std::vector<Family> permuted_encoder_families();
[[nodiscard]] std::vector<Family> block_attention_families();
[[nodiscard]] std::vector<Family> long_t5_families();
[[nodiscard]] std::vector<Family> q_former_families();
[[nodiscard]] std::vector<Family> document_families();
[[nodiscard]] std::vector<Family> audio_text_families();
[[nodiscard]] std::vector<Family> sparse_image_text_families();
[[nodiscard]] std::vector<Family> more_image_text_families();
[[nodiscard]] std::vector<Family> image_word_families();
[[nodiscard]] std::vector<Family> grounded_image_text_families();
[[nodiscard]] std::vector<Family> backbone_families();
[[nodiscard]] std::vector<Family> cvt_families();
[[nodiscard]] std::vector<Family> deepseek_v4_families();
[[nodiscard]] std::vector<Family> image_diffusion_families();
[[nodiscard]] std::vector<Family> joint_image_diffusion_families();
[[nodiscard]] std::vector<Family> latent_diffusion_families();
[[nodiscard]] std::vector<Family> lumina2_families();
[[nodiscard]] std::vector<Family> video_diffusion_families();
[[nodiscard]] std::vector<Family> joint_video_diffusion_families();
[[nodiscard]] std::vector<Family> skip_diffusion_families();
[[nodiscard]] std::vector<Family> cogview_families();
[[nodiscard]] std::vector<Family> yolos_families();
[[nodiscard]] std::vector<Family> glpn_families();
[[nodiscard]] std::vector<Family> z_image_families();
[[nodiscard]] std::vector<Family> blip_families();
[[nodiscard]] std::vector<Family> tiny_autoencoder_families();
[[nodiscard]] std::vector<Family> upernet_families();
[[nodiscard]] std::vector<Family> layoutlm3_families();
[[nodiscard]] std::vector<Family> owl_families();
[[nodiscard]] std::vector<Family> sam2_families();
[[nodiscard]] std::vector<Family> rt_detr_families();
[[nodiscard]] std::vector<Family> doge_families();
[[nodiscard]] std::vector<Family> cohere_compass_families();
[[nodiscard]] std::vector<Family> latest_image_text_families();
[[nodiscard]] std::vector<Family> latest_latent_families();
[[nodiscard]] std::vector<Family> page_families();
[[nodiscard]] std::vector<Family> recent_encoder_families();
[[nodiscard]] std::vector<Family> page_encoder_families();
[[nodiscard]] std::vector<Family> encoder_pair_families();
[[nodiscard]] std::vector<Family> roberta_kin_families();
[[nodiscard]] std::vector<Family> retrieval_families();
[[nodiscard]] std::vector<Family> lilt_families();
// Of the known ones' layers.
[[nodiscard]] std::vector<Family> base_families(const std::vector<Family>& known);
[[nodiscard]] std::vector<Family> choice_families(const std::vector<Family>& known);
[[nodiscard]] std::vector<Family> decoder_alone_families(const std::vector<Family>& known);
[[nodiscard]] std::vector<Family> derived_families(const std::vector<Family>& known);

// Read by models that hold one: of images, or a text model inside.
[[nodiscard]] ModelSpec gemma3_text(const Config& c);
[[nodiscard]] ModelSpec gemma4_text(const Config& c);
[[nodiscard]] ModelSpec gemma3n_text(const Config& c);
[[nodiscard]] ModelSpec llama4_text(const Config& c);
[[nodiscard]] ModelSpec llama(const Config& c);
[[nodiscard]] ModelSpec mistral(const Config& c);
[[nodiscard]] ModelSpec qwen2(const Config& c);
[[nodiscard]] ModelSpec qwen3(const Config& c);
[[nodiscard]] ModelSpec qwen3_vl_moe_text(const Config& c);
// ImageNet's classes where the file names none of its own.
[[nodiscard]] std::int64_t labels_of(const Config& c);
// `image` and `places` (of a text) where the file does not say them.
[[nodiscard]] Stack clip_vision(const Config& c, const std::string& prefix,
                                std::int64_t image = 224);

}  // namespace shardsim::models
