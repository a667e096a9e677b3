// Encoders of text that stands somewhere: TAPAS of tables (arXiv:2004.02349), MarkupLM of pages of
// the web (arXiv:2110.08518); and of text beside images ModernVBERT and UltraVBERT.
//
// Names, rates and defaults as in transformers 5.23, modeling_tapas.py, modeling_markuplm.py,
// modeling_modernvbert.py and modeling_ultravbert.py.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/models/families/classifiers.hpp"
#include "workloads/models/families/encoders.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/image_text.hpp"
#include "workloads/models/families/roots.hpp"

namespace shardsim::models {
namespace {

// BERT with seven tables of types: of segment, column, row, ...
ModelSpec tapas_masked(const Config& c) {
  ModelSpec spec = bert_like(c, "tapas.", /*roberta=*/false);
  if (c.flag("is_decoder", false)) c.fail("is_decoder", "only false is supported");
  auto& input = std::get<TokenEmbedding>(spec.stacks[0].input);
  input.types.clear();
  std::get<Attention>(spec.stacks[0].kinds[0].branches[0].body).plain_only = true;
  input.position_rows = c.size("max_position_embeddings", 1024);
  input.position_numbers = PositionNumbers::per_example;  // each cell's count from its first
  if (!c.flag("reset_position_index_per_cell", true)) {
    c.fail("reset_position_index_per_cell", "only true is supported");
  }
  // Of answers out of cells, which is another class's.
  c.pass_over({"aggregation_labels",
               "aggregation_loss_weight",
               "aggregation_temperature",
               "allow_empty_column_selection",
               "answer_loss_cutoff",
               "answer_loss_importance",
               "average_approximation_function",
               "average_logits_per_cell",
               "cell_selection_preference",
               "disable_per_token_loss",
               "huber_loss_delta",
               "init_cell_selection_weights_to_zero",
               "max_num_columns",
               "max_num_rows",
               "no_aggregation_label_index",
               "num_aggregation_labels",
               "positive_label_weight",
               "select_one_column",
               "temperature",
               "use_answer_as_supervision",
               "use_gumbel_for_aggregation",
               "use_gumbel_for_cells",
               "use_normalized_answer_loss"});
  const std::vector<std::int64_t> rows =
      c.sizes("type_vocab_sizes", {3, 256, 256, 2, 256, 256, 10});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    input.more_types.push_back(
        {"tapas.embeddings.token_type_embeddings_" + std::to_string(i), rows[i]});
  }
  return with_bert_head(std::move(spec), c);
}

ModelSpec markuplm_like(const Config& c, const std::string& prefix) {
  ModelSpec spec = bert_like(c, prefix, /*roberta=*/true);
  auto& input = std::get<TokenEmbedding>(spec.stacks[0].input);
  input.position_offset = c.count("pad_token_id", 0) + 1;
  c.pass_over({"tag_pad_id", "subs_pad_id", "tie_word_embeddings"});
  input.paths = PathTables{.name = prefix + "embeddings.xpath_embeddings",
                           .depth = c.size("max_depth", 50),
                           .tags = c.size("max_xpath_tag_unit_embeddings", 256),
                           .numbers = c.size("max_xpath_subs_unit_embeddings", 1024),
                           .unit = c.size("xpath_unit_hidden_size", 32),
                           .dropout = c.rate("hidden_dropout_prob", 0.1)};
  // Is there and does not run.
  add_linear(spec, input.paths->name + ".xpath_unitseq2_embeddings", spec.stacks[0].hidden,
             input.paths->depth * input.paths->unit, true);
  return spec;
}

ModelSpec markuplm(const Config& c) { return markuplm_like(c, ""); }

double markuplm_rate(const Config& c) {
  return first_rate(c, "classifier_dropout|hidden_dropout_prob", 0.1);
}

ModelSpec markuplm_tokens(const Config& c) {
  ModelSpec spec = markuplm_like(c, "markuplm.");
  c.pass_over({"classifier_dropout"});  // of a module that the class does not call
  spec.head = classifier_of(c, "classifier", HeadRows::each, 0);
  return spec;
}

ModelSpec markuplm_sequences(const Config& c) {
  ModelSpec spec = markuplm_like(c, "markuplm.");
  spec.head = classifier_of(c, "classifier", HeadRows::first, markuplm_rate(c));
  spec.head.transform = "markuplm.pooler.dense";
  spec.head.activation = "tanh";
  return spec;
}

ModelSpec markuplm_answers(const Config& c) {
  ModelSpec spec = markuplm_like(c, "markuplm.");
  if (labels_of(c) != 2) c.fail("num_labels", "an answer has two ends");
  spec.head = classifier_of(c, "qa_outputs", HeadRows::span, 0);
  return spec;
}

// Text beside images that a step does not have; SigLIP's tower and one product.
struct ImageKind {
  std::string_view text;  // the class of what reads words
  SiglipDefaults tower{};
  bool norm = false;  // behind the product
};

constexpr ImageKind of_modernvbert{"ModernBertForMaskedLM"};
constexpr ImageKind of_ultravbert{"UltrabertForMaskedLM", {.head = false}, true};

ModelSpec page_model(const Config& c, const ImageKind& kind) {
  const Config text = nested(c, "text_config");
  const Config images = images_of(c);
  c.pass_over({"image_token_id", "initializer_cutoff_factor"});
  ModelSpec spec = read_as(text, kind.text);
  const bool tied = c.flag("tie_word_embeddings", false);
  const Head head = spec.head;
  std::get<TokenEmbedding>(spec.stacks[0].input).norm.name = "model.text_model.embeddings.norm";
  spec = inside(std::move(spec), "model.text_model.", "lm_head", tied);
  spec.head.kind = HeadKind::masked;
  spec.head.fp32_loss = false;
  const auto rename = [](std::string name) {  // "head.dense" as "projection_head.dense"
    return name.empty() ? name : "projection_" + std::move(name);
  };
  spec.head.transform = rename(head.transform);
  spec.head.second_transform = rename(head.second_transform);
  spec.head.transform_norm.name = rename(head.transform_norm.name);
  images.pass_over({"vision_use_head"});  // where the class has none
  const std::int64_t width = add_siglip_tower(spec, images, "model.vision_model.", kind.tower);
  const std::int64_t merge = c.size("pixel_shuffle_factor", 4);
  const std::string connector = "model.connector.";
  const std::int64_t hidden = spec.stacks.back().hidden;
  add_linear(spec, connector + "modality_projection", hidden, width * merge * merge, false);
  if (kind.norm) add_norm(spec, connector + "norm", hidden, false);
  return spec;
}

ModelSpec page_model_alone(const Config& c, const ImageKind& kind) {
  ModelSpec spec = page_model(c, kind);
  replace_root(spec, "model.", "");
  spec.head = {.kind = HeadKind::none};
  return spec;
}

ModelSpec page_sorter(const Config& c, const ImageKind& kind, HeadRows rows) {
  ModelSpec spec = page_model(c, kind);
  if (c.text("classifier_pooling", "cls") != "cls" && rows == HeadRows::first) {
    c.fail("classifier_pooling", "only \"cls\" is supported");
  }
  const Head own = spec.head;
  spec.head = classifier_of(c, "classifier", rows, c.rate("classifier_dropout", 0));
  if (!kind.norm) {  // ModernBERT's dense module and norm
    spec.head.transform = "head.dense";
    spec.head.transform_bias = own.transform_bias;
    spec.head.activation = own.activation;
    spec.head.transform_norm = own.transform_norm;
    spec.head.transform_norm.name = "head.norm";
  }
  return spec;
}

template <const ImageKind& kind>
ModelSpec words_of(const Config& c) {
  return page_model(c, kind);
}
template <const ImageKind& kind>
ModelSpec states_of(const Config& c) {
  return page_model_alone(c, kind);
}
template <const ImageKind& kind, HeadRows rows>
ModelSpec labels_by(const Config& c) {
  return page_sorter(c, kind, rows);
}

}  // namespace

