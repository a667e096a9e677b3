// The head of language models: norm, logits, cross entropy with the labels; in steps of inference
// the likeliest token. With it modules of multi-token prediction (DeepSeek-V3, arXiv:2412.19437,
// section 2.2): the states before one and the next tokens' embeddings, each with a norm, are
// projected to one stream that goes through a layer as the model's last, a norm and the head, which
// is the model's.
#include <fmt/format.h>

#include "workloads/models/graph/graph_context.hpp"

namespace shardsim::models {
namespace {

class LanguageHead {
 public:
  LanguageHead(GraphContext& c, const Stack& stack)
      : c_(c),
        stack_(stack),
        embedding_(std::get<TokenEmbedding>(stack.input)),
        head_(c.spec.head) {}

  TensorId build(TensorId x) {
    const std::string name = stack_.norm.exists() ? stack_.norm.name : head_.name;
    if (c_.options.mtp_layers == 0) return loss_of(x, name, no_tensor, "loss");
    const TensorId labels = labels_input("labels");
    TensorId states = x;
    TensorId tokens = labels;
    for (std::int64_t i = 0; i < c_.options.mtp_layers; ++i) predict_further(i, states, tokens);
    return loss_of(x, name, labels, "loss");
  }

 private:
  TensorId labels_input(const std::string& name) {
    return c_.g.input(name, c_.options.index_dtype, {{c_.batch}, {c_.sequence}});
  }

  void predict_further(std::int64_t i, TensorId& states, TensorId& tokens) {
    c_.refuse_if(!stack_.norm.exists() || stack_.fp32_residual || !embedding_.positions.empty() ||
                     !embedding_.project.empty() || !stack_.project.empty() || !c_.beside.empty(),
                 "multi-token prediction of such a model");
    c_.note(
        "layers of multi-token prediction are of the head's unit; what their backward pass reads "
        "is "
        "kept");
    c_.layer =
        fmt::format("{}.{}", stack_.prefix, static_cast<std::int64_t>(stack_.order.size()) + i);
    c_.rotary.clear();
    const auto norm_of = [&](const char* name, TensorId x) {
      return c_.norm(stack_.norm, c_.inside(name), x, {c_.hidden});
    };
    TensorId rows =
        c_.g.embedding(c_.inside("embed_tokens"), tokens, c_.token_table(embedding_), c_.stream());
    if (embedding_.scaled) {
      rows = c_.g.elementwise(Function::scale, c_.inside("embed_tokens.scaled"), {rows});
    }
    const LabelId both = c_.label("states_and_tokens", 2 * stack_.hidden);
    const TensorId joined =
        c_.g.concatenate(c_.inside("joined"), {norm_of("enorm", rows), norm_of("hnorm", states)},
                         {{c_.batch}, {c_.sequence}, {both}}, {both, c_.hidden});
    const TensorId x = c_.g.marked(project(joined, both), StreamMark::stream);
    states = add_layer(c_, stack_, stack_.kinds[static_cast<std::size_t>(stack_.order.back())], x);
    tokens = labels_input(fmt::format("labels_{}_further", i + 1));
    c_.g.further_loss(
        loss_of(states, c_.inside("shared_head.norm"), tokens, fmt::format("mtp_loss_{}", i + 1)));
  }

  // Split over the model axis it is gathered, and the stream is a part of that again
  // (megatron/core/transformer/multi_token_prediction.py, _concat_embeddings).
  TensorId project(TensorId joined, LabelId both) {
    const std::string name = c_.inside("eh_proj");
    if (!c_.options.split_predictors) {
      return c_.linear({name, {c_.hidden}, {both}}, joined, c_.stream());
    }
    const LabelId parts = c_.label("eh_proj", c_.g.label_size(c_.hidden), LabelRole::width);
    const TensorId read =
        c_.g.slices(name + ".input", joined, {{name + ".input", c_.g.dims_of(joined)}}, {}).front();
    const TensorId made = c_.linear({name, {parts}, {both}}, c_.g.marked(read, StreamMark::branch),
                                    {{c_.batch}, {c_.sequence}, {parts}});
    const TensorId whole =
        c_.g.slices(name + ".whole", made, {{name + ".whole", c_.stream()}}, {parts, c_.hidden})
            .front();
    return c_.g
        .slices(name + ".part", c_.g.marked(whole, StreamMark::branch),
                {{name + ".part", c_.stream()}}, {})
        .front();
  }

