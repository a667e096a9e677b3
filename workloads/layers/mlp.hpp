// Feed-forward layers: down(act(gate(x)) * up(x)), or down(act(up(x))) without a gate.
//
// Example: Llama 3.1 8B, T = 4096, f = 14336: 6Thf FLOPs forward; kept are x (2Th, shared with whom
// else reads it) and gate, act(gate), up, their product (2Tf each).
#pragma once

#include <string>

#include "workloads/eager/eager.hpp"
#include "workloads/layers/adapters.hpp"
#include "workloads/layers/norm.hpp"

namespace shardsim::models {

enum class MlpForm : std::uint8_t {
  plain,
  gated,
  fused_gate,  // one matrix [2f, h], gate first
};

struct Mlp {
  std::string name = "mlp";
  std::int64_t width = 0;
  MlpForm form = MlpForm::gated;
  std::string activation = "silu";
  bool bias = false;
  bool bias_apart = false;   // added after the product, not in it
  bool down_bias = false;    // of the last product, where the others have none
  bool conv1d = false;       // weights [in, out]
  double dropout = 0;        // of the result
  double inner_dropout = 0;  // of act(...)
  bool sparse =
      false;  // what the gate gives counts from so many deviations above the mean (Gemma 3n)
  bool limited = false;  // gate and up are clamped first
  bool wide = false;     // act(gate) * up in fp32, of a gate and up that are cast (Beam)
  // Of fused_gate: (up + 1) * gate * sigmoid(a gate), both clamped first (GPT-OSS', MiniMax M3).
  bool clamped = false;
  std::string gate = "gate_proj";
  std::string up = "up_proj";  // of fused_gate: both
  std::string down = "down_proj";
  Norm inner_norm{};    // of what down reads
  Adapters adapters{};  // of fused_gate

  bool operator==(const Mlp&) const = default;
};

Value run(Eager& e, const Mlp& mlp, const Value& x);

// A linear module: weight [out, in] and, where asked for, bias [out].
Value run_linear(Eager& e, std::string_view name, const Value& x, std::int64_t out, bool bias,
                 bool bias_apart = false);
// GPT-2's Conv1D: weight [in, out].
Value run_conv1d(Eager& e, std::string_view name, const Value& x, std::int64_t out);

}  // namespace shardsim::models
