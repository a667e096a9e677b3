// The op graph: the tensors and operations of one step over labelled dimensions, unsharded.
//
// A label is a named dimension of the model with a size: batch, sequence, hidden, kv_heads, ... A
// tensor's dimension is a label or, where a framework stores several as one, a product of labels
// (major to minor): q_proj.weight of Llama is [kv_heads*group*head_dim, hidden] = [4096, 4096].
//
// An op says how its dimensions relate by using labels, which makes its labels its *factors* in the
// sense of Shardy (docs of openxla/shardy, sharding_representation.md):
//
//   einsum   x[batch, sequence, hidden]  w[kv_heads*group*head_dim, hidden]
//            -> q[batch, sequence, kv_heads, group, head_dim]
//
//   a factor in a result is parallel: sharding it shards the work;
//   a factor in operands only is summed: sharding it makes the result a partial sum;
//   a factor in `whole` must not be sharded (the op is not a sum over it);
//   a factor in a Statistic may be sharded at the price of reducing that small tensor.
//
// The sum is per result: attention's backward pass sums over `sequence` in dk and dv, not in dq. A
// factor that a Statistic runs over is not summed in results that lack it (a norm's rstd has no
// `hidden`).
//
// Nothing else about an op matters to the partitioner: no op-by-op table of special cases.
//
// A block is a kind: what is the same in many layers is stored once, with the numbers of the layers
// that are of this kind; "{}" in its names stands for the number. `order` lists which kind comes
// when. A layer that is treated otherwise than its neighbours (windowed, dense among experts) is of
// another kind. From each block to the next in the order values are carried: `carries_out` of one
// become `carries_in` of the next, whatever their kinds.
//
//   embedding, 5 windowed layers, 1 full layer, head:
//     blocks  embedding; model.layers.{} of 0 to 4; model.layers.{} of 5; head
//     order   embedding, windowed 0 .. 4, full 0, head
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/units.hpp"
#include "workloads/graph/functions.hpp"
#include "workloads/graph/tree_view.hpp"

