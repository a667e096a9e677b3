// The plan: what every device does in one step, as tasks, collectives and buffers. The waist of the
// program: strategies and importers make plans; the simulator, validation and reports read them.
//
// Shape
//   Plan
//     mesh                      the devices and their named axes
//     kernels, collectives,     distinct pieces of work, each stored once; tasks point at them
//     transfers
//     programs                  one per device class (devices that no symmetry tells apart): SPMD
//                               plans have one, pipelines one per stage
//       streams                 "compute" and one or more for communication
//       tasks                   in issue order; layers and microbatches unrolled
//       buffers                 with a category and a lifetime
//
// Execution model (that of CUDA streams and of XLA's schedules)
//   - A stream runs its tasks one after the other in issue order.
//   - A task starts when its stream is free and all its dependencies have ended. Dependencies point
//     to earlier tasks of the same program only.
//   - A buffer comes to life when the task that allocates it starts (or before the step), and dies
//     when the last of `freed_after` has ended (or never: it is there for the next step).
//   - Tasks of a collective start together on all devices of its group; with one program all
//     devices agree by symmetry. Where groups join several programs (tied embeddings of first and
//     last stage, a norm over all gradients), the k-th task of the collective of each is one.
//
// What the format can say, with the system that needs it
//   units gathered whole       Collective::parts: the tensors that share one call (FSDP2)
//   prefetch order and depth   the position in the communication stream, and the dependency on the
//                              compute task that opens the window
//   what stays gathered        the lifetime of the gathered buffer
//   casts hoisted out of loops a kernel before the loop and a buffer that lives through it (XLA)
//   pipeline actions           one program per stage; Transfer tasks name the peer program; Phase
//                              splits the backward into input and weight part
//   recomputation              Task::recompute
//   host offload               TaskKind::to_host, from_host
//
// Example: one FSDP unit in the forward pass, as the text form prints it
//   #12 all-gather  fsdp  416.0 MiB  model.layers.0    after #3
//   #13 matmul      model.layers.0.self_attn.q_proj    after #12 #9
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.hpp"
#include "base/units.hpp"
#include "plan/mesh.hpp"
#include "plan/row_visits.hpp"

namespace shardsim {

using TaskId = std::int32_t;
using BufferId = std::int32_t;
inline constexpr TaskId before_the_step = -1;

enum class TaskKind : std::uint8_t { kernel, collective, transfer, to_host, from_host };

// Between the memory of a device and that of its host.
[[nodiscard]] constexpr bool is_host_copy(TaskKind kind) {
  return kind == TaskKind::to_host || kind == TaskKind::from_host;
}
enum class Phase : std::uint8_t { forward, backward, backward_input, backward_weight, optimizer };

// What bounds a kernel: the simulator applies the profile's efficiency for the class. `host`: it
// runs on the host's processors, and its bytes go through the host's memory.
enum class KernelClass : std::uint8_t { matmul, attention, attention_backward, memory, host };

// `batch` products of [m, k] x [k, n]. Of attention that of queries and keys: `batch` heads of all
// sequences, m queries, n keys, k numbers in each.
struct Product {
  std::int64_t batch = 1;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  // Rows of operands and result are whole multiples of 8 numbers, 16 bytes of bf16, which tensor
  // cores are fed by.
  bool aligned = true;
  friend bool operator==(const Product&, const Product&) = default;
};

// One kernel's work on one device, padding included.
struct Kernel {
  std::string op;  // "einsum", "rms_norm", "attention", "adamw", ...
  KernelClass kernel_class = KernelClass::memory;
  DType dtype = DType::bf16;
  Flops flops{0};
  Bytes bytes{0};  // read and written
  // Of a matmul or attention; none: not known, as of a convolution.
  std::optional<Product> product = {};
  // Of attention the generation of the kernel ("flash-2"), of other operations the stack that
  // launches it ("eager"); empty: not known.
  std::string implementation = {};
  // On the device in its place: none where another kernel does it as well, several where a stack
  // has no one kernel for it.
  std::int32_t launches = 1;
  // Of a product that adds to its result: what of `bytes` it would not move if it wrote the result
  // in the operands' type.
  Bytes added{0};
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

enum class CollectiveKind : std::uint8_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  collective_permute,
  broadcast  // from the first of the group
};

// The parallelism that a collective is of. `scalars`: numbers of all devices, as loss and norm.
enum class Parallelism : std::uint8_t { unknown, tensor, data, pipeline, context, expert, scalars };

struct CollectivePart {
  std::string tensor;  // name with "{}" for the layer
  Bytes payload{0};
  friend bool operator==(const CollectivePart&, const CollectivePart&) = default;
};

// `payload` is the full array: the result of an all-gather or broadcast, the operand of a
// reduce-scatter or all-reduce, the per-device buffer of an all-to-all, the message of a permute
// (nccl-tests' size). Padding is included.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<AxisRef> axes;  // the group, major to minor; empty when `groups` says it
  std::vector<std::vector<std::int64_t>> groups;                      // for groups no axes describe
  std::vector<std::pair<std::int64_t, std::int64_t>> source_targets;  // collective_permute only
  DType dtype = DType::bf16;
  Bytes payload{0};
  std::vector<CollectivePart> parts;  // what was combined into this call; payloads add up
  std::string reason;                 // which tensor of which op needed it
  std::string remedy = {};            // what would spare it, and at what price; empty: not known
  Parallelism parallelism = Parallelism::unknown;
  std::optional<RowVisits> visits = {};  // of an all-to-all
  // Of a scatter that XLA may spell as permutes beside pieces of the product that it sums (its
  // "windowed einsum"): what that product sums over on all devices; else 0.
  std::int64_t contracted = 0;
  bool awaited = false;  // by the host, which issues what comes behind it when it has ended
  friend bool operator==(const Collective&, const Collective&) = default;
};

