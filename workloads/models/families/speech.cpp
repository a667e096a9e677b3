// Encoders of sounds. wav2vec 2 (arXiv:2006.11477), HuBERT (arXiv:2106.07447), UniSpeech
// (arXiv:2101.07597, arXiv:2110.05752), WavLM (arXiv:2110.13900) and data2vec's (arXiv:2202.03555)
// read samples: convolutions make rows of them, positions are a convolution of groups over rows, or
// several. WavLM's scores have a bias of distances beside. AST
// (arXiv:2104.01778) is a ViT of a spectrogram's overlapping patches.
#include <functional>
#include <optional>

#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

constexpr std::int64_t ten_seconds = 160000;  // samples, 16,000 each second

// A convolution along the samples.
Convolve along(std::string name, std::int64_t out, std::int64_t kernel, std::int64_t stride,
               bool bias) {
  return {.name = std::move(name),
          .out = out,
          .kernel = {1, kernel},
          .stride = {1, stride},
          .bias = bias};
}

// Samples as rows of the last convolution's width.
Ref sound_features(const Config& c, Draft& d, const std::string& at, bool deep) {
  const auto widths = c.sizes("conv_dim", {512, 512, 512, 512, 512, 512, 512});
  const auto kernels = c.sizes("conv_kernel", {10, 3, 3, 3, 3, 2, 2});
  const auto strides = c.sizes("conv_stride", {5, 2, 2, 2, 2, 2, 2});
  if (kernels.size() != widths.size()) c.fail("conv_kernel", "has not one entry for each conv_dim");
  if (strides.size() != widths.size()) c.fail("conv_stride", "has not one entry for each conv_dim");
  const std::string norm = deep ? "layer" : c.text("feat_extract_norm", "group");
  if (norm != "group" && norm != "layer") {
    c.fail("feat_extract_norm", "is neither \"group\" nor \"layer\"");
  }
  const std::string activation = c.activation("feat_extract_activation", "gelu");
  const bool bias = c.flag("conv_bias", false);
  c.pass_over({"num_feat_extract_layers"});  // as many as there are widths
  Ref x = d.enter(PictureInput{.name = "input_values",
                               .channels = 1,
                               .rows = 1,
                               .one_dimension = true,
                               .learns = true,
                               .is_text_long = true});
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const Draft::In of(d, at + "conv_layers." + std::to_string(i));
    x = d.convolve(along("conv", widths[i], kernels[i], strides[i], bias), x);
    if (norm == "layer") x = d.norm(row_norm("layer_norm"), x);
    if (norm == "group" && i == 0) x = d.group_norm("layer_norm", 0, x);
    x = d.activate(activation, x, "activation");
  }
  return d.rows(x);
}

struct SpeechSizes {
  std::int64_t hidden = 0, layers = 0, heads = 0, width = 0;
  std::string activation;
  double dropout = 0, attention_dropout = 0, inner_dropout = 0;
};

SpeechSizes read_speech(const Config& c) {
  SpeechSizes n;
  n.hidden = c.size("hidden_size", 768);
  n.layers = c.layers("num_hidden_layers", 12);
  n.heads = c.size("num_attention_heads", 12);
  n.width = c.size("intermediate_size", 3072);
  static_cast<void>(c.divided("hidden_size", n.hidden, "num_attention_heads", n.heads));
  n.activation = c.activation("hidden_act", "gelu");
  n.dropout = c.rate("hidden_dropout", 0.1);
  n.attention_dropout = c.rate("attention_dropout", 0.1);
  n.inner_dropout = c.rate("activation_dropout", 0.1);
  return n;
}

// Rows with what a convolution of groups sees around them.
Ref with_positions(const Config& c, Draft& d, const SpeechSizes& n, const std::string& at, Ref x) {
  if (c.flag("conv_pos_batch_norm", false)) {
    c.fail("conv_pos_batch_norm", "only false is supported");
  }
  const std::int64_t kernel = c.size("num_conv_pos_embeddings", 128);
  const std::int64_t groups = c.size("num_conv_pos_embedding_groups", 16);
  static_cast<void>(c.divided("hidden_size", n.hidden, "num_conv_pos_embedding_groups", groups));
  Convolve convolution = along(at + "pos_conv_embed.conv", n.hidden, kernel, 1, /*bias=*/true);
  convolution.padding = {0, kernel / 2};
  convolution.groups = groups;
  convolution.weight_normed = true;
  convolution.cut = kernel % 2 == 0 ? 1 : 0;
  const Ref seen = d.activate(c.activation("feat_extract_activation", "gelu"),
                              d.convolve(convolution, d.picture(x)));
  return d.sum(x, d.rows(seen));
}

