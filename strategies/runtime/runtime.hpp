// A runtime: how what lies in shards is moved, whatever the layout is. A layout says where every
// tensor lies and so what has to be gathered and reduced; a runtime says when, in which calls and
// for how long what was gathered is kept.
//
// Example, FSDP2 as torch's fully_shard has it:
//   gathers     a unit in one call, in the compute dtype, one unit ahead of the one that computes;
//               given back after forward and gathered again in backward, but for the root
//   reductions  a unit's gradients in one call, in every microbatch
// XLA's programs gather and reduce tensor by tensor, and keep what forward has gathered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardsim {

// What one call moves.
enum class Grain : std::uint8_t {
  unit,  // all parameters of a layer, or of the root
  tensor,
  bucket  // gradients alone: a part of the buffer that they lie in (GradientBuffer)
};

// Which parameters are one unit (units.hpp).
enum class UnitsOf : std::uint8_t {
  layers,              // each layer; all else is the root
  layers_and_ends,     // and the embedding, and the norm with the head (torchtitan)
  embedding_and_head,  // and the embedding, and the head; the norm remains the root's
  model                // all in one
};

// How long forward keeps what it gathers.
enum class Kept : std::uint8_t {
  forward,  // until its pass of the unit ends; backward gathers again
  backward  // until the backward pass has read it
};
// In a pipeline what backward has read stays, for the next microbatch, until the last microbatch's
// backward gives it back (torch.distributed.pipelining sets reshard_after_backward to False but for
// the last): the forward that comes next need not gather.

// In which type parameters travel.
enum class GatherDType : std::uint8_t {
  compute,  // shards are cast before
  stored    // what was gathered is cast
};

// Gradients that are reduced in every microbatch; the others are added up on each device first.
enum class ReduceEachMicrobatch : std::uint8_t {
  all,     // FSDP2, HSDP, DDP
  shards,  // over the axes that a reduction leaves in shards; over others, and what is kept whole,
           // once
  none     // FSDP2's set_requires_gradient_sync(False), DDP's no_sync
};

// Behind what computation waits for the reductions of units, and gives back what they were made
// from.
enum class AwaitReductions : std::uint8_t {
  step,       // the last microbatch's backward pass: FSDP2 with set_is_last_backward(False) before
  microbatch  // each: its default (_fsdp_state.py, _root_post_backward_final_callback)
};

// From forward to backward a unit stays split over so many neighbours of the axis, from which
// backward gathers it (FSDP2's reshard_after_forward=n).
struct KeptSlices {
  std::string axis;
  std::int64_t over = 0;
  friend bool operator==(const KeptSlices&, const KeptSlices&) = default;
};

// When the call for a unit's parameters is made: the order of calls, where `ahead` says how soon
// they may begin.
enum class Asked : std::uint8_t {
  at_its_turn,        // when its pass begins
  ahead_in_backward,  // in backward by the units before it, before these reduce their gradients:
                      // FSDP2's own, G31 G30 R31 G29 R30 ... for gathers and reductions of layers
  ahead               // in forward as well: FSDP2's set_modules_to_forward_prefetch
};

struct Gathers {
  Grain grain = Grain::unit;
  GatherDType dtype = GatherDType::compute;
  Kept kept = Kept::forward;              // of layers
  Kept kept_root = Kept::forward;         // of all else; FSDP2's own default is backward
  std::optional<KeptSlices> slices = {};  // of layers that forward does not keep
  // What has arrived in one array is copied to where the parameters are read, in turn with kernels
  // (FSDP2, _fsdp_collectives.py, all_gather_copy_out).
  bool copied_out = false;
  int ahead = 1;  // units whose gather may be in flight ahead of the one that computes
  Asked asked = Asked::at_its_turn;
  friend bool operator==(const Gathers&, const Gathers&) = default;
};

// When a bucket ends: with the parameter that takes it to the limit (Megatron-Core, DDP), or before
// the one that would take it over (DeepSpeed).
enum class BucketCloses : std::uint8_t { after, before };

// In which order gradients lie in a buffer.
enum class BufferOrder : std::uint8_t {
  registered,  // the reverse of that in which Megatron-Core's modules register their parameters;
               // what a linear layer computes as one product (q, k and v; gate and up) is one
  made,        // in which the backward pass makes them (DDP once its buckets are rebuilt, ZeRO 2)
  listed       // in which forward first uses their parameters (ZeRO 0 and 1: the parameter list)
};

