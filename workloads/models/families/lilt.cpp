// LiLT (arXiv:2202.13669): RoBERTa's words and a narrow stream of their boxes on the page.
//
// Names, rates and defaults as in transformers 5.23, modeling_lilt.py.
#include <string>
#include <vector>

#include "workloads/models/families/classifiers.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/vision_rows.hpp"

namespace shardsim::models {
namespace {

struct LiltSizes {
  VisionSizes n;
  std::int64_t shrink = 4;
  double dropout = 0, attention_dropout = 0;
};

LiltSizes read_lilt(const Config& c) {
  LiltSizes s{.n = read_vision(c, "gelu"),
              .shrink = c.size("channel_shrink_ratio", 4),
              .dropout = c.rate("hidden_dropout_prob", 0.1),
              .attention_dropout = c.rate("attention_probs_dropout_prob", 0.1)};
  const std::int64_t narrow =
      c.divided("hidden_size", s.n.hidden, "channel_shrink_ratio", s.shrink);
  static_cast<void>(c.divided("hidden_size", narrow, "num_attention_heads", s.n.heads));
  static_cast<void>(c.divided("hidden_size", s.n.hidden, "six edges and sizes of a box", 6));
  c.pass_over({"pad_token_id", "classifier_dropout"});
  return s;
}

Ref lilt_table(Draft& d, const std::string& name, std::int64_t rows, std::int64_t width,
               bool given) {
  return d.tokens({.name = name, .table = rows, .width = width, .given = given});
}

Ref lilt_words(const Config& c, Draft& d, const LiltSizes& s, const std::string& prefix) {
  const Draft::In of(d, prefix + "embeddings");
  const std::int64_t hidden = s.n.hidden;
  Ref x =
      d.sum(lilt_table(d, "word_embeddings", c.size("vocab_size", 30522), hidden, true),
            lilt_table(d, "token_type_embeddings", c.size("type_vocab_size", 2), hidden, false));
  x = d.sum(x, lilt_table(d, "position_embeddings", c.size("max_position_embeddings", 512), hidden,
                          false));
  return d.drop(s.dropout, d.norm(row_norm("LayerNorm"), x));
}

// Of a box the edges come with the batch, height and width are made.
Ref lilt_places(const Config& c, Draft& d, const LiltSizes& s, const std::string& prefix) {
  const Draft::In of(d, prefix + "layout_embeddings");
  const std::int64_t rows = c.size("max_2d_position_embeddings", 1024);
  constexpr std::int64_t edges_and_sizes = 6;
  const std::int64_t narrow = s.n.hidden / s.shrink;
  std::vector<Ref> box;
  for (const char* name : {"x", "y", "x", "y", "h", "w"}) {
    const std::string table = std::string(name) + "_position_embeddings";
    box.push_back(lilt_table(d, table, rows, s.n.hidden / edges_and_sizes, box.size() < 4));
  }
  Ref x = d.linear({.name = "box_linear_embeddings", .out = narrow}, d.beside(box));
  x = d.sum(x, lilt_table(d, "box_position_embeddings", c.size("max_position_embeddings", 512),
                          narrow, false));
  return d.drop(s.dropout, d.norm(row_norm("LayerNorm"), x));
}

// The words' rows that the last layer leaves.
Ref lilt_rows(const Config& c, Draft& d, const LiltSizes& s, const std::string& prefix) {
  const Ref words = lilt_words(c, d, s, prefix);
  Ref x = d.beside({words, lilt_places(c, d, s, prefix)});
  CoupledLayer layer{.heads = s.n.heads,
                     .shrink = s.shrink,
                     .width = s.n.width,
                     .activation = s.n.activation,
                     .dropout = s.dropout,
                     .attention_dropout = s.attention_dropout};
  for (std::int64_t i = 0; i < s.n.layers; ++i) {
    layer.last = i + 1 == s.n.layers;
    d.layer(prefix + "encoder.layer", i, layer.last ? "last" : "encoder");
    x = d.draw({layer, ""}, {x});
  }
  d.outside("head");
  return d.width_part(0, s.shrink + 1, x, s.shrink);
}

ModelSpec lilt_spec(Draft& d) {
  constexpr std::int64_t words = 512;  // of its tokenizer
  ModelSpec spec;
  spec.network = d.finish({.text = words});
  spec.head.kind = HeadKind::none;
  return spec;
}

double lilt_rate(const Config& c) {
  return first_rate(c, "classifier_dropout|hidden_dropout_prob", 0.1);
}

// The pooler's result nobody reads.
ModelSpec lilt(const Config& c) {
  Draft d;
  const LiltSizes s = read_lilt(c);
  const Ref x = lilt_rows(c, d, s, "");
  d.activate("tanh",
             d.linear({.name = "pooler.dense", .out = s.n.hidden}, d.part({.single = true}, x)));
  d.sum_loss(x);
  return lilt_spec(d);
}

ModelSpec lilt_tokens(const Config& c) {
  Draft d;
  const LiltSizes s = read_lilt(c);
  const Ref x = d.drop(lilt_rate(c), lilt_rows(c, d, s, "lilt."));
  d.classes(d.linear({.name = "classifier", .out = labels_of(c)}, x));
  return lilt_spec(d);
}

ModelSpec lilt_sequences(const Config& c) {
  Draft d;
  const LiltSizes s = read_lilt(c);
  const double rate = lilt_rate(c);
  Ref x = d.drop(rate, d.part({.single = true}, lilt_rows(c, d, s, "lilt.")));
  x = d.activate("tanh", d.linear({.name = "classifier.dense", .out = s.n.hidden}, x));
  d.classes(d.linear({.name = "classifier.out_proj", .out = labels_of(c)}, d.drop(rate, x)));
  return lilt_spec(d);
}

ModelSpec lilt_answers(const Config& c) {
  Draft d;
  const LiltSizes s = read_lilt(c);
  if (labels_of(c) != 2) c.fail("num_labels", "an answer has two ends");
  d.span(d.linear({.name = "qa_outputs", .out = 2}, lilt_rows(c, d, s, "lilt.")));
  return lilt_spec(d);
}

}  // namespace

std::vector<Family> lilt_families() {
  return {{"LiltModel", "lilt", lilt},
          {"LiltForTokenClassification", "lilt", lilt_tokens},
          {"LiltForSequenceClassification", "lilt", lilt_sequences},
          {"LiltForQuestionAnswering", "lilt", lilt_answers}};
}

}  // namespace shardsim::models