  // Of the states that the layers leave; the labels enter here unless they are given.
  TensorId loss_of(TensorId x, const std::string& name, TensorId labels, const std::string& loss) {
    if (stack_.fp32_residual) x = c_.g.cast(name + ".cast", x, c_.g.compute_dtype());
    if (stack_.norm.exists()) {
      x = c_.g.marked(c_.norm(stack_.norm, name, x, {c_.hidden}), StreamMark::branch);
    }
    if (stack_.dropout > 0) x = c_.dropped(name + ".dropout", x, stack_.dropout);
    LabelId rows = c_.sequence;
    if (c_.options.cache && c_.g.label_size(c_.sequence) > 1) {
      rows = c_.label("last", 1);
      x = c_.g.slices(name + ".last", x, {{name + ".last", {{c_.batch}, {rows}, {c_.hidden}}}},
                      {c_.sequence, rows})
              .front();
    }
    if (head_.states_scaled) {
      x = c_.g.elementwise(Function::scale, head_.name + ".states", {x});
    }
    LabelId width = c_.hidden;
    if (!stack_.project.empty()) {
      width = c_.label("embedding_width", stack_.project_width);
      x = c_.linear({stack_.project, {width}, {c_.hidden}, stack_.project_bias}, x,
                    {{c_.batch}, {rows}, {width}});
    }
    const LabelId vocab = c_.vocab();
    const TensorId weight = head_.tied_to.empty()
                                ? c_.g.parameter(head_.name + ".weight", {{vocab}, {width}})
                                : c_.token_table(embedding_);
    const TensorId bias = head_.bias ? c_.g.parameter(head_.name + ".bias", {{vocab}}) : no_tensor;
    // Each of several that read the weight has its own name: backward finds products by it.
    const std::string product = loss == "loss" ? head_.name : head_.name + "." + loss;
    TensorId logits = c_.g.linear(product, x, weight, {{c_.batch}, {rows}, {vocab}}, bias);
    if (head_.scaled) {
      logits = c_.g.elementwise(Function::scale, head_.name + ".scaled", {logits});
    }
    if (head_.fp32_cap) logits = c_.g.cast(head_.name + ".fp32", logits, DType::f32);
    if (head_.soft_cap > 0) {
      logits = c_.g.elementwise(Function::soft_cap, head_.name + ".soft_cap", {logits});
    }
    for (const NamedBuffer& buffer : c_.spec.buffers) {  // BART's: of shape [1, vocab]
      const Dims dims{{c_.label("one", 1)}, {vocab}};
      const TensorId added = c_.g.buffer(buffer.name, c_.g.compute_dtype(), dims);
      logits = c_.g.elementwise(Function::add, buffer.name + ".added", {logits, added});
    }
    if (c_.options.cache) return next_token(logits);
    if (labels == no_tensor) labels = labels_input("labels");
    if (head_.causal_loss && !head_.fp32_cap)
      logits = c_.g.cast(loss + ".logits", logits, DType::f32);
    return c_.g.cross_entropy(logits, labels, vocab, loss);
  }

  // The number of the likeliest, of whole logits.
  TensorId next_token(TensorId logits) {
    return c_.g.top_k("next_token", logits, c_.vocab(), c_.label("one", 1)).second;
  }

  GraphContext& c_;
  const Stack& stack_;
  const TokenEmbedding& embedding_;
  const Head& head_;
};

}  // namespace

TensorId add_language_head(GraphContext& c, const Stack& stack, TensorId x) {
  return LanguageHead(c, stack).build(x);
}

}  // namespace shardsim::models
