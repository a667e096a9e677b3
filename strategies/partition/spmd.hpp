// The partitioned step before layers are unrolled: what one device does for every block, as kernels
// and collectives over local values. partition.hpp makes it and states what is needed of parameters
// and their gradients, runtime/make_calls.hpp turns the needs into calls, compile/emit.hpp unrolls
// it into a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "sharding/sharding.hpp"
#include "strategies/partition/reason.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// A tensor as a device holds it, under one sharding.
struct Value {
  TensorId tensor = no_tensor;
  std::string name;
  Sharding sharding;
  DType dtype = DType::bf16;
  Bytes bytes{0};  // on one device, padding included
  // Instead of `bytes`: all such values of a program lie in one place that stays, one at a time.
  Bytes in_room{0};
  BufferCategory category = BufferCategory::temporaries;
  int block = 0;
  bool shared = false;         // one for the whole step, not one per instance of the block
  bool persistent = false;     // there before the step and after it
  ValueId storage = no_value;  // lives in the storage of this value (slices, in-place results)
  bool on_host = false;        // in the memory of the device's host
  bool to_end = false;         // from where it is made till the step ends
};

// Streams of the plan, in order.
enum class Stream : std::uint8_t { compute, gathers, reductions, activations };
inline constexpr std::size_t stream_count = 4;

struct Item {
  TaskKind kind = TaskKind::kernel;
  Stream stream = Stream::compute;
  std::string name;
  bool recompute = false;
  bool drops = false;  // of attention: some of its probabilities
  // What its operands are becomes its results in the first microbatch, and is added to them in
  // every further one.
  bool adds_up = false;
  Kernel kernel;          // of a kernel
  Collective collective;  // of a collective; without words until word_reasons
  Reason reason{};        // of a collective
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
};

[[nodiscard]] inline bool is_scatter(const Item& item) {
  return item.kind == TaskKind::collective &&
         item.collective.kind == CollectiveKind::reduce_scatter;
}

// A gradient is complete, as an op leaves it, and has to get to where it is kept.
struct Write {
  TensorId parameter = no_tensor;
  ValueId gradient = no_value;
  std::size_t after = 0;  // so many items of the body
};

// One pass over one block. `gathers` bring parameters before the body needs them, `reductions`
// bring its parameter gradients home after it.
struct BlockPass {
  // Needs: parameters read otherwise than they are stored, by other ops than look-ups, in the order
  // of first reads; gradients that are made.
  std::vector<TensorId> reads;
  std::vector<Write> writes;
  std::vector<ValueId> made;  // gradients that stay until the pass is through, over all blocks

  std::vector<Item> gathers;
  std::vector<Item> body;
  std::vector<Item> reductions;
  // Gradient accumulation: what the first microbatch leaves in `summand` becomes `sum`, every
  // further one adds to it. After the last come the reductions that were put off until then.
  struct Sum {
    ValueId sum = no_value;
    ValueId summand = no_value;
  };
  std::vector<Sum> sums;
  std::vector<Item> additions;
  std::vector<Item> last_reductions;
  // Gathered values that live until the pass ends: a unit is given back whole.
  std::vector<ValueId> held;
  // A unit within the block's, as experts are: the last of `gathers` and `held` are its own.
  struct Inner {
    std::size_t gathers = 0;  // from so many on
    std::size_t held = 0;
    std::size_t needed = 0;  // item of the body that reads it first,
    std::size_t opens = 0;   // but for what is computed again,
    std::size_t closes = 0;  // and behind the last one
  };
  std::optional<Inner> inner;
};

// A gradient that lies in a tensor of its own, where the norm of all gradients is taken.
struct ClippedGradient {
  ValueId gradient = no_value;
  AxisList axes;  // over which its parameter is split, or was not read alike by all
  // Of experts that are dealt out: over these its norm is added up, one after another; of others
  // over the mesh axes that `axes` are parts of.
  std::vector<AxisList> sums{};
};

struct BlockProgram {
  BlockPass forward;
  BlockPass backward;
  bool loss_in_chunks = false;           // forward has taken the loss back to what the head reads
  std::vector<Item> shared;              // gradients that two stages add up, once they are reduced
  std::vector<ClippedGradient> clipped;  // empty: gradients are not clipped
  BlockPass optimizer;
  // Values that are the same in neighbouring blocks and instances.
  std::vector<ValueId> carries_in, carries_out;  // forward
  std::vector<ValueId> gradients_of_carries_in,
      gradients_of_carries_out;  // backward; no_value: none
};

// A parameter as it is stored and as ops read it: one value where these are the same.
struct ParameterValues {
  ValueId stored = no_value;
  ValueId computed = no_value;   // by all ops but look-ups
  ValueId looked_up = no_value;  // by look-ups
};

// A gradient that lies in a buffer with others (runtime/gradient_buffers.hpp).
struct BufferedGradient {
  ValueId main = no_value;  // where it is added up; lies in the buffer
  // What is made first of a parameter that is read in several passes: all is added up in its place,
  // which is that of the bucket. No value: it has a place of its own.
  ValueId first = no_value;
  std::int64_t elements = 0;  // of one device
  AxisList axes;              // over which it is reduced with its bucket
  AxisList model_axes;        // over which it is a sum then still
  // Of experts: how many of them a device has, each a parameter of its own; whether they are dealt
  // out, in buffers of their own; and whether their gradients are there one expert after the other,
  // or of all at once.
  std::int64_t experts = 0;
  bool dealt_out = false;
  bool one_by_one = false;
  // Of the optimizer, per element of the parameter.
  std::int64_t state_bytes = 0;
  double update_flops = 0;
};

struct SpmdStep {
  std::vector<Value> values;
  std::map<TensorId, ParameterValues> parameters;
  std::vector<BlockProgram> blocks;  // as Workload::blocks
  std::vector<ValueId> outputs;      // as Workload::outputs
  ValueId loss = no_value;
  std::map<TensorId, BufferedGradient> buffered;  // by parameter; empty: there is no buffer
};

}  // namespace shardsim
