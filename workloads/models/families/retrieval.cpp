// Models that find pages by embeddings of all tokens: ColPali and ColQwen 2 (arXiv:2407.01449). A
// step here is one of a query's text; its loss is no part of the classes.
//
// Source: transformers 5.23.0, modeling_colpali.py, modeling_colqwen2.py.
#include "workloads/models/families/image_text.hpp"
#include "workloads/models/families/roots.hpp"

namespace shardsim::models {
namespace {

ModelSpec embedding(const Config& c, const std::string& architecture, const std::string& type) {
  const Config both = nested(c, "vlm_config");
  const std::string given = both.text("model_type", type);
  if (given != type) {
    both.fail("model_type", "\"" + given + "\" is not supported, only \"" + type + "\" is");
  }
  c.pass_over({"tie_word_embeddings"});  // there is no head
  both.pass_over({"vocab_size"});
  ModelSpec spec = read_as(both, architecture);
  replace_root(spec, "model.", "vlm.");
  spec.head = {.kind = HeadKind::embeddings,
               .name = "embedding_proj_layer",
               .vocab = c.size("embedding_dim", 128),
               .bias = true};
  return spec;
}

ModelSpec colpali(const Config& c) {
  return embedding(c, "PaliGemmaForConditionalGeneration", "paligemma");
}
ModelSpec colqwen2(const Config& c) {
  return embedding(c, "Qwen2VLForConditionalGeneration", "qwen2_vl");
}

}  // namespace

std::vector<Family> retrieval_families() {
  return {{"ColPaliForRetrieval", "colpali", colpali},
          {"ColQwen2ForRetrieval", "colqwen2", colqwen2}};
}

}  // namespace shardsim::models
