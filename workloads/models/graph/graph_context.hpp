// What the components of one model's op graph share: the builder, the labels that all of them
// have, where they stand in the model.
//
// A component is a function add(context, what, x): it adds labels, parameters and ops for x of
// [batch, sequence, hidden] and gives a tensor of the same dims, which its branch adds to the
// stream. Names and shapes of parameters are those that the description's walk gives (walk.hpp).
// Sequence and width are those of the stack that is being built. Beside the stream, blocks hand on
// what later ones read: an encoder's states, a bias of distances.
//
// An op is one kernel, whatever number of operators a class of transformers needs for it: a norm is
// one, so is attention with its window, soft cap, bias of distances or sinks (FlashAttention 2 and
// FlexAttention do all of these in one). A note says so where transformers has none that does.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
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
    double held = 1;
  };
  std::vector<KnownLabel> labels_;  // before what is made of them
  LabelId label(const std::string& name, std::int64_t size, LabelRole role, double held);
  std::vector<std::string> notes_;

 public:
  GraphContext(const ModelSpec& model, const WorkloadOptions& workload_options, const Place& at);

  // Kinds of layers share the labels that are alike; the second size of a name is "name_2".
  LabelId label(const std::string& name, std::int64_t size, LabelRole role = LabelRole::none);
  // Rows of experts on the device that has most: needed and held as Label has them.
  LabelId slots(std::int64_t size, double needed, double held);
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
  // Its parameters, of a module that this step does not run.
  void stored(const Linear& module);
  // `name` is full. Over the labels of `over`, which as one dimension are the weight's unless
  // `weight` says otherwise (a weight for each head).
  TensorId norm(const Norm& norm, const std::string& name, TensorId x,
                const std::vector<LabelId>& over, const Dims& weight = {});
  // nn.Conv1d, depthwise and causal, of `taps` tokens: weight [channels, 1, taps], bias [channels];
  // with silu in the same kernel or without. `name` is full. In steps of inference the last `taps`
  // tokens are kept, or as many as `kept` says.
  TensorId convolution(const std::string& name, TensorId x, const Dim& channels, std::int64_t taps,
                       bool bias, bool silu, std::optional<std::int64_t> kept = {});
  // The current stack's labels from here on.
  void enter(const Stack& stack);
  // Of all pairs of queries and keys of the current stack, those within documents; of each, what
  // `fraction` (attention_fraction, bidirectional_fraction) leaves.
  [[nodiscard]] double seen_pairs(double (*fraction)(std::int64_t window, std::int64_t sequence),
                                  std::int64_t window) const;
  // In each sequence, on average; 1 where it is one.
  [[nodiscard]] double documents_of_sequence() const;
  // Is it a step of inference behind tokens that are kept?
  [[nodiscard]] bool is_decoding() const { return options.cache && options.cache->context > 0; }
  // What a mixer keeps of each sequence, in steps of inference; none in others.
  GraphBuilder::State state(const std::string& name, Dims dims);
  // Rows that lie side by side go behind those that are kept of `window` tokens (0: all). Answers
  // what there is of them, [batch, tokens, ...] of `dims`, which have `sequence` for tokens.
  TensorId keep(const std::string& name, const std::vector<TensorId>& rows, Dims dims,
                std::int64_t window = 0);
  // The tokens that are seen: behind a context those that are kept, of a window.
  LabelId seen_tokens(std::int64_t window = 0);
  // What a stack leaves: its norm, of all rows or the first alone, then the row that is picked.
  TensorId leave_stack(const Stack& stack, const std::string& name, TensorId x);
  // [batch, hidden] of x's first rows: a view.
  TensorId first_row(const std::string& name, TensorId x);
  // A table of embeddings, of which the head's weight may be another name.
  TensorId token_table(const TokenEmbedding& input);
  // The name by which a tied tensor goes, of the full name of the embedding's.
  [[nodiscard]] std::string table_name(const std::string& name) const;
  [[nodiscard]] LabelId vocab() { return label("vocab", spec.head.vocab, LabelRole::vocab); }
  // Of logits, cast to fp32 or as they are; labels enter the step.
  TensorId cross_entropy(TensorId logits, LabelId classes, bool fp32);

  // act(x), under a full name; what it learns lies in `module`.
  TensorId activate(const std::string& activation, const std::string& name, TensorId x,
                    const std::string& module = {});
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
  LabelId batch, sequence = 0, key_sequence = 0, hidden = 0;
  std::int64_t tokens = 0;         // of the sequence, without padding
  std::optional<LabelId> reads{};  // the width of what a module reads, where it is not `hidden`
  [[nodiscard]] LabelId read_width() const { return reads.value_or(hidden); }
  bool decodes = false;   // the current stack reads what an encoder made
  bool encodes = false;   // or is one
  std::string layer;      // the current kind's, "model.layers.{}"
  LabelId distances = 0;  // of the current stack's rows of distances, where it has any
  double distance_dropout = 0;

  struct RotaryTable {  // of the current kind's layers
    LabelId dims = 0;
    TensorId cos = no_tensor;
    TensorId sin = no_tensor;
  };
  std::vector<RotaryTable> rotary;

  struct Beside {  // handed from block to block; `id` in the current one
    std::string name;
    TensorId id = no_tensor;
    LabelId sequence = 0, keys = 0, hidden = 0;  // of an encoder's states
  };
  std::vector<Beside> beside;
  std::set<std::string> ended;  // of these, what nobody reads behind the current stack
  // In decoding steps, whose encoder does not run: the labels of its states.
  std::optional<Beside> encoder;

 private:
  [[nodiscard]] std::int64_t places(std::int64_t window) const;
};

