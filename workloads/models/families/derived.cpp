// Classes that have another's layers and differ in what reads them: the layers alone, and
// classifiers of decoders (those of encoders: classifiers.cpp).
//
//   LlamaModel                       LlamaForCausalLM without its head; names without "model."
//   LlamaForSequenceClassification   "score", [classes, hidden], of one token's states
//   LlamaForTokenClassification      the same with a bias, of every token's
//
// Names as in transformers 5.23 (modeling_layers.py, GenericForSequenceClassification).
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "workloads/models/families/classifiers.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/roots.hpp"

namespace shardsim::models {
namespace {

// Decoders whose class for sequences transformers has, by the first words of its name.
constexpr std::array scored_decoders = std::to_array<std::string_view>(
    {"AXK1",        "AXK2",           "Doge",         "Arcee",      "BioGpt",
     "DiffLlama",   "MiniMax",        "OpenAIGPT",    "CTRL",       "Bloom",
     "DeepseekV2",  "DeepseekV3",     "Exaone4",      "Falcon",     "GPT2",
     "GPTBigCode",  "GPTJ",           "GPTNeo",       "GPTNeoX",    "Gemma",
     "Gemma2",      "Gemma3Text",     "Glm",          "Glm4",       "GptOss",
     "Helium",      "HunYuanDenseV1", "HunYuanMoEV1", "Jamba",      "JetMoe",
     "Llama",       "MiniCPM3",       "Ministral",    "Ministral3", "Mistral",
     "Mistral4",    "Mixtral",        "Mpt",          "Nemotron",   "OPT",
     "Olmo",        "Olmo2",          "Olmo3",        "Persimmon",  "Phi",
     "Phi3",        "Phimoe",         "Qwen2",        "Qwen2Moe",   "Qwen3",
     "Qwen3_5Text", "Qwen3Moe",       "Qwen3Next",    "SeedOss",    "SmolLM3",
     "StableLm",    "Starcoder2",     "Zamba",        "Zamba2"});

// Those with a class for each token; `name` of its module, and the module's dropout.
struct TokenDecoder {
  std::string_view stem;
  std::string_view name = "score";
  std::string_view dropout_keys = "classifier_dropout|hidden_dropout";
  double dropout = 0.1;  // of a file without them: 0 where the class has a hidden_dropout of 0
};

constexpr std::string_view usual_dropouts = "classifier_dropout|hidden_dropout";

constexpr std::array token_decoders =
    std::to_array<TokenDecoder>({{"AXK1"},
                                 {"AXK2"},
                                 {"Apertus"},
                                 {"Arcee"},
                                 {"DeepseekV3"},
                                 {"Exaone4"},
                                 {"Gemma"},
                                 {"Gemma2"},
                                 {"Glm"},
                                 {"Glm4"},
                                 {"GptOss"},
                                 {"Helium"},
                                 {"Llama"},
                                 {"Ministral"},
                                 {"Ministral3"},
                                 {"Mistral"},
                                 {"Mistral4"},
                                 {"Mixtral"},
                                 {"Nemotron"},
                                 {"Persimmon", "score", usual_dropouts, 0},
                                 {"Phi"},
                                 {"Phi3"},
                                 {"Qwen2"},
                                 {"Qwen2Moe"},
                                 {"Qwen3"},
                                 {"Qwen3Moe"},
                                 {"Qwen3Next"},
                                 {"SeedOss"},
                                 {"SmolLM3"},
                                 {"StableLm", "score", usual_dropouts, 0},
                                 {"Starcoder2"},
                                 {"BioGpt", "classifier", "classifier_dropout|hidden_dropout_prob"},
                                 {"Bloom", "classifier", usual_dropouts, 0},
                                 {"Falcon", "classifier", usual_dropouts, 0},
                                 {"GPT2", "classifier"},
                                 {"GPTBigCode", "classifier"},
                                 {"GPTNeo", "classifier", "classifier_dropout"},
                                 {"GPTNeoX", "classifier", "classifier_dropout"},
                                 {"Mpt", "classifier"},
                                 {"DiffLlama"},
                                 {"MiniMax"}});

// Encoders by another name that transformers has a class for each token of.
constexpr std::array token_encoders =
    std::to_array<TokenDecoder>({{"XLMWithLMHeadModel", "classifier", "dropout"},
                                 {"FlaubertWithLMHeadModel", "classifier", "dropout"},
                                 {"XLNetLMHeadModel", "classifier", "", 0}});

// Those with a class that finds an answer; some call their layers "transformer".
struct AnsweringDecoder {
  std::string_view stem;
  bool renamed = false;
};

constexpr std::array answering_decoders = std::to_array<AnsweringDecoder>({{"Arcee", true},
                                                                           {"DiffLlama", true},
                                                                           {"Exaone4", true},
                                                                           {"Llama", true},
                                                                           {"Ministral", true},
                                                                           {"Nemotron", true},
                                                                           {"Qwen2", true},
                                                                           {"Qwen3", true},
                                                                           {"Qwen3Moe", true},
                                                                           {"Qwen3Next", true},
                                                                           {"SeedOss", true},
                                                                           {"SmolLM3", true},
                                                                           {"MiniMax"},
                                                                           {"Ministral3"},
                                                                           {"Mistral"},
                                                                           {"Mixtral"},
                                                                           {"Qwen2Moe"},
                                                                           {"GPT2"},
                                                                           {"GPTJ"},
                                                                           {"GPTNeo"},
                                                                           {"GPTNeoX"},
                                                                           {"Falcon"},
                                                                           {"Bloom"},
                                                                           {"Mpt"},
                                                                           {"OPT"}});

// Encoders alone, with a pooler or without.
struct Encoder {
  std::string_view stem;
  bool pools = true;
};

constexpr std::array encoders = std::to_array<Encoder>({{"Camembert"},
                                                        {"Data2VecText"},
                                                        {"Ernie"},
                                                        {"MegatronBert"},
                                                        {"RobertaPreLayerNorm"},
                                                        {"XLMRobertaXL"},
                                                        {"IBert"},
                                                        {"Tapas"},
                                                        {"Xmod"},
                                                        {"ModernBert", false},
                                                        {"EuroBert", false}});

// "Llama" of LlamaForCausalLM; beside images the name is of both, and the text's is another.
std::optional<std::string> decoder_stem(const std::string& architecture) {
  for (const std::string_view suffix : {"ForCausalLM", "LMHeadModel"}) {
    if (!architecture.ends_with(suffix)) continue;
    const std::string stem = architecture.substr(0, architecture.size() - suffix.size());
    // XLM's, which has its model by itself; and of TrOCR no class has the layers alone.
    if (stem.ends_with("With") || stem == "TrOCR") return std::nullopt;
    const bool has_both = stem == "CohereCompass" || stem == "Dots3Note" || stem == "Emu3" ||
                          stem == "Gemma3" || stem == "Gemma3n" || stem == "Gemma4" ||
                          stem == "Gemma4Unified" || stem == "Llama4" || stem == "MiniMaxM3VL" ||
                          stem == "Mllama" || stem == "Qwen3_5" || stem == "Qwen3_5Moe";
    return has_both ? stem + "Text" : stem;
  }
  return std::nullopt;
}

// Without a head, and without the name that the layers have in the model with one.
ModelSpec alone(ModelSpec spec) {
  const std::string first = spec.stacks[0].prefix;
  const std::string prefix = first.substr(0, first.find('.') + 1);
  drop_bias_of_words(spec);
  replace_root(spec, prefix, "");
  spec.head = {.kind = HeadKind::none};
  return spec;
}

ModelSpec encoder_of(ModelSpec spec) {
  spec.stacks.resize(1);
  spec.stacks[0].role = StackRole::main;
  spec.head = {.kind = HeadKind::none};
  return spec;
}

// Logits of all tokens, of which the last that is no padding counts.
ModelSpec scored(const Config& c, ModelSpec spec, std::string_view name = "score") {
  spec.head = {.kind = HeadKind::classification,
               .name = std::string(name),
               .vocab = labels_of(c),
               .rows = HeadRows::picked};
  return spec;
}

// Logits of all tokens, each with a label.
ModelSpec tagged(const Config& c, ModelSpec spec, const TokenDecoder& decoder) {
  spec.head = {.kind = HeadKind::classification,
               .name = std::string(decoder.name),
               .vocab = labels_of(c),
               .bias = c.flag("token_classification_bias", true),
               .fp32_loss = decoder.name == "score" || decoder.stem == "GPTNeoX",
               .rows = HeadRows::each,
               .dropout = first_rate(c, decoder.dropout_keys, decoder.dropout)};
  return spec;
}

// T5's encoder alone, a class of each of its tokens.
ModelSpec tagged_encoder(const Config& c, ModelSpec spec) {
  static constexpr TokenDecoder of_t5{"T5", "classifier", "classifier_dropout", 0};
  spec = encoder_of(std::move(spec));
  replace_root(spec, "", "transformer.");
  return tagged(c, std::move(spec), of_t5);
}

// Whisper's encoder, a narrower product of each row and their mean.
ModelSpec sorted_sounds(const Config& c, ModelSpec spec) {
  if (c.flag("use_weighted_layer_sum", false)) {
    c.fail("use_weighted_layer_sum", "only false is supported");
  }
  spec = encoder_of(std::move(spec));
  replace_root(spec, "model.", "");
  Stack& stack = spec.stacks[0];
  stack.project = "projector";
  stack.project_width = c.size("classifier_proj_size", 256);
  stack.project_bias = stack.projects_rows = true;
  spec.head = classifier_of(c, "classifier", HeadRows::mean, 0);
  return spec;
}

ModelSpec answering(ModelSpec spec, bool renamed) {
  if (renamed) replace_root(spec, "model.", "transformer.");
  spec.head = head_of_answers(0);
  return spec;
}

// What reads the layers of a decoder, in place of logits of words.
void add_heads(std::vector<Family>& derived, const Family& family, const std::string& stem) {
  for (const TokenDecoder& decoder : token_decoders) {
    if (decoder.stem != stem) continue;
    derived.push_back(
        {stem + "ForTokenClassification", family.model_type,
         [read = family.read, &decoder](const Config& c) { return tagged(c, read(c), decoder); }});
  }
  for (const AnsweringDecoder& decoder : answering_decoders) {
    if (decoder.stem != stem) continue;
    derived.push_back({stem + "ForQuestionAnswering", family.model_type,
                       [read = family.read, renamed = decoder.renamed](const Config& c) {
                         return answering(read(c), renamed);
                       }});
  }
  const bool has_scores =
      std::find(scored_decoders.begin(), scored_decoders.end(), stem) != scored_decoders.end();
  if (!has_scores) return;
  derived.push_back({stem + "ForSequenceClassification", family.model_type,
                     [read = family.read, name = stem == "CTRL" ? "classifier" : "score"](
                         const Config& c) { return scored(c, read(c), name); }});
}

const Family& family_named(const std::vector<Family>& known, std::string_view architecture) {
  return *std::find_if(known.begin(), known.end(),
                       [&](const Family& f) { return f.architecture == architecture; });
}

// Of what hears, or reads images or sounds beside text.
void add_heads_beside(std::vector<Family>& derived, const std::vector<Family>& known) {
  const Family hearing = family_named(known, "WhisperForConditionalGeneration");
  derived.push_back({"WhisperForAudioClassification", hearing.model_type,
                     [hearing](const Config& c) { return sorted_sounds(c, hearing.read(c)); }});
  for (const std::string stem : {"Qwen3_5", "Qwen3ASR"}) {  // beside images or sounds
    const Family both = family_named(known, stem + "ForConditionalGeneration");
    derived.push_back({stem + "ForTokenClassification", both.model_type, [both](const Config& c) {
                         static constexpr TokenDecoder beside{"of what reads more than text"};
                         return tagged(c, both.read(c), beside);
                       }});
  }
  for (const std::string stem : {"Gemma3", "Qwen3_5"}) {  // of text and images
    const Family both = family_named(known, stem + "ForConditionalGeneration");
    derived.push_back({stem + "ForSequenceClassification", both.model_type,
                       [both](const Config& c) { return scored(c, both.read(c)); }});
  }
}

}  // namespace

std::vector<Family> derived_families(const std::vector<Family>& known) {
  std::vector<Family> derived = classifier_families(known);
  const std::vector<Family> writing = writing_encoder_families(known);
  derived.insert(derived.end(), writing.begin(), writing.end());
  const std::vector<Family> decoders = decoder_alone_families(known);
  derived.insert(derived.end(), decoders.begin(), decoders.end());
  for (const TokenDecoder& kind : token_encoders) {
    const Family both = family_named(known, kind.stem);
    const std::string stem(kind.stem.substr(
        0, kind.stem.find(kind.stem.ends_with("WithLMHeadModel") ? "WithLM" : "LMHead")));
    derived.push_back({stem + "ForTokenClassification", both.model_type,
                       [both, &kind](const Config& c) { return tagged(c, both.read(c), kind); }});
  }
  for (const std::string stem : {"T5", "MT5", "UMT5"}) {
    const Family both = family_named(known, stem + "ForConditionalGeneration");
    derived.push_back({stem + "ForTokenClassification", both.model_type,
                       [both](const Config& c) { return tagged_encoder(c, both.read(c)); }});
    derived.push_back({stem + "EncoderModel", both.model_type,
                       [both](const Config& c) { return encoder_of(both.read(c)); }});
  }
  for (const auto& [stem, pools] : encoders) {
    const Family masked = family_named(known, std::string(stem) + "ForMaskedLM");
    derived.push_back({std::string(stem) + "Model", masked.model_type,
                       [masked, has_pooler = pools](const Config& c) {
                         ModelSpec spec = alone(masked.read(c));
                         if (has_pooler) {
                           spec.head = {.kind = HeadKind::pooler, .name = "pooler.dense"};
                         }
                         return spec;
                       }});
  }
  add_heads_beside(derived, known);
  for (const auto& [stem, writes] :
       std::to_array<std::array<std::string, 2>>({{"Flaubert", "WithLMHeadModel"},
                                                  {"XLM", "WithLMHeadModel"},
                                                  {"XLNet", "LMHeadModel"}})) {
    const Family both = family_named(known, stem + writes);
    derived.push_back({stem + "ForQuestionAnsweringSimple", both.model_type,
                       [both](const Config& c) { return answering(both.read(c), false); }});
  }
  for (const Family& family : known) {
    const std::optional<std::string> stem = decoder_stem(family.architecture);
    if (!stem) continue;
    const auto is_there = [&](const std::string& name) {
      return std::any_of(derived.begin(), derived.end(),
                         [&](const Family& f) { return f.architecture == name; });
    };
    if (is_there(*stem + "Model")) continue;  // LlamaForCausalLM is of two families
    derived.push_back({*stem + "Model", family.model_type,
                       [read = family.read](const Config& c) { return alone(read(c)); }});
    add_heads(derived, family, *stem);
  }
  return derived;
}

}  // namespace shardsim::models
