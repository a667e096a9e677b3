#include <algorithm>
#include <utility>

#include "workloads/models/graph/graph_context.hpp"
#include "workloads/models/graph/key_index_graph.hpp"

// Down to a latent, a norm, up to heads (DeepSeek-V2, arXiv:2405.04434), as Megatron splits it:
// what makes latents is whole on every device, what makes heads of them is split by heads.
//
//   q_a, kv_a         x[b, s, hidden] -> [b, s, q_rank], [b, s, kv_rank + rope]
//   q_b, kv_b         -> [b, s, heads, nope + rope], [b, s, heads, nope + value]
//   rope              of the last parts of q and of kv_a, which all heads have in common
//   attention         keys of nope + rope, values of their own size
//
// Split latents (Megatron-Core's local specification, multi_latent_attention.py): what makes them
// is split by their numbers, as other first products are, and each reads the stream by itself; what
// it makes is gathered whole, and under sequence parallelism cut again for norm and product behind:
//
//   q_a, cut, kv_a, cut, norm, q_b, norm, kv_b        kv_a, cut, q, norm, kv_b
//
// Turned parts of keys are read whole, and nobody adds up the gradients that devices have of them.
//
// Steps of inference keep latents and turned parts of keys, (kv_rank + rope) numbers a token, which
// every device has whole. A prefill computes as above. A decoding step attends to latents as they
// lie: kv_b_proj's two halves are multiplied into queries and results instead (DeepSeek-V2, section
// 2.1.2; vLLM 0.11, v1/attention/backends/mla/common.py), in the compute type:
//
//   keys of kv_b      q_nope[b, s, heads, nope] -> [b, s, heads, kv_rank]; rope's part behind it
//   attention         keys of kv_rank + rope that all heads have in common, values their first part
//   values of kv_b    -> [b, s, heads, value]
namespace shardsim::models {
namespace {

class LatentAttentionGraph {
 public:
  LatentAttentionGraph(GraphContext& c, const LatentAttention& a)
      : c_(c),
        a_(a),
        at_(c.inside(a.name)),
        heads_(c.label("heads", a.heads, LabelRole::heads)),
        qk_(c.label("qk_dim", a.nope_dim + a.rope_dim)),
        nope_(c.label("nope_dim", a.nope_dim)),
        rope_(a.rope_dim > 0 ? c.label("rope_dim", a.rope_dim) : nope_),
        value_(c.label("value_dim", a.value_dim)) {}

  TensorId build(TensorId x) {
    const TensorId out = opened(x, c_.is_decoding() ? absorbed(x) : expanded(x));
    const GraphBuilder::Within part(c_.g, OpPart::out_projection);
    return c_.linear({inside("o_proj"), {c_.hidden}, {heads_, value_}, a_.bias}, out, c_.stream());
  }

 private:
  struct Heads {
    TensorId q, k, v;
  };
  struct KeyLatent {
    TensorId latent = no_tensor, rope = no_tensor;
  };

  TensorId expanded(TensorId x) {
    const Heads heads = heads_of(x);
    c_.refuse_if(a_.chosen > 0 && c_.options.documents, "documents beside an index of keys");
    return c_.g.attention(at_ + ".attention", heads.q, heads.k, heads.v, qk_,
                          {{c_.sequence, c_.key_sequence}},
                          {.fraction = c_.seen_pairs(attention_fraction, a_.chosen),
                           .documents = c_.documents_of_sequence(),
                           .added = sinks(),
                           .value_dim = value_,
                           .drops = c_.drops(a_.dropout)});
  }

  TensorId absorbed(TensorId x) {
    TensorId q_nope = no_tensor;
    TensorId q_rope = no_tensor;
    split_queries(queries(x), q_nope, q_rope);
    const LabelId rank = c_.label("kv_rank", a_.kv_rank);
    const LabelId both = c_.label("kv_a", a_.kv_rank + a_.rope_dim);
    KeyLatent down = key_latent(x, rank);
    if (a_.turned) turn(c_, rotary(), at_, rope_, q_rope, down.rope);
    const auto [keys, tokens] = chosen(keep(down), both);
    const TensorId values =
        c_.g.slices(at_ + ".latents.values", keys,
                    {{at_ + ".latents.values", {{c_.batch}, {tokens}, {rank}}}}, {both, rank})
            .front();
    const std::string up = inside("kv_b_proj");
    const LabelId up_rows = c_.label("kv_b", a_.nope_dim + a_.value_dim);
    const std::vector<TensorId> halves =
        c_.g.slices(up + ".halves", c_.g.parameter(up + ".weight", {{heads_, up_rows}, {rank}}),
                    {{up + ".of_keys", {{heads_, nope_}, {rank}}},
                     {up + ".of_values", {{heads_, value_}, {rank}}}},
                    {up_rows, nope_, value_});
    TensorId q = c_.g.concatenate(
        at_ + ".query", {c_.g.linear(up + ".keys", q_nope, halves[0], by_heads(rank)), q_rope},
        by_heads(both), {both, rank, rope_});
    c_.refuse_if(!a_.learned_scale.empty(), "a decoding step of queries with a learned scale");
    q = scaled_query(q);
    const TensorId out =
        c_.g.attention(at_ + ".attention", q, keys, values, both, {{tokens, tokens}},
                       {.added = sinks(), .value_dim = rank, .merges = true});
    return c_.g.linear(up + ".values", out, halves[1], by_heads(value_));
  }