namespace shardsim {

using LabelId = std::int32_t;
using TensorId = std::int32_t;
inline constexpr TensorId no_tensor = -1;

// What a label is for. Strategies go by it, never by names.
enum class LabelRole : std::uint8_t {
  none,
  batch,
  sequence,
  key_sequence,  // of keys and values, which attention takes whole
  hidden,        // width of the residual stream
  heads,         // of keys and values, each with `head_group` heads of queries where there are more
  head_group,
  mixer_groups,  // of heads of a scan that have keys in common: dealt out whole or not at all, with
                 // `head_group` heads each
  width,         // of a feed-forward layer or a mixer, between its first and its last product
  vocab,
  experts,       // of a mixture
  expert_tokens  // copies of a token, one for each expert that it visits
};

struct Label {
  std::string name;  // "batch", "hidden", ...
  std::int64_t size = 1;
  LabelRole role = LabelRole::none;
  // Of rows that some device has more of than others, as it has them: the part that the model asks
  // for, and the part that a device has for which memory is planned.
  double needed = 1;
  double held = 1;
};

// A dimension as the product of labels, major to minor. Never empty.
using Dim = std::vector<LabelId>;

enum class TensorRole : std::uint8_t {
  input,     // given each step: token ids, images, labels
  constant,  // rotary tables and the like, on every device
  buffer,    // state of a layer that is not trained, on every device: routing biases
  cache,     // what a layer keeps of the tokens before, of a step of inference
  parameter,
  activation,
  activation_gradient,
  parameter_gradient,
  optimizer_state
};

// Neither made by an op nor a parameter.
[[nodiscard]] constexpr bool is_given(TensorRole role) {
  return role == TensorRole::input || role == TensorRole::constant || role == TensorRole::buffer ||
         role == TensorRole::cache;
}

// Where an activation stands on the residual stream; says who builds the model.
enum class StreamMark : std::uint8_t {
  none,
  stream,  // what branches are added to
  branch   // what a norm makes of the stream, for a branch to read
};

struct Tensor {
  std::string name;  // parameters: the framework's, with "{}" for the layer
  TensorRole role = TensorRole::activation;
  DType dtype = DType::bf16;    // parameters: the dtype that ops compute with
  std::vector<Dim> dims;        // empty: a scalar
  int block = 0;                // where it is made, or for inputs and parameters first used
  TensorId primal = no_tensor;  // gradients and optimizer state: of which tensor; recomputed
                                // activations: the forward tensor they repeat
  StreamMark mark = StreamMark::none;
  TensorId copy_of = no_tensor;  // parameters: a second one of that one (shared_parameters.hpp)
  // Of an activation: made again in the backward pass, whatever the step keeps, as the fused kernel
  // that this is within does (Mamba's).
  bool remade = false;
  // Of an activation that backward reads: it lies in the memory of the host until then.
  bool on_host = false;
  // Each device goes on with the gradient that it has made of an activation, though others have
  // read it as well and nobody adds these up (a part of Megatron-Core's local latent attention).
  bool gradient_apart = false;
  bool trained = true;          // of a parameter: false is one without gradient and optimizer state
  bool stored_as_read = false;  // of a parameter: it is stored in `dtype`, whatever others are
  std::int32_t form = -1;       // of a parameter: index into the forms of Workload::view
};

// How an op sees a tensor: the labels of each dimension, normally those of the tensor. Attention
// reads keys' sequence under another label than queries'.
struct Operand {
  TensorId tensor = no_tensor;
  std::vector<Dim> dims;
};

// A small tensor that must be reduced over the devices when one of `over` is sharded.
struct Statistic {
  std::string name;  // "sum of squares", "maximum", ...
  std::vector<LabelId> over;
  std::vector<LabelId> dims;  // its own dimensions
  DType dtype = DType::f32;
  // All devices get those of all, to scale what they add up with (partial results of attention,
  // each with its logsumexp): results that lack `over` are sums nevertheless.
  bool is_gathered = false;
};

// `flops` at every point of the space that the labels of `over` span.
struct Operations {
  double flops = 0;
  std::vector<LabelId> over;
  friend bool operator==(const Operations&, const Operations&) = default;
};

// Types of weights that are not computed with in the compute dtype (Op::weight_dtype).
struct WeightTypes {
  std::optional<DType> norms;
  std::optional<DType> look_ups;
  friend bool operator==(const WeightTypes&, const WeightTypes&) = default;
};

// The module of a layer that an op is of, and which part of it; says who builds the model.
// Rematerialization goes by them, never by names (step/rematerialization.hpp). Ops of the backward
// pass are of what the forward op is of.
enum class OpModule : std::uint8_t {
  none,
  attention,
  mixer,  // a scan, a convolution
  mlp,
  experts,        // router, routed experts, what takes rows there and back
  shared_experts  // those that every token visits
};
enum class OpPart : std::uint8_t {
  none,
  input_norm,         // the norm of what a branch reads
  feed_forward_norm,  // of these those of MLPs and experts
  input_projection,   // of an attention: queries, keys, values
  query_latent,       // down to a latent, and its norm
  key_latent,         //
  from_latents,       // products from latents up to heads, their rotation, what joins the parts
  out_projection,     // of an attention
  first_product,      // of a feed-forward layer: up, gate, or both
  activation,         // and the product with the gate
  last_product
};

// A result that takes the storage of an operand.
struct InPlace {
  std::int8_t result = 0;
  std::int8_t operand = 0;
  bool is_read = true;  // what lay there before
  friend bool operator==(const InPlace&, const InPlace&) = default;
};

// Of a product of experts, over all tokens: so many matrices are read as tokens visit some expert.
// Of a routing that favours none a token misses an expert with probability 1 - share: all of t
// tokens visit E (1 - (1 - share)^t) of E.
struct Routing {
  double tokens = 0;
  double share = 1;  // of the experts that a token visits
  friend bool operator==(const Routing&, const Routing&) = default;
};

struct Op {
  Function function = Function::add;
  std::string name;  // "model.layers.{}.self_attn.q_proj"; backward and recomputed ops keep the
                     // name of the forward op they belong to
  std::vector<Operand> operands;
  std::vector<Operand> results;
  std::vector<LabelId> whole;
  std::vector<Statistic> statistics;
  std::vector<InPlace> in_place;
  bool view = false;       // results lie within the storage of operands[0]: no work, no memory
  bool drops = false;      // of attention: some of its probabilities
  bool recompute = false;  // repeats a forward op in the backward pass
  // In which a norm or a look-up takes its weights and makes their gradients, where that is not the
  // weights' own. A look-up reads a table of that type; a norm casts as it reads.
  std::optional<DType> weight_dtype;
  // In which a product takes its operands, where it casts them first; what lies in memory keeps its
  // type.
  std::optional<DType> multiplied_in;
  std::optional<Routing> routing{};
  // Part of its points really computed: 0.5 under a causal mask, 1 / experts of a grouped product.
  double work_fraction = 1;
  double documents = 1;  // of attention: that each sequence is of, on average (Documents)
  OpModule module = OpModule::none;
  OpPart part = OpPart::none;
  // What an op does that is several products, each over a space of its own, as a scan in chunks; in
  // place of the table's operations.
  std::vector<Operations> work;
};

// A kind of block.
struct Block {
  std::string name;       // "model.layers.{}"
  bool is_layer = false;  // a unit that FSDP wraps; what is none belongs to the root
  // A module that several blocks run, one after the other, is one too (ALBERT's layers).
  std::string runs_module = {};
  // What "{}" stands for in each of its instances, ascending; one entry, in no name, of what is no
  // layer.
  std::vector<std::int32_t> numbers = {0};
  std::vector<TensorId> carries_in;  // empty in the first block
  std::vector<TensorId> carries_out;
  std::vector<Op> forward;
  std::vector<Op> backward;   // filled by add_backward, in execution order
  std::vector<Op> optimizer;  // filled by add_optimizer: one op per parameter owned by the block

