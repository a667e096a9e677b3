// Files of models of 2026 and of readers of pages (hub_tables.hpp).
#include "workloads/models/hub_tables.hpp"

#include <iterator>

namespace shardsim::models {
namespace {

constexpr ExpertFiles by_name{"gate_proj", "up_proj", "down_proj"};
constexpr ExpertFiles by_number{"w1", "w3", "w2"};

HubTable pages_and_sounds() {
  return {{.families = {"hunyuan_vl"},
           .renamings = {{"^model.language_model.", "model."},
                         {"^model.vision_tower.patch_merger.proj_conv.", "vit.perceive.proj.0."},
                         {"^model.vision_tower.patch_merger.proj_out.", "vit.perceive.proj.2."},
                         {"^model.vision_tower.patch_merger.", "vit.perceive."},
                         {"^model.vision_tower.", "vit."},
                         {"vit.layers.#.layer_norm1.", "vit.layers.#.input_layernorm."},
                         {"vit.layers.#.layer_norm2.", "vit.layers.#.post_attention_layernorm."},
                         {"vit.layers.#.mlp.fc1.", "vit.layers.#.mlp.dense_h_to_4h."},
                         {"vit.layers.#.mlp.fc2.", "vit.layers.#.mlp.dense_4h_to_h."}}},
          {.families = {"nemotron_h_omni"},
           .renamings = {{"^language_model.model.", "language_model.backbone."},
                         {"^multi_modal_projector.layer_norm.", "mlp1.0."},
                         {"^multi_modal_projector.linear_1.", "mlp1.1."},
                         {"^multi_modal_projector.linear_2.", "mlp1.3."},
                         {"^audio_tower.", "sound_encoder.encoder."},
                         {"^embed_audio.layer_norm.", "sound_projection.norm."},
                         {"^embed_audio.linear_1.", "sound_projection.linear1."},
                         {"^embed_audio.linear_2.", "sound_projection.linear2."},
                         {"^vision_model.encoder.layer.", "vision_model.radio_model.model.blocks."},
                         {"^vision_model.summary_idxs", "vision_model.radio_model.summary_idxs"},
                         {"^vision_model.embeddings.position_embedding",
                          "vision_model.radio_model.model.patch_generator.pos_embed"},
                         {"^vision_model.embeddings.cls_register_token",
                          "vision_model.radio_model.model.patch_generator.cls_token.token"},
                         {"^vision_model.embeddings.patch_projection.",
                          "vision_model.radio_model.model.patch_generator.embedder."},
                         {"^vision_model.embeddings.video_patch_projection.",
                          "vision_model.radio_model.model.patch_generator.video_embedder."},
                         {".attention.o_proj.", ".attn.proj."}},
           .experts = by_name,
           .fusions = {{{".attention.q_proj.", ".attention.k_proj.", ".attention.v_proj."},
                        ".attn.qkv."}}},
          {.families = {"granite_speech", "granite_speech_plus"},
           .renamings = {{"^lm_head.", "language_model.lm_head."},
                         {"^model.language_model.", "language_model.model."},
                         {"^model.encoder.", "encoder."},
                         {"^model.projector.", "projector."},
                         {"^language_model.", "language_model.model."}}},
          {.families = {"fuyu"},
           .renamings = {{"^lm_head.", "language_model.lm_head."},
                         {"^model.language_model.", "language_model.model."},
                         {"^language_model.", "language_model.model."},
                         {"^model.vision_embed_tokens.", "vision_embed_tokens."}}}};
}

// Segment Anything's own, behind others.
std::vector<Renaming> with_names_of_sam(std::vector<Renaming> renamings) {
  const std::vector<Renaming> own = {
      {"sam_model.layers.#.layer_norm1.", "sam_model.blocks.#.norm1."},
      {"sam_model.layers.#.layer_norm2.", "sam_model.blocks.#.norm2."},
      {"sam_model.layers.", "sam_model.blocks."},
      {"sam_model.neck.conv1.", "sam_model.neck.0."},
      {"sam_model.neck.layer_norm1.", "sam_model.neck.1."},
      {"sam_model.neck.conv2.", "sam_model.neck.2."},
      {"sam_model.neck.layer_norm2.", "sam_model.neck.3."},
      {"sam_model.proj.conv1.", "sam_model.net_2."},
      {"sam_model.proj.conv2.", "sam_model.net_3."},
      {"sam_model.patch_embed.projection.", "sam_model.patch_embed.proj."}};
  renamings.insert(renamings.end(), own.begin(), own.end());
  return renamings;
}

HubTable unlimited() {
  return {
      {.families = {"unlimited_ocr"},
       .renamings = with_names_of_sam(
           {{"^model.vision_tower.sam_encoder.", "model.sam_model."},
            {"^model.vision_tower.vision_encoder.", "model.vision_model."},
            {"^model.view_separator", "model.view_seperator"},
            {"^model.multi_modal_projector.", "model.projector.layers."},
            {"^model.language_model.", "model."},
            {"vision_model.encoder.layers.", "vision_model.transformer.layers."},
            {"transformer.layers.#.self_attn.q_proj.", "transformer.layers.#.self_attn.q."},
            {"transformer.layers.#.self_attn.k_proj.", "transformer.layers.#.self_attn.k."},
            {"transformer.layers.#.self_attn.v_proj.", "transformer.layers.#.self_attn.v."}}),
       .experts = by_name,
       .fusions = {{{".self_attn.q.", ".self_attn.k.", ".self_attn.v."}, ".self_attn.qkv_proj."}}}};
}

HubTable ocr2_and_unified() {
  return {{.families = {"deepseek_ocr2"},
           .renamings = with_names_of_sam(
               {{"^model.vision_tower.sam_encoder.", "model.sam_model."},
                {"^model.vision_tower.vision_encoder.", "model.qwen2_model.model.model."},
                {"^model.vision_tower.query_768_resolution.", "model.qwen2_model.query_768."},
                {"^model.vision_tower.query_1024_resolution.", "model.qwen2_model.query_1024."},
                {"^model.view_separator", "model.view_seperator"},
                {"^model.multi_modal_projector.", "model.projector.layers."},
                {"^model.language_model.", "model."}}),
           .experts = by_name},
          {.families = {"gemma4_unified"},
           .renamings = {{"embed_vision.multimodal_embedder.", "embed_vision."},
                         {"embed_vision.patch_", "vision_embedder.patch_"},
                         {"embed_vision.pos_", "vision_embedder.pos_"}}}};
}

HubTable large_mistral_and_colpali() {
  return {
      {.families = {"colpali"},
       .renamings = {{"^vlm.language_model.", "vlm.language_model.model."}}},
      {.families = {"mistral_large4"},
       .renamings = {{"^lm_head.", "output."},
                     {"^model.language_model.embed_tokens.", "tok_embeddings."},
                     {"^model.language_model.rotary_emb.alpha", "lerope.alpha"},
                     {"^model.language_model.", ""},
                     {"^model.multi_modal_projector.norm.", "pre_mm_projector_norm."},
                     {"^model.multi_modal_projector.patch_merger.", "patch_merger."},
                     {"^model.multi_modal_projector.linear_1.", "vision_language_adapter.w_in."},
                     {"^model.multi_modal_projector.linear_2.", "vision_language_adapter.w_out."},
                     {"^model.vision_tower.", "vision_encoder."},
                     {".self_attn.", ".attention."},
                     {".input_layernorm.", ".attention_norm."},
                     {".post_attention_layernorm.", ".ffn_norm."},
                     {".kv_a_layernorm.", ".kv_a_norm."},
                     {".kv_a_proj_with_mqa.", ".wkv_a_with_mqa."},
                     {".kv_b_proj.", ".wkv_b."},
                     {".softmax_scaling.scale", ".ssmax_scaling.s"},
                     {".softmax_scaling.bias", ".ssmax_scaling.b"},
                     {".mlp.experts.", ".experts."},
                     {".mlp.shared_experts.", ".shared_experts."},
                     {".mlp.gate.", ".gate."},
                     {".mlp.", ".feed_forward."},
                     {".q_proj.", ".wq."},
                     {".k_proj.", ".wk."},
                     {".v_proj.", ".wv."},
                     {".o_proj.", ".wo."},
                     {".feed_forward.gate_proj.", ".feed_forward.w1."},
                     {".feed_forward.down_proj.", ".feed_forward.w2."},
                     {".feed_forward.up_proj.", ".feed_forward.w3."},
                     {".shared_experts.gate_proj.", ".shared_experts.w1."},
                     {".shared_experts.down_proj.", ".shared_experts.w2."},
                     {".shared_experts.up_proj.", ".shared_experts.w3."}},
       .experts = by_number}};
}

HubTable molmo() {
  return {{.families = {"molmo2"},
           .renamings = {{"^model.language_model.layers.", "model.transformer.blocks."},
                         {"^model.language_model.norm.", "model.transformer.ln_f."},
                         {"^model.language_model.", "model.transformer."},
                         {"^model.vision_tower.layers.",
                          "model.vision_backbone.image_vit.transformer.resblocks."},
                         {"^model.vision_tower.", "model.vision_backbone.image_vit."},
                         {"^model.multi_modal_projector.", "model.vision_backbone."},
                         {"resblocks.#.self_attn.q_proj.", "resblocks.#.attention.wq."},
                         {"resblocks.#.self_attn.k_proj.", "resblocks.#.attention.wk."},
                         {"resblocks.#.self_attn.v_proj.", "resblocks.#.attention.wv."},
                         {"resblocks.#.self_attn.o_proj.", "resblocks.#.attention.wo."},
                         {"resblocks.#.mlp.fc1.", "resblocks.#.feed_forward.w1."},
                         {"resblocks.#.mlp.fc2.", "resblocks.#.feed_forward.w2."},
                         {"resblocks.#.layer_norm1.", "resblocks.#.attention_norm."},
                         {"resblocks.#.layer_norm2.", "resblocks.#.ffn_norm."},
                         {"image_pooling_2d.q_proj.", "image_pooling_2d.wq."},
                         {"image_pooling_2d.k_proj.", "image_pooling_2d.wk."},
                         {"image_pooling_2d.v_proj.", "image_pooling_2d.wv."},
                         {"image_pooling_2d.o_proj.", "image_pooling_2d.wo."},
                         {"image_projector.gate_proj.", "image_projector.w1."},
                         {"image_projector.down_proj.", "image_projector.w2."},
                         {"image_projector.up_proj.", "image_projector.w3."},
                         {"blocks.#.input_layernorm.", "blocks.#.attn_norm."},
                         {"blocks.#.post_attention_layernorm.", "blocks.#.ff_norm."},
                         {"blocks.#.self_attn.o_proj.", "blocks.#.self_attn.attn_out."},
                         {"blocks.#.mlp.down_proj.", "blocks.#.mlp.ff_out."},
                         {"transformer.embed_tokens.weight", "transformer.wte."}},
           .fusions = {{{".self_attn.q_proj.", ".self_attn.k_proj.", ".self_attn.v_proj."},
                        ".self_attn.att_proj."},
                       {{".mlp.up_proj.", ".mlp.gate_proj."}, ".mlp.ff_proj."}},
           .cuts = {{"transformer.wte.",
                     {"transformer.wte.embedding", "transformer.wte.new_embedding"}}}}};
}

HubTable llava_kin() {
  const std::vector<Renaming> llava = {{"^lm_head.", "language_model.lm_head."},
                                       {"^model.language_model.", "language_model.model."},
                                       {"^model.vision_tower.", "vision_tower."},
                                       {"^model.multi_modal_projector.", "multi_modal_projector."},
                                       {"^language_model.", "language_model.model."}};
  std::vector<Renaming> aria = llava;
  aria.insert(aria.end(), {{".experts.gate_up_proj", ".experts.fc1.weight"},
                           {".experts.down_proj", ".experts.fc2.weight"}});
  return {{.families = {"got_ocr2"}, .renamings = llava},
          {.families = {"aria"}, .renamings = aria},
          {.families = {"paddleocr_vl"},
           .renamings = {{"^model.projector.", "mlp_AR."},
                         {"^model.visual.", "visual."},
                         {"^model.language_model.", "model."}}},
          {.families = {"hyperclovax_vision_v2"},
           .renamings = {{"^lm_head.", "model.language_model.lm_head."},
                         {"^model.projector.", "model.vision_projector."}}},
          {.families = {"dinov3_convnext"}, .renamings = {{"^model.stages.", "stages."}}},
          {.families = {"ultrabert"},
           .renamings = {{"^model.", "ultrabert."}, {"^head.decoder.", "cls."}}},
          {.families = {"ultravbert"},
           .renamings = {{"^lm_head.", "head.decoder."}, {"^projection_head.", "head."}}},
          {.families = {"emu3"},
           .renamings = {{"^lm_head.", "text_model.lm_head."},
                         {"^model.text_model.", "text_model.model."},
                         {"^model.vqmodel.", "vqmodel."}}},
          {.families = {"lfm3"}, .renamings = {{".self_attn.g_proj.", ".self_attn.gate_proj."}}},
          {.families = {"lfm3_vl"},
           .renamings = {{"language_model.layers.#.self_attn.g_proj.",
                          "language_model.layers.#.self_attn.gate_proj."},
                         {"vision_tower.patch_embed.", "vision_tower.patchifier."},
                         {"vision_tower.layers.#.self_attn.q_norm.",
                          "vision_tower.layers.#.self_attn.q_layernorm."},
                         {"vision_tower.layers.#.self_attn.k_norm.",
                          "vision_tower.layers.#.self_attn.k_layernorm."}}}};
}

HubTable mixtures_of_baidu_and_ling() {
  return {{.families = {"ernie4_5_vl_moe"},
           .renamings = {{"^model.language_model.", "model."},
                         {"^model.vision_tower.", "model.vision_model."},
                         {"_linear.fc1.", "_linear.0."},
                         {"_linear.fc2.", "_linear.2."},
                         {"_linear.ln.", "_linear.3."},
                         {".mlp.text_moe.gate.moe_statics.", ".mlp.moe_statics."},
                         {".mlp.text_moe.gate.weight", ".mlp.gate.weight"},
                         {".mlp.vision_moe.gate.weight", ".mlp.gate.weight_1"},
                         {".mlp.text_moe.experts.", ".mlp.experts."},
                         {".mlp.vision_moe.experts.", ".mlp.experts."}},
           .experts = by_name,
           .fusions = {{{".mlp.moe_statics.", ".mlp.vision_moe.gate.moe_statics."},
                        ".mlp.moe_statics."}},
           .behind = ".vision_moe.",
           .turned = {"_moe.gate.weight"}},
          {.families = {"bailing_hybrid"},
           .renamings = {{"^model.embed_tokens.", "model.word_embeddings."},
                         {".self_attn.forget_gate.", ".self_attn."},
                         {".mlp.gate.e_score_correction_bias", ".mlp.gate.expert_bias"},
                         {".self_attn.o_proj.", ".self_attn.dense."},
                         {".self_attn.", ".attention."}},
           .experts = by_name,
           .cuts = {{".conv1d.", {".q_conv1d.", ".k_conv1d.", ".v_conv1d."}}}}};
}

HubTable steps_and_minimax() {
  return {
      {.families = {"step3p7"},
       .renamings = {{"^model.vision_model.embeddings.patch_embedding.", "vision_model.conv1."},
                     {"^model.vision_model.embeddings.position_embedding.weight",
                      "vision_model.positional_embedding"},
                     {"^model.vision_model.layers.", "vision_model.transformer.resblocks."},
                     {"^model.vision_model.pre_layernorm.", "vision_model.ln_pre."},
                     {"^model.vision_model.downsampler", "vision_model.vit_downsampler"},
                     {"^model.multi_modal_projector.", "vit_large_projector."},
                     {"^model.language_model.", "model."},
                     {"resblocks.#.lambda_1", "resblocks.#.ls_1.gamma"},
                     {"resblocks.#.lambda_2", "resblocks.#.ls_2.gamma"},
                     {"resblocks.#.mlp.fc1.", "resblocks.#.mlp.c_fc."},
                     {"resblocks.#.mlp.fc2.", "resblocks.#.mlp.c_proj."},
                     {"resblocks.#.layernorm_before.", "resblocks.#.ln_1."},
                     {"resblocks.#.layernorm_after.", "resblocks.#.ln_2."},
                     {"resblocks.#.self_attn.q_proj.weight", "resblocks.#.attn.q_proj.weight"},
                     {"resblocks.#.self_attn.", "resblocks.#.attn."},
                     {".mlp.gate.e_score_correction_bias", ".moe.router_bias"},
                     {".mlp.gate.weight", ".moe.gate.weight"},
                     {".mlp.shared_experts.", ".share_expert."},
                     {".mlp.experts.down_proj", ".moe.down_proj.weight"},
                     {".mlp.experts.gate_up_proj", ".moe.gate_up_proj.weight"}},
       .fusions = {{{".attn.q_proj.", ".attn.k_proj.", ".attn.v_proj."}, ".attn.in_proj_"}},
       .cuts = {{".moe.gate_up_proj.", {".moe.gate_proj.", ".moe.up_proj."}, 1}}},
      {.families = {"minimax_m3_vl"},
       .renamings = {{"^lm_head.", "language_model.lm_head."},
                     {"^model.language_model.", "language_model.model."},
                     {"^model.vision_tower.embeddings.proj.",
                      "vision_tower.vision_model.embeddings.patch_embedding."},
                     {"^model.vision_tower.layers.", "vision_tower.vision_model.encoder.layers."},
                     {"^model.vision_tower.", "vision_tower.vision_model."},
                     {"^model.multi_modal_projector.merge_", "patch_merge_mlp."},
                     {"^model.multi_modal_projector.", "multi_modal_projector."},
                     {".mlp.gate.e_score_correction_bias",
                      ".block_sparse_moe.e_score_correction_bias"},
                     {".mlp.experts.", ".block_sparse_moe.experts."},
                     {".mlp.gate.", ".block_sparse_moe.gate."},
                     {".mlp.shared_experts.", ".block_sparse_moe.shared_experts."},
                     {".indexer.q_", ".index_q_"},
                     {".indexer.k_", ".index_k_"}},
       .experts = by_number,
       .cuts = {{".gate_up_proj.", {".gate_proj.", ".up_proj."}}}}};
}

HubTable large_encoders() {
  return {{.families = {"qianfan_ocr"},
           .renamings = {{"^lm_head.", "language_model.lm_head."},
                         {"^model.language_model.", "language_model.model."},
                         {"^model.vision_tower.layers.", "vision_model.encoder.layers."},
                         {"^model.vision_tower.", "vision_model."},
                         {"^model.multi_modal_projector.layer_norm.", "mlp1.0."},
                         {"^model.multi_modal_projector.linear_1.", "mlp1.1."},
                         {"^model.multi_modal_projector.linear_2.", "mlp1.3."},
                         {".lambda_1", ".ls1"},
                         {".lambda_2", ".ls2"},
                         {".attention.projection_layer.", ".attn.proj."},
                         {".attention.", ".attn."},
                         {".layernorm_before.", ".norm1."},
                         {".layernorm_after.", ".norm2."},
                         {".embeddings.cls_token", ".embeddings.class_embedding"},
                         {".embeddings.position_embeddings", ".embeddings.position_embedding"},
                         {".patch_embeddings.projection.", ".patch_embedding."}},
           .fusions = {{{".attn.q_proj.", ".attn.k_proj.", ".attn.v_proj."}, ".attn.qkv."}}},
          {.families = {"kimi_k25"},
           .renamings = {{"^lm_head.", "language_model.lm_head."},
                         {"^model.language_model.", "language_model.model."},
                         {"^model.vision_tower.layers.", "vision_tower.encoder.blocks."},
                         {"^model.vision_tower.final_layernorm.",
                          "vision_tower.encoder.final_layernorm."},
                         {"^model.vision_tower.", "vision_tower."},
                         {"^model.mm_projector.in_proj.", "mm_projector.proj.0."},
                         {"^model.mm_projector.out_proj.", "mm_projector.proj.2."},
                         {"^model.mm_projector.", "mm_projector."},
                         {".pos_emb.position_embeddings", ".pos_emb.weight"},
                         {"blocks.#.norm1.", "blocks.#.norm0."},
                         {"blocks.#.norm2.", "blocks.#.norm1."},
                         {"blocks.#.mlp.fc1.", "blocks.#.mlp.fc0."},
                         {"blocks.#.mlp.fc2.", "blocks.#.mlp.fc1."},
                         {"blocks.#.attn.proj.", "blocks.#.wo."}},
           .experts = by_name,
           .fusions = {{{".attn.q_proj.", ".attn.k_proj.", ".attn.v_proj."}, ".wqkv."}}}};
}

}  // namespace

HubTable recent_hub_families() {
  HubTable all;
  for (const auto make :
       {pages_and_sounds, unlimited, ocr2_and_unified, large_mistral_and_colpali, molmo, llava_kin,
        mixtures_of_baidu_and_ling, steps_and_minimax, large_encoders}) {
    HubTable some = make();
    all.insert(all.end(), std::make_move_iterator(some.begin()),
               std::make_move_iterator(some.end()));
  }
  return all;
}

}  // namespace shardsim::models
