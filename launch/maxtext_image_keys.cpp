// Keys of MaxText about the images and sounds of models that read them, which are not simulated:
// these change no cost. Sources: maxtext_keys.cpp, and maxtext 0.2.5 on PyPI, read 2026-11-26.
#include "launch/framework_files.hpp"

namespace shardsim {

const HarmlessKeys& maxtext_image_keys() {
  static const HarmlessKeys keys = {
      "of images and sounds, without use_multimodal",
      {"vision_encoder_block", "vision_output_length", "image_placeholder", "num_channels_for_vit",
       "num_attention_heads_for_vit", "num_hidden_layers_for_vit",
       "num_position_embeddings_for_vit", "patch_size_for_vit", "temporal_patch_size_for_vit",
       "spatial_merge_size_for_vit", "intermediate_size_for_vit", "hidden_size_for_vit",
       "out_hidden_size_for_vit", "conv_stride_for_vit", "rope_theta_for_vit",
       "deepstack_visual_indexes_for_vit", "mrope_section"}};
  return keys;
}

}  // namespace shardsim
