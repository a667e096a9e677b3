// Classes of encoders with decoders, and of models that read images or sounds beside text, without
// the head that writes: the file of facebook/bart-large says "BartModel".
//
//   BartModel    BartForConditionalGeneration without lm_head and final_logits_bias; "model." goes
//   T5Model      T5ForConditionalGeneration without lm_head; its names have no "model."
//   LlavaModel   LlavaForConditionalGeneration without lm_head; "model." goes
//
// and of Qwen's models that see the text's layers alone (Qwen2VLTextModel), by the text's own file.
//
// A step reads the numbers of both sides' tokens and takes the sum of the last stack's states.
// In transformers 5.23 a class with a head keeps the one without it as self.model, and T5's kin
// have its modules themselves; the exceptions are `irregular`.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "workloads/models/families/families.hpp"
#include "workloads/models/families/image_text.hpp"
#include "workloads/models/families/roots.hpp"

namespace shardsim::models {
namespace {

// Whose class without a head holds other modules (BLIP's has projections, BLIP-2's and Kosmos-2's
// the text's head, InstructBLIP's not the text's layers, FSMT's the logits), is not there, or goes
// by other names in files (from Ernie on).
constexpr std::array irregular = std::to_array<std::string_view>(
    {"Blip", "Blip2", "FSMT", "InstructBlip", "InstructBlipVideo", "Kosmos2", "Llama4",
     "Ernie4_5_VLMoe", "Kimi_K25", "Molmo2", "QianfanOCR", "Step3p7", "UnlimitedOcr",
     "DeepseekOcr2", "Emu3", "HunYuanVL"});

// "Bart" of BartForConditionalGeneration, nothing of others.
std::string stem_of(const std::string& architecture) {
  for (const std::string_view suffix : {"ForConditionalGeneration", "MTModel"}) {
    if (!architecture.ends_with(suffix)) continue;
    const std::string stem = architecture.substr(0, architecture.size() - suffix.size());
    return stem == "MiniMaxM3Sparse" ? "MiniMaxM3VL" : stem;
  }
  return architecture == "BertGenerationDecoder" ? "BertGeneration" : "";
}

ModelSpec base_of(ModelSpec spec, const std::string& root) {
  replace_root(spec, root, "");
  std::erase_if(spec.buffers,
                [](const NamedBuffer& buffer) { return buffer.name == "final_logits_bias"; });
  for (Stack& stack : spec.stacks) {
    if (auto* input = std::get_if<TokenEmbedding>(&stack.input)) input->shifted = false;
  }
  spec.head = {.kind = HeadKind::none};
  return spec;
}

// Their rotary tables are of each example's places, as beside images.
ModelSpec words_alone(ModelSpec spec) {
  spec = base_of(std::move(spec), "model.");
  set_tables_by_example(spec);
  return spec;
}

ModelSpec qwen2_vl_words(const Config& c) { return words_alone(qwen2(c)); }
ModelSpec qwen3_vl_words(const Config& c) { return words_alone(qwen3(c)); }
ModelSpec qwen3_vl_moe_words(const Config& c) { return words_alone(qwen3_vl_moe_text(c)); }

}  // namespace

std::vector<Family> base_families(const std::vector<Family>& known) {
  std::vector<Family> bases{{"Qwen2VLTextModel", "qwen2_vl_text", qwen2_vl_words},
                            {"Qwen2_5_VLTextModel", "qwen2_5_vl_text", qwen2_vl_words},
                            {"Qwen3VLTextModel", "qwen3_vl_text", qwen3_vl_words},
                            {"Qwen3VLMoeTextModel", "qwen3_vl_moe_text", qwen3_vl_moe_words}};
  for (const Family& family : known) {
    const std::string stem = stem_of(family.architecture);
    if (stem.empty()) continue;
    if (std::find(irregular.begin(), irregular.end(), stem) != irregular.end()) continue;
    const bool is_bert = stem == "BertGeneration";
    const std::string root = is_bert ? "bert." : stem == "LED" ? "led." : "model.";
    const std::string name = stem + (is_bert ? "Encoder" : "Model");
    const bool is_there = std::any_of(known.begin(), known.end(),
                                      [&](const Family& f) { return f.architecture == name; });
    if (is_there) continue;
    bases.push_back({name, family.model_type, [read = family.read, root](const Config& c) {
                       return base_of(read(c), root);
                     }});
  }
  return bases;
}

}  // namespace shardsim::models