  // The result times what a gate of x lets through.
  TensorId opened(TensorId x, TensorId out) {
    if (a_.gated_queries) {
      const TensorId wide = c_.g.cast(at_ + ".gate_fp32", gate_, DType::f32);
      const TensorId open = c_.g.elementwise(Function::sigmoid, at_ + ".gate_open", {wide});
      return c_.g.cast(at_ + ".gated_cast",
                       c_.g.elementwise(Function::multiply, at_ + ".gated", {out, open}),
                       c_.g.compute_dtype());
    }
    if (a_.gate.empty()) return out;
    const std::string name = inside(a_.gate);
    if (a_.gate_per_head) {
      const Dims rows{{c_.batch}, {c_.sequence}, {heads_}};
      const TensorId gate = c_.linear({name, {heads_}, {c_.hidden}}, own(a_.gate, x), rows);
      const TensorId wide = a_.narrow_gate ? gate : c_.g.cast(name + ".fp32", gate, DType::f32);
      const TensorId open = c_.g.elementwise(Function::sigmoid, name + ".open", {wide});
      return c_.g.elementwise(Function::multiply, at_ + ".gated",
                              {out, c_.g.cast(name + ".bf16", open, c_.g.compute_dtype())});
    }
    const TensorId gate =
        c_.linear({name, {heads_, value_}, {c_.hidden}}, own(a_.gate, x), by_heads(value_));
    const TensorId open = c_.g.elementwise(Function::sigmoid, name + ".open", {gate});
    return c_.g.elementwise(Function::multiply, at_ + ".gated", {out, open});
  }

  TensorId sinks() { return a_.sinks ? c_.g.parameter(inside("sinks"), {{heads_}}) : no_tensor; }

  // Of those that are kept: the kernel reads them where they lie.
  std::pair<TensorId, LabelId> chosen(TensorId keys, LabelId width) {
    const LabelId all = c_.seen_tokens();
    if (a_.chosen == 0 || a_.chosen >= c_.g.label_size(all)) return {keys, all};
    const LabelId tokens = c_.label("chosen_tokens", a_.chosen, LabelRole::key_sequence);
    const std::string name = at_ + ".latents.chosen";
    const Dims dims{{c_.batch}, {tokens}, {width}};
    return {c_.g.slices(name, keys, {{name, dims}}, {all, tokens}).front(), tokens};
  }

  // Latents, and turned parts of keys behind them.
  TensorId keep(const KeyLatent& down) {
    const LabelId both = c_.label("kv_a", a_.kv_rank + a_.rope_dim);
    if (down.rope == no_tensor) {
      return c_.keep(at_ + ".latents", {down.latent}, c_.g.dims_of(down.latent));
    }
    return c_.keep(at_ + ".latents", {down.latent, down.rope}, {{c_.batch}, {c_.sequence}, {both}});
  }

  [[nodiscard]] Rotary rotary() const {
    return {.dims = a_.rope_dim,
            .table = a_.table,
            .complex = a_.complex_rotary,
            .fp32 = a_.fp32_rotary};
  }

  [[nodiscard]] bool splits() const { return c_.options.split_latents && !c_.options.cache; }

  // As a product or what stands between products reads it.
  TensorId view(const std::string& name, TensorId x, StreamMark mark) {
    if (!splits()) return x;
    return c_.g.marked(c_.g.slices(name, x, {{name, c_.g.dims_of(x)}}, {}).front(), mark);
  }
  // Gathered for one product.
  TensorId own(const std::string& product, TensorId x) {
    return view(inside(product) + ".input", x, StreamMark::branch);
  }

  // The latent of a product, whole on every device.
  TensorId latent_of(const std::string& product, TensorId x, LabelId rank) {
    const std::string name = inside(product);
    const Dims whole{{c_.batch}, {c_.sequence}, {rank}};
    x = own(product, x);
    if (!splits()) return c_.linear({name, {rank}, {c_.hidden}, a_.bias}, x, whole);
    const LabelId parts = c_.label(product, c_.g.label_size(rank), LabelRole::width);
    const TensorId made =
        c_.linear({name, {parts}, {c_.hidden}, a_.bias}, x, {{c_.batch}, {c_.sequence}, {parts}});
    return c_.g.marked(
        c_.g.slices(name + ".whole", made, {{name + ".whole", whole}}, {parts, rank}).front(),
        StreamMark::branch);
  }
  // Of it what lies between products.
  TensorId cut(const std::string& name, TensorId latent) {
    return view(name, latent, StreamMark::stream);
  }
  // What a norm leaves, gathered for the product behind it.
  TensorId gathered(const std::string& product, TensorId latent) {
    return view(inside(product) + ".input", latent, StreamMark::branch);
  }

