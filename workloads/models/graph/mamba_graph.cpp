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
        inner_(c.label("inner", m.inner, LabelRole::width)),
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
    const TensorId both = c_.linear({inside("in_proj"), {two, inner_}, {c_.hidden}, m_.bias}, x,
                                    {{c_.batch}, {c_.sequence}, {two}, {inner_}});
    const std::vector<TensorId> parts = c_.g.split({at_ + ".x", at_ + ".z"}, both, two);
    const TensorId mixed = again(c_.convolution(inside("conv1d"), parts[0], {inner_}, m_.kernel,
                                                m_.conv_bias, /*silu=*/true));
    const TensorId scanned = scan(mixed);
    const TensorId out =
        again(c_.g.elementwise(Function::gate, at_ + ".gated", {scanned, parts[1]}));
    return c_.linear({inside("out_proj"), {c_.hidden}, {inner_}, m_.bias}, out, c_.stream());
  }

 private:
  [[nodiscard]] std::string inside(const std::string& name) const {
    return GraphContext::inside(at_, name);
  }
  [[nodiscard]] Dims tokens_of(LabelId last) const { return {{c_.batch}, {c_.sequence}, {last}}; }

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
        c_.linear({inside("x_proj"), {narrow}, {inner_}}, mixed, tokens_of(narrow));
    const std::vector<TensorId> parts = c_.g.slices(at_ + ".x_proj.parts", all,
                                                    {{at_ + ".step_low", tokens_of(rank_)},
                                                     {at_ + ".b", tokens_of(state_)},
                                                     {at_ + ".c", tokens_of(state_)}},
                                                    {narrow, rank_, state_});
    const TensorId low = m_.norms ? readable(parts[0], "dt_layernorm", rank_) : parts[0];
    const TensorId b = readable(parts[1], "b_layernorm", state_);
    const TensorId c = readable(parts[2], "c_layernorm", state_);
    const TensorId step_weight = c_.g.parameter(inside("dt_proj") + ".weight", {{inner_}, {rank_}});
    TensorId step = again(c_.g.linear(inside("dt_proj"), low, step_weight, tokens_of(inner_)));
    if (m_.fixed_norms) {
      step = again(c_.norm({NormKind::rms_plain, ""}, inside("dt_layernorm"), step, {inner_}));
    }
    constexpr double operations = 9;
    return c_.g.scan(
        c_.is_decoding() ? Function::state_update : Function::selective_scan, at_ + ".scan",
        {.operands = {mixed, step, b, c, c_.g.parameter(at_ + ".A_log", {{inner_}, {state_}}),
                      c_.g.parameter(at_ + ".D", {{inner_}}),
                      c_.g.parameter(inside("dt_proj") + ".bias", {{inner_}})},
         .result = tokens_of(inner_),
         .kept = kept_states(),
         .whole = {c_.sequence, state_},
         .work = {{operations, {c_.batch, c_.sequence, inner_, state_}}},
         .state = c_.state(at_ + ".scan_state", {{c_.batch}, {inner_}, {state_}})});
  }

  // For the backward pass.
  std::vector<GraphBuilder::Scan::Kept> kept_states() {
    if (c_.options.cache) return {};
    constexpr std::int64_t between = 2048;  // tokens from one to the next
    const std::int64_t steps = (c_.g.label_size(c_.sequence) + between - 1) / between;
    const LabelId states = c_.label("kept_states", steps * 2 * m_.state);
    return {{at_ + ".scan.states", DType::f32, {{c_.batch}, {inner_}, {states}}}};
  }

  GraphContext& c_;
  const Mamba& m_;
  std::string at_;
  LabelId inner_, state_, rank_;
};

}  // namespace

TensorId add(GraphContext& c, const Mamba& m, TensorId x) { return MambaGraph(c, m).build(x); }

}  // namespace shardsim::models