// Rows of [batch, sequence, hidden] that enter the current stack (input_graph.cpp).
TensorId enter(GraphContext& c, const TokenEmbedding& input);
TensorId enter(GraphContext& c, const PatchEmbedding& input);
TensorId enter(GraphContext& c, const AudioStem& input);
TensorId enter(GraphContext& c, const MaskedRows& input);
TensorId enter(GraphContext& c, const NoInput& input);
// [sequence, key_sequence, heads] of the table of distances `name`, a full one, of which an
// attention of such heads reads a bias.
TensorId add_relative_rows(GraphContext& c, const std::string& name, std::int64_t buckets,
                           const Attention& a);
// Of distances, what the stack's layers hand on: a bias, or rows that they project.
void add_relative_bias(GraphContext& c, const Stack& stack);
// Alternating updates (altup_graph.cpp); streams are [streams, batch, sequence, hidden].
TensorId spread_streams(GraphContext& c, const AltUpEnds& ends, TensorId x);
TensorId gather_streams(GraphContext& c, const AltUpEnds& ends, TensorId x);
TensorId predict_streams(GraphContext& c, const AltUp& altup, TensorId x);
TensorId active_stream(GraphContext& c, const AltUp& altup, TensorId predictions);
TensorId correct_streams(GraphContext& c, const AltUp& altup, TensorId predictions,
                         TensorId activated);
TensorId first_scaled(GraphContext& c, const AltUp& altup, TensorId corrected);
TensorId add_to_streams(GraphContext& c, const AltUp& altup, TensorId streams, TensorId x);
TensorId add(GraphContext& c, const Laurel& laurel, TensorId x);
// Hyper-connections (layer_graph.cpp); streams are [batch, sequence, streams, hidden].
TensorId spread_streams(GraphContext& c, const HyperConnections& hyper, TensorId x);
TensorId gather_streams(GraphContext& c, const HyperConnections& hyper, TensorId x);
// Inputs of all layers beside the stream, for blocks to hand on; x enters the stack.
void add_per_layer_inputs(GraphContext& c, const Stack& stack, TensorId x);
// What a block is handed under this name; null where it is not (score_graph.cpp).
[[nodiscard]] const GraphContext::Beside* find_handed(const GraphContext& c, std::string_view name);
// Of stacks of images beside text, projectors, tokens of masks: they are stored, not trained.
void add_what_does_not_run(GraphContext& c, const std::vector<const Stack*>& running);
// Of a layer that runs a branch that does not, within the layer.
void add_silent_branch(GraphContext& c, const Stack& stack, const LayerKind& kind,
                       const Branch& branch);