// A message to or from a program of the same plan (pipeline stages), of each device of the program:
// the k-th that is sent on a channel from one program to another is the k-th that is received.
//
// Between programs of as many devices it goes to the device at the same place. Else one program has
// a multiple of the other's devices, the tensor lies in parts in the order of devices, and each
// device of the smaller one has as many neighbours in the other. `payload` is then all that one
// device sends, or receives: from 2 devices, 40 bytes of each, to 4 with 20 bytes of each.
struct Transfer {
  int peer_program = 0;
  bool sends = true;
  DType dtype = DType::bf16;
  Bytes payload{0};
  std::string reason;
  std::int32_t channel = 0;  // below most_channels
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// Each is a tag of MPI, which has 32767 at least (MPI 4.1, section 9.1.2: MPI_TAG_UB).
inline constexpr std::int32_t most_channels = 1 << 14;

struct alignas(8) Task {
  TaskKind kind = TaskKind::kernel;
  Phase phase = Phase::forward;
  bool recompute = false;
  std::uint8_t stream = 0;  // index into Program::streams
  std::int32_t work = 0;    // index into Plan::kernels, collectives or transfers, by kind;
                            // of a host copy: a kernel, whose bytes cross the host link
  std::int32_t name = 0;    // index into Plan::names; may hold "{}" for the layer
  std::int32_t layer = -1;  // instance of a repeated block, -1 outside
  std::int32_t microbatch = 0;
  std::uint32_t first_dependency = 0;  // range of Program::dependencies
  std::uint32_t dependency_count = 0;
  friend bool operator==(const Task&, const Task&) = default;
};
static_assert(sizeof(Task) == 32, "plans of large models hold hundreds of thousands");

enum class BufferCategory : std::uint8_t {
  parameters,           // as stored between steps: the shard
  gathered_parameters,  // whole (or less sharded) copies that live for a while
  gradients,
  optimizer,
  activations,  // forward values that the backward pass reads
  temporaries,
  communication,  // staging of collectives
  inputs,
  cache  // what layers keep of the tokens before: keys and values
};
inline constexpr int buffer_categories = 9;

struct Buffer {
  std::int32_t name = 0;  // index into Plan::names
  std::int32_t layer = -1;
  Bytes bytes{0};
  TaskId allocated_by = before_the_step;
  std::uint32_t first_free = 0;  // range of Program::frees: tasks after all of which it dies;
  std::uint32_t free_count = 0;  // empty: lives beyond the step
  BufferCategory category = BufferCategory::temporaries;
  bool on_host = false;  // in the host's memory, not the device's
  friend bool operator==(const Buffer&, const Buffer&) = default;
};
static_assert(sizeof(Buffer) == 32, "there are as many as tasks");

struct Program {
  std::string name;                   // device class
  std::vector<std::int64_t> devices;  // mesh positions; empty: all of the mesh
  std::vector<std::string> streams;   // [0] is "compute"
  std::vector<Task> tasks;
  std::vector<TaskId> dependencies;
  std::vector<Buffer> buffers;
  std::vector<TaskId> frees;

