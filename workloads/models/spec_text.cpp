#include <fmt/format.h>

#include "workloads/models/patterns.hpp"
#include "workloads/models/spec.hpp"

namespace shardsim::models {
namespace {

std::string of_mlp(const Mlp& mlp) {
  return fmt::format("{}MLP of {}, {}{}", mlp.form == MlpForm::plain ? "" : "gated ", mlp.width,
                     mlp.activation, mlp.bias ? ", biases" : "");
}

struct Describe {
  std::string operator()(const Attention& a) const {
    std::string text =
        fmt::format("{}attention, {} heads of {}", a.cross ? "cross " : "", a.heads, a.head_dim);
    if (a.kv_heads != a.heads) text += fmt::format(", {} of keys", a.kv_heads);
    if (a.rotary.dims > 0) text += fmt::format(", rotary {}", a.rotary.dims);
    if (a.bidirectional) text += ", both ways";
    if (a.window > 0) text += fmt::format(", window {}", a.window);
    if (a.q_norm.exists()) text += ", queries and keys normed";
    if (a.soft_cap > 0) text += fmt::format(", soft cap {}", a.soft_cap);
    if (a.sinks) text += ", sinks";
    if (!a.reads.empty()) text += fmt::format(", keys and values of {}", a.reads);
    if (a.gate || !a.gate_name.empty()) text += ", gated";
    return text;
  }
  std::string operator()(const LatentAttention& a) const {
    std::string text =
        fmt::format("latent attention, {} heads of {} + {}, values {}, ranks {} and {}", a.heads,
                    a.nope_dim, a.rope_dim, a.value_dim, a.q_rank, a.kv_rank);
    if (a.chosen > 0) text += fmt::format(", of {} keys that an index picks", a.chosen);
    return text;
  }
  std::string operator()(const AttentionExperts& a) const {
    return fmt::format("attention, {} of {} experts of {} heads of {}", a.per_token, a.experts,
                       a.kv_heads, a.head_dim);
  }
  std::string operator()(const Mlp& mlp) const { return of_mlp(mlp); }
  std::string operator()(const Experts& m) const {
    std::string text =
        fmt::format("{} of {} experts of {}, {}", m.per_token, m.experts, m.width, m.activation);
    if (m.shared) text += ", shared " + of_mlp(*m.shared);
    return text;
  }
  std::string operator()(const Mamba& m) const {
    return fmt::format("Mamba, {} channels, state {}", m.inner, m.state);
  }
  std::string operator()(const Mamba2& m) const {
    return fmt::format("Mamba-2, {} heads of {}, state {}, {} groups", m.heads, m.head_dim, m.state,
                       m.groups);
  }
  std::string operator()(const DeltaNet& n) const {
    return fmt::format("gated delta rule, {} heads of {} x {}", n.value_heads, n.key_dim,
                       n.value_dim);
  }
  std::string operator()(const RecurrentBlock& b) const {
    return fmt::format("recurrent block, {} channels in {} heads", b.width, b.heads);
  }
  std::string operator()(const PerLayerGate& gate) const {
    return fmt::format("a gate of the layer's own inputs, {}", gate.width);
  }
  std::string operator()(const Mixer& mixer) const { return models::to_text(mixer); }
  std::string operator()(const ShortConvolution& c) const {
    return fmt::format("short convolution of {}", c.kernel);
  }
};

std::string of_branch(const Branch& branch) {
  std::string text;
  if (branch.before.exists()) text += fmt::format("{}, ", name_of(branch.before.kind));
  text += std::visit(Describe{}, branch.body);
  if (branch.shortcut) text += ", past the layer " + std::visit(Describe{}, *branch.shortcut);
  if (branch.beside) text += " beside " + std::visit(Describe{}, *branch.beside);
  if (branch.after.exists()) text += fmt::format(", {}", name_of(branch.after.kind));
  if (branch.joined.exists()) text += fmt::format(", {} of the sum", name_of(branch.joined.kind));
  return text;
}

// "0-4,6" of the layers that are of this kind.
std::string places_of(const Stack& stack, int kind) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < stack.order.size(); ++i) {
    if (stack.order[i] == kind) names.push_back("." + std::to_string(i));
  }
  return fold_patterns(names, std::vector<std::string>(names.size())).front().sets.front();
}

}  // namespace

std::string to_text(const ModelSpec& spec) {
  std::string text;
  if (spec.network) text += to_text(*spec.network);
  for (const Stack& stack : spec.stacks) {
    text += fmt::format("{}, width {}{}\n", stack.prefix, stack.hidden,
                        stack.role == StackRole::silent ? ", not run" : "");
    for (std::size_t k = 0; k < stack.kinds.size(); ++k) {
      const LayerKind& kind = stack.kinds[k];
      text += fmt::format("  {}: {}{}\n", places_of(stack, static_cast<int>(k)), kind.name,
                          kind.parallel ? ", branches in parallel" : "");
      if (kind.shared) {
        text += fmt::format("    shared block: {}, {}\n", Describe{}(kind.shared->attention),
                            Describe{}(kind.shared->mlp));
      }
      for (const Branch& branch : kind.branches) text += fmt::format("    {}\n", of_branch(branch));
    }
  }
  return text;
}

}  // namespace shardsim::models
