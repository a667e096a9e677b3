#include "workloads/models/graph/decoder_graph.hpp"

#include <fmt/format.h>

#include <cassert>
#include <optional>

#include "workloads/models/graph/graph_context.hpp"
#include "workloads/models/walk.hpp"

namespace shardsim::models {
namespace {

// Why a model cannot have a decoder's graph; nothing where it can.
std::optional<std::string_view> what_is_no_decoder(const ModelSpec& spec) {
  if (spec.network) return "images as input";
  if (spec.stacks.size() != 1 || !spec.apart.empty() || !spec.shared.empty()) {
    return "several stacks of layers";
  }
  const Stack& stack = spec.stacks.front();
  const auto* embedding = std::get_if<TokenEmbedding>(&stack.input);
  const Head& head = spec.head;
  if (embedding == nullptr) return "images or audio as input";
  if (stack.norm_first_only || stack.picks_row) return "pooling of the last layer's rows";
  if (head.kind != HeadKind::language || !head.causal_loss) {
    return "a head that is no causal language model's";
  }
  if (!embedding->types.empty()) return "token types";
  if (embedding->shifted || !embedding->table_of.empty()) return "a decoder of an encoder";
  if (!head.tied_to.empty() && head.tied_to != embedding->name + ".weight") {
    return "a head that is tied to another table than the embedding's";
  }
  if (!head.tied_bias.empty()) return "a tied bias of the head";
  for (const LayerKind& kind : stack.kinds) {
    if (kind.shared) return "a block that layers share";
    for (const Branch& branch : kind.branches) {
      const auto* attention = std::get_if<Attention>(&branch.body);
      if (attention != nullptr && attention->norm_by_head) return "a norm for each head";
    }
  }
  return std::nullopt;
}

class DecoderGraph {
 public:
  DecoderGraph(const ModelSpec& spec, const WorkloadOptions& options, const Place& place)
      : stack_(spec.stacks.front()),
        embedding_(std::get<TokenEmbedding>(stack_.input)),
        head_(spec.head),
        c_(spec, options, place) {}

  Workload build() {
    embed();
    for (std::size_t k = 0; k < stack_.kinds.size(); ++k) layers(k);
    const TensorId loss = head();
    return c_.g.finish(loss);
  }

 private:
  using Inside = GraphContext;

  // Width of the rows of the table: the stream's, or one that is projected to it (OPT-350m).
  LabelId table_width() {
    if (embedding_.width == stack_.hidden) return c_.hidden;
    return c_.label("embedding_width", embedding_.width);
  }

  LabelId rows_of_table() { return c_.label("vocab", embedding_.vocab, LabelRole::vocab); }

  TensorId token_table() {
    return c_.g.parameter(embedding_.name + ".weight", {{rows_of_table()}, {table_width()}});
  }

  void embed() {
    assert(*c_.options.sequence <= most_positions(c_.spec));
    c_.g.begin_block("embedding");
    const TensorId ids =
        c_.g.input("input_ids", c_.options.index_dtype, {{c_.batch}, {c_.sequence}});
    TensorId x = embedding_.positions.empty() ? look_up(ids) : with_positions(ids);
    if (embedding_.norm.exists()) {
      x = c_.norm(embedding_.norm, embedding_.norm.name, x, {c_.hidden});
    }
    x = c_.dropped(embedding_.name + ".dropout", x, embedding_.dropout);
    if (stack_.fp32_residual) x = c_.g.cast(embedding_.name + ".fp32", x, DType::f32);
    c_.g.carry_out(x);
  }

  TensorId look_up(TensorId ids) {
    const LabelId width = table_width();
    TensorId x =
        c_.g.embedding(embedding_.name, ids, token_table(), {{c_.batch}, {c_.sequence}, {width}});
    if (embedding_.scaled) {
      x = c_.g.elementwise(Function::scale, embedding_.name + ".scaled", {x});
    }
    if (embedding_.project.empty()) return x;
    return c_.linear({embedding_.project, {c_.hidden}, {width}}, x, c_.stream());
  }