// One of the stack's layers (layer_graph.cpp): the stream behind it.
TensorId add_layer(GraphContext& c, const Stack& stack, const LayerKind& kind, TensorId x);
// What a block that layers share makes of the stream (shared_block_graph.cpp); what a layer's own
// pair of adapters adds to a projection of x.
TensorId add_shared_block(GraphContext& c, const SharedBlock& block, TensorId x);
TensorId add_adapter(GraphContext& c, const Adapters& adapters, const std::string& list, TensorId x,
                     TensorId projected, const Dim& out);
// [batch, hidden] of what a learned row sees of x.
TensorId add_pool(GraphContext& c, const AttentionPool& pool, TensorId x);
// The loss, or in steps of inference the next token. A language model's head reads what the last
// layer leaves, the others what the stack does.
TensorId add_language_head(GraphContext& c, const Stack& stack, TensorId x);
TensorId add_head(GraphContext& c, const Stack& stack, TensorId x);

// For the components of layers.
TensorId add(GraphContext& c, const Attention& a, TensorId x);
TensorId add(GraphContext& c, const Mlp& m, TensorId x);
// Its two halves: all but the last product, [batch, sequence, width], and that.
TensorId add_inner(GraphContext& c, const Mlp& m, TensorId x);
TensorId add_last_product(GraphContext& c, const Mlp& m, TensorId inner);
// Of a mixture's shared experts (shared_experts_graph.cpp): likewise two halves.
TensorId begin_shared_experts(GraphContext& c, const Experts& m, TensorId x);
TensorId end_shared_experts(GraphContext& c, const Experts& m, TensorId x, TensorId inner);
TensorId add(GraphContext& c, const LatentAttention& a, TensorId x);
TensorId add(GraphContext& c, const Experts& m, TensorId x);
TensorId add(GraphContext& c, const Mamba& m, TensorId x);
TensorId add(GraphContext& c, const Mamba2& m, TensorId x);
TensorId add(GraphContext& c, const DeltaNet& n, TensorId x);
TensorId add(GraphContext& c, const ShortConvolution& m, TensorId x);
TensorId add(GraphContext& c, const RecurrentBlock& b, TensorId x);
TensorId add(GraphContext& c, const AttentionExperts& a, TensorId x);
TensorId add(GraphContext& c, const PerLayerGate& gate, TensorId x);
TensorId add(GraphContext& c, const Mixer& mixer, TensorId x);  // sketch_graph.cpp

// What is approximate about scans in chunks, for the reader.
inline constexpr const char* chunked_scan_note =
    "a scan in chunks is one kernel, at the efficiency of matmuls; states of its chunks are "
    "written "
    "once";

// Rotary positions of q and k, whose last label is `head_dim`; the first `rotary.dims` of it.
void turn(GraphContext& c, const Rotary& rotary, const std::string& at, LabelId head_dim,
          TensorId& q, TensorId& k);

// Queries times a number of each position.
TensorId scale_by_position(GraphContext& c, const std::string& name, TensorId q);

// The part of all pairs of queries and keys that a causal mask and a window (0: none) leave.
// Query i of s sees min(i + 1, w) keys. In the convention in which the causal mask leaves s^2 / 2
// pairs, these are w s - w^2 / 2: of s^2 the share r (1 - r/2) with r = w / s.
[[nodiscard]] double attention_fraction(std::int64_t window, std::int64_t sequence);
// The same without a causal mask: a window of w lies around each query, w / 2 on either side, and
// leaves w s - w^2 / 4 pairs: r (1 - r/4). All where there is none.
[[nodiscard]] double bidirectional_fraction(std::int64_t window, std::int64_t sequence);

}  // namespace shardsim::models
