#include <algorithm>

#include "workloads/models/graph/graph_context.hpp"

// Mamba-2, split as Megatron's MambaMixer is: by groups of heads that have b and c in common, from
// in_proj to out_proj. Rows of in_proj and channels of the convolution lie group by group, as
// Megatron's loaders lay them, of as many rows as the checkpoint's z, x, b, c and steps. Where the
// groups do not go evenly over the devices, in_proj and the convolution are whole on each; the scan
// is still split by heads if those do.
//
//   in_proj   x[b, s, hidden] -> [b, s, groups, rows]: z, (x, b, c), steps
//   conv1d    of x, b and c, with silu
//   scan      x[b, s, groups, heads, dim], steps[b, s, groups, heads], b, c[b, s, groups, state];
//             A_log, D and dt_bias of each head: exponential, softplus and casts are in its
//             kernels. States of the chunks lie in memory meanwhile
//   norm      of y * silu(z), over a group's heads; or the gate alone (Falcon-H1)
//   out_proj  [hidden, groups*heads*dim]
//
// Steps of inference keep the convolution's last tokens and the scan's state.
//
// mamba_ssm does all from the convolution on in one function, which makes the convolution and the
// norm (the gate) again in the backward pass. FLOPs, with chunks of c tokens, one at a time:
// scores 2 c groups state, scores times x 2 c inner, states twice 2 inner state.
namespace shardsim::models {
namespace {

class Mamba2Graph {
 public:
  Mamba2Graph(GraphContext& c, const Mamba2& m)
      : c_(c),
        m_(m),
        at_(c.inside(m.name)),
        groups_(c.label("groups", m.groups, LabelRole::mixer_groups)),
        heads_(c.label("group_heads", m.heads / m.groups, LabelRole::head_group)),
        dim_(c.label("mixer_dim", m.head_dim)),
        state_(c.label("state", m.state)) {}

  TensorId build(TensorId x) {
    c_.note(chunked_scan_note);
    const std::int64_t width = m_.inner() / m_.groups;
    const LabelId channels = c_.label("x_b_c", width + 2 * m_.state);
    const LabelId rows = c_.label("z_x_b_c_step", 2 * width + 2 * m_.state + m_.heads / m_.groups);
    TensorId all =
        c_.linear({inside("in_proj"), {groups_, rows}, {c_.hidden}, m_.bias}, x, by_group(rows));
    if (m_.scaled_projection) {
      all = c_.g.elementwise(Function::scale, inside("in_proj") + ".scaled", {all});
    }
    const std::vector<TensorId> parts = c_.g.slices(at_ + ".in_proj.parts", all,
                                                    {{at_ + ".z", by_head()},
                                                     {at_ + ".x_b_c", by_group(channels)},
                                                     {at_ + ".step", by_group(heads_)}},
                                                    {rows, channels, heads_, dim_});
    const TensorId mixed = c_.g.remade(c_.convolution(
        inside("conv1d"), parts[1], {groups_, channels}, m_.kernel, m_.conv_bias, /*silu=*/true));
    const std::vector<TensorId> x_b_c = c_.g.slices(
        at_ + ".conv1d.parts", mixed,
        {{at_ + ".x", by_head()}, {at_ + ".b", by_group(state_)}, {at_ + ".c", by_group(state_)}},
        {channels, heads_, dim_, state_});
    for (const TensorId part : x_b_c) c_.g.remade(part);
    const TensorId y = scan(x_b_c, parts[2]);
    return c_.linear({inside("out_proj"), {c_.hidden}, {groups_, heads_, dim_}, m_.out_bias},
                     c_.g.remade(gated(y, parts[0])), c_.stream());
  }

 private:
  [[nodiscard]] std::string inside(const std::string& name) const {
    return GraphContext::inside(at_, name);
  }
  [[nodiscard]] Dims by_group(LabelId last) const {
    return {{c_.batch}, {c_.sequence}, {groups_}, {last}};
  }
  [[nodiscard]] Dims by_head() const {
    return {{c_.batch}, {c_.sequence}, {groups_}, {heads_}, {dim_}};
  }

  TensorId of_heads(const std::string& name) {
    return c_.g.parameter(inside(name), {{groups_, heads_}});
  }

  TensorId scan(const std::vector<TensorId>& x_b_c, TensorId step) {
    const std::vector<LabelId> points{c_.batch, c_.sequence, groups_, heads_, dim_, state_};
    GraphBuilder::Scan parts{
        .operands = {x_b_c[0], step, x_b_c[1], x_b_c[2], of_heads("A_log"), of_heads("D"),
                     of_heads("dt_bias")},
        .result = by_head(),
        .kept = {},
        .whole = {c_.sequence, state_, dim_},
        .work = {},
        .state =
            c_.state(at_ + ".scan_state", {{c_.batch}, {groups_}, {heads_}, {dim_}, {state_}})};
    if (c_.is_decoding()) {  // decayed, step x b added, times c
      parts.work = {{5, points}};
      return c_.g.scan(Function::state_update, at_ + ".scan", std::move(parts));
    }
    const std::int64_t sequence = c_.g.label_size(c_.sequence);
    const std::int64_t tokens = std::min(m_.chunk, sequence);
    const LabelId chunk = c_.label("chunk", tokens);
    const LabelId chunks = c_.label("chunks", (sequence + tokens - 1) / tokens);
    parts.kept = {{at_ + ".scan.states",
                   DType::f32,
                   {{c_.batch}, {chunks}, {groups_}, {heads_}, {dim_}, {state_}}}};
    parts.work = {{2, {c_.batch, c_.sequence, chunk, groups_, state_}},
                  {2, {c_.batch, c_.sequence, chunk, groups_, heads_, dim_}},
                  {4, points}};
    return c_.g.scan(Function::chunked_scan, at_ + ".scan", std::move(parts));
  }

  TensorId gated(TensorId y, TensorId z) {
    if (!m_.norm) return c_.g.elementwise(Function::gate, at_ + ".gated", {y, z});
    const TensorId weight = c_.g.parameter(inside("norm") + ".weight", {{groups_, heads_, dim_}});
    return c_.g.gated_norm(inside("norm"), y, weight, z, {heads_, dim_});
  }

  GraphContext& c_;
  const Mamba2& m_;
  std::string at_;
  LabelId groups_, heads_, dim_, state_;
};

}  // namespace

TensorId add(GraphContext& c, const Mamba2& m, TensorId x) { return Mamba2Graph(c, m).build(x); }

}  // namespace shardsim::models
