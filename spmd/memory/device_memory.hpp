// Memory that a partitioned program takes on one device, as XLA's TPU and GPU compilers would
// allocate it.
//
//   peak = arguments + outputs - aliased + temporaries
//
// Arguments and outputs are sums over their types: exact. On a TPU every array is padded to its
// tile (base/tile.hpp) and rounded up to 512 bytes. An output that takes the place of a donated
// argument (tf.aliasing_output, or jax.buffer_donor and equal types) is `aliased`.
//
// Temporaries are estimated in three steps:
//   1. which values are kept in memory at all (kernels.hpp): chains of elementwise ops vanish into
//      the dots, reductions and updates that read them;
//   2. in which order the kernels run (schedule.hpp);
//   3. liveness: a value lives from the kernel that makes it to the last that reads it. Updates in
//      place and the state of a loop stay where they are; what an op writes may take the place of
//      an operand of its size that dies there. While a loop runs, the peak of its body comes on top
//      of what lives across it.
//
// Example: x: f32[1024,1024], y = dot(x, x), z = exp(y) * 2, return reduce(z): exp and multiply are
// part of the reduction, so y alone is in memory: 4 MiB of temporaries.
//
// With the capacity of a device, a program that is too large for it is given what compilers do then
// (kernels.hpp): TPU, when the peak exceeds the capacity; GPU, when temporaries exceed
//   95 % of (80 % of the capacity - arguments - outputs + aliased)
// (openxla/xla, GetSchedulerMemoryLimit with its defaults).
//
// What XLA's heap loses to gaps between buffers is not counted, nor program code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "stablehlo/module.hpp"

namespace shardsim::spmd {

enum class MemoryTarget { tpu, gpu };

// A temporary that is alive when memory peaks.
struct LiveBuffer {
  Bytes bytes;
  std::string type;  // "tensor<32x1x4096x4096xbf16>"
  std::string op;    // what made it: "stablehlo.dot_general"
  int line = 0;
  stablehlo::OpId made_by = stablehlo::no_op;  // of @main
  std::string why;  // "state of the loop at line 40", "made here", "read at line 77"
};

struct DeviceMemory {
  Bytes arguments;
  Bytes outputs;
  Bytes aliased;  // part of outputs
  Bytes temporaries;
  Bytes peak;
  std::vector<LiveBuffer> at_peak;             // largest first
  stablehlo::OpId peak_op = stablehlo::no_op;  // what runs then; none without temporaries
};

// `per_device` has one function @main, calls inlined, with local types. Throws InputError: no
// @main, calls, element types without a size.
[[nodiscard]] DeviceMemory device_memory(const stablehlo::Module& per_device, MemoryTarget target,
                                         std::optional<Bytes> capacity = std::nullopt);

// One array as the target allocates it.
[[nodiscard]] Bytes allocated_bytes(const stablehlo::TensorType& type, MemoryTarget target);

}  // namespace shardsim::spmd