// Data2vec's: several narrower convolutions, each with a norm that learns nothing.
Ref with_deep_positions(const Config& c, Draft& d, const SpeechSizes& n, const std::string& at,
                        Ref x) {
  const std::int64_t kernel = c.size("conv_pos_kernel_size", 19);
  const std::int64_t groups = c.size("num_conv_pos_embedding_groups", 16);
  static_cast<void>(c.divided("hidden_size", n.hidden, "num_conv_pos_embedding_groups", groups));
  const std::string activation = c.activation("feat_extract_activation", "gelu");
  Ref seen = d.picture(x);
  for (std::int64_t i = 0; i < c.size("num_conv_pos_embeddings", 5); ++i) {
    const Draft::In of(d, at + "pos_conv_embed.layers." + std::to_string(i));
    Convolve convolution = along("conv", n.hidden, kernel, 1, /*bias=*/true);
    convolution.padding = {0, kernel / 2};
    convolution.groups = groups;
    convolution.cut = kernel % 2 == 0 ? 1 : 0;
    seen = d.norm({NormKind::layer_fixed, "layer_norm"}, d.convolve(convolution, seen));
    seen = d.activate(activation, seen, "activation");
  }
  return d.sum(x, d.rows(seen));
}

// What tells a family's module from wav2vec 2's.
struct SpeechKind {
  bool deep = false;   // data2vec's convolutions
  bool gated = false;  // WavLM's attention
};

// WavLM's layers read one table of distances, which the first of them has.
std::function<Ref(Draft&, Ref)> gated_attention(const Config& c, const SpeechSizes& n) {
  const std::int64_t buckets = c.size("num_buckets", 320);
  c.pass_over({"max_bucket_distance"});
  return [n, buckets, distances = std::optional<Ref>()](Draft& d, Ref x) mutable {
    if (!distances) {
      distances = d.draw({DistanceScores{.buckets = buckets, .heads = n.heads}, "attention"}, {x});
    }
    return d.draw({GatedDistanceAttention{n.heads, n.attention_dropout}, "attention"},
                  {x, *distances});
  };
}

Ref speech_rows(const Config& c, Draft& d, const std::string& prefix, const SpeechKind& kind) {
  const SpeechSizes n = read_speech(c);
  const bool deep = kind.deep;
  if (c.flag("add_adapter", false)) c.fail("add_adapter", "only false is supported");
  if (c.given("adapter_attn_dim")) c.fail("adapter_attn_dim", "is not supported");
  Ref x = sound_features(c, d, prefix + "feature_extractor.", deep);
  const std::string projection = prefix + "feature_projection.";
  if (c.flag("feat_proj_layer_norm", true)) x = d.norm(row_norm(projection + "layer_norm"), x);
  x = d.linear({.name = projection + "projection", .out = n.hidden}, x);
  x = d.drop(c.rate("feat_proj_dropout", 0), x);
  if (c.number("mask_time_prob", 0.05) > 0 || c.number("mask_feature_prob", 0) > 0) {
    d.stored(prefix + "masked_spec_embed", {n.hidden});
  }
  const std::string encoder = prefix + "encoder.";
  const bool norms_first = !deep && c.flag("do_stable_layer_norm", false);
  x = deep ? with_deep_positions(c, d, n, encoder, x) : with_positions(c, d, n, encoder, x);
  if (!norms_first) x = d.norm(row_norm(encoder + "layer_norm"), x);
  x = d.drop(n.dropout, x);
  const RowLayer layer{.first_norm = "layer_norm",
                       .second_norm = "final_layer_norm",
                       .attention = {.name = "attention",
                                     .heads = n.heads,
                                     .o = "out_proj",
                                     .dropout = n.attention_dropout},
                       .attend = kind.gated ? gated_attention(c, n) : nullptr,
                       .up = "feed_forward.intermediate_dense",
                       .down = "feed_forward.output_dense",
                       .hidden = n.hidden,
                       .width = n.width,
                       .activation = n.activation,
                       .norms_behind = !norms_first,
                       .dropout = n.dropout,
                       .inner_dropout = n.inner_dropout};
  for (std::int64_t i = 0; i < n.layers; ++i) {
    d.layer(encoder + "layers", i, "encoder");
    x = row_layer(d, layer, x);
  }
  d.outside("head");
  return norms_first ? d.norm(row_norm(encoder + "layer_norm"), x) : x;
}

