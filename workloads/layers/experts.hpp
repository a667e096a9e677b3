// Mixtures of experts: a router picks `per_token` of `experts` MLPs for each token; their outputs,
// weighted, are summed; shared experts see every token.
//
// Routed rows are tokens x per_token whatever the routing, sorted by expert and run as grouped
// matmuls over stacked weights [experts, 2f, h] and [experts, h, f] (transformers'
// grouped_mm_experts_forward). Kept, of S = T * per_token rows: what is gathered (2Sh), gate and up
// (4Sf), act(gate) and the product (2Sf each), the result (2Sh) and indices.
//
// Example: Mixtral 8x7B, T = 4096: S = 8192, f = 14336: 2.9 TFLOP a layer, 45.1 of 46.7 B
// parameters routed, of which a token visits 2 of 8.
#pragma once

#include <optional>
#include <string>

#include "workloads/eager/eager.hpp"
#include "workloads/layers/mlp.hpp"
#include "workloads/layers/norm.hpp"

namespace shardsim::models {

enum class RouterScores : std::uint8_t {
  softmax,            // of all logits in fp32, then the largest
  sigmoid,            // of all logits, then the largest
  sqrt_softplus,      // likewise sqrt(softplus(logits)) (DeepSeek-V4)
  softmax_of_top,     // the largest logits, then their softmax
  sigmoid_of_picked,  // the largest logits, then their sigmoid (Kolibri)
  sigmoid_of_top,     // the largest logits kept of all, then their sigmoid (Llama 4)
  sparse_mixer        // the largest twice, each with noise (Phi-3.5-MoE)
};

enum class Renormalize : std::uint8_t {
  no,
  in_place,  // weights /= sum: a copy of them is kept
  clamped,   // weights / max(sum, least)
  offset     // weights / (sum + least)
};

struct Router {
  std::string name = "gate";
  RouterScores scores = RouterScores::softmax;
  Renormalize renormalize = Renormalize::no;
  bool fp32 = false;         // logits from copies of input and weight in fp32
  bool bias = false;         // of the logits
  bool fp32_weight = false;  // the parameter itself is fp32; the input is cast
  bool fp32_logits = false;  // logits cast to fp32 afterwards
  bool cast_back = false;    // weights in the model's type
  // Whether a softmax is computed in fp32: that of all logits is, that of the largest is not,
  // unless this says otherwise.
  std::optional<bool> fp32_softmax{};
  bool masked = false;  // scores outside of chosen groups set to 0
  // Groups that are looked at, and of them chosen, where autograd follows the choice: the numbers
  // of each group's two largest (of the largest where `masked`) and of the groups are kept, and
  // which scores are blanked.
  std::int64_t groups = 0, chosen_groups = 0;
  std::string correction_bias{};         // buffer that moves the choice; empty: none
  bool correction_is_parameter = false;  // that is not trained
  bool correction_flat = false;          // of shape [experts], not [1, experts]
  // A buffer [table_rows, per_token] that says which experts a token's number visits; empty: the
  // largest scores do (DeepSeek-V4's first layers).
  std::string table{};
  std::int64_t table_rows = 0;
  // Gemma 4's: a norm of what it reads, a factor of each of its channels and one of each expert's
  // weight; names lie in the mixture's module.
  Norm norm{};
  std::string scale{}, expert_scale{};

  bool operator==(const Router&) const = default;
};

enum class ExpertsGate : std::uint8_t {
  gated,    // act(gate) * up
  plain,    // act(up)
  limited,  // act(gate) * up, both clamped before (DeepSeek-V4)
  wide,     // act(gate) * up in fp32 (Beam)
  clamped   // GPT-OSS: (up + 1) * gate * sigmoid(alpha * gate), both clamped
};

// How the matrices of all experts lie in the module tree. A step multiplies by stacks of them.
enum class ExpertMatrices : std::uint8_t {
  stacked,  // gate and up [experts, 2f, h], down [experts, h, f]
  rows,     // gate, up and down apart, [experts * f, h] each (DBRX)
  modules   // linear modules of each expert: experts.expert_3.wi (Switch)
};

struct Experts {
  std::string name = "mlp";
  std::string experts_name = "experts";
  std::int64_t experts = 0;
  std::int64_t per_token = 0;
  std::int64_t width = 0;
  std::string activation = "silu";
  Router router{};
  ExpertsGate gate = ExpertsGate::gated;
  bool bias = false;
  bool transposed = false;        // weights [experts, in, out]
  bool weights_on_input = false;  // rows are weighted before the experts, not after
  ExpertMatrices matrices = ExpertMatrices::stacked;
  std::string gate_up = "gate_up_proj", down = "down_proj";
  std::string gate_apart{};  // of rows: the gate's, gate_up is then up's alone
  std::string out_bias{};    // of what comes out, [h]; empty: none
  // Rows as experts read and give them, where these are not the stream's (Nemotron 3 Super): a
  // product of the stream before and one back behind.
  std::int64_t latent = 0;
  std::string into_latent = "fc1_latent_proj", out_of_latent = "fc2_latent_proj";
  bool latent_bias = false;
  double inner_dropout = 0;  // of what the last product reads
  // Experts that give back what they get (LongCat-Flash), beside `experts`: the router knows them
  // as well, and a token visits so many of them on top of `per_token`. The stack of gates has
  // matrices of theirs, which nothing reads.
  std::int64_t zeros = 0, zeros_per_token = 0;
  // Of rows that are exchanged, those of the busiest device's experts over an even share, and the
  // part of these for which memory is planned; 0: as the step says of all layers.
  double load = 0, held = 1;
  Norm rows_norm{};  // of what experts read; the router reads what enters
  std::optional<Mlp> shared{};
  bool shared_outside = false;    // its module lies beside the mixture's
  std::string correction_bias{};  // the router's, where the mixture's module holds it
  std::string shared_gate{};      // one row that scales the shared expert
  bool shared_averaged = false;   // half of the sum with the shared expert
  bool result_scaled = false;     // what routed experts give, times a number

  [[nodiscard]] std::int64_t routed_to() const { return experts + zeros; }
  [[nodiscard]] std::int64_t visits() const { return per_token + zeros_per_token; }
  bool operator==(const Experts&) const = default;
};

// Weights of the experts that each of x's rows [T, h] visits, [T, per_token].
Value route(Eager& e, const Experts& mixture, const Value& x);
Value run(Eager& e, const Experts& mixture, const Value& x);

}  // namespace shardsim::models
