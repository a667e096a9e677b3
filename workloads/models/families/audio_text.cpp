// Models that read sounds beside text: Audio Flamingo 3, Music Flamingo, GLM-ASR, Qwen3-ASR, MOSS
// Transcribe, Granite Speech, Fun-ASR Nano. A step here is one of text alone, as image_text.cpp has
// it.
//
// Source: transformers 5.23.0, modeling_X.py of each.
#include "workloads/models/families/image_text.hpp"

namespace shardsim::models {

std::int64_t add_audio_tower(ModelSpec& spec, const Config& audio, const std::string& at,
                             const AudioSizes& usual) {
  audio.pass_over({"activation_function", "dropout", "attention_dropout", "activation_dropout",
                   "encoder_layerdrop", "layerdrop", "scale_embedding", "hidden_act", "head_dim",
                   "num_key_value_heads", "num_hidden_layers"});
  const std::int64_t hidden = audio.size("d_model|hidden_size", usual.hidden);
  constexpr std::int64_t taps = 3;
  const std::int64_t bins = audio.size("num_mel_bins", usual.bins);
  spec.apart.push_back({at + "conv1.weight", {hidden, bins, taps}});
  spec.apart.push_back({at + "conv1.bias", {hidden}});
  spec.apart.push_back({at + "conv2.weight", {hidden, hidden, taps}});
  spec.apart.push_back({at + "conv2.bias", {hidden}});
  spec.apart.push_back(
      {at + "embed_positions.weight", {audio.size("max_source_positions", 1500), hidden}, true});
  add_norm(spec, at + "layer_norm", hidden, true);
  Stack stack =
      tower(at + "layers", hidden, audio.size("encoder_layers|num_hidden_layers", usual.layers),
            audio.size("encoder_attention_heads|num_attention_heads", usual.heads),
            audio.size("encoder_ffn_dim|intermediate_size", usual.width),
            {.norm1 = "self_attn_layer_norm", .norm2 = "final_layer_norm"});
  for (LayerKind& kind : stack.kinds) {
    std::get<Attention>(kind.branches[0].body).k_bias = false;
    std::get<Mlp>(kind.branches[1].body).name = "";
  }
  add_silent(spec, std::move(stack));
  return hidden;
}

namespace {

constexpr const char* ear = "model.audio_tower.";
constexpr const char* between = "model.multi_modal_projector.";

ModelSpec text_of(const Config& c, std::string_view usual, bool may_be_tied) {
  const Config text = nested(c, "text_config");
  c.pass_over({"projector_hidden_act"});
  const bool tied = is_tied(c, text, may_be_tied) && may_be_tied;
  return inside(read_text(text, usual), "model.language_model.", "lm_head", tied);
}

// Two linear modules from `in` over `width` to the text's width.
void add_projector(ModelSpec& spec, std::int64_t in, std::int64_t width, bool bias) {
  add_linear(spec, std::string(between) + "linear_1", width, in, bias);
  add_linear(spec, std::string(between) + "linear_2", spec.stacks.back().hidden, width, bias);
}

ModelSpec audio_flamingo(const Config& c) {
  // Where sounds stand in time is turned into features, without weights.
  c.pass_over({"audio_frame_step", "max_position_embeddings", "head_dim", "audio_bos_token_id",
               "audio_eos_token_id"});
  static_cast<void>(c.rotary_number("partial_rotary_factor", 1));
  c.pass_over({"tie_word_embeddings"});  // the class never does
  ModelSpec spec = text_of(c, "qwen2", false);
  const std::int64_t hidden = add_audio_tower(spec, nested(c, "audio_config"), ear);
  add_projector(spec, hidden, spec.stacks.back().hidden, c.flag("projector_bias", true));
  return spec;
}

// So many frames in a row are one token.
ModelSpec moss_transcribe(const Config& c) {
  c.pass_over({"audio_chunk_size"});
  ModelSpec spec = text_of(c, "qwen3", true);
  const std::int64_t hidden =
      add_audio_tower(spec, nested(c, "audio_config"), ear,
                      {.hidden = 1024, .bins = 80, .layers = 24, .heads = 16, .width = 4096});
  const std::int64_t out = spec.stacks.back().hidden;
  add_projector(spec, hidden * c.size("audio_merge_size", 4), out, c.flag("projector_bias", true));
  add_norm(spec, std::string(between) + "norm", out, true);
  return spec;
}

void add_convolution_over_time(ModelSpec& spec, const std::string& name, std::int64_t out,
                               std::int64_t in) {
  constexpr std::int64_t taps = 3;
  add_convolution(spec, name, {out, in, taps}, true);
}

// Whisper's encoder with rotary positions; as many frames as the MLP is wider are one token.
ModelSpec glm_asr(const Config& c) {
  ModelSpec spec = text_of(c, "llama", true);
  const Config audio = nested(c, "audio_config");
  audio.pass_over({"hidden_act", "attention_dropout", "head_dim", "partial_rotary_factor"});
  const std::int64_t hidden = audio.size("hidden_size", 1280);
  const std::int64_t width = audio.size("intermediate_size", 5120);
  const std::int64_t heads = audio.size("num_attention_heads", 20);
  const std::string at = ear;
  add_convolution_over_time(spec, at + "conv1", hidden, audio.size("num_mel_bins", 128));
  add_convolution_over_time(spec, at + "conv2", hidden, hidden);
  add_norm(spec, at + "norm", hidden, true);
  add_projector(spec, width, 2 * spec.stacks.back().hidden, true);
  Stack stack =
      tower(at + "layers", hidden, audio.size("num_hidden_layers", 32), heads, width,
            {.norm1 = "input_layernorm", .norm2 = "post_attention_layernorm", .out = "o_proj"});
  for (LayerKind& kind : stack.kinds) {
    auto& attention = std::get<Attention>(kind.branches[0].body);
    attention.k_bias = false;
    attention.kv_heads = audio.size("num_key_value_heads", heads);
  }
  add_silent(spec, std::move(stack));
  return spec;
}

// Three convolutions that halve time and bins.
ModelSpec qwen3_asr(const Config& c) {
  c.pass_over({"timestamp_token_id", "token_classification_bias"});
  ModelSpec spec = text_of(c, "qwen3", true);
  const Config audio = nested(c, "audio_config");
  audio.pass_over({"activation_function", "dropout", "attention_dropout", "activation_dropout",
                   "scale_embedding", "n_window", "n_window_infer", "num_hidden_layers",
                   "max_source_positions", "conv_chunksize"});
  const std::int64_t hidden = audio.size("d_model|hidden_size", 1024);
  const std::int64_t channels = audio.size("downsample_hidden_size", 480);
  const std::string at = ear;
  constexpr std::int64_t taps = 3;
  add_convolution(spec, at + "conv2d1", {channels, 1, taps, taps}, true);
  add_convolution(spec, at + "conv2d2", {channels, channels, taps, taps}, true);
  add_convolution(spec, at + "conv2d3", {channels, channels, taps, taps}, true);
  std::int64_t bins = audio.size("num_mel_bins", 128);
  for (int i = 0; i < 3; ++i) bins = (bins + 1) / 2;
  add_linear(spec, at + "conv_out", hidden, channels * bins, false);
  add_norm(spec, at + "ln_post", hidden, true);
  add_linear(spec, std::string(between) + "linear_1", hidden, hidden, true);
  add_linear(spec, std::string(between) + "linear_2", audio.size("output_dim", 3584), hidden, true);
  Stack stack = tower(at + "layers", hidden, audio.size("encoder_layers|num_hidden_layers", 24),
                      audio.size("encoder_attention_heads|num_attention_heads", 16),
                      audio.size("encoder_ffn_dim|intermediate_size", 4096),
                      {.norm1 = "self_attn_layer_norm", .norm2 = "final_layer_norm"});
  for (LayerKind& kind : stack.kinds) std::get<Mlp>(kind.branches[1].body).name = "";
  add_silent(spec, std::move(stack));
  return spec;
}

// A conformer's layer: half an MLP, attention with a table of distances, a convolution, and the
// other half.
void add_granite_layer(ModelSpec& spec, const Config& c, const std::string& at) {
  const std::int64_t hidden = c.size("hidden_dim", 1024);
  const std::int64_t width = hidden * c.size("feedforward_mult", 4);
  const std::int64_t dim = c.size("dim_head", 128);
  const std::int64_t heads = dim * c.size("num_heads", 8);
  const std::int64_t inner = hidden * c.size("conv_expansion_factor", 2);
  for (const char* mlp : {"ff1.", "ff2."}) {
    add_norm(spec, at + mlp + "pre_norm", hidden, true);
    add_linear(spec, at + mlp + "up_proj", width, hidden, true);
    add_linear(spec, at + mlp + "down_proj", hidden, width, true);
  }
  add_norm(spec, at + "attn.pre_norm", hidden, true);
  add_linear(spec, at + "attn.to_q", heads, hidden, false);
  add_linear(spec, at + "attn.to_kv", 2 * heads, hidden, false);
  add_linear(spec, at + "attn.to_out", hidden, heads, true);
  add_table(spec, at + "attn.rel_pos_emb", 2 * c.size("max_pos_emb", 512) + 1, dim);
  add_norm(spec, at + "conv.norm", hidden, true);
  add_convolution(spec, at + "conv.up_conv", {2 * inner, hidden, 1}, true);
  add_convolution(spec, at + "conv.depth_conv.conv", {inner, 1, c.size("conv_kernel_size", 15)},
                  false);
  add_norm(spec, at + "conv.batch_norm", inner, true);
  for (const char* buffer : {"running_mean", "running_var"}) {
    spec.buffers.push_back({at + "conv.batch_norm." + buffer, {inner}});
  }
  spec.buffers.push_back({at + "conv.batch_norm.num_batches_tracked", {}});
  add_convolution(spec, at + "conv.down_conv", {hidden, inner, 1}, true);
  add_norm(spec, at + "post_norm", hidden, true);
}

// Granite behind a Q-Former, whose learned rows read a window of frames each.
ModelSpec granite_speech(const Config& c) {
  c.pass_over({"has_lora_adapter"});  // of peft, beside the model
  ModelSpec spec = text_of(c, "granite", true);
  spec.head.causal_loss = false;  // the class's own, of logits as they are
  spec.head.shifted = true;
  std::get<TokenEmbedding>(spec.stacks.back().input).shifted = true;  // numbers are copied
  const Config encoder = nested(c, "encoder_config");
  const Config projector = nested(c, "projector_config");
  encoder.pass_over({"context_size", "dropout"});
  const std::int64_t hidden = encoder.size("hidden_dim", 1024);
  const std::int64_t out = encoder.size("output_dim", 42);
  add_linear(spec, "model.encoder.input_linear", hidden, encoder.size("input_dim", 160), true);
  add_linear(spec, "model.encoder.out", out, hidden, true);
  add_linear(spec, "model.encoder.out_mid", hidden, out, true);
  for (std::int64_t i = 0; i < encoder.layers("num_layers", 10); ++i) {
    add_granite_layer(spec, encoder, "model.encoder.layers." + std::to_string(i) + ".");
  }
  const std::size_t beside = encoder.integers("cat_hidden_layers").size();
  const std::int64_t seen = projector.size("encoder_hidden_size", 1408);
  if (beside > 0 && seen != hidden * static_cast<std::int64_t>(beside + 1)) {
    projector.fail("encoder_hidden_size", "is not what cat_hidden_layers puts side by side");
  }
  const std::int64_t width =
      add_q_former(spec, projector, "model.projector.qformer.", seen, /*reads_text=*/false);
  const std::int64_t rows = c.size("window_size", 15) / c.size("downsample_rate", 5);
  spec.apart.push_back({"model.projector.query", {1, rows, width}});
  add_linear(spec, "model.projector.linear", spec.stacks.back().hidden, width, true);
  return spec;
}

// A layer of Fun-ASR's, over `in` numbers of the first layer's frames; `taps`: of the convolution
// of values beside attention, none of the adaptor's.
void add_fun_asr_layer(ModelSpec& spec, const std::string& at, std::int64_t in, std::int64_t hidden,
                       std::int64_t width, std::int64_t taps) {
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    add_linear(spec, at + "self_attn." + name, hidden, in, true);
  }
  add_linear(spec, at + "self_attn.o_proj", hidden, hidden, true);
  if (taps > 0) spec.apart.push_back({at + "self_attn.fsmn.conv.weight", {hidden, 1, taps}});
  add_linear(spec, at + "mlp.fc1", width, hidden, true);
  add_linear(spec, at + "mlp.fc2", hidden, width, true);
  add_norm(spec, at + "input_layernorm", in, true);
  add_norm(spec, at + "post_attention_layernorm", hidden, true);
}

// SenseVoice's encoder, whose last layers say when, and an adaptor of a few layers.
ModelSpec fun_asr_nano(const Config& c) {
  ModelSpec spec = text_of(c, "qwen3", true);
  const Config audio = nested(c, "audio_config");
  const Config adaptor = nested(c, "adaptor_config");
  for (const Config* part : {&audio, &adaptor}) {
    part->pass_over({"hidden_dropout", "attention_dropout", "hidden_act", "projector_hidden_act"});
  }
  audio.pass_over({"max_position_embeddings"});
  const std::int64_t hidden = audio.size("hidden_size", 512);
  const std::int64_t frames = audio.size("num_mel_bins", 80) * audio.size("num_stacked_frames", 7);
  const std::int64_t layers = audio.layers("num_hidden_layers", 70);
  const std::int64_t timed = audio.count("num_timestamp_prediction_layers", 20);
  const std::int64_t width = audio.size("intermediate_size", 2048);
  const std::int64_t taps = audio.size("fsmn_kernel_size", 11);
  static_cast<void>(audio.divided("hidden_size", hidden, "num_attention_heads",
                                  audio.size("num_attention_heads", 4)));
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string at = ear + ("layers." + std::to_string(i)) + ".";
    add_fun_asr_layer(spec, at, i == 0 ? frames : hidden, hidden, width, taps);
    if (i + 1 == layers || i + 1 == layers - timed) {
      add_norm(spec, at + "final_layernorm", hidden, true);
    }
  }
  const std::int64_t out = adaptor.size("hidden_size", 1024);
  const std::int64_t narrow = adaptor.size("intermediate_size", 256);
  const std::int64_t wide = adaptor.size("projector_hidden_size", 2048);
  if (out != spec.stacks.back().hidden) adaptor.fail("hidden_size", "is not the text's");
  static_cast<void>(adaptor.divided("hidden_size", out, "num_attention_heads",
                                    adaptor.size("num_attention_heads", 8)));
  add_projector(spec, hidden, wide, true);
  for (std::int64_t i = 0; i < adaptor.layers("num_hidden_layers", 2); ++i) {
    add_fun_asr_layer(spec, between + ("layers." + std::to_string(i)) + ".", out, out, narrow, 0);
  }
  return spec;
}

}  // namespace

std::vector<Family> audio_text_families() {
  return {
      {"GraniteSpeechForConditionalGeneration", "granite_speech", granite_speech},
      {"GraniteSpeechPlusForConditionalGeneration", "granite_speech_plus", granite_speech},

      {"AudioFlamingo3ForConditionalGeneration", "audioflamingo3", audio_flamingo},
      {"MusicFlamingoForConditionalGeneration", "musicflamingo", audio_flamingo},
      {"MossTranscribeDiarizeForConditionalGeneration", "moss_transcribe_diarize", moss_transcribe},
      {"GlmAsrForConditionalGeneration", "glmasr", glm_asr},
      {"Qwen3ASRForConditionalGeneration", "qwen3_asr", qwen3_asr},
      {"FunAsrNanoForConditionalGeneration", "fun_asr_nano", fun_asr_nano}};
}

}  // namespace shardsim::models
