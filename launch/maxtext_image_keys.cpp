// Keys of MaxText about the images and sounds of models that read them, which are not simulated:
// these change no cost. Sources: maxtext_keys.cpp, and maxtext 0.2.5 on PyPI, read 2026-11-26.
#include "launch/framework_files.hpp"

namespace shardsim {

const HarmlessKeys& maxtext_image_keys() {
  static const HarmlessKeys keys = {"of images and sounds, without use_multimodal",
                                    {"vision_encoder_block",
                                     "vision_output_length",
                                     "image_placeholder",
                                     "num_channels_for_vit",
                                     "num_attention_heads_for_vit",
                                     "num_hidden_layers_for_vit",
                                     "num_position_embeddings_for_vit",
                                     "patch_size_for_vit",
                                     "temporal_patch_size_for_vit",
                                     "spatial_merge_size_for_vit",
                                     "intermediate_size_for_vit",
                                     "hidden_size_for_vit",
                                     "out_hidden_size_for_vit",
                                     "conv_stride_for_vit",
                                     "rope_theta_for_vit",
                                     "deepstack_visual_indexes_for_vit",
                                     "posemb_type_for_vit",
                                     "max_num_images_per_example",
                                     "tile_size_for_vit",
                                     "projector_input_dim_for_vit",
                                     "projector_output_dim_for_vit",
                                     "vision_output_dim_for_vit",
                                     "pixel_shuffle_ratio_for_vit",
                                     "projector_dropout_for_vit",
                                     "freeze_audio_encoder_params",
                                     "d_model_for_audio",
                                     "encoder_attention_heads_for_audio",
                                     "encoder_ffn_dim_for_audio",
                                     "encoder_layers_for_audio",
                                     "attention_dropout_for_audio",
                                     "activation_dropout_for_audio",
                                     "activation_function_for_audio",
                                     "num_mel_bins_for_audio",
                                     "max_source_positions_for_audio",
                                     "scale_embedding_for_audio",
                                     "n_window_for_audio",
                                     "n_window_infer_for_audio",
                                     "conv_chunksize_for_audio",
                                     "downsample_hidden_size_for_audio",
                                     "output_dim_for_audio",
                                     "num_conv_layers_for_audio",
                                     "max_timescale_for_audio",
                                     "max_sample_len_for_audio",
                                     "position_id_per_seconds",
                                     "video_path",
                                     "audio_path",
                                     "video_placeholder",
                                     "audio_placeholder",
                                     "use_audio_in_video",
                                     "video_max_grid_t",
                                     "video_max_grid_h",
                                     "video_max_grid_w"}};
  return keys;
}

}  // namespace shardsim
