#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "workloads/models/graph/attention_graph.hpp"

namespace shardsim::models {
namespace {

struct AttentionLabels {
  LabelId heads;  // of keys and values
  LabelId group;  // heads of queries for each
  LabelId dim;    // of a head
};

void check(const GraphContext& c, const Attention& a) {
  c.refuse_if(a.o.empty(), "attention without an output projection");
  if (a.rotary.dims % 2 != 0) {
    throw InputError(
        c.place, fmt::format("head_dim {} is odd: rotary embedding turns pairs", a.rotary.dims));
  }
  c.refuse_if(a.rotary.dims > a.head_dim, "rotary positions of more than a head");
  c.refuse_if(a.form != QkvForm::separate &&
                  (a.gate || !a.gate_name.empty() || a.q_bias != a.k_bias || a.q_bias != a.v_bias),
              "a fused projection with a gate, or with a bias of some parts");
}

// One kernel does what transformers' class multiplies out.
void note_kernel(GraphContext& c, const Attention& a) {
  const auto in_kernel = [&](bool has, const char* what) {
    if (has) c.note(fmt::format("attention is one kernel, {} in it (FlexAttention)", what));
  };
  in_kernel(a.soft_cap > 0, "the soft cap of its scores");
  in_kernel(a.alibi || a.mask == ScoreMask::alibi, "ALiBi's bias");
  in_kernel(a.sinks, "its sinks");
  if (a.plain_only && !a.alibi) {
    c.note("attention is one kernel; transformers' class multiplies its scores out");
  }
}

// What keys and values are made of: the tokens themselves, or an encoder's states.
GraphContext::Beside seen_by(const GraphContext& c, const Attention& a, TensorId x) {
  if (!a.cross) return {"", x, c.sequence, c.key_sequence, c.read_width()};
  if (c.encoder) return *c.encoder;
  const auto found = std::find_if(c.beside.begin(), c.beside.end(),
                                  [](const auto& value) { return value.hidden != 0; });
  assert(found != c.beside.end());  // an encoder comes before whom attends to it
  return *found;
}

// Of an encoder's states, once: with the prompt. Decoding steps read them.
TensorId keep_encoded(GraphContext& c, const std::string& name, const Dims& dims, LabelId tokens,
                      TensorId rows) {
  const DType dtype = c.options.cache->dtype.value_or(c.g.compute_dtype());
  const TensorId cache = c.g.cache(name + "_cache", dtype, dims);
  if (rows == no_tensor) return cache;
  static_cast<void>(c.g.append(name, cache, {rows}, tokens, tokens));
  return rows;
}

// Zamba 2's, of layers that share their weights.
void add_adapters(GraphContext& c, const Attention& a, const std::string& at, TensorId x,
                  const AttentionLabels& n, Projected& p) {
  const auto adapt = [&](const char* list, TensorId projected, const Dim& out) {
    return add_adapter(c, a.adapters, GraphContext::inside(at, list), x, projected, out);
  };
  p.q = adapt("linear_q_adapter_list", p.q, {n.heads, n.group, n.dim});
  p.k = adapt("linear_k_adapter_list", p.k, {n.heads, n.dim});
  p.v = adapt("linear_v_adapter_list", p.v, {n.heads, p.value_dim.value_or(n.dim)});
}

// To a range, as ReLU6 is to its own.
TensorId clamp(GraphContext& c, const std::string& name, TensorId x) {
  return c.g.elementwise(Function::relu6, name, {x});
}

void clamp_each(GraphContext& c, const std::string& at, Projected& p) {
  for (TensorId* part : {&p.q, &p.k, &p.v}) *part = clamp(c, at + ".clamped", *part);
}

Projected separate(GraphContext& c, const Attention& a, const std::string& at, TensorId x) {
  const AttentionLabels n{c.label("kv_heads", a.kv_heads, LabelRole::heads),
                          c.label("group", a.heads / a.kv_heads, LabelRole::head_group),
                          c.label("head_dim", a.head_dim)};
  const Dims query{{c.batch}, {c.sequence}, {n.heads}, {n.group}, {n.dim}};
  Projected p;
  p.head_dim = n.dim;
  if (a.values() != a.head_dim) p.value_dim = c.label("value_dim", a.values());
  const LabelId of_values = p.value_dim.value_or(n.dim);
  p.rows = {n.heads, n.group, of_values};
  p.q_heads = {n.heads, n.group};
  p.k_heads = {n.heads};
  const GraphBuilder::Within part(c.g, OpPart::input_projection);
  const auto project = [&](const std::string& name, const Dim& rows, bool bias, const Dims& to) {
    return c.linear({GraphContext::inside(at, name), rows, {c.read_width()}, bias}, x, to);
  };
  const GraphContext::Beside states = seen_by(c, a, x);
  const auto project_seen = [&](const std::string& name, LabelId dim, bool bias,
                                const std::string& kept) {
    const Dims seen{{c.batch}, {states.sequence}, {n.heads}, {dim}};
    const bool is_kept = a.cross && c.options.cache;
    const GraphContext::Linear module{
        GraphContext::inside(at, name), {n.heads, dim}, {states.hidden}, bias};
    TensorId rows = no_tensor;
    if (is_kept && c.is_decoding()) {
      c.stored(module);
    } else {
      rows = c.linear(module, states.id, seen);
    }
    return is_kept ? keep_encoded(c, at + "." + kept, seen, states.sequence, rows) : rows;
  };
  if (a.gate) {  // each head's queries, then its gate
    const LabelId two = c.label("query_gate", 2);
    const TensorId both = project(a.q, {n.heads, n.group, two, n.dim}, a.q_bias,
                                  {{c.batch}, {c.sequence}, {n.heads}, {n.group}, {two}, {n.dim}});
    const std::vector<TensorId> parts = c.g.split({at + ".query", at + ".gate"}, both, two);
    p.q = parts[0];
    p.gate = parts[1];
  } else {
    p.q = project(a.q, {n.heads, n.group, n.dim}, a.q_bias, query);
  }
  if (!a.reads.empty()) return p;
  p.k = project_seen(a.k, n.dim, a.k_bias, "keys");
  p.v = a.values_of_keys ? p.k : project_seen(a.v, of_values, a.v_bias, "values");
  add_adapters(c, a, at, x, n, p);
  if (a.clamped) clamp_each(c, at, p);
  if (a.scaled_values) {
    p.v = c.g.elementwise(Function::scale, GraphContext::inside(at, a.v) + ".scaled", {p.v});
  }
  if (!a.gate_name.empty()) {
    Dim rows = p.rows;
    Dims gates{{c.batch}, {c.sequence}, {n.heads}, {n.group}, {of_values}};
    if (a.gate_per_head) {
      rows.pop_back();
      gates.pop_back();
    }
    p.gate = project(a.gate_name, rows, /*bias=*/false, gates);
  }
  return p;
}

// GPT-2's: all queries, all keys, all values.
Projected fused_by_kind(GraphContext& c, const Attention& a, const std::string& at, TensorId x) {
  const GraphBuilder::Within part(c.g, OpPart::input_projection);
  const LabelId three = c.label("qkv", 3);
  const LabelId heads = c.label("heads", a.heads, LabelRole::heads);
  const LabelId head_dim = c.label("head_dim", a.head_dim);
  const TensorId all = c.linear({GraphContext::inside(at, a.qkv),
                                 {three, heads, head_dim},
                                 {c.hidden},
                                 a.q_bias,
                                 a.form == QkvForm::fused_conv1d},
                                x, {{c.batch}, {c.sequence}, {three}, {heads}, {head_dim}});
  const std::vector<TensorId> parts =
      c.g.split({at + ".query", at + ".key", at + ".value"}, all, three);
  return {parts[0], parts[1], parts[2], no_tensor, {heads, head_dim}, {heads}, {heads}, head_dim};
}

// A parameter of the module, added to x.
TensorId added(GraphContext& c, const std::string& at, const std::string& name, TensorId x,
               const Dim& dim) {
  if (name.empty()) return x;
  const std::string full = GraphContext::inside(at, name);
  return c.g.elementwise(Function::add, full + ".added", {x, c.g.parameter(full, {dim})});
}

// Head of keys by head of keys: its queries, its key, its value, as Megatron's, Falcon's and
// GPT-NeoX's rows lie. Phi-3's lie in another order, of as many rows: tensor parallelism of them
// needs this one (as Megatron's and vLLM's loaders make).
Projected fused_by_group(GraphContext& c, const Attention& a, const std::string& at, TensorId x) {
  const GraphBuilder::Within part(c.g, OpPart::input_projection);
  const std::int64_t group = a.heads / a.kv_heads;
  const AttentionLabels n{c.label("kv_heads", a.kv_heads, LabelRole::heads),
                          c.label("group", group, LabelRole::head_group),
                          c.label("head_dim", a.head_dim)};
  const LabelId all_rows = c.label("group_qkv", group + 2);
  TensorId all =
      c.linear({GraphContext::inside(at, a.qkv), {n.heads, all_rows, n.dim}, {c.hidden}, a.q_bias},
               x, {{c.batch}, {c.sequence}, {n.heads}, {all_rows}, {n.dim}});
  if (a.clamped) all = clamp(c, GraphContext::inside(at, a.qkv) + ".clamped", all);
  const Dims key{{c.batch}, {c.sequence}, {n.heads}, {n.dim}};
  const std::vector<TensorId> parts =
      c.g.slices(GraphContext::inside(at, a.qkv), all,
                 {{at + ".query", {{c.batch}, {c.sequence}, {n.heads}, {n.group}, {n.dim}}},
                  {at + ".key", key},
                  {at + ".value", key}},
                 {all_rows, n.group});
  const Dim query{n.heads, n.group, n.dim};
  return {added(c, at, a.q_added, parts[0], query),
          parts[1],
          added(c, at, a.v_added, parts[2], {n.heads, n.dim}),
          no_tensor,
          query,
          {n.heads, n.group},
          {n.heads},
          n.dim};
}

// Of each head, of all heads together, or of each with a weight of its own.
TensorId norm_heads(GraphContext& c, const Attention& a, const Norm& norm, const std::string& at,
                    const std::vector<LabelId>& heads, LabelId head_dim, TensorId x) {
  if (!norm.exists()) return x;
  std::vector<LabelId> over;
  if (a.norm_whole) over = heads;
  over.push_back(head_dim);
  std::string name = GraphContext::inside(at, norm.name);
  if (a.norm_by_head) {
    c.note("norms of heads that are modules of their own are one, norms.weight of all norms.N");
    name += ".norms";
  }
  const bool each_head = a.norm_by_head || !norm.weight_shape.empty();
  return c.norm(norm, name, x, over, each_head ? Dims{heads, {head_dim}} : Dims{});
}

// The result times what its gate lets through.
TensorId opened(GraphContext& c, const Attention& a, const std::string& at,
                const std::vector<LabelId>& heads, TensorId gate, TensorId out) {
  gate = added(c, at, a.gate_bias, gate, heads);
  if (!a.gate_softplus) {
    const TensorId open = c.g.elementwise(Function::sigmoid, at + ".gate_open", {gate});
    return c.g.elementwise(Function::multiply, at + ".gated", {out, open});
  }
  const TensorId wide = c.g.cast(at + ".gate_fp32", gate, DType::f32);
  const TensorId open = c.g.elementwise(Function::softplus, at + ".gate_open", {wide});
  return c.g.elementwise(Function::multiply, at + ".gated",
                         {out, c.g.cast(at + ".gate", open, c.g.compute_dtype())});
}

// Keys and values behind those that are kept. Answers the label of the tokens that queries see: the
// sequence's own, or behind a context all of these. A window's cache has its own length.
LabelId keep(GraphContext& c, const Attention& a, const std::string& at, Projected& p) {
  const TensorId k = c.keep(at + ".keys", {p.k}, c.g.dims_of(p.k), a.window);
  const TensorId v = c.keep(at + ".values", {p.v}, c.g.dims_of(p.v), a.window);
  if (!c.is_decoding()) return c.sequence;
  p.k = k;
  p.v = v;
  return c.seen_tokens(a.window);
}

// Of all pairs of queries and keys.
double fraction_of(const GraphContext& c, const Attention& a) {
  if (a.cross) return 1;
  return c.seen_pairs(a.bidirectional ? bidirectional_fraction : attention_fraction, a.window);
}

// Keys and values that layers have in common, and the label of their tokens.
void hand_on(GraphContext& c, const Attention& a, LabelId& tokens, Projected& p) {
  if (!a.reads.empty()) {
    const GraphContext::Beside* keys = find_handed(c, a.reads + "_keys");
    p.k = keys->id;
    p.v = find_handed(c, a.reads + "_values")->id;
    tokens = keys->sequence;
  }
  if (a.hands_on.empty()) return;
  for (const auto& [name, id] : {std::pair{"_keys", p.k}, std::pair{"_values", p.v}}) {
    GraphContext::Beside value{a.hands_on + name, id};
    value.sequence = tokens;
    c.beside.push_back(std::move(value));
  }
}

}  // namespace

TensorId add(GraphContext& c, const Attention& a, TensorId x) {
  check(c, a);
  note_kernel(c, a);
  const std::string at = c.inside(a.name);
  Projected p = a.form == QkvForm::separate       ? separate(c, a, at, x)
                : a.form == QkvForm::fused_conv1d ? fused_by_kind(c, a, at, x)
                                                  : fused_by_group(c, a, at, x);
  const LabelId head_dim = p.head_dim;
  const auto norm_both = [&] {
    p.q = norm_heads(c, a, a.q_norm, at, p.q_heads, head_dim, p.q);
    if (p.k != no_tensor) p.k = norm_heads(c, a, a.k_norm, at, p.k_heads, head_dim, p.k);
  };
  if (p.v != no_tensor) p.v = norm_heads(c, a, a.v_norm, at, p.k_heads, head_dim, p.v);
  if (!a.norm_after_rotary) norm_both();
  if (a.rotary.dims > 0) turn(c, a.rotary, at, head_dim, p.q, p.k);
  if (a.norm_after_rotary) norm_both();
  if (a.scale_by_position) p.q = scale_by_position(c, at + ".q_scaled", p.q);
  if (a.scaled_queries) p.q = c.g.elementwise(Function::scale, at + ".q_times", {p.q});
  const GraphContext::Beside seen = seen_by(c, a, x);
  const bool keeps = c.options.cache && !a.cross && a.cached && a.reads.empty() && !a.bidirectional;
  LabelId tokens = keeps ? keep(c, a, at, p) : seen.sequence;
  hand_on(c, a, tokens, p);
  const bool is_decoding = c.is_decoding() && (keeps || a.cross || !a.reads.empty());
  TensorId out = c.g.attention(at + ".attention", p.q, p.k, p.v, head_dim,
                               {{tokens, is_decoding ? tokens : seen.keys}},
                               {.fraction = is_decoding ? 1 : fraction_of(c, a),
                                .documents = c.documents_of_sequence(),
                                .added = added_to_scores(c, a, at, p),
                                .value_dim = p.value_dim,
                                .merges = is_decoding,
                                .drops = c.drops(a.dropout)});
  if (p.gate != no_tensor) out = opened(c, a, at, p.q_heads, p.gate, out);
  if (a.o_norm.exists()) {
    out = c.norm(a.o_norm, GraphContext::inside(at, a.o_norm.name), out, p.rows);
  }
  const GraphBuilder::Within part(c.g, OpPart::out_projection);
  const TensorId result = c.linear({GraphContext::inside(at, a.o),
                                    {c.hidden},
                                    p.rows,
                                    a.o_bias,
                                    a.form == QkvForm::fused_conv1d},
                                   out, c.stream());
  return added(c, at, a.o_added, result, {c.hidden});
}

}  // namespace shardsim::models
