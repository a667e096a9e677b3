// LayoutLMv3 (arXiv:2204.08387): words with the places of their boxes and patches of the page in
// one sequence; BERT's layers with a bias of distances.
//
// Names and defaults as in transformers 5.23, modeling_layoutlmv3.py.
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

struct LayoutSizes {
  VisionSizes n;
  std::int64_t image = 0, patch = 0;
};

LayoutSizes read_layout(const Config& c) {
  LayoutSizes s{.n = read_vision(c, "gelu"),
                .image = c.size("input_size", 224),
                .patch = c.size("patch_size", 16)};
  s.n.dropout = c.rate("hidden_dropout_prob", 0.1);
  s.n.attention_dropout = c.rate("attention_probs_dropout_prob", 0.1);
  static_cast<void>(c.divided("input_size", s.image, "patch_size", s.patch));
  for (const char* key : {"text_embed", "visual_embed"}) {
    if (!c.flag(key, true)) c.fail(key, "only true is supported");
  }
  c.pass_over({"max_rel_pos", "max_rel_2d_pos", "pad_token_id"});
  return s;
}

// Words, their types, places and boxes, normed. Of a box the edges come with the batch, height and
// width are made.
Ref layout_words(const Config& c, Draft& d, const LayoutSizes& s, const std::string& prefix) {
  const Draft::In of(d, prefix + "embeddings");
  const std::int64_t hidden = s.n.hidden;
  const auto looked_up = [&](const char* name, std::int64_t table, std::int64_t width, bool given) {
    return d.tokens({.name = name, .table = table, .width = width, .given = given});
  };
  Ref x = d.sum(looked_up("word_embeddings", c.size("vocab_size", 50265), hidden, true),
                looked_up("token_type_embeddings", c.size("type_vocab_size", 2), hidden, false));
  x = d.sum(
      x, looked_up("position_embeddings", c.size("max_position_embeddings", 512), hidden, false));
  const std::int64_t places = c.size("max_2d_position_embeddings", 1024);
  const std::int64_t edge = c.size("coordinate_size", 128);
  const std::int64_t shape = c.size("shape_size", 128);
  if (4 * edge + 2 * shape != hidden) {
    c.fail("coordinate_size", "4 of it and 2 of shape_size are not hidden_size");
  }
  std::vector<Ref> box;
  for (const char* name : {"x", "y", "x", "y"}) {
    box.push_back(
        looked_up((std::string(name) + "_position_embeddings").c_str(), places, edge, true));
  }
  for (const char* name : {"h", "w"}) {
    box.push_back(
        looked_up((std::string(name) + "_position_embeddings").c_str(), places, shape, false));
  }
  x = d.sum(x, d.beside(box));
  return d.drop(s.n.dropout, d.norm(row_norm("LayerNorm"), x));
}

Ref layout_page(const Config& c, Draft& d, const LayoutSizes& s, const std::string& prefix) {
  Ref x = d.rows(d.convolve(patches(prefix + "patch_embed.proj", s.n.hidden, s.patch),
                            d.image(c.size("num_channels", 3))));
  x = d.table(prefix + "pos_embed", d.before(prefix + "cls_token", x));
  return d.norm(row_norm(prefix + "norm"), x);
}

struct LayoutRows {
  Ref text = 0;  // what enters, as many rows as words
  Ref all = 0;   // what the last layer leaves
};