  TensorId with_positions(TensorId ids) {
    const bool each = embedding_.position_numbers == PositionNumbers::per_example;
    const Dims places = each ? Dims{{c_.batch}, {c_.sequence}} : Dims{{c_.sequence}};
    Dims rows = places;
    rows.push_back({c_.hidden});
    const LabelId positions = c_.label("positions", embedding_.position_rows);
    const TensorId numbers = c_.g.constant("position_ids", c_.options.index_dtype, places);
    const TensorId table =
        c_.g.parameter(embedding_.positions + ".weight", {{positions}, {c_.hidden}});
    const TensorId tokens = look_up(ids);
    const TensorId looked_up = c_.g.embedding(embedding_.positions, numbers, table, rows);
    const std::size_t dot = embedding_.name.rfind('.');
    const std::string scope = dot == std::string::npos ? "" : embedding_.name.substr(0, dot);
    return c_.g.marked(
        c_.g.elementwise(Function::add, Inside::inside(scope, "positions"), {tokens, looked_up}),
        StreamMark::stream);
  }

  void layers(std::size_t kind_number) {
    std::vector<std::int32_t> numbers;
    for (std::size_t i = 0; i < stack_.order.size(); ++i) {
      if (stack_.order[i] == static_cast<int>(kind_number)) {
        numbers.push_back(static_cast<std::int32_t>(i));
      }
    }
    c_.layer = stack_.prefix + ".{}";
    c_.rotary.clear();
    c_.g.begin_layers(c_.layer, std::move(numbers));
    const LayerKind& kind = stack_.kinds[kind_number];
    const TensorId x = c_.g.carry_in(c_.inside("input"));
    c_.g.carry_out(kind.parallel ? parallel(kind, x) : sequential(kind, x));
  }

  TensorId sequential(const LayerKind& kind, TensorId x) {
    for (const Branch& branch : kind.branches) {
      const TensorId out = run(branch, input_of(branch, x));
      const std::string name = c_.inside(fmt::format("{}_residual", word(kind, branch)));
      x = c_.g.marked(c_.g.elementwise(Function::add, name, {x, out}), StreamMark::stream);
      if (branch.joined.exists()) {
        x = c_.g.marked(c_.norm(branch.joined, c_.inside(branch.joined.name), x, {c_.hidden}),
                        StreamMark::stream);
      }
    }
    return x;
  }

  TensorId parallel(const LayerKind& kind, TensorId x) {
    TensorId first = no_tensor;
    TensorId sum = no_tensor;
    for (const Branch& branch : kind.branches) {
      c_.refuse_if(branch.joined.exists(), "a norm of the stream after parallel branches");
      if (branch.before.exists() || first == no_tensor) {
        const TensorId input = input_of(branch, x);
        if (first == no_tensor) first = input;
        add_to(sum, run(branch, input));
      } else {
        add_to(sum, run(branch, first));
      }
    }
    return c_.g.marked(c_.g.elementwise(Function::add, c_.inside("residual"), {x, sum}),
                       StreamMark::stream);
  }

  void add_to(TensorId& sum, TensorId out) {
    sum =
        sum == no_tensor ? out : c_.g.elementwise(Function::add, c_.inside("branches"), {sum, out});
  }

  // What a branch reads: a stream that is kept in fp32 is cast first.
  TensorId input_of(const Branch& branch, TensorId x) {
    const std::string name = branch.before.exists() ? c_.inside(branch.before.name) : c_.layer;
    if (stack_.fp32_residual) x = c_.g.cast(name + ".cast", x, c_.g.compute_dtype());
    if (!branch.before.exists()) return x;
    const GraphBuilder::Within part(c_.g, OpPart::input_norm);
    // Rows of exchanged experts are dealt out as tokens lie between blocks.
    const bool stays = c_.options.exchange && std::holds_alternative<Experts>(branch.body);
    return c_.g.marked(c_.norm(branch.before, name, x, {c_.hidden}),
                       stays ? StreamMark::stream : StreamMark::branch);
  }

