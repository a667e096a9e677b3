#include "workloads/models/graph/graph_context.hpp"

// Down to a latent, a norm, up to heads (DeepSeek-V2, arXiv:2405.04434), as Megatron splits it:
// what makes latents is whole on every device, what makes heads of them is split by heads.
//
//   q_a, kv_a         x[b, s, hidden] -> [b, s, q_rank], [b, s, kv_rank + rope]
//   q_b, kv_b         -> [b, s, heads, nope + rope], [b, s, heads, nope + value]
//   rope              of the last parts of q and of kv_a, which all heads have in common
//   attention         keys of nope + rope, values of their own size
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
        rope_(c.label("rope_dim", a.rope_dim)),
        value_(c.label("value_dim", a.value_dim)) {}

  TensorId build(TensorId x) {
    const Heads heads = heads_of(x);
    const TensorId out = c_.g.attention(at_ + ".attention", heads.q, heads.k, heads.v, qk_,
                                        {{c_.sequence, c_.key_sequence}},
                                        {.fraction = attention_fraction(0, *c_.options.sequence),
                                         .value_dim = value_,
                                         .drops = c_.drops(a_.dropout)});
    const GraphBuilder::Within part(c_.g, OpPart::out_projection);
    return c_.linear({inside("o_proj"), {c_.hidden}, {heads_, value_}, a_.bias}, out, c_.stream());
  }

 private:
  struct Heads {
    TensorId q, k, v;
  };
  struct KeyLatent {
    TensorId latent, rope;
  };

  KeyLatent key_latent(TensorId x, LabelId rank) {
    const GraphBuilder::Within part(c_.g, OpPart::key_latent);
    const LabelId both = c_.label("kv_a", a_.kv_rank + a_.rope_dim);
    const TensorId down = c_.linear({inside("kv_a_proj_with_mqa"), {both}, {c_.hidden}, a_.bias}, x,
                                    {{c_.batch}, {c_.sequence}, {both}});
    const std::vector<TensorId> parts =
        c_.g.slices(at_ + ".kv_a.parts", down,
                    {{at_ + ".latent", {{c_.batch}, {c_.sequence}, {rank}}},
                     {at_ + ".k_rope", {{c_.batch}, {c_.sequence}, {rope_}}}},
                    {both, rank, rope_});
    return {norm("kv_a_layernorm", parts[0], rank), parts[1]};
  }

  Heads heads_of(TensorId x) {
    TensorId q_nope = no_tensor;
    TensorId q_rope = no_tensor;
    split_queries(queries(x), q_nope, q_rope);
    const LabelId rank = c_.label("kv_rank", a_.kv_rank);
    const KeyLatent down = key_latent(x, rank);
    TensorId k_rope = down.rope;
    const GraphBuilder::Within part(c_.g, OpPart::from_latents);
    turn(c_, {.dims = a_.rope_dim, .complex = a_.complex_rotary}, at_, rope_, q_rope, k_rope);
    const LabelId up = c_.label("kv_b", a_.nope_dim + a_.value_dim);
    const TensorId expanded =
        c_.linear({inside("kv_b_proj"), {heads_, up}, {rank}}, down.latent, by_heads(up));
    const std::vector<TensorId> keys_values =
        c_.g.slices(at_ + ".kv_b.parts", expanded,
                    {{at_ + ".k_nope", by_heads(nope_)}, {at_ + ".value", by_heads(value_)}},
                    {up, nope_, value_});
    const TensorId k_all = c_.g.expand(at_ + ".k_rope.heads", k_rope, by_heads(rope_));
    return {joined(at_ + ".query", q_nope, q_rope), joined(at_ + ".key", keys_values[0], k_all),
            keys_values[1]};
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
      const GraphBuilder::Within part(c_.g, OpPart::from_latents);
      return c_.linear({inside("q_proj"), {heads_, qk_}, {c_.hidden}}, x, by_heads(qk_));
    }
    const LabelId rank = c_.label("q_rank", a_.q_rank);
    const TensorId latent = [&] {
      const GraphBuilder::Within part(c_.g, OpPart::query_latent);
      const TensorId down = c_.linear({inside("q_a_proj"), {rank}, {c_.hidden}, a_.bias}, x,
                                      {{c_.batch}, {c_.sequence}, {rank}});
      return norm("q_a_layernorm", down, rank);
    }();
    const GraphBuilder::Within part(c_.g, OpPart::from_latents);
    return c_.linear({inside("q_b_proj"), {heads_, qk_}, {rank}}, latent, by_heads(qk_));
  }

  void split_queries(TensorId q, TensorId& q_nope, TensorId& q_rope) {
    const GraphBuilder::Within part(c_.g, OpPart::from_latents);
    const std::vector<TensorId> parts =
        c_.g.slices(at_ + ".query.parts", q,
                    {{at_ + ".q_nope", by_heads(nope_)}, {at_ + ".q_rope_in", by_heads(rope_)}},
                    {qk_, nope_, rope_});
    q_nope = parts[0];
    q_rope = parts[1];
  }

  TensorId joined(const std::string& name, TensorId nope, TensorId rope) {
    return c_.g.concatenate(name, {nope, rope}, by_heads(qk_), {qk_, nope_, rope_});
  }

  GraphContext& c_;
  const LatentAttention& a_;
  std::string at_;
  LabelId heads_, qk_, nope_, rope_, value_;
};

}  // namespace

TensorId add(GraphContext& c, const LatentAttention& a, TensorId x) {
  c.refuse_if(c.options.cache.has_value(), "inference with latent attention");
  return LatentAttentionGraph(c, a).build(x);
}

}  // namespace shardsim::models
