#include <algorithm>

#include "workloads/models/graph/graph_context.hpp"

// The gated delta rule (Qwen3-Next), split by heads of keys, each with its heads of values, from
// the projections in to the one out. Rows lie head of keys by head of keys, as those of Qwen3-Next
// do; Qwen3.5's, as many, lie in another order, and tensor parallelism needs this one.
//
//   in_proj_qkvz, _ba  x[b, s, hidden] -> [b, s, keys, rows]: q, k, v, z; beta and the decay's.
//                      A fused projection's parts are copied, as the class does
//   conv1d             of q, k and v, with silu
//   norms              of q and k to length 1, as flash-linear-attention's kernel does first
//   rule               q, k[b, s, keys, key_dim], v[b, s, keys, values, value_dim], decay, beta;
//                      keeps the inverted products of a chunk's keys. States of the chunks lie in
//                      memory meanwhile
//   norm               of each head of values, times silu(z): one kernel
//   out_proj           [hidden, keys*values*value_dim]
//
// Steps of inference keep the convolution's last tokens and the rule's state, key_dim x value_dim
// of each head of values; a decoding step moves both on by one token (flash-linear-attention,
// fused_recurrent_gated_delta_rule).
namespace shardsim::models {
namespace {

class DeltaNetGraph {
 public:
  DeltaNetGraph(GraphContext& c, const DeltaNet& n)
      : c_(c),
        n_(n),
        at_(c.inside(n.name)),
        group_(n.value_heads / n.key_heads),
        keys_(c.label("key_heads", n.key_heads, LabelRole::mixer_groups)),
        values_(c.label("values_of_key", group_, LabelRole::head_group)),
        key_dim_(c.label("key_dim", n.key_dim)),
        value_dim_(c.label("mixer_value_dim", n.value_dim)),
        channels_(c.label("q_k_v", 2 * n.key_dim + group_ * n.value_dim)) {}

  TensorId build(TensorId x) {
    c_.note(chunked_scan_note);
    project(x);
    const TensorId mixed = c_.convolution(inside("conv1d"), qkv_, {keys_, channels_}, n_.kernel,
                                          /*bias=*/false, /*silu=*/true);
    const std::vector<TensorId> parts = c_.g.slices(at_ + ".conv1d.parts", mixed,
                                                    {{at_ + ".query", by_key(key_dim_)},
                                                     {at_ + ".key", by_key(key_dim_)},
                                                     {at_ + ".value", by_value()}},
                                                    {channels_, values_, key_dim_, value_dim_});
    const TensorId beta = c_.g.elementwise(Function::sigmoid, at_ + ".beta", {b_});
    const TensorId decay = decays();
    const TensorId y =
        rule(unit(".query_normed", parts[0]), unit(".key_normed", parts[1]), parts[2], decay, beta);
    const TensorId weight = c_.g.parameter(inside(n_.norm) + ".weight", {{value_dim_}});
    const TensorId out = c_.g.gated_norm(inside(n_.norm), y, weight, z_, {value_dim_});
    return c_.linear({inside(n_.out), {c_.hidden}, {keys_, values_, value_dim_}}, out, c_.stream());
  }

 private:
  [[nodiscard]] std::string inside(const std::string& name) const {
    return GraphContext::inside(at_, name);
  }
  [[nodiscard]] Dims by_key(LabelId last) const {
    return {{c_.batch}, {c_.sequence}, {keys_}, {last}};
  }
  [[nodiscard]] Dims by_value() const {
    return {{c_.batch}, {c_.sequence}, {keys_}, {values_}, {value_dim_}};
  }

  TensorId of_heads(const std::string& name) {
    return c_.g.parameter(inside(name), {{keys_, values_}});
  }

  TensorId linear(const std::string& name, TensorId x, const Dim& rows, const Dims& result) {
    return c_.linear({inside(name), rows, {c_.hidden}}, x, result);
  }

  TensorId decays() {
    if (!n_.by_channel()) {
      return c_.g.decay(at_ + ".decay", a_, of_heads("A_log"), of_heads("dt_bias"));
    }
    const LabelId one = c_.label("one", 1);
    const bool is_flat = n_.projections == DeltaProjections::whole_channels;
    const TensorId log = is_flat ? of_heads("forget_gate.A_log")
                                 : c_.g.parameter(inside("forget_gate.A_log"),
                                                  {{one}, {one}, {keys_, values_}, {one}});
    const TensorId bias = c_.g.parameter(inside("forget_gate.dt_bias"), {{keys_, key_dim_}});
    return c_.g.decay(at_ + ".decay", a_, log, bias);
  }

  // Two products, the first as narrow as a head.
  TensorId narrow(const std::string& name, TensorId x, const Dim& rows, const Dims& result) {
    const LabelId rank = c_.label("gate_rank", n_.key_dim);
    const TensorId low = c_.linear({inside(name + "_a_proj"), {rank}, {c_.hidden}}, x,
                                   {{c_.batch}, {c_.sequence}, {rank}});
    return c_.linear({inside(name + "_b_proj"), rows, {rank}}, low, result);
  }