ModelSpec speech_spec(const Config& c, Draft& d) {
  // Which rows are masked and which layers are left out changes from step to step; other classes'.
  c.pass_over({"layerdrop",
               "apply_spec_augment",
               "mask_time_prob",
               "mask_time_length",
               "mask_time_min_masks",
               "mask_feature_prob",
               "mask_feature_length",
               "mask_feature_min_masks",
               "num_codevectors_per_group",
               "num_codevector_groups",
               "contrastive_logits_temperature",
               "num_negatives",
               "codevector_dim",
               "proj_codevector_dim",
               "diversity_loss_weight",
               "ctc_loss_reduction",
               "ctc_zero_infinity",
               "use_weighted_layer_sum",
               "classifier_proj_size",
               "tdnn_dim",
               "tdnn_kernel",
               "tdnn_dilation",
               "xvector_output_dim",
               "feat_quantizer_dropout",
               "final_dropout",
               "adapter_kernel_size",
               "adapter_stride",
               "num_adapter_layers",
               "num_ctc_classes",
               "replace_prob",
               "num_clusters",
               "output_hidden_size",
               "vocab_size",
               "tokenizer_class",
               "hidden_dropout_prob",
               "feat_extract_dropout"});
  ModelSpec spec;
  spec.network = d.finish({.side = 1, .text = ten_seconds});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec speech_alone(const Config& c, const SpeechKind& kind) {
  Draft d;
  d.sum_loss(speech_rows(c, d, "", kind));
  return speech_spec(c, d);
}

ModelSpec speech_model(const Config& c) { return speech_alone(c, {}); }
ModelSpec data2vec_audio_model(const Config& c) { return speech_alone(c, {.deep = true}); }
ModelSpec wavlm_model(const Config& c) { return speech_alone(c, {.gated = true}); }

// By its module's name.
SpeechKind kind_of(const std::string& prefix) {
  return {.deep = prefix == "data2vec_audio.", .gated = prefix == "wavlm."};
}

// The logits of each row; the loss of their alignment with a text is the user's.
ModelSpec speech_letters(const Config& c, const std::string& prefix) {
  Draft d;
  const Ref rows = d.drop(c.rate("final_dropout", 0.1), speech_rows(c, d, prefix, kind_of(prefix)));
  d.sum_loss(d.linear({.name = "lm_head", .out = c.size("vocab_size", 32)}, rows));
  return speech_spec(c, d);
}

ModelSpec speech_classifier(const Config& c, const std::string& prefix) {
  if (c.flag("use_weighted_layer_sum", false)) {
    c.fail("use_weighted_layer_sum", "only false is supported");
  }
  Draft d;
  const Ref projected = d.linear({.name = "projector", .out = c.size("classifier_proj_size", 256)},
                                 speech_rows(c, d, prefix, kind_of(prefix)));
  d.classes(d.linear({.name = "classifier", .out = labels_of(c)}, d.mean(projected)));
  return speech_spec(c, d);
}

// Classes of each row: who speaks when.
ModelSpec speech_frames(const Config& c, const std::string& prefix) {
  if (c.flag("use_weighted_layer_sum", false)) {
    c.fail("use_weighted_layer_sum", "only false is supported");
  }
  Draft d;
  const Ref rows = speech_rows(c, d, prefix, kind_of(prefix));
  d.classes(d.linear({.name = "classifier", .out = labels_of(c)}, rows));
  return speech_spec(c, d);
}

Ref spectrogram_rows(const Config& c, Draft& d, const std::string& prefix) {
  const VisionSizes n = read_vision(c, "gelu");
  const std::int64_t patch = c.size("patch_size", 16);
  const std::int64_t bins = c.size("num_mel_bins", 128);
  const std::int64_t length = c.size("max_length", 1024);
  if (bins < patch) c.fail("num_mel_bins", "is smaller than a patch");
  if (length < patch) c.fail("max_length", "is smaller than a patch");
  Convolve cut = patches(prefix + "embeddings.patch_embeddings.projection", n.hidden, patch);
  cut.stride = {c.size("frequency_stride", 10), c.size("time_stride", 10)};
  Ref x = d.rows(d.convolve(cut, d.image(1, bins, length)));
  x = d.before(prefix + "embeddings.distillation_token", x);
  x = d.before(prefix + "embeddings.cls_token", x);
  x = d.drop(n.dropout, d.table(prefix + "embeddings.position_embeddings", x));
  x = vit_layers(d, n, prefix, x);
  return d.norm(row_norm(prefix + "layernorm"), x);
}

ModelSpec spectrogram_spec(const Config& c, Draft& d) {
  ModelSpec spec;
  spec.network = d.finish({.side = c.size("max_length", 1024), .takes_one_side = true});
  spec.head.kind = HeadKind::none;
  return spec;
}

ModelSpec spectrogram_model(const Config& c) {
  Draft d;
  d.sum_loss(spectrogram_rows(c, d, ""));
  return spectrogram_spec(c, d);
}

// Of the mean of both learned rows.
ModelSpec spectrogram_classifier(const Config& c) {
  Draft d;
  const Ref rows = spectrogram_rows(c, d, "audio_spectrogram_transformer.");
  const Ref both =
      d.sum(d.part({.single = true}, rows), d.part({.first = 1, .single = true}, rows));
  const Ref normed = d.norm(row_norm("classifier.layernorm"), d.scaled(both));
  d.classes(d.linear({.name = "classifier.dense", .out = labels_of(c)}, normed));
  return spectrogram_spec(c, d);
}

}  // namespace