// How long there is a buffer.
enum class BufferKept : std::uint8_t {
  always,  // Megatron-Core
  step,    // from a bucket's first gradient to the optimizer (DeepSpeed's ZeRO 0 and 1)
  shards,  // till a bucket is reduced; then the device's part of it, to the optimizer (ZeRO 2)
  room,    // always: the device's parts of all buckets, and room for one bucket, which they fill by
           // turns; what is larger lies by itself till it is reduced (ZeRO 3)
  apart,   // always, beside gradients that lie by themselves: each is copied into it as the last
           // microbatch has made it, and out of it when all buckets are reduced (PyTorch's DDP;
           // reducer.cpp, mark_variable_ready_dense and finalize_bucket_dense)
  views    // the same, but gradients lie by themselves till then, and in it alone from there on
           // (DDP's gradient_as_bucket_view)
};

// Beside gradients of their own?
[[nodiscard]] constexpr bool lies_beside(BufferKept kept) {
  return kept == BufferKept::apart || kept == BufferKept::views;
}

// Gradients in one flat buffer, cut into buckets; each is reduced in one call.
struct GradientBuffer {
  BufferOrder order = BufferOrder::registered;
  BufferKept kept = BufferKept::always;
  std::int64_t bucket_elements = 0;     // at which a bucket ends; 0: all is one
  std::int64_t bucket_bytes = 0;        // the same in bytes, in place of it
  std::int64_t first_bucket_bytes = 0;  // of the first; 0: as the others
  BucketCloses closes = BucketCloses::after;
  bool buckets_of_first_stage_alone = false;  // of a pipeline; other chunks are one bucket each
  bool shared_apart = false;            // a parameter that two stages have is a bucket of its own
  std::int64_t parameter_multiple = 1;  // of elements: where a parameter may begin
  std::int64_t bucket_multiple = 1;     // and a bucket end; a flat optimizer's devices divide it
  bool adds_in_products = false;        // products of weights' gradients add to the buffer
  // Gradients of a pass stay whole, in their own type, until it is through, and lie once more in
  // buckets of that type where devices reduce them (PyTorch's DDP, whose hook adds to the buffer).
  bool behind_ddp = false;
  bool scatters = false;   // buckets are reduce-scattered; false: all-reduced
  bool two_rooms = false;  // of one bucket each, filled by turns (DeepSpeed's overlap_comm)
  // Of a flat optimizer whose parts end anywhere: each bucket is one call, whoever updates what of
  // it (DeepSpeed's reduce_scatter: false).
  bool whole_calls = false;
  bool overlaps = true;  // a bucket is reduced once its last gradient is there;
                         // false: all when backward is through
  // In a pipeline: of a rank with one stage the first overlaps, the others begin when they are
  // through; with several a stage's begin so many backward passes of the rank after its last one as
  // the rank's number says, so that all ranks begin together, and the rest at the end, the last
  // stage first (Megatron-Core, pipeline_parallel/schedules.py).
  bool aligns_stages = false;
  friend bool operator==(const GradientBuffer&, const GradientBuffer&) = default;
};

// Gradients that are partial sums over the model axis, too (of norms under sequence parallelism).
enum class ModelSums : std::uint8_t {
  with_unit,  // over it in one call with the unit, of what its reduction has left in shards
  apart       // before that, whole, parameter by parameter: PyTorch, whose DTensors make them whole
};

// How PyTorch brings a unit's gradients into the one array that is reduced.
enum class GradientCopies : std::uint8_t {
  none,
  chunks,  // FSDP2: a kernel in turn with others copies and casts them (_fsdp_collectives.py,
           // reduce_scatter_copy_in)
  flat     // FSDP1: autograd joins the gradients of views of a flat parameter, in turn with other
           // kernels; it is cast, and divided by a part of the devices' number, beside these
           // (_runtime_utils.py, _post_backward_hook, _div_if_needed)
};

