// What reads the states of the last stack, and the loss of it (workloads/layers/heads.hpp).
//
// The loss of pairs is over the whole batch: each device's images meet all texts, whose features
// are gathered (OpenCLIP, big_vision). A model without a loss of its own has the mean of its
// states.
#include <fmt/format.h>

#include <utility>

#include "workloads/models/graph/graph_context.hpp"

namespace shardsim::models {
namespace {

// x [batch, sequence, hidden] under another label of its width: of square matrices.
TensorId relabelled(GraphContext& c, const std::string& name, TensorId x, LabelId from,
                    LabelId to) {
  Dims dims = c.g.dims_of(x);
  for (Dim& dim : dims) {
    if (dim == Dim{from}) dim = {to};
  }
  return c.g.slices(name, x, {{name, dims}}, {from, to}).front();
}

// To `width` features, 0: to as many as x has.
TensorId head_linear(GraphContext& c, const std::string& name, TensorId x, bool bias,
                     std::int64_t width) {
  if (width > 0 && width != c.g.label_size(c.hidden)) {
    const LabelId features = c.label("embedding_width", width);
    Dims narrow = c.g.dims_of(x);
    narrow.back() = {features};
    return c.linear({name, {features}, {c.hidden}, bias}, x, std::move(narrow));
  }
  const LabelId in = c.label("head_width", c.g.label_size(c.hidden));
  Dims result = c.g.dims_of(x);
  return c.linear({name, {c.hidden}, {in}, bias}, relabelled(c, name + ".input", x, c.hidden, in),
                  std::move(result));
}

// Of embeddings that are narrower than what the head reads, with the rest beside them.
TensorId with_more_rows(GraphContext& c, const Head& head, const std::string& weight,
                        LabelId wide) {
  const auto& input = std::get<TokenEmbedding>(c.spec.stacks[0].input);
  const LabelId vocab = c.label("vocab", head.vocab, LabelRole::vocab);
  const LabelId narrow = c.label("embedding_width", input.width);
  const LabelId rest = c.label("rest_width", c.g.label_size(wide) - input.width);
  const TensorId table = c.g.parameter(weight, {{vocab}, {narrow}});
  const TensorId other = c.g.parameter(head.more_rows + ".weight", {{rest}, {vocab}});
  return c.g.concatenate(head.name + ".matrix", {table, other}, {{vocab}, {wide}},
                         {narrow, rest, wide});
}

TensorId masked(GraphContext& c, const Head& head, TensorId x) {
  if (!head.transform.empty()) {
    x = c.activate(head.activation, head.transform + ".act",
                   head_linear(c, head.transform, x, head.transform_bias, head.transform_width));
    if (!head.second_transform.empty()) {
      const Dim narrow = c.g.dims_of(x).back();
      x = c.activate(head.activation, head.second_transform + ".act",
                     c.linear({head.second_transform, {c.hidden}, narrow, head.transform_bias}, x,
                              c.stream()));
    }
    x = c.norm(head.transform_norm, head.transform_norm.name, x, {c.g.dims_of(x).back().front()});
  }
  const LabelId vocab = c.label("vocab", head.vocab, LabelRole::vocab);
  const std::string weight =
      c.table_name(head.tied_to.empty() ? head.name + ".weight" : head.tied_to);
  TensorId matrix = no_tensor;
  if (head.more_rows.empty()) {
    matrix = c.g.parameter(weight, {{vocab}, c.g.dims_of(x).back()});
  } else {
    matrix = with_more_rows(c, head, weight, c.g.dims_of(x).back().front());
  }
  const std::string bias =
      head.tied_bias.empty() || head.stands_first ? head.name + ".bias" : head.tied_bias;
  const TensorId offset =
      head.bias || !head.tied_bias.empty() ? c.g.parameter(bias, {{vocab}}) : no_tensor;
  TensorId logits = c.g.linear(head.name, x, matrix, {{c.batch}, {c.sequence}, {vocab}}, offset);
  if (!head.apart_bias.empty()) {
    const TensorId bias = c.g.parameter(head.apart_bias, {{vocab}});
    logits = c.g.elementwise(Function::add, head.apart_bias + ".added", {logits, bias});
  }
  return c.cross_entropy(logits, vocab, head.fp32_loss);
}

// Whether each token was replaced: the loss is the mean of what its logit gives.
TensorId detection(GraphContext& c, const Head& head, TensorId x) {
  x = c.activate(head.activation, head.transform + ".act",
                 head_linear(c, head.transform, x, /*bias=*/true, 0));
  const LabelId one = c.label("one", head.vocab);
  const TensorId logits =
      c.linear({head.name, {one}, {c.hidden}, head.bias}, x, {{c.batch}, {c.sequence}, {one}});
  return c.g.mean("loss", c.g.elementwise(Function::sigmoid, head.name + ".chance", {logits}), {});
}

// What a classifier reads: one row of each example, the first beside the others' mean, or all.
TensorId classified(GraphContext& c, const Head& head, TensorId x) {
  if (head.rows == HeadRows::mean) {
    return c.g.mean(head.name + ".mean", x, {{c.batch}, c.g.dims_of(x).back()});
  }
  if (head.rows == HeadRows::mean_of_further) {
    const LabelId rest = c.label("further_rows", c.g.label_size(c.sequence) - 1);
    const std::string further = head.name + ".further";
    const TensorId rows =
        c.g.slices(further, x, {{further, {{c.batch}, {rest}, {c.hidden}}}}, {c.sequence, rest})
            .front();
    return c.g.mean(head.name + ".mean", rows, {{c.batch}, {c.hidden}});
  }
  if (!head.beside_mean) return head.rows == HeadRows::first ? c.first_row(head.name, x) : x;
  const Dims row{{c.batch}, {c.hidden}};
  const LabelId rest = c.label("further_rows", c.g.label_size(c.sequence) - 1);
  const std::vector<TensorId> parts = c.g.slices(
      head.name + ".parts", x,
      {{head.name + ".first", row}, {head.name + ".further", {{c.batch}, {rest}, {c.hidden}}}},
      {c.sequence, rest});
  const TensorId mean = c.g.mean(head.name + ".mean", parts[1], row);
  const LabelId width = c.label("first_and_mean", 2 * c.g.label_size(c.hidden));
  return c.g.concatenate(head.name + ".input", {parts[0], mean}, {{c.batch}, {width}},
                         {width, c.hidden});
}

// Tokens are the classes, of which one starts an answer and one ends it.
TensorId span_loss(GraphContext& c, const Head& head, TensorId logits, LabelId ends) {
  const Dims rows{{c.batch}, {c.sequence}};
  const std::string start = head.name + ".start";
  const std::string end = head.name + ".end";
  const std::vector<TensorId> both =
      c.g.slices(head.name + ".ends", logits, {{start, rows}, {end, rows}}, {ends});
  const TensorId last = c.g.input("end_positions", c.options.index_dtype, {{c.batch}});
  c.g.further_loss(c.g.cross_entropy(both[1], last, c.sequence, "loss_of_ends"));
  return c.cross_entropy(both[0], c.sequence, /*fp32=*/false);
}

TensorId question_span(GraphContext& c, const Head& head, TensorId x) {
  const TensorId row = c.first_row(head.question, x);
  const auto connected = [&](const std::string& name, TensorId read) {
    const std::string at = head.question + "." + name;
    const TensorId up =
        c.activate("gelu", at + ".act", head_linear(c, at + ".dense", read, /*bias=*/true, 0));
    return c.norm({NormKind::layer, at + ".LayerNorm", /*bias=*/true}, at + ".LayerNorm", up,
                  {c.hidden});
  };
  const auto logits_of = [&](const std::string& end) {
    const TensorId rows = connected(end + "_transform", x);
    const TensorId wanted = head_linear(c, head.question + "." + end + "_classifier",
                                        connected("query_" + end + "_transform", row), false, 0);
    return c.g.linear(head.question + "." + end, wanted, rows, {{c.batch}, {c.sequence}});
  };
  const TensorId last = c.g.input("end_positions", c.options.index_dtype, {{c.batch}});
  c.g.further_loss(c.g.cross_entropy(logits_of("end"), last, c.sequence, "loss_of_ends"));
  return c.cross_entropy(logits_of("start"), c.sequence, /*fp32=*/false);
}

TensorId classification(GraphContext& c, const Head& head, TensorId x) {
  if (!head.question.empty()) return question_span(c, head, x);
  if (!head.idle_norm.name.empty()) {
    c.note(fmt::format("{} is stored and not run: nobody reads its result", head.idle_norm.name));
    c.g.untrained_parameter(head.idle_norm.name + ".weight", {{c.hidden}});
    c.g.untrained_parameter(head.idle_norm.name + ".bias", {{c.hidden}});
  }
  const LabelId classes = c.label("classes", head.vocab);
  x = classified(c, head, x);
  if (!head.transform.empty()) {
    x = head_linear(c, head.transform,
                    c.dropped(head.transform + ".dropout", x, head.input_dropout),
                    head.transform_bias, head.transform_width);
    x = c.activate(head.activation, head.transform + ".act", x);
    x = c.norm(head.transform_norm, head.transform_norm.name, x, {c.hidden});
  }
  Dims result = c.g.dims_of(x);
  const Dim width = std::exchange(result.back(), Dim{classes});
  x = c.dropped(head.name + ".dropout", x, head.dropout);
  TensorId logits = c.linear({head.name, {classes}, width, head.bias}, x, std::move(result));
  if (head.rows == HeadRows::picked) {
    const std::string picked = head.name + ".picked";
    logits = c.g.slices(picked, logits, {{picked, {{c.batch}, {classes}}}}, {c.sequence}).front();
  }
  if (head.rows == HeadRows::averaged) {
    logits = c.g.mean(head.name + ".mean", logits, {{c.batch}, {classes}});
  }
  if (head.rows == HeadRows::span) return span_loss(c, head, logits, classes);
  return c.cross_entropy(logits, classes, head.fp32_loss);
}

// Whether two sentences follow each other: a loss beside the head's.
void sentence_pair(GraphContext& c, const SentencePair& pair, TensorId x) {
  constexpr std::int64_t follows_or_not = 2;
  const LabelId two = c.label("follows_or_not", follows_or_not);
  const TensorId first = c.first_row(pair.pooler, x);
  const TensorId pooled = c.activate("tanh", pair.pooler + ".act",
                                     head_linear(c, pair.pooler, first, /*bias=*/true, 0));
  const TensorId logits =
      c.linear({pair.name, {two}, {c.hidden}, /*bias=*/true},
               c.dropped(pair.name + ".dropout", pooled, pair.dropout), {{c.batch}, {two}});
  const TensorId labels = c.g.input("next_sentence_label", c.options.index_dtype, {{c.batch}});
  c.g.further_loss(c.g.cross_entropy(logits, labels, two, "loss_of_sentences"));
}

TensorId mean_of_states(GraphContext& c, TensorId x) {
  c.note("the model has no loss of its own: a step's is the mean of its states");
  return c.g.mean("loss", x, {});
}

// Its result is what users take; the loss does not read it, so that it learns nothing.
TensorId pooler(GraphContext& c, const Head& head, TensorId x) {
  c.note(fmt::format("{} is not trained: the loss does not read its result", head.name));
  const TensorId first = c.first_row(head.name, x);
  const TensorId y = head_linear(c, head.name, first, /*bias=*/true, 0);
  c.g.elementwise(Function::tanh, head.name + ".tanh", {y});
  const LabelId in = c.label("head_width", c.g.label_size(c.hidden));
  c.g.untrained_parameter(head.name + ".weight", {{c.hidden}, {in}});
  c.g.untrained_parameter(head.name + ".bias", {{c.hidden}});
  return mean_of_states(c, x);
}

// Features of one side, of length one.
TensorId unit_features(GraphContext& c, const std::string& projection, TensorId x,
                       LabelId features) {
  const Dim in = c.g.dims_of(x).back();
  const TensorId projected = c.linear({projection, {features}, in}, x, {{c.batch}, {features}});
  return c.g.norm(Function::rms_norm, projection + ".unit", projected, {}, {features});
}

// Of every row, of length one.
TensorId unit_rows(GraphContext& c, const Head& head, TensorId x) {
  const LabelId features = c.label("features", head.vocab);
  const TensorId rows = c.linear({head.name, {features}, {c.hidden}, head.bias}, x,
                                 {{c.batch}, {c.sequence}, {features}});
  return c.g.norm(Function::rms_norm, head.name + ".unit", rows, {}, {features});
}

TensorId contrastive(GraphContext& c, const Head& head, TensorId x) {
  c.note("the loss of pairs is over the batch of all devices, whose texts' features are gathered");
  const LabelId features = c.label("features", head.vocab);
  const LabelId texts = c.label("texts", c.options.batch);
  const TensorId one = unit_features(c, head.projections[0], c.beside.front().id, features);
  const TensorId other = unit_features(c, head.projections[1], x, features);
  const TensorId products =
      c.g.product_with_all("logits", one, other, {{c.batch}, {texts}}, c.batch, texts);
  const TensorId scale = c.g.parameter("logit_scale", {});
  const TensorId logits = c.g.elementwise(Function::multiply, "logits.scaled", {products, scale});
  // Images choose among texts, and texts among images.
  const TensorId images_of = c.g.input("labels_of_texts", c.options.index_dtype, {{texts}});
  c.g.further_loss(c.g.cross_entropy(logits, images_of, c.batch, "loss_of_texts"));
  return c.cross_entropy(logits, texts, /*fp32=*/false);
}

// Every pair of the batch is a yes or a no of its own: the loss is the mean of log-sigmoids.
TensorId pairs(GraphContext& c, const Stack& stack, TensorId x) {
  c.note("the loss of pairs is over the batch of all devices, whose texts' features are gathered");
  const Dim in = c.g.dims_of(x).back();
  const LabelId features = c.label("features", stack.project_width);
  const TensorId projected =
      c.linear({stack.project, {features}, in, stack.project_bias}, x, {{c.batch}, {features}});
  const TensorId first = c.beside.front().id;
  const Dim width = c.g.dims_of(first).back();
  const TensorId seen =
      c.g.slices("images", first, {{"images", {{c.batch}, {features}}}}, {width.front(), features})
          .front();
  const LabelId texts = c.label("texts", c.options.batch);
  const TensorId images = c.g.norm(Function::rms_norm, "images.unit", seen, {}, {features});
  const TensorId other = c.g.norm(Function::rms_norm, "texts.unit", projected, {}, {features});
  const TensorId products =
      c.g.product_with_all("logits", images, other, {{c.batch}, {texts}}, c.batch, texts);
  const LabelId one = c.label("one", 1);
  const TensorId scaled = c.g.elementwise(Function::multiply, "logits.scaled",
                                          {products, c.g.parameter("logit_scale", {{one}})});
  const TensorId logits = c.g.elementwise(Function::add, "logits.moved",
                                          {scaled, c.g.parameter("logit_bias", {{one}})});
  return c.g.mean("loss", c.g.elementwise(Function::sigmoid, "logits.chance", {logits}), {});
}

// Of the rows behind the class token; a mean of squares, of which a mask leaves the missing ones.
TensorId pixels(GraphContext& c, const Head& head, TensorId x) {
  const LabelId values = c.label("patch_values", head.vocab);
  const LabelId rest = c.label("further_rows", c.g.label_size(c.sequence) - 1);
  const TensorId all = c.linear({head.name, {values}, {c.hidden}, head.bias}, x,
                                {{c.batch}, {c.sequence}, {values}});
  const Dims rows{{c.batch}, {rest}, {values}};
  const TensorId missing =
      c.g.slices(head.name + ".rows", all, {{head.name + ".rows", rows}}, {c.sequence, rest})
          .front();
  const TensorId target = c.g.input("target", c.g.compute_dtype(), rows);
  const TensorId difference =
      c.g.elementwise(Function::add, head.name + ".difference", {missing, target});
  const TensorId squares =
      c.g.elementwise(Function::multiply, head.name + ".squares", {difference, difference});
  const TensorId mask = c.g.input("mask", c.g.compute_dtype(), rows);
  return c.g.mean("loss",
                  c.g.elementwise(Function::multiply, head.name + ".masked", {squares, mask}), {});
}

}  // namespace

TensorId add_head(GraphContext& c, const Stack& stack, TensorId x) {
  const Head& head = c.spec.head;
  if (!head.idle_pooler.empty()) {
    c.note("a pooler whose result nobody reads is stored and not run");
    const LabelId pooled = c.label("pooled", c.g.label_size(c.hidden));
    c.g.untrained_parameter(head.idle_pooler + ".weight", {{pooled}, {c.hidden}});
    c.g.untrained_parameter(head.idle_pooler + ".bias", {{pooled}});
  }
  if (head.sentences) sentence_pair(c, *head.sentences, x);
  switch (head.kind) {
    case HeadKind::language:
      break;
    case HeadKind::masked:
      return masked(c, head, x);
    case HeadKind::detection:
      return detection(c, head, x);
    case HeadKind::classification:
      return classification(c, head, x);
    case HeadKind::pooler:
      return pooler(c, head, x);
    case HeadKind::contrastive:
      return contrastive(c, head, x);
    case HeadKind::pairs:
      return pairs(c, stack, x);
    case HeadKind::pixels:
      return pixels(c, head, x);
    case HeadKind::embeddings:
      return mean_of_states(c, unit_rows(c, head, x));
    case HeadKind::none:
      return mean_of_states(c, x);
  }
  c.refuse("such a head");
}

}  // namespace shardsim::models
