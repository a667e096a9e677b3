#include "workloads/models/families/nested_defaults.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace shardsim::models {
namespace {

// A size of 0: the class computes it, or has none.
constexpr std::size_t number_of_sizes = 8;
struct NestedSizes {
  std::string_view type;
  // Hidden, the MLP's width, layers, heads, heads of keys, a head's width, vocabulary, positions.
  std::array<std::int64_t, number_of_sizes> sizes;
};

constexpr std::array<std::array<std::string_view, 3>, number_of_sizes> spellings{
    {{"hidden_size", "d_model", "n_embd"},
     {"intermediate_size", "ffn_dim", "d_ff"},
     {"num_hidden_layers", "num_layers", "n_layer"},
     {"num_attention_heads", "num_heads", "n_head"},
     {"num_key_value_heads"},
     {"head_dim", "d_kv"},
     {"vocab_size"},
     {"max_position_embeddings", "n_positions"}}};

constexpr auto known_sizes = std::to_array<NestedSizes>({
    {"altclip_text_model", {1024, 4096, 24, 16, 0, 0, 250002, 514}},
    {"aria_text", {4096, 4096, 32, 32, 0, 0, 32000, 2048}},
    {"bert", {768, 3072, 12, 12, 0, 0, 30522, 512}},
    {"blip_2_qformer", {768, 3072, 12, 12, 0, 0, 30522, 512}},
    {"chinese_clip_text_model", {768, 3072, 12, 12, 0, 0, 30522, 512}},
    {"clip_text_model", {512, 2048, 12, 8, 0, 0, 49408, 77}},
    {"cohere", {8192, 22528, 40, 64, 0, 0, 256000, 8192}},
    {"cohere2", {8192, 22528, 40, 64, 0, 0, 256000, 8192}},
    {"cohere_compass_text", {8192, 22528, 40, 64, 0, 0, 256000, 8192}},
    {"deepseek_ocr2_text", {4096, 11008, 32, 32, 0, 0, 102400, 2048}},
    {"deepseek_v2", {4096, 11008, 32, 32, 0, 0, 102400, 2048}},
    {"deepseek_v3", {7168, 18432, 61, 128, 128, 0, 129280, 4096}},
    {"dots3_note_text", {5120, 13824, 46, 128, 128, 256, 152064, 524288}},
    {"emu3_text_model", {4096, 14336, 32, 32, 8, 0, 184622, 9216}},
    {"ernie4_5", {1024, 3072, 18, 16, 2, 128, 103424, 131072}},
    {"ernie4_5_vl_moe_text", {2560, 12288, 28, 20, 4, 0, 103424, 131072}},
    {"exaone4", {4096, 16384, 32, 32, 32, 0, 102400, 2048}},
    {"falcon_h1", {4096, 14336, 32, 32, 8, 0, 128000, 8192}},
    {"gemma", {3072, 24576, 28, 16, 16, 256, 256000, 8192}},
    {"gemma2", {2304, 9216, 26, 8, 4, 256, 256000, 8192}},
    {"gemma3_text", {2304, 9216, 26, 8, 4, 256, 262208, 131072}},
    {"gemma4_text", {2304, 9216, 30, 8, 4, 256, 262144, 131072}},
    {"gemma4_unified_text", {2304, 9216, 30, 8, 4, 256, 262144, 262144}},
    {"glm", {4096, 13696, 40, 32, 2, 128, 151552, 131072}},
    {"glm4", {4096, 13696, 40, 32, 2, 128, 151552, 131072}},
    {"glm4v_moe_text", {4096, 10944, 46, 96, 8, 0, 151424, 65536}},
    {"glm4v_text", {4096, 13696, 40, 32, 2, 0, 151552, 32768}},
    {"glm_ocr_text", {1024, 4096, 16, 16, 8, 0, 59392, 131072}},
    {"glmasr/text_config", {2048, 6144, 28, 16, 4, 0, 59264, 8192}},
    {"gpt2", {768, 0, 12, 12, 0, 0, 50257, 1024}},
    {"gpt_oss", {2880, 2880, 36, 64, 8, 64, 201088, 131072}},
    {"granite", {4096, 11008, 32, 32, 0, 0, 32000, 2048}},
    {"granite4_vision_text", {4096, 11008, 32, 32, 0, 0, 32000, 2048}},
    {"granite_docling_text", {1024, 2048, 28, 16, 4, 0, 133800, 32768}},
    {"hunyuan_vl_text", {4096, 11008, 32, 32, 0, 0, 290943, 2048}},
    {"hyperclovax", {4096, 11008, 32, 32, 0, 0, 32000, 2048}},
    {"instructblip_qformer", {768, 3072, 12, 12, 0, 0, 30522, 512}},
    {"instructblipvideo_qformer", {768, 3072, 12, 12, 0, 0, 30522, 512}},
    {"lfm2", {2560, 12288, 32, 32, 8, 0, 65536, 128000}},
    {"lfm3", {2048, 7680, 24, 16, 4, 128, 128000, 128000}},
    {"llama", {4096, 11008, 32, 32, 0, 0, 32000, 2048}},
    {"llama4_text", {5120, 8192, 48, 40, 8, 128, 202048, 131072}},
    {"metaclip_2_text_model", {512, 2048, 12, 8, 0, 0, 49408, 77}},
    {"minimax_m2", {3072, 1536, 62, 48, 8, 128, 200064, 196608}},
    {"minimax_m3_vl_text", {6144, 3072, 60, 64, 4, 128, 200064, 524288}},
    {"mistral", {4096, 14336, 32, 32, 8, 0, 32000, 131072}},
    {"mistral_large4_text", {6144, 24576, 72, 64, 64, 0, 204800, 1048576}},
    {"mixtral", {4096, 14336, 32, 32, 8, 0, 32000, 131072}},
    {"mllama_text_model", {4096, 14336, 40, 32, 8, 0, 128256, 131072}},
    {"molmo2_text", {4096, 12288, 36, 32, 8, 128, 151936, 36864}},
    {"muse_glimmer_text", {6656, 19968, 52, 32, 2, 128, 202048, 131072}},
    {"nemotron_h", {4096, 21504, 0, 32, 8, 128, 131072, 4096}},
    {"olmo2", {4096, 11008, 32, 32, 0, 0, 50304, 2048}},
    {"olmo3", {4096, 11008, 32, 32, 0, 0, 50304, 2048}},
    {"opt", {768, 3072, 12, 12, 0, 0, 50272, 2048}},
    {"paddleocr_vl_text", {1024, 3072, 18, 16, 2, 128, 103424, 131072}},
    {"persimmon", {4096, 16384, 36, 64, 0, 0, 262144, 16384}},
    {"phi", {2048, 8192, 24, 32, 0, 0, 51200, 2048}},
    {"phi3", {3072, 8192, 32, 32, 0, 0, 32064, 4096}},
    {"qwen2", {4096, 22016, 32, 32, 32, 0, 151936, 32768}},
    {"qwen2_5_omni_text", {3584, 18944, 28, 28, 4, 0, 152064, 32768}},
    {"qwen2_5_vl_text", {8192, 29568, 80, 64, 8, 0, 152064, 32768}},
    {"qwen2_moe", {2048, 5632, 24, 16, 16, 0, 151936, 32768}},
    {"qwen2_vl_text", {8192, 29568, 80, 64, 8, 0, 152064, 32768}},
    {"qwen3", {4096, 22016, 32, 32, 32, 128, 151936, 32768}},
    {"qwen3_5_moe_text", {2048, 0, 40, 16, 2, 256, 248320, 32768}},
    {"qwen3_5_text", {4096, 12288, 32, 16, 4, 256, 248320, 32768}},
    {"qwen3_moe", {2048, 6144, 24, 32, 4, 0, 151936, 32768}},
    {"qwen3_omni_moe_text", {2048, 18944, 28, 28, 4, 0, 3584, 32768}},
    {"qwen3_vl_moe_text", {2048, 5632, 24, 16, 16, 0, 151936, 128000}},
    {"qwen3_vl_text", {4096, 22016, 32, 32, 32, 128, 151936, 128000}},
    {"roberta", {768, 3072, 12, 12, 0, 0, 50265, 512}},
    {"siglip2_text_model", {768, 3072, 12, 12, 0, 0, 32000, 64}},
    {"siglip_text_model", {768, 3072, 12, 12, 0, 0, 32000, 64}},
    {"smollm3", {2048, 11008, 36, 16, 4, 0, 128256, 32768}},
    {"step3p5", {4096, 11264, 45, 64, 8, 128, 128815, 128000}},
    {"t5", {512, 2048, 6, 8, 0, 64, 32128, 0}},
    {"unlimited_ocr_text", {1280, 6848, 12, 10, 10, 0, 129280, 32768}},
    {"voxtral/text_config", {3072, 8192, 30, 32, 8, 128, 131072, 131072}},
    {"xlm-roberta", {768, 3072, 12, 12, 0, 0, 30522, 512}},
});

std::map<std::string, Json, std::less<>> make_objects() {
  std::map<std::string, Json, std::less<>> objects;
  for (const NestedSizes& row : known_sizes) {
    Json object = Json::object();
    for (std::size_t i = 0; i < number_of_sizes; ++i) {
      if (row.sizes[i] == 0) continue;
      for (const std::string_view key : spellings[i]) {
        if (!key.empty()) object[std::string(key)] = row.sizes[i];
      }
    }
    objects.emplace(row.type, std::move(object));
  }
  return objects;
}

}  // namespace

const Json* nested_defaults(std::string_view holder, std::string_view type) {
  static const std::map<std::string, Json, std::less<>> objects = make_objects();
  for (const std::string_view name : {holder, type}) {
    if (const auto found = objects.find(name); found != objects.end()) return &found->second;
  }
  return nullptr;
}

}  // namespace shardsim::models
