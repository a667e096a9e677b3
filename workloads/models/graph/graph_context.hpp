// What the components of one decoder's op graph share: the builder, the labels that all of them
// have, where they stand in the model.
//
// A component is a function add(context, what, x): it adds labels, parameters and ops for x of
// [batch, sequence, hidden] and gives a tensor of the same dims, which its branch adds to the
// stream. Names and shapes of parameters are those that the description's walk gives (walk.hpp).
//
// An op is one kernel, whatever number of operators a class of transformers needs for it: a norm is
// one, so is attention with its window, soft cap, bias of distances or sinks (FlashAttention 2 and
// FlexAttention do all of these in one). A note says so where transformers has none that does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/graph/graph_builder.hpp"
#include "workloads/models/build.hpp"
#include "workloads/models/spec.hpp"

namespace shardsim::models {

using Dims = GraphBuilder::Dims;

// Throws InputError: "LlamaForCausalLM has no op graph yet: COMPONENT".
[[noreturn]] void throw_no_graph(const ModelSpec& spec, const Place& place,
                                 std::string_view component);

class GraphContext {
  struct KnownLabel {
    std::string name;
    std::int64_t size;
    LabelId id;
  };
  std::vector<KnownLabel> labels_;  // before what is made of them
  std::vector<std::string> notes_;

 public:
  GraphContext(const ModelSpec& model, const WorkloadOptions& workload_options, const Place& at);

  // Kinds of layers share the labels that are alike; the second size of a name is "name_2".
  LabelId label(const std::string& name, std::int64_t size, LabelRole role = LabelRole::none);
  [[noreturn]] void refuse(std::string_view component) const;
  void refuse_if(bool has, std::string_view component) const;
  // Once, however often it is said.
  void note(const std::string& text);

  [[nodiscard]] Dims stream() const { return {{batch}, {sequence}, {hidden}}; }
  // "mlp" in the current layer: "model.layers.{}.mlp"; a module without a name is its parent.
  [[nodiscard]] std::string inside(const std::string& name) const;
  [[nodiscard]] static std::string inside(const std::string& scope, const std::string& name);

  // nn.Linear: weight [out, in], bias [out]; Conv1D: weight [in, out].
  struct Linear {
    std::string name;  // full
    Dim out;
    Dim in;
    bool bias = false;
    bool conv1d = false;
  };
  TensorId linear(const Linear& module, TensorId x, Dims result);
  // `name` is full. Over the labels of `over`, which as one dimension are the weight's unless
  // `weight` says otherwise (a weight for each head).
  TensorId norm(const Norm& norm, const std::string& name, TensorId x,
                const std::vector<LabelId>& over, const Dims& weight = {});
  // nn.Conv1d, depthwise and causal, of `taps` tokens: weight [channels, 1, taps], bias [channels];
  // with silu in the same kernel or without. `name` is full.
  TensorId convolution(const std::string& name, TensorId x, const Dim& channels, std::int64_t taps,
                       bool bias, bool silu);
  // act(x), under a full name.
  TensorId activate(const std::string& activation, const std::string& name, TensorId x);
  // Is anything dropped where the model's own rate is this one?
  [[nodiscard]] bool drops(double rate) const;
  // x, or some of it.
  TensorId dropped(const std::string& name, TensorId x, double rate);
  // gate * up, under a full name.
  TensorId gated(const std::string& name, TensorId gate, TensorId up);

  const ModelSpec& spec;
  const WorkloadOptions& options;
  const Place& place;
  GraphBuilder g;
  LabelId batch, sequence, key_sequence, hidden, vocab;
  std::string layer;  // the current kind's, "model.layers.{}"

  struct RotaryTable {  // of the current kind's layers
    LabelId dims = 0;
    TensorId cos = no_tensor;
    TensorId sin = no_tensor;
  };
  std::vector<RotaryTable> rotary;
};

// For the components of layers.
TensorId add(GraphContext& c, const Attention& a, TensorId x);
TensorId add(GraphContext& c, const Mlp& m, TensorId x);
TensorId add(GraphContext& c, const LatentAttention& a, TensorId x);
TensorId add(GraphContext& c, const Experts& m, TensorId x);
TensorId add(GraphContext& c, const Mamba& m, TensorId x);
TensorId add(GraphContext& c, const Mamba2& m, TensorId x);
TensorId add(GraphContext& c, const DeltaNet& n, TensorId x);
TensorId add(GraphContext& c, const ShortConvolution& m, TensorId x);

// What is approximate about scans in chunks, for the reader.
inline constexpr const char* chunked_scan_note =
    "a scan in chunks is one kernel, at the efficiency of matmuls; states of its chunks are "
    "written "
    "once";

// Rotary positions of q and k, whose last label is `head_dim`; the first `rotary.dims` of it.
void turn(GraphContext& c, const Rotary& rotary, const std::string& at, LabelId head_dim,
          TensorId& q, TensorId& k);

// The part of all pairs of queries and keys that a causal mask and a window (0: none) leave.
// Query i of s sees min(i + 1, w) keys. In the convention in which the causal mask leaves s^2 / 2
// pairs, these are w s - w^2 / 2: of s^2 the share r (1 - r/2) with r = w / s.
[[nodiscard]] double attention_fraction(std::int64_t window, std::int64_t sequence);

}  // namespace shardsim::models
