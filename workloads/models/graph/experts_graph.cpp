#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/models/graph/graph_context.hpp"

// A token's rows are [batch, sequence, choice, ...]: a copy for each expert that it visits, sorted
// by expert in memory. A product of them multiplies each row with the matrix of one expert: of the
// space (rows x experts x in x out) the share 1 / experts is computed, 2 rows in out operations
// whatever the routing. The kernel reads the matrices of the experts that some token visits.
//
// Example: Mixtral 8x7B, T tokens: choice 2, experts 8, 2 * 2T * 4096 * 28672 for gate and up.
//
// Where experts lie on different devices rows are exchanged before the first product and after the
// last: between these they are [experts, slots, ...], of which each device has its experts.
namespace shardsim::models {
namespace {

struct ExpertLabels {
  LabelId experts;
  LabelId choice;
  LabelId width;
  LabelId slots;  // of an expert; of rows that are exchanged
  LabelId row;    // what experts read and give
};

struct Routed {
  TensorId weights = no_tensor;  // [batch, sequence, choice]
  TensorId numbers = no_tensor;  // of the experts, likewise
};

class ExpertsGraph {
 public:
  ExpertsGraph(GraphContext& c, const Experts& m)
      : c_(c),
        m_(m),
        at_(c.inside(m.name)),
        n_{c.label("experts", m.experts, LabelRole::experts),
           c.label("choice", m.per_token, LabelRole::expert_tokens),
           c.label("ffn", m.width, LabelRole::width),
           c.options.exchange ? c.slots(slots_for(load()), needed(), m.held) : 0,
           m.latent > 0 ? c.label("expert_latent", m.latent) : c.hidden} {}

  TensorId build(TensorId x) {
    note_balance();
    const auto& exchange = c_.options.exchange;
    const bool has_shared = m_.shared && m_.shared->width > 0;
    const bool beside = has_shared && exchange && exchange->shared_beside;
    const bool first = has_shared && exchange && exchange->shared_first && !beside;
    TensorId shared = first ? run_shared(x) : no_tensor;
    const Routed routed = route(x);
    const TensorId rows = m_.rows_norm.exists()
                              ? c_.norm(m_.rows_norm, inside(m_.rows_norm.name), x, {c_.hidden})
                              : x;
    TensorId out = run_experts(rows, routed, beside ? &shared : nullptr);
    if (m_.result_scaled) out = c_.g.elementwise(Function::scale, inside("times"), {out});
    if (!has_shared) return out;
    if (shared == no_tensor) shared = run_shared(x);
    const TensorId sum = c_.g.elementwise(Function::add, inside("sum"), {out, shared});
    return m_.shared_averaged ? c_.g.elementwise(Function::scale, inside("average"), {sum}) : sum;
  }

  // Of attention: each token's queries and outputs are of the experts that it visits; keys and
  // values are common to all. Its experts stay where they are, however those of layers lie.
  TensorId attend(const AttentionExperts& a, TensorId x) {
    c_.refuse_if(c_.options.cache.has_value(), "inference of a mixture of attention heads");
    n_.experts = c_.label("attention_experts", a.experts);
    n_.choice = c_.label("attention_choice", a.per_token, LabelRole::head_group);
    note_balance();
    const std::string at = c_.inside(a.name);
    const LabelId heads = c_.label("kv_heads", a.kv_heads, LabelRole::heads);
    const LabelId dim = c_.label("head_dim", a.head_dim);
    const Routed routed = route(x);
    const TensorId rows =
        c_.g.dispatch(at_ + ".dispatch", x, routed.numbers, rows_of({c_.hidden}), n_.choice);
    TensorId q = product("input_linear.weight", rows, {heads, dim}, {c_.hidden},
                         {{c_.batch}, {c_.sequence}, {n_.choice}, {heads}, {dim}});
    const LabelId two = c_.label("key_value", 2);
    const TensorId both = c_.linear({at + ".kv_proj", {two, heads, dim}, {c_.hidden}}, x,
                                    {{c_.batch}, {c_.sequence}, {two}, {heads}, {dim}});
    const std::vector<TensorId> parts = c_.g.split({at + ".key", at + ".value"}, both, two);
    TensorId k = parts[0];
    turn(c_, a.rotary, at, dim, q, k);
    const TensorId out =
        c_.g.attention(at + ".attention", q, k, parts[1], dim, {{c_.sequence, c_.key_sequence}},
                       {.fraction = c_.seen_pairs(attention_fraction, 0),
                        .documents = c_.documents_of_sequence(),
                        .drops = c_.drops(a.dropout)});
    const TensorId made =
        product("output_linear.weight", out, {c_.hidden}, {heads, dim}, rows_of({c_.hidden}));
    const TensorId sum = c_.g.combine(at_ + ".combine", made, routed.numbers, routed.weights,
                                      c_.stream(), n_.choice);
    const TensorId bias = c_.g.parameter(inside("bias"), {{c_.hidden}});
    return c_.g.elementwise(Function::add, inside("bias") + ".added", {sum, bias});
  }