  // "attention", "mlp": of its residual add.
  static std::string word(const LayerKind& kind, const Branch& branch) {
    std::string name = "mixer";
    if (std::holds_alternative<Attention>(branch.body) ||
        std::holds_alternative<LatentAttention>(branch.body)) {
      name = "attention";
    }
    if (std::holds_alternative<Mlp>(branch.body) || std::holds_alternative<Experts>(branch.body)) {
      name = "mlp";
    }
    int same = 0;
    for (const Branch& other : kind.branches) {
      if (&other == &branch) break;
      if (other.body.index() == branch.body.index()) ++same;
    }
    return same == 0 ? name : fmt::format("{}_{}", name, same + 1);
  }

  static OpModule module_of(const Body& body) {
    if (std::holds_alternative<Attention>(body) || std::holds_alternative<LatentAttention>(body)) {
      return OpModule::attention;
    }
    if (std::holds_alternative<Mlp>(body)) return OpModule::mlp;
    return std::holds_alternative<Experts>(body) ? OpModule::experts : OpModule::mixer;
  }

  TensorId run(const Branch& branch, TensorId x) {
    const auto run_body = [&](const Body& body) {
      const GraphBuilder::Within module(c_.g, module_of(body));
      return std::visit([&](const auto& what) { return add(c_, what, x); }, body);
    };
    TensorId out = run_body(branch.body);
    if (branch.beside) {
      out = c_.g.elementwise(Function::add, c_.inside("beside"), {out, run_body(*branch.beside)});
    }
    if (branch.after.exists()) {
      out = c_.norm(branch.after, c_.inside(branch.after.name), out, {c_.hidden});
    }
    if (!branch.scale.empty()) {
      const TensorId scale = c_.g.parameter(c_.inside(branch.scale), {{c_.hidden}});
      out = c_.g.elementwise(Function::multiply, c_.inside(branch.scale), {out, scale});
    }
    if (branch.multiplied) {
      const std::string name = fmt::format("{}.multiplied", c_.g.name_of(out));
      out = c_.g.elementwise(Function::scale, name, {out});
    }
    return c_.dropped(c_.g.name_of(out) + ".dropout", out,
                      std::max(branch.dropout, rate_of_result(branch.body)));
  }

  // Dropout that a body's module has of its own. Nobody has it twice.
  static double rate_of_result(const Body& body) {
    if (const auto* attention = std::get_if<Attention>(&body)) return attention->out_dropout;
    const auto* mlp = std::get_if<Mlp>(&body);
    return mlp == nullptr ? 0 : mlp->dropout;
  }

  TensorId head() {
    c_.g.begin_block("head");
    const std::string name = stack_.norm.exists() ? stack_.norm.name : head_.name;
    const TensorId x = c_.g.carry_in(name + ".input");
    if (c_.options.mtp_layers == 0) return loss_of(x, name, no_tensor, "loss");
    const TensorId labels = labels_input("labels");
    TensorId states = x;
    TensorId tokens = labels;
    for (std::int64_t i = 0; i < c_.options.mtp_layers; ++i) predict_further(i, states, tokens);
    return loss_of(x, name, labels, "loss");
  }

  TensorId labels_input(const std::string& name) {
    return c_.g.input(name, c_.options.index_dtype, {{c_.batch}, {c_.sequence}});
  }

