// The partitioned step before layers are unrolled: what one device does for every block, as kernels
// and collectives over local values. Made by partition.hpp, unrolled into a plan by emit.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "sharding/sharding.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

using ValueId = std::int32_t;
inline constexpr ValueId no_value = -1;

// A tensor as a device holds it, under one sharding.
struct Value {
  TensorId tensor = no_tensor;
  std::string name;
  Sharding sharding;
  DType dtype = DType::bf16;
  Bytes bytes{0};  // on one device, padding included
  BufferCategory category = BufferCategory::temporaries;
  int block = 0;
  bool shared = false;         // one for the whole step, not one per instance of the block
  bool persistent = false;     // there before the step and after it
  ValueId storage = no_value;  // lives in the storage of this value (slices, in-place results)
};

// Streams of the plan, in order.
enum class Stream : std::uint8_t { compute, gathers, reductions, activations };

struct Item {
  TaskKind kind = TaskKind::kernel;
  Stream stream = Stream::compute;
  std::string name;
  bool recompute = false;
  Kernel kernel;          // of a kernel
  Collective collective;  // of a collective
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
};

// One pass over one block. `gathers` bring parameters before the body needs them, `reductions`
// bring its parameter gradients home after it.
struct BlockPass {
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
};

struct BlockProgram {
  BlockPass forward;
  BlockPass backward;
  BlockPass optimizer;
  // Values that are the same in neighbouring blocks and instances.
  std::vector<ValueId> carries_in, carries_out;  // forward
  std::vector<ValueId> gradients_of_carries_in,
      gradients_of_carries_out;  // backward; no_value: none
};

struct SpmdStep {
  std::vector<Value> values;
  std::vector<BlockProgram> blocks;  // as Workload::blocks
  std::vector<ValueId> outputs;      // as Workload::outputs
};

}  // namespace shardsim