  // Without its norm.
  KeyLatent key_parts(TensorId x, LabelId rank) {
    const LabelId both = c_.label("kv_a", a_.kv_rank + a_.rope_dim);
    const TensorId latent = latent_of("kv_a_proj_with_mqa", x, both);
    if (a_.rope_dim == 0) {
      const Dims dims{{c_.batch}, {c_.sequence}, {rank}};
      const std::string name = at_ + ".latent";
      return {c_.g.slices(name, latent, {{name, dims}}, {both, rank}).front(), no_tensor};
    }
    const std::vector<TensorId> parts =
        c_.g.slices(at_ + ".kv_a.parts", latent,
                    {{at_ + ".latent", {{c_.batch}, {c_.sequence}, {rank}}},
                     {at_ + ".k_rope", {{c_.batch}, {c_.sequence}, {rope_}}}},
                    {both, rank, rope_});
    if (splits()) {
      for (const TensorId part : parts) c_.g.marked(part, StreamMark::branch);
    }
    TensorId turned = parts[1];
    if (a_.rope_norm.exists())
      turned = c_.norm(a_.rope_norm, inside(a_.rope_norm.name), turned, {rope_});
    return {cut(at_ + ".latent.part", parts[0]), turned};
  }
  TensorId key_norm(TensorId latent, LabelId rank) {
    const GraphBuilder::Within part(c_.g, OpPart::key_latent);
    return scaled(norm("kv_a_layernorm", latent, rank));
  }
  KeyLatent key_latent(TensorId x, LabelId rank) {
    const GraphBuilder::Within part(c_.g, OpPart::key_latent);
    const KeyLatent parts = key_parts(x, rank);
    return {key_norm(parts.latent, rank), parts.rope};
  }

  Heads heads_of(TensorId x) {
    TensorId q_nope = no_tensor;
    TensorId q_rope = no_tensor;
    const LabelId rank = c_.label("kv_rank", a_.kv_rank);
    KeyLatent down;
    if (splits() || c_.options.latents_first) {
      const bool narrow = a_.q_rank > 0;
      TensorId query = narrow ? query_latent(x) : no_tensor;
      down = [&] {
        const GraphBuilder::Within part(c_.g, OpPart::key_latent);
        return key_parts(x, rank);
      }();
      if (narrow) query = query_norm(query);
      down.latent = key_norm(down.latent, rank);
      split_queries(narrow ? raised(query, x) : queries(x), q_nope, q_rope);
    } else {
      split_queries(queries(x), q_nope, q_rope);
      down = key_latent(x, rank);
    }
    TensorId k_rope = down.rope;
    const GraphBuilder::Within part(c_.g, OpPart::from_latents);
    if (a_.turned) turn(c_, rotary(), at_, rope_, q_rope, k_rope);
    if (splits() && k_rope != no_tensor) c_.g.leave_gradient_apart(k_rope);
    if (c_.options.cache) static_cast<void>(keep({down.latent, k_rope}));
    const LabelId up = c_.label("kv_b", a_.nope_dim + a_.value_dim);
    const TensorId expanded = c_.linear({inside("kv_b_proj"), {heads_, up}, {rank}},
                                        gathered("kv_b_proj", down.latent), by_heads(up));
    const std::vector<TensorId> keys_values =
        c_.g.slices(at_ + ".kv_b.parts", expanded,
                    {{at_ + ".k_nope", by_heads(nope_)}, {at_ + ".value", by_heads(value_)}},
                    {up, nope_, value_});
    const TensorId k_all = k_rope == no_tensor
                               ? no_tensor
                               : c_.g.expand(at_ + ".k_rope.heads", k_rope, by_heads(rope_));
    const TensorId query = scaled_query(joined(at_ + ".query", q_nope, q_rope));
    return {query, joined(at_ + ".key", keys_values[0], k_all), keys_values[1]};
  }

  [[nodiscard]] std::string inside(const std::string& name) const {
    return GraphContext::inside(at_, name);
  }
  [[nodiscard]] Dims by_heads(LabelId last) const {
    return {{c_.batch}, {c_.sequence}, {heads_}, {last}};
  }

  TensorId norm(const std::string& name, TensorId x, LabelId over) {
    return c_.norm(a_.norm, inside(name), x, {over});
  }