  void project_each(TensorId x) {
    const TensorId q = linear("q_proj", x, {keys_, key_dim_}, by_key(key_dim_));
    const TensorId k = linear("k_proj", x, {keys_, key_dim_}, by_key(key_dim_));
    const TensorId v = linear("v_proj", x, {keys_, values_, value_dim_}, by_value());
    qkv_ = c_.g.concatenate(at_ + ".q_k_v", {q, k, v}, by_key(channels_),
                            {channels_, values_, key_dim_, value_dim_});
    b_ = linear("b_proj", x, {keys_, values_}, by_key(values_));
    if (n_.projections == DeltaProjections::whole_channels) {
      a_ = linear("forget_gate.f_proj", x, {keys_, key_dim_}, by_key(key_dim_));
      z_ = linear("g_proj", x, {keys_, values_, value_dim_}, by_value());
      return;
    }
    if (n_.by_channel()) {
      a_ = narrow("forget_gate.f", x, {keys_, key_dim_}, by_key(key_dim_));
      z_ = narrow("g", x, {keys_, values_, value_dim_}, by_value());
      return;
    }
    a_ = linear("a_proj", x, {keys_, values_}, by_key(values_));
    z_ = linear("g_proj", x, {keys_, values_, value_dim_}, by_value());
  }

  void project(TensorId x) {
    if (n_.projections == DeltaProjections::each || n_.by_channel()) return project_each(x);
    if (n_.projections == DeltaProjections::qkv_z_b_a) {
      qkv_ = linear("in_proj_qkv", x, {keys_, channels_}, by_key(channels_));
      z_ = linear("in_proj_z", x, {keys_, values_, value_dim_}, by_value());
      b_ = linear("in_proj_b", x, {keys_, values_}, by_key(values_));
      a_ = linear("in_proj_a", x, {keys_, values_}, by_key(values_));
      return;
    }
    const LabelId rows = c_.label("q_k_v_z", 2 * (n_.key_dim + group_ * n_.value_dim));
    const LabelId two = c_.label("beta_decay", 2);
    const TensorId all = linear("in_proj_qkvz", x, {keys_, rows}, by_key(rows));
    const std::vector<TensorId> parts =
        c_.g.slices(at_ + ".in_proj_qkvz.parts", all,
                    {{at_ + ".q_k_v_in", by_key(channels_)}, {at_ + ".z_in", by_value()}},
                    {rows, channels_, values_, value_dim_});
    const TensorId both = linear("in_proj_ba", x, {keys_, two, values_},
                                 {{c_.batch}, {c_.sequence}, {keys_}, {two}, {values_}});
    const std::vector<TensorId> b_a = c_.g.split({at_ + ".b_in", at_ + ".a_in"}, both, two);
    qkv_ = c_.g.copy(at_ + ".q_k_v", parts[0]);
    z_ = c_.g.copy(at_ + ".z", parts[1]);
    b_ = c_.g.copy(at_ + ".b", b_a[0]);
    a_ = c_.g.copy(at_ + ".a", b_a[1]);
  }

  TensorId unit(const std::string& name, TensorId x) {
    return c_.g.norm(Function::rms_norm, at_ + name, x, {}, {key_dim_});
  }

  TensorId rule(TensorId q, TensorId k, TensorId v, TensorId decay, TensorId beta) {
    GraphBuilder::Scan parts{
        .operands = {q, k, v, decay, beta},
        .result = by_value(),
        .kept = {},
        .whole = {c_.sequence, key_dim_, value_dim_},
        .work = {},
        .state = c_.state(at_ + ".rule_state",
                          {{c_.batch}, {keys_}, {values_}, {key_dim_}, {value_dim_}})};
    if (c_.is_decoding()) {  // decayed; times k, what k and v add, times q
      parts.work = {{7, {c_.batch, c_.sequence, keys_, values_, key_dim_, value_dim_}}};
      return c_.g.scan(Function::state_update, at_ + ".rule", std::move(parts));
    }
    constexpr std::int64_t most = 64;  // tokens of a chunk
    const std::int64_t sequence = c_.g.label_size(c_.sequence);
    const std::int64_t tokens = std::min(most, sequence);
    const LabelId chunk = c_.label("chunk", tokens);
    const LabelId chunks = c_.label("chunks", (sequence + tokens - 1) / tokens);
    const DType dtype = c_.g.compute_dtype();
    const Dims inverted{{c_.batch}, {c_.sequence}, {keys_}, {values_}, {chunk}};
    const Dims states{{c_.batch}, {chunks}, {keys_}, {values_}, {key_dim_}, {value_dim_}};
    const std::vector<LabelId> heads{c_.batch, c_.sequence, keys_, values_};
    const auto over = [&](const std::vector<LabelId>& more) {
      std::vector<LabelId> labels = heads;
      labels.insert(labels.end(), more.begin(), more.end());
      return labels;
    };
    parts.kept = {{at_ + ".rule.inverted", dtype, inverted}, {at_ + ".rule.states", dtype, states}};
    parts.whole.push_back(chunk);
    parts.work = {{6, over({key_dim_, value_dim_})},
                  {2 * 3, over({chunk, key_dim_})},
                  {2 * 2, over({chunk, value_dim_})}};
    return c_.g.scan(Function::delta_rule, at_ + ".rule", std::move(parts));
  }

  GraphContext& c_;
  const DeltaNet& n_;
  std::string at_;
  std::int64_t group_;
  LabelId keys_, values_, key_dim_, value_dim_, channels_;
  TensorId qkv_ = no_tensor, z_ = no_tensor, b_ = no_tensor, a_ = no_tensor;
};

}  // namespace

TensorId add(GraphContext& c, const DeltaNet& n, TensorId x) {
  return DeltaNetGraph(c, n).build(x);
}

}  // namespace shardsim::models