std::vector<Family> page_encoder_families() {
  return {
      {"TapasForMaskedLM", "tapas", tapas_masked},
      {"MarkupLMModel", "markuplm", markuplm},
      {"MarkupLMForTokenClassification", "markuplm", markuplm_tokens},
      {"MarkupLMForSequenceClassification", "markuplm", markuplm_sequences},
      {"MarkupLMForQuestionAnswering", "markuplm", markuplm_answers},
      {"ModernVBertForMaskedLM", "modernvbert", words_of<of_modernvbert>},
      {"ModernVBertModel", "modernvbert", states_of<of_modernvbert>},
      {"ModernVBertForSequenceClassification", "modernvbert",
       labels_by<of_modernvbert, HeadRows::first>},
      {"ModernVBertForTokenClassification", "modernvbert",
       labels_by<of_modernvbert, HeadRows::each>},
      {"UltraVBertForMaskedLM", "ultravbert", words_of<of_ultravbert>},
      {"UltraVBertModel", "ultravbert", states_of<of_ultravbert>},
      {"UltraVBertForSequenceClassification", "ultravbert",
       labels_by<of_ultravbert, HeadRows::first>},
      {"UltraVBertForTokenClassification", "ultravbert", labels_by<of_ultravbert, HeadRows::each>}};
}

}  // namespace shardsim::models