 private:
  void note_balance() {
    if (c_.options.exchange && load() != 1) return;
    c_.note(
        fmt::format("routing is taken as balanced: each of {} experts sees {} rows of {} tokens",
                    m_.experts, m_.per_token, m_.experts));
  }
  [[nodiscard]] std::string inside(const std::string& name) const {
    return GraphContext::inside(at_, name);
  }
  [[nodiscard]] Dims rows_of(const Dim& last) const {
    return {{c_.batch}, {c_.sequence}, {n_.choice}, last};
  }
  [[nodiscard]] Dims latent_rows() const { return {{c_.batch}, {c_.sequence}, {n_.row}}; }
  // As experts compute with them.
  [[nodiscard]] Dims experts_rows() const {
    if (c_.options.exchange) return {{n_.experts}, {n_.slots}};
    return {{c_.batch}, {c_.sequence}, {n_.choice}};
  }
  [[nodiscard]] std::int64_t tokens() const {
    return c_.options.batch * c_.g.label_size(c_.sequence);
  }
  // Of each expert, rounded up.
  [[nodiscard]] std::int64_t slots_for(double load) const {
    const double rows = static_cast<double>(tokens() * m_.per_token) * load;
    return static_cast<std::int64_t>(std::ceil(rows / static_cast<double>(m_.experts)));
  }
  // The model asks for the rows of an even routing, whoever computes them.
  [[nodiscard]] double needed() const {
    const auto even = static_cast<double>(slots_for(1));
    return std::min(1.0, even / static_cast<double>(slots_for(load())));
  }
  [[nodiscard]] double load() const { return m_.load > 0 ? m_.load : c_.options.exchange->rows; }