  [[nodiscard]] std::int64_t instances() const { return static_cast<std::int64_t>(numbers.size()); }
};

// A block at its place in the model.
struct BlockInstance {
  std::int32_t block = 0;    // index into Workload::blocks
  std::int32_t ordinal = 0;  // index into Block::numbers
  friend bool operator==(const BlockInstance&, const BlockInstance&) = default;
};

// Of one pass forward and backward, and the optimizer; a step may pass several times, each over its
// part of the batch (step/step.hpp).
struct Workload {
  std::string model;  // "llama-3.1-8b"
  std::vector<Label> labels;
  std::vector<Tensor> tensors;
  std::vector<Block> blocks;  // in the order in which they first come
  std::vector<BlockInstance>
      order;  // from the first to the last, every instance of each block once
  TensorId loss = no_tensor;
  std::vector<TensorId> further_losses;  // whose gradients are added; of multi-token prediction
  std::int64_t tokens = 0;         // that go through it; 0 where they have no meaning (images)
  std::vector<TensorId> outputs;   // of every example: they leave the step beside loss and state
  std::vector<std::string> notes;  // what of the model's description is left out, for the reader
  std::optional<TreeView> view{};  // as rule systems see the parameters; nothing: as they are

  [[nodiscard]] std::vector<std::int64_t> shape(const std::vector<Dim>& dims) const;
  [[nodiscard]] std::int64_t elements(const std::vector<Dim>& dims) const;
  [[nodiscard]] Bytes bytes(TensorId tensor) const;
  [[nodiscard]] LabelId label(std::string_view name) const;  // asserts that it exists
};

// "model.layers.{}.mlp" of layer 3: "model.layers.3.mlp".
[[nodiscard]] std::string instance_name(std::string name, std::int64_t number);
// Which block follows which, each pair once, in order of first appearance. A kind may follow
// itself.
struct Succession {
  std::size_t before = 0;
  std::size_t after = 0;
  friend bool operator==(const Succession&, const Succession&) = default;
};
[[nodiscard]] std::vector<Succession> successions(const Workload& workload);
// The vocabulary, padded to a multiple; a note says so where it grows. Of frameworks that pad it.
void pad_vocabulary(Workload& workload, std::int64_t multiple);
// All parameters, in order of first use, those that nothing reads last. A parameter of a layer is
// there once for each number.
struct ParameterView {
  TensorId tensor = no_tensor;
  std::vector<std::int64_t> shape;    // as the framework stores it
  std::vector<std::int32_t> numbers;  // of the layers that have it (Block::numbers)

  [[nodiscard]] std::int64_t instances() const { return static_cast<std::int64_t>(numbers.size()); }
};
[[nodiscard]] std::vector<ParameterView> parameters(const Workload& workload);
// Copies are not counted.
[[nodiscard]] std::int64_t parameter_count(const Workload& workload);
// Whether it has a backward pass: a training step, not a forward one.
[[nodiscard]] bool has_backward(const Workload& workload);
// Labels of an op, in order of first appearance in operands, then results.
[[nodiscard]] std::vector<LabelId> factors(const Op& op);
// Operations per point of the space that the op's labels span: the function's, but for attention
// whose values are of another size than its keys. Its products over head_dim d are not over the
// values' v and the other way round: forward 2/v + 2/d, backward 6/v + 4/d.
[[nodiscard]] double flops_per_point(const Workload& workload, const Op& op);
// Operations of one pass on all devices, forward and backward, recomputation left out: the
// numerator of MFU. `needed` counts of attention what its mask leaves, half of it under a causal
// one; `full_attention` all of it, as PaLM does (arXiv:2204.02311, appendix B). Where there is no
// backward pass the forward one alone; optimizer not counted, nor scans, as in what a model is made
// of (models/walk.hpp).
struct ModelFlops {
  Flops needed{0};
  Flops full_attention{0};
  friend bool operator==(const ModelFlops&, const ModelFlops&) = default;
};
[[nodiscard]] ModelFlops model_flops(const Workload& workload);

}  // namespace shardsim
