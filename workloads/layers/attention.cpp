#include "workloads/layers/attention.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/layers/attention_kernel.hpp"
#include "workloads/layers/mlp.hpp"

namespace shardsim::models {
namespace {

const std::pair<Value, Value>& tables(Eager& e, const Rotary& rotary, Context& context,
                                      const std::string& of = "") {
  const std::string table = (rotary.each_layer ? e.path() : rotary.table) + of;
  const auto known = context.rotary.find(table);
  if (known != context.rotary.end()) return known->second;
  const bool half = rotary.half_table || rotary.complex;
  const Shape shape{rotary.by_example ? context.batch : 1, 1, context.sequence,
                    half ? rotary.dims / 2 : rotary.dims};
  const DType dtype = rotary.complex ? DType::c64 : rotary.fp32 ? DType::f32 : e.dtype();
  const Value cos = e.constant(dtype, shape);
  const Value sin = rotary.complex ? Value{} : e.constant(dtype, shape);
  return context.rotary.emplace(table, std::pair{cos, sin}).first->second;
}

struct Qkv {
  Value q, k, v;
};

// `copies`: what is read does not lie as products want it, and each copies it.
Qkv project(Eager& e, const Attention& a, const Value& x, const Value& states, Value& gate,
            bool copies) {
  const std::int64_t q_width = a.heads * a.head_dim;
  const std::int64_t kv_width = a.kv_heads * a.head_dim;
  if (!a.gate_name.empty()) {
    gate = run_linear(e, a.gate_name, x, a.gate_per_head ? a.heads : a.heads * a.values(), false);
  }
  if (a.form == QkvForm::separate) {
    Qkv p;
    const auto read = [&](const Value& value) { return copies ? e.copy(value) : value; };
    p.q = run_linear(e, a.q, read(x), a.gate ? 2 * q_width : q_width, a.q_bias);
    if (a.gate) {
      gate = p.q;
      p.q.shape.back() = q_width;
    }
    if (!a.reads.empty()) return p;
    p.k = run_linear(e, a.k, read(states), kv_width, a.k_bias);
    p.v = a.values_of_keys ? p.k
                           : run_linear(e, a.v, read(states), a.kv_heads * a.values(), a.v_bias);
    if (a.scaled_values) p.v = e.scaled(p.v);
    p.q = add_adapter(e, a.adapters, "linear_q_adapter_list", x, p.q);
    p.k = add_adapter(e, a.adapters, "linear_k_adapter_list", states, p.k);
    p.v = add_adapter(e, a.adapters, "linear_v_adapter_list", states, p.v);
    return p;
  }
  const std::int64_t width = q_width + 2 * kv_width;
  Value all = a.form == QkvForm::fused ? run_linear(e, a.qkv, x, width, a.q_bias, a.bias_apart)
                                       : run_conv1d(e, a.qkv, x, width);
  if (a.clamped) all = e.apply(all, Keeps::input);
  Qkv p{all, all, all};
  p.q.shape.back() = q_width;
  p.k.shape.back() = kv_width;
  p.v.shape.back() = kv_width;
  if (!a.q_added.empty()) p.q = e.add(p.q, e.parameter(a.q_added, {q_width}));
  if (!a.v_added.empty()) p.v = e.add(p.v, e.parameter(a.v_added, {kv_width}));
  if (a.kv_by_index) {
    for (Value* x : {&p.k, &p.v}) *x = e.index(*x, e.constant(DType::i64, {1}), x->shape);
  }
  return p;
}

Value by_heads(const Value& x, std::int64_t heads) {
  return Eager::view(x, {x.shape[0], x.shape[1], heads, x.last() / heads});
}

Value norm_each_head(Eager& e, const Norm& norm, const Value& x) {
  for (std::int64_t head = 0; head < x.shape[2]; ++head) {
    Norm own = norm;
    own.name = fmt::format("{}.norms.{}", norm.name, head);
    run(e, own, Eager::view(x, {x.shape[0], 1, x.shape[1], x.last()}));
  }
  return e.copy(x);
}

void norm_heads(Eager& e, const Attention& a, Value& q, Value& k) {
  if (a.norm_by_head) {
    q = norm_each_head(e, a.q_norm, q);
    k = norm_each_head(e, a.k_norm, k);
    return;
  }
  q = run(e, a.q_norm, q);
  if (k.exists()) k = run(e, a.k_norm, k);
}

// T5's: looked up once a stack, in its first layer, and added to a mask in each. Cross attention
// has zeros.
Value relative_bias(Eager& e, const Attention& a, const Shape& shape, Context& context) {
  Value& bias = context.shared["relative bias"];
  if (a.relative_buckets > 0) {
    const Scope at(e, "relative_attention_bias");
    const Value table = e.embedding_table("weight", {a.relative_buckets, a.heads});
    bias = e.embedding(e.constant(DType::i64, {shape[2], shape[3]}), table);
  }
  if (a.cross) {
    Value& zeros = context.shared["zero bias"];
    if (!zeros.exists()) zeros = e.constant(e.dtype(), shape);
    return zeros;
  }
  if (a.causal && e.options().attention == AttentionKernel::fused)
    e.save(e.constant(DType::boolean, {1, 1, shape[2], shape[3]}));
  return e.make(shape, e.dtype(), true);
}

Value score_mask(Eager& e, const Attention& a, std::int64_t keys, Context& context) {
  const std::int64_t s = context.sequence;
  if (a.mask == ScoreMask::relative) {
    return relative_bias(e, a, {1, a.heads, s, keys}, context);
  }
  if (a.mask == ScoreMask::none) return {};
  if (a.mask == ScoreMask::blanks_each_layer) {
    e.save(e.constant(DType::boolean, {context.batch, 1, s, s}));
    return {};
  }
  if (a.mask == ScoreMask::blanks) {
    Value& blanks = context.shared["blanks"];
    if (!blanks.exists()) blanks = e.constant(DType::boolean, {context.batch, 1, s, s});
    e.save(blanks);
    return {};
  }
  if (a.mask == ScoreMask::each_layer) return e.constant(e.dtype(), {context.batch, 1, s, s});
  Value& mask = context.shared["mask"];
  if (!mask.exists()) mask = e.constant(e.dtype(), {context.batch, a.heads, s, s});
  return mask;
}

// What places add to the scores: each a product with all rows of distances, of which every pair
// picks one.
Value place_scores(Eager& e, const Attention& a, const Value& q, const Value& k,
                   const Context& context) {
  const Value& rows = context.shared.at("relative rows");
  const std::int64_t batch = q.shape[0];
  const std::int64_t tokens = q.shape[1];
  const std::int64_t places = std::min(rows.shape[0], context.most_distances);
  const std::int64_t width = a.heads * a.head_dim;
  const Shape picked{batch, a.heads, tokens, tokens};
  const Value dropped = e.dropout(rows, context.dropout);
  const auto scale = [&](const Value& score) {  // by a number that is a tensor, and so kept
    e.save(e.constant(e.dtype(), {}));
    return e.scaled(score);
  };
  const Value near = Eager::view(dropped, {places, dropped.last()});
  const auto score = [&](const std::string& name, const Value& contents, bool bias) {
    const Value of_places =
        e.copy(run_linear(e, name, near, width, bias), {batch, a.heads, places, a.head_dim});
    const bool lies_apart = a.form == QkvForm::fused && batch > 1;  // matmul copies it
    const Value all = e.bmm(lies_apart ? e.copy(contents) : contents, of_places, tokens, a.head_dim,
                            places, {batch, a.heads, tokens, places});
    e.save(all);  // torch.gather keeps what it picks from
    return scale(e.index(all, e.constant(DType::i64, {tokens, tokens}), picked));
  };
  Value sum;
  if (a.places->of_queries) {
    sum = score(a.places->shared ? a.k : a.places->key, q, a.places->key_bias);
  }
  if (a.places->of_keys) {
    const Value other = score(a.places->shared ? a.q : a.places->query, k, /*bias=*/true);
    sum = sum.exists() ? e.add(sum, other) : other;
  }
  return sum;
}

// The result times what its gate lets through.
Value opened(Eager& e, const Attention& a, const Value& gate, const Value& out) {
  Value closed = a.gate_per_head ? gate : Eager::view(gate, out.shape);
  if (!a.gate_bias.empty()) closed = e.add(closed, e.parameter(a.gate_bias, {a.heads}));
  const Value open = a.gate_softplus
                         ? e.cast(e.apply(e.cast(closed, DType::f32), Keeps::input), e.dtype())
                         : e.apply(closed, Keeps::result);
  if (!a.gate_per_head) return e.multiply(out, open);
  const Shape by_head{out.shape[0], out.shape[1], a.heads, a.values()};
  const Value wide = Eager::view(open, {out.shape[0], out.shape[1], a.heads, 1});
  return Eager::view(e.multiply(Eager::view(out, by_head), wide), out.shape);
}

}  // namespace

void turn(Eager& e, const Rotary& rotary, Context& context, Value& q, Value& k) {
  const auto turned = [&](const Value& x, const std::string& of) {
    const auto& [cos, sin] = tables(e, rotary, context, of);
    if (rotary.complex) {
      const Value pairs = e.cast(x, DType::f32);
      if (x.grad) e.save(cos);
      return e.cast(e.copy(pairs), x.dtype);
    }
    if (x.grad) {
      e.save(cos);
      e.save(sin);
    }
    return e.copy(x);
  };
  q = turned(q, "");
  if (k.exists()) k = turned(k, rotary.apart ? " of keys" : "");
}

namespace {

Value scaled_by_position(Eager& e, const Attention& a, const Value& q, Context& context) {
  const DType wide = a.fp32_position_scale ? DType::f32 : q.dtype;
  const Shape shape{1, q.shape[1], 1, 1};
  Value own;
  Value& scale = a.position_scale_once ? context.shared["position scale"] : own;
  if (!scale.exists()) scale = e.constant(wide, shape);
  return e.cast(e.multiply(q, scale), q.dtype);
}

// Keys and values that layers have in common.
void hand_on(const Attention& a, Value& k, Value& v, Context& context) {
  if (!a.reads.empty()) {
    k = context.shared.at(a.reads + " keys");
    v = context.shared.at(a.reads + " values");
  }
  if (!a.hands_on.empty()) {
    context.shared[a.hands_on + " keys"] = k;
    context.shared[a.hands_on + " values"] = v;
  }
}

}  // namespace

Value run(Eager& e, const Attention& a, const Value& x, Context& context) {
  const Scope at(e, a.name);
  const Value& states = a.cross ? context.encoder : x;
  Value gate;
  // Where tokens lie before examples, what enters the stack lies the other way round.
  const bool copies = a.tokens_first && x.storage == context.embedded.storage && x.shape[0] > 1;
  auto [q, k, v] = project(e, a, x, states, gate, copies);
  if (a.norm_whole) norm_heads(e, a, q, k);
  if (a.clamped && a.form == QkvForm::separate) {
    for (Value* part : {&q, &k, &v}) *part = e.apply(*part, Keeps::input);
  }
  q = by_heads(q, a.heads);
  if (k.exists()) k = by_heads(k, a.kv_heads);
  if (!a.norm_whole && !a.norm_after_rotary) norm_heads(e, a, q, k);
  if (a.rotary.dims > 0) turn(e, a.rotary, context, q, k);
  if (!a.norm_whole && a.norm_after_rotary) norm_heads(e, a, q, k);
  if (a.scale_by_position) q = scaled_by_position(e, a, q, context);
  if (a.scaled_queries) q = e.scaled(q);
  if (a.v_norm.exists() && v.exists()) v = run(e, a.v_norm, by_heads(v, a.kv_heads));
  if (a.heads_apart) {
    for (Value* part : {&q, &k, &v}) *part = e.copy(*part);
  }
  hand_on(a, k, v, context);
  const auto transposed = [](const Value& t, std::int64_t heads, std::int64_t width) {
    return Eager::view(t, {t.shape[0], heads, t.shape[1], width});
  };
  ScoreRules rules{.soft_cap = a.soft_cap,
                   .dropout = a.dropout,
                   .by_heads = a.rotary.concatenated || a.heads_first,
                   .sinks = a.sinks,
                   .fp32_softmax = a.fp32_softmax,
                   .fp32_scores = a.fp32_scores,
                   .plain_only = a.plain_only || a.alibi,
                   .bounded = a.bounded,
                   .from_bias = a.alibi,
                   .expand_kv = a.expand_kv,
                   .heads_apart = a.heads_apart,
                   .contiguous = a.tokens_first,
                   .bias = score_mask(e, a, k.shape[1], context)};
  if (a.sinks) e.parameter("sinks", {a.heads});
  if (a.places) rules.bias = place_scores(e, a, q, k, context);
  Value out = run_attention_kernel(e, transposed(q, a.heads, a.head_dim),
                                   transposed(k, a.kv_heads, a.head_dim),
                                   transposed(v, a.kv_heads, a.values()), rules);
  if (!a.cross && a.cached && a.reads.empty()) {
    e.cache(a.kv_heads * (a.head_dim + a.values()) * size_of(e.dtype()).count(), 0);
  }
  if (a.gate || !a.gate_name.empty()) out = opened(e, a, gate, out);
  out = run(e, a.o_norm, out);
  if (a.o.empty()) return out;
  const std::int64_t width = a.out_width > 0 ? a.out_width : x.last();
  if (a.form == QkvForm::fused_conv1d) {
    return e.dropout(run_conv1d(e, a.o, out, width), a.out_dropout);
  }
  Value result = run_linear(e, a.o, out, width, a.o_bias, a.bias_apart);
  if (!a.o_added.empty()) result = e.add(result, e.parameter(a.o_added, {width}));
  return e.dropout(result, a.out_dropout);
}

}  // namespace shardsim::models