  // Scores of all experts, the largest, and what is made of them.
  Routed route(TensorId x) {
    const Router& r = m_.router;
    const std::string at = inside(r.name);
    x = read_by_router(x);
    const auto told = c_.options.exchange ? c_.options.exchange->router_dtype : std::nullopt;
    const bool wide = told ? *told == DType::f32 : r.fp32 || r.fp32_weight;
    if (r.fp32_weight) {
      c_.note("weights of routers are kept in the step's type of parameters; the model has fp32");
    }
    const DType dtype = wide ? DType::f32 : c_.g.compute_dtype();
    if (wide) x = c_.g.cast(at + ".input", x, dtype);
    const LabelId all = m_.zeros > 0 ? c_.label("routed_to", m_.routed_to()) : n_.experts;
    const TensorId weight = c_.g.parameter(at + ".weight", {{all}, {c_.hidden}});
    const TensorId bias = r.bias ? c_.g.parameter(at + ".bias", {{all}}) : no_tensor;
    TensorId scores = c_.g.linear(at, x, weight, {{c_.batch}, {c_.sequence}, {all}}, bias, dtype);
    const bool softmax_of_all = r.scores == RouterScores::softmax && r.fp32_softmax.value_or(true);
    if (r.fp32_logits || softmax_of_all) {
      scores = c_.g.cast(at + ".logits", scores, DType::f32);
    }
    if (r.scores == RouterScores::sparse_mixer) {
      c_.note("the router's sparse mixer is taken as one softmax; its noise is left out");
    }
    if (r.scores == RouterScores::softmax || r.scores == RouterScores::sparse_mixer) {
      scores = c_.g.over_label(Function::softmax, at + ".softmax", scores, all);
    } else if (r.scores == RouterScores::sigmoid) {
      scores = c_.g.elementwise(Function::sigmoid, at + ".sigmoid", {scores});
    } else if (r.scores == RouterScores::sqrt_softplus) {
      scores = c_.g.elementwise(Function::softplus, at + ".softplus", {scores});
    }
    keep_table(at);
    scores = corrected(at, scores);
    // Which groups are looked at is of a few numbers a token; what they leave is a pass over all.
    if (r.masked) scores = c_.g.elementwise(Function::scale, at + ".masked", {scores});
    const auto [largest, numbers] = c_.g.top_k(at + ".top_k", scores, all, n_.choice);
    TensorId weights = largest;
    if (r.scores == RouterScores::softmax_of_top) {
      if (r.fp32_softmax.value_or(false)) {
        weights = c_.g.cast(at + ".largest", weights, DType::f32);
      }
      weights = c_.g.over_label(Function::softmax, at + ".softmax", weights, n_.choice);
    } else if (r.scores == RouterScores::sigmoid_of_top ||
               r.scores == RouterScores::sigmoid_of_picked) {
      weights = c_.g.elementwise(Function::sigmoid, at + ".sigmoid", {weights});
    }
    if (r.renormalize != Renormalize::no) {
      weights = c_.g.over_label(Function::normalize, at + ".normalized", weights, n_.choice);
    }
    if (!r.expert_scale.empty()) {
      const std::string name = inside(r.expert_scale);
      const TensorId scales = c_.g.parameter(name, {{n_.experts}});
      const TensorId picked =
          c_.g.embedding(name + ".picked", numbers, scales, c_.g.dims_of(numbers));
      weights = c_.g.elementwise(Function::multiply, at + ".scaled_weights", {weights, picked});
    }
    // Those that travel keep the router's type.
    const bool stays_wide = wide && c_.options.exchange && c_.options.exchange->weights_travel;
    if (!stays_wide) weights = c_.g.cast(at + ".weights", weights, c_.g.compute_dtype());
    return {weights, numbers};
  }

  TensorId read_by_router(TensorId x) {
    const Router& r = m_.router;
    x = c_.norm(r.norm, inside(r.norm.name), x, {c_.hidden});
    if (r.scale.empty()) return x;
    const TensorId scale = c_.g.parameter(inside(r.scale), {{c_.hidden}});
    return c_.g.elementwise(Function::multiply, inside(r.scale) + ".product", {x, scale});
  }

  // Experts of each token's number, which lie in a table: it is read in the kernel that picks.
  void keep_table(const std::string& router) {
    const Router& r = m_.router;
    if (r.table.empty()) return;
    c_.note("experts that a table of tokens picks are read in the kernel that picks the largest");
    c_.g.buffer(GraphContext::inside(router, r.table), DType::i64,
                {{c_.label("token_numbers", r.table_rows)}, {n_.choice}});
  }

  // What moves the choice between experts; their weights are of the scores alone, which the kernel
  // of top_k reads instead.
  TensorId corrected(const std::string& router, TensorId scores) {
    const Router& r = m_.router;
    const std::string name = !r.correction_bias.empty()
                                 ? GraphContext::inside(router, r.correction_bias)
                             : m_.correction_bias.empty() ? ""
                                                          : inside(m_.correction_bias);
    if (name.empty()) return scores;
    TensorId bias = no_tensor;
    if (r.correction_is_parameter) {
      c_.note(
          "routers' correction biases are parameters that are not trained: no gradient, no "
          "optimizer state");
      bias = c_.g.untrained_parameter(
          name, r.correction_flat ? Dims{{n_.experts}} : Dims{{c_.label("one", 1)}, {n_.experts}});
    } else {
      const LabelId all = m_.zeros > 0 ? c_.label("routed_to", m_.routed_to()) : n_.experts;
      bias = c_.g.buffer(name, c_.g.compute_dtype(), {{all}});
    }
    return c_.g.elementwise(Function::add, router + ".corrected", {scores, bias});
  }

