#include "workloads/models/graph/graph_context.hpp"

// Mamba, split by channels as vLLM's MambaMixer is: in_proj, the convolution, dt_proj and the scan
// hold a device's channels, x_proj sums over all of them.
//
//   in_proj   x[b, s, hidden] -> [b, s, 2, inner]: x and z
//   conv1d    with silu          -> u[b, s, inner]
//   x_proj    u -> [b, s, rank + 2 state]: of the step, b and c (Jamba norms each)
//   dt_proj   -> step[b, s, inner]; its bias is added in the scan
//   scan      u, step, b, c; A_log[inner, state], D and the bias: -exp(A_log), softplus of the step
//             and the casts to fp32 are in its kernel; states of every 2,048 tokens are kept
//   gate      y * silu(z)
//   out_proj  [hidden, inner]
//
// Steps of inference keep of each sequence the convolution's last tokens and the scan's state; a
// decoding step moves both on by one token (mamba_ssm, selective_state_update).
//
// Without norms mamba_ssm does all from the convolution on in one function, which makes the
// convolution, the step and the gate again in the backward pass. That the gate is part of the
// scan's kernel is left out: it reads y once more.
namespace shardsim::models {
namespace {

class MambaGraph {
 public:
  MambaGraph(GraphContext& c, const Mamba& m)
      : c_(c),
        m_(m),
        at_(c.inside(m.name)),
        channels_(m.heads > 0 ? Dim{c.label("mamba_heads", m.heads, LabelRole::width),
                                    c.label("mamba_head_dim", m.inner / m.heads)}
                              : Dim{c.label("inner", m.inner, LabelRole::width)}),
        state_(c.label("state", m.state)),
        rank_(c.label("step_rank", m.step_rank)) {}

  TensorId build(TensorId x) {
    if (m_.norms) {
      c_.note(
          "channels of Mamba stay last: copies that transpose them, as transformers' class makes "
          "between its kernels, are left out");
    }
    c_.note("the gate of Mamba's scan is a kernel of its own, which reads its result once more");
    const LabelId two = c_.label("x_z", 2);
    Dim rows = channels_;
    rows.insert(m_.heads > 0 ? rows.end() : rows.begin(), two);
    Dims projected = of_channels();
    projected.push_back({two});
    const TensorId both =
        c_.linear({inside("in_proj"), rows, {c_.hidden}, m_.bias}, x, std::move(projected));
    const std::vector<TensorId> parts = c_.g.split({at_ + ".x", at_ + ".z"}, both, two);
    const TensorId mixed = again(c_.convolution(inside("conv1d"), parts[0], channels_, m_.kernel,
                                                m_.conv_bias, /*silu=*/true));
    const TensorId scanned = scan(mixed);
    const TensorId out =
        again(c_.g.elementwise(Function::gate, at_ + ".gated", {scanned, parts[1]}));
    return c_.linear({inside("out_proj"), {c_.hidden}, channels_, m_.bias}, out, c_.stream());
  }

 private:
  [[nodiscard]] std::string inside(const std::string& name) const {
    return GraphContext::inside(at_, name);
  }
  // Of a token, or of each of its heads.
  [[nodiscard]] Dims tokens_of(LabelId last) const {
    if (m_.heads > 0) return {{c_.batch}, {c_.sequence}, {channels_[0]}, {last}};
    return {{c_.batch}, {c_.sequence}, {last}};
  }
  [[nodiscard]] Dims of_channels() const { return tokens_of(channels_.back()); }
  // A parameter of every channel.
  TensorId by_channel(const std::string& name, const Dim& more = {}) {
    Dims dims;
    if (m_.heads > 0) {
      for (const LabelId label : channels_) dims.push_back({label});
    } else {
      dims.push_back(channels_);
    }
    if (!more.empty()) dims.push_back(more);
    return c_.g.parameter(name, std::move(dims));
  }

  TensorId again(TensorId x) { return m_.norms ? x : c_.g.remade(x); }

  // What the scan reads of one of x_proj's parts.
  TensorId readable(TensorId part, const std::string& norm, LabelId over) {
    if (m_.norms) return c_.norm({NormKind::rms, norm}, inside(norm), part, {over});
    if (m_.fixed_norms) return c_.norm({NormKind::rms_plain, norm}, inside(norm), part, {over});
    return c_.g.copy(c_.g.name_of(part) + ".copy", part);
  }

  TensorId scan(TensorId mixed) {
    const LabelId narrow = c_.label("step_b_c", m_.step_rank + 2 * m_.state);
    const TensorId all =
        m_.heads > 0 ? c_.g.linear(inside("x_proj"), mixed,
                                   c_.g.parameter(at_ + ".x_proj_weight",
                                                  {{channels_[0]}, {narrow}, {channels_[1]}}),
                                   tokens_of(narrow))
                     : c_.linear({inside("x_proj"), {narrow}, channels_}, mixed, tokens_of(narrow));
    const std::vector<TensorId> parts = c_.g.slices(at_ + ".x_proj.parts", all,
                                                    {{at_ + ".step_low", tokens_of(rank_)},
                                                     {at_ + ".b", tokens_of(state_)},
                                                     {at_ + ".c", tokens_of(state_)}},
                                                    {narrow, rank_, state_});
    const TensorId low = m_.norms ? readable(parts[0], "dt_layernorm", rank_) : parts[0];
    const TensorId b = readable(parts[1], "b_layernorm", state_);
    const TensorId c = readable(parts[2], "c_layernorm", state_);
    const std::string of_step = inside(m_.heads > 0 ? "dt_proj_" : "dt_proj.");
    TensorId step = again(c_.g.linear(inside("dt_proj"), low,
                                      by_channel(of_step + "weight", {rank_}), of_channels()));
    if (m_.fixed_norms) {
      step = again(c_.norm({NormKind::rms_plain, ""}, inside("dt_layernorm"), step, channels_));
    }
    std::vector<LabelId> space{c_.batch, c_.sequence};
    space.insert(space.end(), channels_.begin(), channels_.end());
    space.push_back(state_);
    Dims state{{c_.batch}};
    for (const LabelId label : channels_) state.push_back({label});
    state.push_back({state_});
    constexpr double operations = 9;
    return c_.g.scan(c_.is_decoding() ? Function::state_update : Function::selective_scan,
                     at_ + ".scan",
                     {.operands = {mixed, step, b, c, by_channel(at_ + ".A_log", {state_}),
                                   by_channel(at_ + ".D"), by_channel(of_step + "bias")},
                      .result = of_channels(),
                      .kept = kept_states(),
                      .whole = {c_.sequence, state_},
                      .work = {{operations, std::move(space)}},
                      .state = c_.state(at_ + ".scan_state", std::move(state))});
  }

  // For the backward pass.
  std::vector<GraphBuilder::Scan::Kept> kept_states() {
    if (c_.options.cache) return {};
    constexpr std::int64_t between = 2048;  // tokens from one to the next
    const std::int64_t steps = (c_.g.label_size(c_.sequence) + between - 1) / between;
    const LabelId states = c_.label("kept_states", steps * 2 * m_.state);
    Dims dims{{c_.batch}};
    for (const LabelId label : channels_) dims.push_back({label});
    dims.push_back({states});
    return {{at_ + ".scan.states", DType::f32, std::move(dims)}};
  }

  GraphContext& c_;
  const Mamba& m_;
  std::string at_;
  Dim channels_;  // heads and what is in one, or all
  LabelId state_, rank_;
};

}  // namespace

TensorId add(GraphContext& c, const Mamba& m, TensorId x) { return MambaGraph(c, m).build(x); }

}  // namespace shardsim::models