std::vector<Family> speech_families() {
  const auto under = [](auto read, const std::string& prefix) {
    return [read, prefix](const Config& c) { return read(c, prefix); };
  };
  return {
      {"Wav2Vec2Model", "wav2vec2", speech_model},
      {"Wav2Vec2ForCTC", "wav2vec2", under(speech_letters, "wav2vec2.")},
      {"Wav2Vec2ForSequenceClassification", "wav2vec2", under(speech_classifier, "wav2vec2.")},
      {"HubertModel", "hubert", speech_model},
      {"HubertForCTC", "hubert", under(speech_letters, "hubert.")},
      {"HubertForSequenceClassification", "hubert", under(speech_classifier, "hubert.")},
      {"UniSpeechModel", "unispeech", speech_model},
      {"UniSpeechForCTC", "unispeech", under(speech_letters, "unispeech.")},
      {"UniSpeechForSequenceClassification", "unispeech", under(speech_classifier, "unispeech.")},
      {"UniSpeechSatModel", "unispeech-sat", speech_model},
      {"UniSpeechSatForCTC", "unispeech-sat", under(speech_letters, "unispeech_sat.")},
      {"UniSpeechSatForSequenceClassification", "unispeech-sat",
       under(speech_classifier, "unispeech_sat.")},
      {"Data2VecAudioModel", "data2vec-audio", data2vec_audio_model},
      {"Data2VecAudioForCTC", "data2vec-audio", under(speech_letters, "data2vec_audio.")},
      {"Data2VecAudioForSequenceClassification", "data2vec-audio",
       under(speech_classifier, "data2vec_audio.")},
      {"Wav2Vec2ForAudioFrameClassification", "wav2vec2", under(speech_frames, "wav2vec2.")},
      {"UniSpeechSatForAudioFrameClassification", "unispeech-sat",
       under(speech_frames, "unispeech_sat.")},
      {"Data2VecAudioForAudioFrameClassification", "data2vec-audio",
       under(speech_frames, "data2vec_audio.")},
      {"WavLMModel", "wavlm", wavlm_model},
      {"WavLMForCTC", "wavlm", under(speech_letters, "wavlm.")},
      {"WavLMForSequenceClassification", "wavlm", under(speech_classifier, "wavlm.")},
      {"WavLMForAudioFrameClassification", "wavlm", under(speech_frames, "wavlm.")},
      {"ASTModel", "audio-spectrogram-transformer", spectrogram_model},
      {"ASTForAudioClassification", "audio-spectrogram-transformer", spectrogram_classifier}};
}

}  // namespace shardsim::models