  // Each row with the matrix of its expert.
  TensorId product(const std::string& name, TensorId rows, const Dim& out, const Dim& in,
                   Dims result) {
    const TensorId matrices = c_.g.parameter(inside(name), {{n_.experts}, out, in});
    return c_.g.grouped_linear(inside(name), rows, matrices, std::move(result), n_.experts,
                               routing());
  }

  [[nodiscard]] Routing routing() const {
    return {.tokens = static_cast<double>(tokens()),
            .share = static_cast<double>(m_.per_token) / static_cast<double>(m_.experts)};
  }

  TensorId multiply(OpPart product, const std::string& name, TensorId rows, const Dim& out,
                    const Dim& in) {
    const GraphBuilder::Within part(c_.g, product);
    const std::string at = inside(GraphContext::inside(m_.experts_name, name));
    const TensorId matrices = m_.zeros > 0 && name == m_.gate_up
                                  ? read_matrices(at, out, in)
                                  : c_.g.parameter(at, dims_of(out, in));
    const TensorId bias = m_.bias ? c_.g.parameter(at + "_bias", {{n_.experts}, out}) : no_tensor;
    Dims result = experts_rows();
    for (const LabelId label : out) result.push_back({label});
    return c_.g.grouped_linear(at, rows, matrices, result, n_.experts, routing(), bias);
  }

  // Of a stack with those of zero experts the ones that are read: a view.
  TensorId read_matrices(const std::string& at, const Dim& out, const Dim& in) {
    const LabelId all = c_.label("routed_to", m_.routed_to());
    return c_.g
        .slices(at + ".read", c_.g.parameter(at, {{all}, out, in}),
                {{at + ".read", dims_of(out, in)}}, {all, n_.experts})
        .front();
  }

  // What zero experts give: what they get, times their weights.
  TensorId with_zeros(TensorId x, TensorId sum) {
    if (m_.zeros == 0) return sum;
    c_.note(
        fmt::format("of {} experts that a token visits {} give back what they get: one pass "
                    "over the tokens",
                    m_.visits(), m_.zeros_per_token));
    const std::string at = inside(m_.experts_name);
    const TensorId given = c_.g.elementwise(Function::scale, at + ".zero_experts", {x});
    return c_.g.elementwise(Function::add, at + ".with_zeros", {sum, given});
  }

  // Rows of all experts lie one after another where each has its own.
  [[nodiscard]] Dims dims_of(const Dim& out, const Dim& in) {
    if (m_.matrices == ExpertMatrices::rows) return {{n_.experts, n_.width}, {n_.row}};
    if (m_.matrices == ExpertMatrices::modules) {
      c_.note(
          "matrices of experts that are modules of their own are one stack, NAME of all "
          "experts.expert_{}.NAME.weight");
    }
    return m_.transposed ? Dims{{n_.experts}, in, out} : Dims{{n_.experts}, out, in};
  }

  TensorId gate_and_up(const std::string& at, TensorId rows) {
    const auto one = [&](const std::string& name) {
      return multiply(OpPart::first_product, name, rows, {n_.width}, {n_.row});
    };
    const TensorId gate = c_.activate(m_.activation, at + ".act_fn", one(m_.gate_apart));
    return c_.gated(at + ".product", gate, one(m_.gate_up));
  }

  TensorId inner(TensorId rows) {
    if (m_.gate == ExpertsGate::clamped || m_.gate == ExpertsGate::limited) {
      c_.note("the clamps of the experts' gates are done in the activation's kernel");
    }
    const std::string at = inside(m_.experts_name);
    if (m_.gate == ExpertsGate::plain) {
      const TensorId up = multiply(OpPart::first_product, m_.gate_up, rows, {n_.width}, {n_.row});
      return c_.activate(m_.activation, at + ".act", up);
    }
    if (!m_.gate_apart.empty()) return gate_and_up(at, rows);
    const LabelId two = c_.label("gate_up", 2);
    const TensorId both =
        multiply(OpPart::first_product, m_.gate_up, rows, {two, n_.width}, {n_.row});
    const std::vector<TensorId> parts = c_.g.split({at + ".gate", at + ".up"}, both, two);
    const auto as = [&](const char* name, TensorId x, DType dtype) {
      return m_.gate == ExpertsGate::wide ? c_.g.cast(at + name, x, dtype) : x;
    };
    const TensorId gate =
        c_.activate(m_.activation, at + ".act_fn", as(".gate_fp32", parts[0], DType::f32));
    const TensorId up = as(".up_fp32", parts[1], DType::f32);
    return as(".product_cast", c_.gated(at + ".product", gate, up), c_.g.compute_dtype());
  }