  TensorId queries(TensorId x) {
    if (a_.q_rank == 0) {
      if (a_.index) choose_keys(c_, a_, at_, x, x, c_.hidden);
      const GraphBuilder::Within part(c_.g, OpPart::from_latents);
      return c_.linear({inside("q_proj"), {heads_, qk_}, {c_.hidden}}, own("q_proj", x),
                       by_heads(qk_));
    }
    return raised(query_norm(query_latent(x)), x);
  }
  // Without its norm.
  TensorId query_latent(TensorId x) {
    const GraphBuilder::Within part(c_.g, OpPart::query_latent);
    return cut(at_ + ".query_latent", latent_of("q_a_proj", x, c_.label("q_rank", a_.q_rank)));
  }
  TensorId query_norm(TensorId query) {
    unnormed_ = query;
    const GraphBuilder::Within part(c_.g, OpPart::query_latent);
    return norm("q_a_layernorm", query, c_.label("q_rank", a_.q_rank));
  }
  TensorId raised(TensorId latent, TensorId x) {
    const LabelId rank = c_.label("q_rank", a_.q_rank);
    if (a_.index) choose_keys(c_, a_, at_, x, latent, rank);
    if (a_.gated_queries) return raised_with_gate(latent, rank);
    const GraphBuilder::Within part(c_.g, OpPart::from_latents);
    return c_.linear({inside("q_b_proj"), {heads_, qk_}, {rank}}, gathered("q_b_proj", latent),
                     by_heads(qk_));
  }

  TensorId raised_with_gate(TensorId latent, LabelId rank) {
    c_.refuse_if(splits(), "split latents of gated queries");
    const GraphBuilder::Within part(c_.g, OpPart::from_latents);
    const LabelId two = c_.label("q_gate_latent", 2 * a_.q_rank);
    const LabelId both = c_.label("q_gate", a_.nope_dim + a_.rope_dim + a_.value_dim);
    const TensorId wide = c_.g.concatenate(at_ + ".q_gate_latent", {latent, unnormed_},
                                           {{c_.batch}, {c_.sequence}, {two}}, {two, rank});
    const TensorId made =
        c_.linear({inside("q_gate_proj"), {heads_, both}, {two}}, wide, by_heads(both));
    const std::vector<TensorId> parts = c_.g.slices(
        at_ + ".q_gate.parts", made,
        {{at_ + ".raised", by_heads(qk_)}, {at_ + ".gate", by_heads(value_)}}, {both, qk_, value_});
    gate_ = parts[1];
    return parts[0];
  }

  void split_queries(TensorId q, TensorId& q_nope, TensorId& q_rope) {
    const GraphBuilder::Within part(c_.g, OpPart::from_latents);
    if (a_.rope_dim == 0) {
      q_nope = q;
      return;
    }
    const std::vector<TensorId> parts =
        c_.g.slices(at_ + ".query.parts", q,
                    {{at_ + ".q_nope", by_heads(nope_)}, {at_ + ".q_rope_in", by_heads(rope_)}},
                    {qk_, nope_, rope_});
    q_nope = scaled(parts[0]);
    q_rope = scaled(parts[1]);
  }

  TensorId scaled(TensorId x) {
    return a_.scaled ? c_.g.elementwise(Function::scale, c_.g.name_of(x) + ".scaled", {x}) : x;
  }

  TensorId scaled_query(TensorId q) {
    if (a_.scale_by_position) q = scale_by_position(c_, at_ + ".q_scaled", q);
    if (a_.learned_scale.empty()) return q;
    const std::string at = inside(a_.learned_scale);
    const Dim heads{heads_};
    TensorId factors = c_.g.constant(at + ".places", c_.g.compute_dtype(), {{c_.sequence}, heads});
    factors = c_.g.elementwise(Function::multiply, at + ".scaled",
                               {factors, c_.g.parameter(at + ".scale", {heads})});
    factors = c_.g.elementwise(Function::add, at + ".moved",
                               {factors, c_.g.parameter(at + ".bias", {heads})});
    return c_.g.elementwise(Function::multiply, at_ + ".q_scaled", {q, factors});
  }

  TensorId joined(const std::string& name, TensorId nope, TensorId rope) {
    if (rope == no_tensor) return nope;
    return c_.g.concatenate(name, {nope, rope}, by_heads(qk_), {qk_, nope_, rope_});
  }

  GraphContext& c_;
  const LatentAttention& a_;
  std::string at_;
  LabelId heads_, qk_, nope_, rope_, value_;
  TensorId unnormed_ = no_tensor, gate_ = no_tensor;  // of gated queries
};

}  // namespace

TensorId add(GraphContext& c, const LatentAttention& a, TensorId x) {
  return LatentAttentionGraph(c, a).build(x);
}

}  // namespace shardsim::models
