#include "workloads/layers/heads.hpp"

#include "workloads/layers/activation.hpp"
#include "workloads/layers/mlp.hpp"

namespace shardsim::models {
namespace {

// Keeps the log-softmax and the sum of weights.
void cross_entropy(Eager& e, const Value& logits) {
  e.apply(logits, Keeps::result);
  e.save(e.constant(logits.dtype, {}));
}

// transformers' ForCausalLMLoss: labels padded by one and shifted, a copy unless the batch is 1 and
// the shifted rows lie together already.
void causal_loss(Eager& e, const Value& logits) {
  const std::int64_t rows = logits.shape[0] * logits.shape[1];
  e.save(e.constant(DType::i64, {logits.shape[0] == 1 ? rows + 1 : rows}));
  cross_entropy(e, e.cast(logits, DType::f32));
}

// Logits without the last row and labels without the first, copied; of one example views.
void shifted_loss(Eager& e, const Value& logits) {
  const std::int64_t rows = logits.shape[1] - 1;
  if (logits.shape[0] > 1) e.save(e.constant(DType::i64, {logits.shape[0] * rows}));
  cross_entropy(e, e.copy(logits, {logits.shape[0], rows, logits.last()}));
}

// `more`: rows of the matrix beside the tied ones, with which they are put together in each step
// (MobileBERT); the bias is added behind.
Value logits_of(Eager& e, const Head& head, const Value& x, const Value& more = {}) {
  const Scope at(e, head.name);
  const std::string weight = e.path() + ".weight";
  if (!head.tied_to.empty() && head.stands_first) {
    e.tie_renamed(head.tied_to, weight);
  } else if (!head.tied_to.empty()) {
    e.tie(head.tied_to, weight);
  }
  Value matrix =
      head.tied_to.empty() ? e.parameter("weight", {head.vocab, x.last()}) : e.named(head.tied_to);
  Value bias;
  if (!head.tied_bias.empty()) {
    bias = e.named(head.tied_bias);
    e.tie(head.tied_bias, e.path() + ".bias");
  } else if (head.bias) {
    bias = e.parameter("bias", {head.vocab});
  }
  if (more.exists()) matrix = e.copy(more, {head.vocab, x.last()});
  return e.linear(e.cast(x, e.dtype()), matrix, more.exists() ? Value{} : bias);
}

void language(Eager& e, const Head& head, const Value& x) {
  Value logits = logits_of(e, head, head.states_scaled ? e.scaled(x) : x);
  if (head.scaled) logits = e.scaled(logits);
  if (head.fp32_cap) logits = e.cast(logits, DType::f32);
  if (head.soft_cap > 0) logits = e.scaled(e.apply(e.scaled(logits), Keeps::result));
  if (head.causal_loss) {
    causal_loss(e, logits);
  } else if (head.shifted) {
    shifted_loss(e, logits);
  } else {
    cross_entropy(e, head.fp32_loss ? e.cast(logits, DType::f32) : logits);
  }
}

void masked(Eager& e, const Head& head, Value x) {
  if (!head.tied_bias.empty()) e.parameter(head.tied_bias, {head.vocab});
  if (!head.transform.empty()) {
    const std::int64_t width = x.last();
    x = activate(
        e, head.activation,
        run_linear(e, head.transform, x, head.transform_width > 0 ? head.transform_width : width,
                   head.transform_bias));
    if (!head.second_transform.empty()) {
      x = activate(e, head.activation,
                   run_linear(e, head.second_transform, x, width, head.transform_bias));
    }
    x = run(e, head.transform_norm, x);
  }
  Value more;
  if (!head.more_rows.empty()) {
    const std::int64_t rest = x.last() - e.named(head.tied_to).last();
    const Scope at(e, head.more_rows);
    more = e.parameter("weight", {rest, head.vocab});
  }
  Value logits = logits_of(e, head, x, more);
  if (!head.apart_bias.empty()) {
    logits = e.add(logits, e.parameter(head.apart_bias, {head.vocab}));
  }
  if (head.shifted) {
    if (head.causal_loss) {
      causal_loss(e, logits);
    } else {
      shifted_loss(e, logits);
    }
    return;
  }
  cross_entropy(e, head.fp32_loss ? e.cast(logits, DType::f32) : logits);
}

// The logits of a binary cross entropy and its labels are kept.
void detection(Eager& e, const Head& head, const Value& x) {
  const Value hidden =
      activate(e, head.activation, run_linear(e, head.transform, x, x.last(), true));
  const Value logits = run_linear(e, head.name, hidden, head.vocab, head.bias);
  e.save(logits);
  e.save(e.constant(DType::f32, {x.shape[0], x.shape[1]}));
}

Value first_row(const Value& x) { return Eager::view(x, {x.shape[0], x.last()}); }

Value beside_mean(Eager& e, const Value& x) { return e.copy(x, {x.shape[0], 2 * x.last()}); }

// A product, GELU and a norm, of the question's row and of all; of the row another product, by
// which all are weighed.
void question_span(Eager& e, const Head& head, const Value& x) {
  const std::int64_t hidden = x.last();
  const Shape one{x.shape[0], 1, hidden};
  const Value row = e.index(x, e.constant(DType::i64, one), one);
  const auto connected = [&](const std::string& name, const Value& read) {
    const Scope at(e, head.question + "." + name);
    const Value up = activate(e, "gelu", run_linear(e, "dense", read, hidden, true));
    return run(e, Norm{NormKind::layer, "LayerNorm", /*bias=*/true}, up);
  };
  for (const std::string end : {"start", "end"}) {
    const Value rows = connected(end + "_transform", x);
    const Value wanted = run_linear(e, head.question + "." + end + "_classifier",
                                    connected("query_" + end + "_transform", row), hidden, false);
    cross_entropy(e, e.bmm(wanted, rows, 1, hidden, x.shape[1], {x.shape[0], 1, x.shape[1]}));
  }
}

void classification(Eager& e, const Head& head, Value x) {
  if (!head.question.empty()) {
    question_span(e, head, x);
    return;
  }
  if (!head.idle_norm.name.empty()) run(e, head.idle_norm, first_row(x));
  if (head.beside_mean) {
    x = beside_mean(e, x);
  } else if (head.rows == HeadRows::first) {
    x = first_row(x);
  } else if (head.rows == HeadRows::mean || head.rows == HeadRows::mean_of_further) {
    x = e.copy(x, {x.shape[0], x.last()});
  }
  if (!head.transform.empty()) {
    x = run_linear(e, head.transform, e.dropout(x, head.input_dropout),
                   head.transform_width > 0 ? head.transform_width : x.last(), head.transform_bias);
    x = run(e, head.transform_norm, activate(e, head.activation, x));
  }
  Value logits = run_linear(e, head.name, e.dropout(x, head.dropout), head.vocab, head.bias);
  if (head.rows == HeadRows::picked) {
    const Shape one{logits.shape[0], logits.last()};
    e.save(e.constant(DType::i64, {logits.shape[0]}));
    logits = e.index(logits, e.constant(DType::i64, {logits.shape[0]}), one);
  }
  if (head.rows == HeadRows::averaged) logits = e.copy(logits, {logits.shape[0], logits.last()});
  if (head.rows == HeadRows::span) {
    for (int end = 0; end < 2; ++end) {
      e.save(e.constant(DType::i64, {logits.shape[0]}));  // its place, no farther than the rows
      cross_entropy(e, e.copy(logits, {logits.shape[0], logits.shape[1]}));
    }
    return;
  }
  cross_entropy(e, head.fp32_loss ? e.cast(logits, DType::f32) : logits);
}

// Runs, and keeps what it would need, but nothing is taken back: the loss is of the states.
void pooler(Eager& e, const Head& head, const Value& x) {
  const Scope at(e, head.name);
  e.parameter("weight", {x.last(), x.last()});
  e.parameter("bias", {x.last()});
  e.count("addmm", e.times(2 * x.shape[0], x.last() * x.last()), "mm", 0);
  e.save(x);
  e.apply(e.make({x.shape[0], x.last()}, e.dtype(), true), Keeps::result);
}

void sentence_pair(Eager& e, const SentencePair& pair, const Value& x) {
  constexpr std::int64_t follows_or_not = 2;
  const Value pooled =
      activate(e, "tanh", run_linear(e, pair.pooler, first_row(x), x.last(), true));
  cross_entropy(e, run_linear(e, pair.name, e.dropout(pooled, pair.dropout), follows_or_not, true));
}

// Of length one: x / sqrt(sum(x * x)); the norm and its root are kept, and x.
Value unit_length(Eager& e, const Value& x) {
  const Value sum = e.reduce_last(e.apply(x, Keeps::input));
  return e.divide(x, e.apply(e.apply(sum, Keeps::result), Keeps::result));
}

void contrastive(Eager& e, const Head& head, const std::vector<Value>& outputs) {
  const Value scale = e.parameter("logit_scale", {});
  std::vector<Value> sides;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    sides.push_back(run_linear(e, head.projections[i], outputs[i], head.vocab, false));
  }
  for (Value& side : sides) side = unit_length(e, side);
  const std::int64_t batch = sides[0].shape[0];
  const Value products = e.linear(sides[1], sides[0]);
  const Value logits = e.multiply(products, e.apply(scale, Keeps::result));
  for (int i = 0; i < 2; ++i) {
    e.save(e.constant(DType::i64, {batch}));
    cross_entropy(e, logits);
  }
}

// x / norm(x): the norm keeps x and its result, the quotient both.
Value unit_by_norm(Eager& e, const Value& x) {
  e.save(x);
  return e.divide(x, e.apply(e.reduce_last(x), Keeps::result));
}

// The sigmoid loss of all pairs of the batch, those of one example alone wanted.
void pairs(Eager& e, const std::vector<Value>& outputs) {
  const Value scale = e.parameter("logit_scale", {1});
  const Value bias = e.parameter("logit_bias", {1});
  const Value images = unit_by_norm(e, outputs[0]);
  const Value texts = unit_by_norm(e, outputs[1]);
  const Value products = e.linear(texts, images);
  const Value logits = e.add(e.multiply(products, e.apply(scale, Keeps::result)), bias);
  const Value signs = e.constant(DType::f32, logits.shape);
  e.apply(e.multiply(signs, logits), Keeps::input);  // log(sigmoid)
}

// Of the rows behind the class token; the masked ones count.
void pixels(Eager& e, const Head& head, const Value& x) {
  const Value all = run_linear(e, head.name, x, head.vocab, head.bias);
  const std::int64_t rows = x.shape[1] - 1;
  e.apply(e.make({x.shape[0], rows, head.vocab}, all.dtype, true), Keeps::input);
  e.save(e.constant(DType::f32, {x.shape[0], rows}));
  e.save(e.constant(DType::f32, {}));
}

}  // namespace

void run(Eager& e, const Head& head, const std::vector<Value>& outputs) {
  const Value& x = outputs.back();
  if (!head.idle_pooler.empty()) pooler(e, {.name = head.idle_pooler}, x);
  if (head.sentences) sentence_pair(e, *head.sentences, x);
  switch (head.kind) {
    case HeadKind::language:
      language(e, head, x);
      break;
    case HeadKind::masked:
      masked(e, head, x);
      break;
    case HeadKind::detection:
      detection(e, head, x);
      break;
    case HeadKind::classification:
      classification(e, head, x);
      break;
    case HeadKind::pooler:
      pooler(e, head, x);
      break;
    case HeadKind::contrastive:
      contrastive(e, head, outputs);
      break;
    case HeadKind::pairs:
      pairs(e, outputs);
      break;
    case HeadKind::pixels:
      pixels(e, head, x);
      break;
    case HeadKind::embeddings:
      unit_by_norm(e, run_linear(e, head.name, x, head.vocab, head.bias));
      break;
    case HeadKind::none:
      break;
  }
}

}  // namespace shardsim::models