  // `beside`: shared experts are run between, and left there.
  TensorId run_experts(TensorId x, const Routed& routed, TensorId* beside) {
    const TensorId tokens = x;
    if (m_.latent > 0) {
      x = c_.linear({inside(m_.into_latent), {n_.row}, {c_.hidden}, m_.latent_bias}, x,
                    latent_rows());
    }
    const std::string at = inside(m_.experts_name);
    TensorId rows =
        c_.g.dispatch(at + ".dispatch", x, routed.numbers, rows_of({n_.row}), n_.choice);
    TensorId weights = routed.weights;
    const auto& exchange = c_.options.exchange;
    const bool travels = exchange && (exchange->weights_travel || m_.weights_on_input);
    if (exchange) {
      Dims by_expert = experts_rows();
      by_expert.push_back({n_.row});
      std::vector<GraphBuilder::Rows> sent = {{at + ".rows", rows, by_expert}};
      if (travels) sent.push_back({at + ".weights", weights, experts_rows()});
      const std::vector<TensorId> arrived = c_.g.exchange(at + ".exchange", sent, routed.numbers);
      rows = arrived.front();
      if (travels) weights = arrived.back();
    }
    const TensorId inner_of_shared = beside != nullptr ? begin_shared(tokens) : no_tensor;
    const auto weighted = [&](TensorId x) {
      return c_.g.elementwise(Function::multiply, at + ".weighted",
                              {x, std::exchange(weights, no_tensor)});
    };
    if (m_.weights_on_input) rows = weighted(rows);
    TensorId x_of_down = inner(rows);
    if (m_.inner_dropout > 0) {
      x_of_down = c_.dropped(at + ".inner_dropout", x_of_down, m_.inner_dropout);
    }
    if (travels && !m_.weights_on_input) {
      // One kernel with the activation, which the backward pass computes again.
      x_of_down = weighted(c_.g.remade(x_of_down));
    }
    TensorId out = multiply(OpPart::last_product, m_.down, x_of_down, {n_.row}, {n_.width});
    if (exchange) {
      out = c_.g.exchange(at + ".return", {{at + ".returned", out, rows_of({n_.row})}}).front();
    }
    if (beside != nullptr) *beside = end_shared(tokens, inner_of_shared);
    TensorId sum = c_.g.combine(at + ".combine", out, routed.numbers, weights,
                                m_.latent > 0 ? latent_rows() : c_.stream(), n_.choice);
    if (m_.latent > 0) {
      sum = c_.linear({inside(m_.out_of_latent), {c_.hidden}, {n_.row}, m_.latent_bias}, sum,
                      c_.stream());
    }
    sum = with_zeros(tokens, sum);
    if (m_.out_bias.empty()) return sum;
    const TensorId bias = c_.g.parameter(inside(m_.out_bias), {{c_.hidden}});
    return c_.g.elementwise(Function::add, inside(m_.out_bias) + ".added", {sum, bias});
  }

  TensorId run_shared(TensorId x) { return end_shared(x, begin_shared(x)); }
  TensorId begin_shared(TensorId x) { return begin_shared_experts(c_, m_, x); }
  TensorId end_shared(TensorId x, TensorId inner) { return end_shared_experts(c_, m_, x, inner); }

  GraphContext& c_;
  const Experts& m_;
  std::string at_;
  ExpertLabels n_;
};

}  // namespace

TensorId add(GraphContext& c, const Experts& m, TensorId x) { return ExpertsGraph(c, m).build(x); }

TensorId add(GraphContext& c, const AttentionExperts& a, TensorId x) {
  Experts picked;
  picked.name = GraphContext::inside(a.name, a.experts_name);
  picked.experts = a.experts;
  picked.per_token = a.per_token;
  picked.width = a.kv_heads * a.head_dim;
  picked.router = a.router;
  return ExpertsGraph(c, picked).attend(a, x);
}

}  // namespace shardsim::models