  [[nodiscard]] TaskId add_task(Task task, const std::vector<TaskId>& after);
  BufferId add_buffer(Buffer buffer, const std::vector<TaskId>& freed_after);
  // What add_task and add_buffer were told.
  [[nodiscard]] std::span<const TaskId> after(const Task& task) const;
  [[nodiscard]] std::span<const TaskId> freed_after(const Buffer& buffer) const;
  friend bool operator==(const Program&, const Program&) = default;
};

// A dimension that its axes do not divide: what padding costs.
struct Padding {
  std::string tensor;  // with "{}" for the layer
  int dimension = 0;
  std::int64_t size = 0;
  std::int64_t shards = 1;
  std::int64_t padded_size = 0;  // shards * ceil(size / shards)
  std::int64_t instances = 1;    // layers
  Bytes wasted_per_device{0};    // padding in the stored shards, all instances
  friend bool operator==(const Padding&, const Padding&) = default;
};

// What the reports need to know about the model; nothing here is simulated.
struct PlanSubject {
  std::string model;
  std::string strategy;
  std::int64_t parameters = 0;
  std::int64_t tokens_per_step = 0;  // 0 where the notion has no meaning
  // Of one step on all devices, forward and backward, without recomputation: matmuls and what a
  // causal mask leaves of attention; the same with all of attention.
  Flops model_flops{0};
  Flops model_flops_full_attention{0};
  friend bool operator==(const PlanSubject&, const PlanSubject&) = default;
};

struct Plan {
  PlanSubject subject;
  Mesh mesh;
  // Whose host code issues the tasks, one after the other (of stacks()); empty: not known, or all
  // of them are one launch.
  std::string issued_by;
  bool layers_are_graphs = false;  // the tasks of a layer, forward or backward, are one launch
  // All tasks of a layer before its experts' rows are exchanged are one launch, all behind another,
  // and a layer without experts one.
  bool parts_are_graphs = false;
  bool awaits_messages = false;    // nothing is issued before what was to be received is there
  std::vector<std::string> names;  // distinct
  std::vector<Kernel> kernels;
  std::vector<Collective> collectives;
  std::vector<Transfer> transfers;
  std::vector<Program> programs;
  std::vector<Padding> padding;
  std::vector<std::string> notes;  // approximations and choices that a reader must know

  [[nodiscard]] std::string task_name(const Task& task) const;
  [[nodiscard]] std::string buffer_name(const Buffer& buffer) const;
  friend bool operator==(const Plan&, const Plan&) = default;
};

[[nodiscard]] std::string_view name_of(CollectiveKind kind);  // "all-gather"
[[nodiscard]] std::string_view name_of(Parallelism parallelism);
[[nodiscard]] std::string_view name_of(Phase phase);
[[nodiscard]] std::string_view name_of(BufferCategory category);
[[nodiscard]] std::string_view name_of(KernelClass kernel_class);
[[nodiscard]] std::string_view name_of(TaskKind kind);

// Devices in one group of the collective; of a permute that names only pairs: all of the mesh.
[[nodiscard]] std::int64_t group_size(const Plan& plan, const Collective& collective);
// What one device sends in a ring (or, for all-to-all and permute, directly), with n devices in the
// group and a payload of P bytes:
//   all-gather, reduce-scatter  (n-1)/n P      all-reduce  2 (n-1)/n P
//   all-to-all                  (n-1)/n P      permute     P
//   broadcast                   P, but for the last of them
// Rounded up to a byte.
[[nodiscard]] Bytes wire_bytes_per_device(CollectiveKind kind, std::int64_t group_size,
                                          Bytes payload);

// The same of all collectives of a step; messages between programs are not in it.
[[nodiscard]] Bytes wire_bytes_per_device(const Plan& plan);

// Executions per step of every entry of plan.collectives, by index; summed over programs.
[[nodiscard]] std::vector<std::int64_t> executions(const Plan& plan);

// Throws std::logic_error naming the first violation: dependencies must point back, indices must be
// in range, names distinct, parts must add up, lifetimes must not end before they begin. A bug in
// who made the plan.
void verify(const Plan& plan);

}  // namespace shardsim