LayoutRows layout_rows(const Config& c, Draft& d, const LayoutSizes& s, const std::string& prefix) {
  LayoutRows rows;
  rows.text = layout_words(c, d, s, prefix);
  Ref x = d.behind({rows.text, layout_page(c, d, s, prefix)});
  x = d.drop(s.n.dropout, d.norm(row_norm(prefix + "LayerNorm"), x));
  const bool of_text = c.flag("has_relative_attention_bias", true);
  const bool of_page = c.flag("has_spatial_attention_bias", true);
  const std::string encoder = prefix + "encoder.";
  const std::int64_t text_bins = c.size("rel_pos_bins", 32);
  const std::int64_t page_bins = c.size("rel_2d_pos_bins", 64);
  if (of_text) d.stored(encoder + "rel_pos_bias.weight", {s.n.heads, text_bins});
  for (const char* axis : {"x", "y"}) {
    if (of_page) {
      d.stored(encoder + "rel_pos_" + axis + "_bias.weight", {s.n.heads, page_bins});
    }
  }
  const LayoutAttention attention{
      .heads = s.n.heads, .dropout = s.n.attention_dropout, .distances = of_text};
  const RowLayer layer{.first_norm = "attention.output.LayerNorm",
                       .second_norm = "output.LayerNorm",
                       .attend =
                           [&](Draft& draft, Ref read) {
                             return draft.draw({attention, "attention"}, {read});
                           },
                       .hidden = s.n.hidden,
                       .width = s.n.width,
                       .activation = s.n.activation,
                       .norms_behind = true,
                       .dropout = s.n.dropout};
  for (std::int64_t i = 0; i < s.n.layers; ++i) {
    d.layer(encoder + "layer", i, "encoder");
    x = row_layer(d, layer, x);
  }
  d.outside("head");
  rows.all = x;
  return rows;
}

ModelSpec layout_spec(const Config& c, Draft& d, const LayoutSizes& s) {
  c.pass_over({"classifier_dropout"});
  constexpr std::int64_t words = 512;  // of its tokenizer
  ModelSpec spec;
  spec.network =
      d.finish({.side = s.image, .coarsest = s.patch, .takes_one_side = true, .text = words});
  spec.head.kind = HeadKind::none;
  return spec;
}

Ref layout_head(const Config& c, Draft& d, const LayoutSizes& s, const std::string& name, Ref x) {
  const Draft::In of(d, name);
  const double dropout = c.rate("classifier_dropout", s.n.dropout);
  x = d.linear({.name = "dense", .out = s.n.hidden}, d.drop(dropout, x));
  x = d.drop(dropout, d.activate("tanh", x));
  return d.linear({.name = "out_proj", .out = labels_of(c)}, x);
}

ModelSpec layoutlm3(const Config& c) {
  Draft d;
  const LayoutSizes s = read_layout(c);
  d.sum_loss(layout_rows(c, d, s, "").all);
  return layout_spec(c, d, s);
}

// Of words alone; of fewer than ten labels by one product.
ModelSpec layoutlm3_tokens(const Config& c) {
  Draft d;
  const LayoutSizes s = read_layout(c);
  const LayoutRows rows = layout_rows(c, d, s, "layoutlmv3.");
  const Ref words = d.drop(s.n.dropout, d.part_like(rows.text, {}, rows.all));
  constexpr std::int64_t few = 10;
  d.classes(labels_of(c) < few ? d.linear({.name = "classifier", .out = labels_of(c)}, words)
                               : layout_head(c, d, s, "classifier", words));
  return layout_spec(c, d, s);
}

ModelSpec layoutlm3_sequences(const Config& c) {
  Draft d;
  const LayoutSizes s = read_layout(c);
  const Ref rows = layout_rows(c, d, s, "layoutlmv3.").all;
  d.classes(layout_head(c, d, s, "classifier", d.part({.single = true}, rows)));
  return layout_spec(c, d, s);
}

ModelSpec layoutlm3_answers(const Config& c) {
  Draft d;
  const LayoutSizes s = read_layout(c);
  if (labels_of(c) != 2) c.fail("num_labels", "an answer has two ends");
  d.span(layout_head(c, d, s, "qa_outputs", layout_rows(c, d, s, "layoutlmv3.").all));
  return layout_spec(c, d, s);
}

}  // namespace

std::vector<Family> layoutlm3_families() {
  return {{"LayoutLMv3Model", "layoutlmv3", layoutlm3},
          {"LayoutLMv3ForTokenClassification", "layoutlmv3", layoutlm3_tokens},
          {"LayoutLMv3ForSequenceClassification", "layoutlmv3", layoutlm3_sequences},
          {"LayoutLMv3ForQuestionAnswering", "layoutlmv3", layoutlm3_answers}};
}

}  // namespace shardsim::models