  // A module of multi-token prediction (DeepSeek-V3, arXiv:2412.19437, section 2.2): the states
  // before it and the next tokens' embeddings, each with a norm, are projected to one stream that
  // goes through a layer as the model's last, a norm and the head, which is the model's.
  void predict_further(std::int64_t i, TensorId& states, TensorId& tokens) {
    c_.refuse_if(!stack_.norm.exists() || stack_.fp32_residual || !embedding_.positions.empty() ||
                     !embedding_.project.empty() || !stack_.project.empty(),
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
    TensorId rows = c_.g.embedding(c_.inside("embed_tokens"), tokens, token_table(), c_.stream());
    if (embedding_.scaled) {
      rows = c_.g.elementwise(Function::scale, c_.inside("embed_tokens.scaled"), {rows});
    }
    const LabelId both = c_.label("states_and_tokens", 2 * stack_.hidden);
    const TensorId joined =
        c_.g.concatenate(c_.inside("joined"), {norm_of("enorm", rows), norm_of("hnorm", states)},
                         {{c_.batch}, {c_.sequence}, {both}}, {both, c_.hidden});
    TensorId x = c_.linear({c_.inside("eh_proj"), {c_.hidden}, {both}}, joined, c_.stream());
    x = c_.g.marked(x, StreamMark::stream);
    const LayerKind& kind = stack_.kinds[static_cast<std::size_t>(stack_.order.back())];
    states = kind.parallel ? parallel(kind, x) : sequential(kind, x);
    tokens = labels_input(fmt::format("labels_{}_further", i + 1));
    c_.g.further_loss(
        loss_of(states, c_.inside("shared_head.norm"), tokens, fmt::format("mtp_loss_{}", i + 1)));
  }

  // Of the states that the layers leave: norm, head, cross entropy with the labels, which enter
  // here unless they are given.
  TensorId loss_of(TensorId x, const std::string& name, TensorId labels, const std::string& loss) {
    if (stack_.fp32_residual) x = c_.g.cast(name + ".cast", x, c_.g.compute_dtype());
    if (stack_.norm.exists()) {
      x = c_.g.marked(c_.norm(stack_.norm, name, x, {c_.hidden}), StreamMark::branch);
    }
    LabelId rows = c_.sequence;
    if (c_.options.cache && *c_.options.sequence > 1) {
      rows = c_.label("last", 1);
      x = c_.g.slices(name + ".last", x, {{name + ".last", {{c_.batch}, {rows}, {c_.hidden}}}},
                      {c_.sequence, rows})
              .front();
    }
    LabelId width = c_.hidden;
    if (!stack_.project.empty()) {
      width = c_.label("embedding_width", stack_.project_width);
      x = c_.linear({stack_.project, {width}, {c_.hidden}}, x, {{c_.batch}, {rows}, {width}});
    }
    const TensorId weight = head_.tied_to.empty()
                                ? c_.g.parameter(head_.name + ".weight", {{c_.vocab}, {width}})
                                : token_table();
    const TensorId bias =
        head_.bias ? c_.g.parameter(head_.name + ".bias", {{c_.vocab}}) : no_tensor;
    TensorId logits = c_.g.linear(head_.name, x, weight, {{c_.batch}, {rows}, {c_.vocab}}, bias);
    if (head_.scaled) {
      logits = c_.g.elementwise(Function::scale, head_.name + ".scaled", {logits});
    }
    if (head_.soft_cap > 0) {
      logits = c_.g.elementwise(Function::soft_cap, head_.name + ".soft_cap", {logits});
    }
    if (c_.options.cache) return next_token(logits);
    if (labels == no_tensor) labels = labels_input("labels");
    return c_.g.cross_entropy(c_.g.cast(loss + ".logits", logits, DType::f32), labels, c_.vocab,
                              loss);
  }

  // The likeliest, of whole logits.
  TensorId next_token(TensorId logits) {
    return c_.g.top_k("next_token", logits, c_.vocab, c_.label("one", 1)).first;
  }

  const Stack& stack_;
  const TokenEmbedding& embedding_;
  const Head& head_;
  GraphContext c_;
};

}  // namespace

bool is_decoder(const ModelSpec& spec) { return !what_is_no_decoder(spec); }

void require_decoder(const ModelSpec& spec, const Place& place) {
  const auto component = what_is_no_decoder(spec);
  if (component) throw_no_graph(spec, place, *component);
}

Workload build_decoder_graph(const ModelSpec& spec, const WorkloadOptions& options,
                             const Place& place) {
  require_decoder(spec, place);
  return DecoderGraph(spec, options, place).build();
}

}  // namespace shardsim::models