struct Reductions {
  Grain grain = Grain::unit;
  GradientCopies copies = GradientCopies::none;
  std::optional<GradientBuffer> buffer = {};  // of Grain::bucket
  ModelSums model_sums = ModelSums::with_unit;
  ReduceEachMicrobatch each_microbatch = ReduceEachMicrobatch::all;
  AwaitReductions awaited = AwaitReductions::step;  // without stages
  // In a pipeline: what is reduced once waits until the stage's last backward pass is through, as
  // FSDP2's is (torch.distributed.pipelining, perform_reduce_grad); else each unit's follows its
  // own last backward pass (DDP's buckets).
  bool after_last_backward = false;
  friend bool operator==(const Reductions&, const Reductions&) = default;
};

// The optimizer of a gradient buffer: each device updates a part of every bucket, whatever tensors
// that cuts through, and what it has updated is gathered (Megatron-Core's distributed optimizer).
struct FlatOptimizer {
  // Devices that share the state, neighbours on the data axes; 0: all of them. Where they are
  // fewer, gradients are reduced among these first, then over the others.
  std::int64_t shards = 0;
  // So often the state lies on the data axes: on those of experts, which are fewer devices, as
  // often (megatron/core/parallel_state.py, num_distributed_optimizer_instances).
  std::int64_t instances = 1;
  bool gathers_in_forward = false;  // bucket by bucket in the next step, one ahead; false: at once
  bool gathers_together = false;    // at once, all buckets in one call
  // Of flat parameters, which stay in parts: a device's part of so many elements is updated
  // together, in the order of the list (DeepSpeed's sub-groups). 0: bucket by bucket.
  std::int64_t group_elements = 0;
  // Who updates what: tensors one after the other in the order of the list, or dealt out to the
  // devices by turns (DeepSpeed's round_robin_gradients).
  bool deals_out = false;
  friend bool operator==(const FlatOptimizer&, const FlatOptimizer&) = default;
};

// Parameters in flat parts, one on each device that sees other data, each padded to a multiple of
// these devices, and gathered as modules are entered (parameter_fetches.hpp, DeepSpeed's ZeRO 3).
struct FlatParameters {
  std::int64_t prefetch_elements = 0;  // of a call for what comes next; 0: there is none
  std::int64_t whole_elements = 0;     // parameters of so many and fewer stay whole
  std::int64_t live_elements = 0;      // that may be there before no more is asked for ahead
  std::int64_t reuse_elements = 0;     // what is used again so near is not given back
  // Devices, neighbours, that keep what they have gathered in parts among themselves and gather it
  // from these until the optimizer's step (hpZ); 0: none.
  std::int64_t secondary_shards = 0;
  bool quantized = false;   // gathered in 8 bits with a scale for each group (qwZ)
  bool one_by_one = false;  // each in a call of its own (stage3_allgather_sequential)
  // Elements of all that stay whole, in the order of the list; 0: any number
  // (stage3_model_persistence_threshold).
  std::int64_t whole_in_all = 0;
  // torch.nn.Linear is a function whose backward makes the weight's gradient before the bias's
  // (zero/linear.py; memory_efficient_linear).
  bool linear_functions = true;
  friend bool operator==(const FlatParameters&, const FlatParameters&) = default;
};

// When backward computes a layer's forward pass again.
enum class RepeatForward : std::uint8_t {
  first,  // before all else (Megatron's checkpoint, one function from the layer's input to its
          // output)
  when_needed,  // when what was not kept is first read: a gradient that comes in split is gathered
                // before (PyTorch's torch.utils.checkpoint without reentrance)
  to_end        // likewise, of a layer that is repeated all of it (early_stop=False)
};

// Activations of layers that lie on the host from forward to backward (PyTorch's save_on_cpu,
// Megatron's and TransformerEngine's offloading). Beside what the step itself keeps there.
struct ActivationsOnHost {
  std::int64_t layers = 0;  // of the first so many
  std::vector<std::string> modules =
      {};  // of these, what they read (workloads/step/saved_names.hpp)
  friend bool operator==(const ActivationsOnHost&, const ActivationsOnHost&) = default;
};
inline constexpr std::int64_t all_layers = std::int64_t{1} << 31;

// Collectives of the model axis that go on in pieces beside the products next to them
// (overlapped_products.hpp).
enum class ProductOverlap : std::uint8_t {
  none,
  // Transformer Engine: gathers before products in both directions, scatters behind those of
  // forward. Scatters of backward go beside the products of weights' gradients anyhow.
  userbuffers,
  asynchronous,  // PyTorch: scatters behind those of backward as well
  windowed,      // XLA: scatters alone, over 4 devices and more
  // Megatron-DeepSpeed: not even sums of backward beside the products of weights' gradients.
  in_turn
};

// Rows on their way to experts and back beside the work of another microbatch or stage: a forward
// and a backward pass that the schedule overlaps go layer by layer (exchange_overlap.hpp).
enum class ExchangeOverlap : std::uint8_t {
  none,
  passes,
  late_weights  // and gradients of weights behind those that rows wait for
};

struct Runtime {
  UnitsOf units = UnitsOf::layers;
  bool experts_apart = false;  // of a layer, a unit of their own within the layer's
  Gathers gathers{};
  Reductions reductions{};
  bool repeats_calls = false;          // of a layer whose every other product is kept (keep_calls)
  bool wide_rows = false;              // of experts, while they are weighed (weigh_rows_in_fp32)
  bool whole_table_gradients = false;  // of a split table of embeddings (make_whole_tables)
  std::optional<FlatParameters> flat_parameters = {};  // else these follow the layout
  std::optional<FlatOptimizer> flat_optimizer = {};    // the same
  RepeatForward repeats = RepeatForward::first;
  ProductOverlap product_overlap = ProductOverlap::none;
  ExchangeOverlap exchange_overlap = ExchangeOverlap::none;
  // Of a pipeline's last stage: gradients of the head's weights, of the first so many microbatches,
  // are made at the end (head_gradient.hpp).
  std::int64_t late_head_gradients = 0;
  // Of a pipeline: what the last stage makes of each microbatch stays until the step ends, for the
  // caller (torch.distributed.pipelining, schedules.py, step: return_outputs, True by default).
  bool returns_outputs = false;
  // Of a pipeline whose backward passes are in two parts: what forward has kept stays until the
  // second is through (torch.distributed.pipelining, _backward.py, stage_backward_input:
  // retain_graph).
  bool retains_graph = false;
  std::int64_t loss_chunks = 1;  // of tokens, that go through head and loss and back one by one
  ActivationsOnHost activations_on_host{};
  // Of a flat optimizer: its state, and its work. Gradients leave as they are reduced, but those of
  // buffers that are always there with the update, and `share_on_host` of each bucket alone.
  bool optimizer_on_host = false;
  double share_on_host = 1;
  bool copies_beside_host = false;  // of such buffers: while the host updates others
  // Of flat parameters their parts; of units all shards, with gradients and the optimizer
  // (host_shards.hpp).
  bool parameters_on_host = false;
  bool clips = false;  // the norm of all gradients is computed
  // The optimizer reads copies in fp32 of gradients of another type, unless it takes moments of
  // another, too (Megatron-Core; use_precision_aware_optimizer).
  bool widens_gradients = false;
  bool wide_gradients_end = false;  // with the update, these copies (DeepSpeed's ZeRO 0)
  bool reports_norm = false;   // and is where they are not clipped, too (Megatron-Core, which logs
                               // it: core/optimizer/optimizer.py, ChainedOptimizer.step)
  bool averages_norm = false;  // of fp32 gradients of which all devices have the same: they average
                               // its norm (DeepSpeed's clip_grad_norm_, runtime/utils.py)
  bool counts_tokens = false;  // of all devices; gradients are sums, scaled by their number
  bool checks_overflow = false;  // one byte of all devices says whether a gradient is not finite
  bool averages_loss = false;    // over the devices (scalar_sums.hpp)
  friend bool operator==(const Runtime&, const Runtime&) = default;
};

// Does the host do something of the optimizer's work?
[[nodiscard]] inline bool works_on_host(const Runtime& runtime) {
  return runtime.optimizer_on_host || (runtime.parameters_on_host && !runtime.flat_parameters);
}
// Are gradients there as soon as they are reduced?
[[nodiscard]] inline bool gradients_leave(const Runtime& runtime) {
  return runtime.optimizer_on_host && runtime.reductions.buffer &&
         runtime.reductions.buffer->kept != BufferKept::always;
}

}  // namespace shardsim
