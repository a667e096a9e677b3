#include "spmd/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/tile.hpp"
#include "spmd/memory_fusion.hpp"
#include "spmd/memory_kernels.hpp"
#include "spmd/memory_sweep.hpp"

namespace shardsim::spmd {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::int64_t gpu_pointer_bytes = 8;
constexpr std::int64_t tpu_pointer_bytes = 4;
constexpr std::int64_t tpu_table_alignment = 32;

// XLA returns several results as a tuple: a table of pointers to them.
Bytes pointer_table(std::size_t results, MemoryTarget target) {
  if (results < 2) return Bytes(0);
  const auto count = static_cast<std::int64_t>(results);
  if (target == MemoryTarget::gpu) return Bytes(count * gpu_pointer_bytes);
  return Bytes(ceil_div(count * tpu_pointer_bytes, tpu_table_alignment) * tpu_table_alignment);
}

const Function& inlined_main(const Module& module) {
  const Function* main = module.find_function("main");
  if (main == nullptr) throw InputError({module.file, ""}, "no function @main");
  for (const Op& op : main->ops) {
    if (op.name == "func.call" || op.name == "call") {
      throw InputError(module.place_of(op), "a call: memory is counted after inlining");
    }
  }
  for (const Value& value : main->values) {
    if (!value.type.is_tensor || value.type.dtype) continue;
    throw InputError({module.file, fmt::format("line {}", main->line)},
                     fmt::format("%{}: {} has an element type of unknown size", value.name,
                                 text_of(value.type)));
  }
  return *main;
}

}  // namespace

Bytes allocated_bytes(const TensorType& type, MemoryTarget target) {
  if (!type.is_tensor || !type.dtype) return Bytes(0);
  if (target == MemoryTarget::gpu) return storage_bytes(type.elements(), *type.dtype);
  const std::int64_t bytes = tpu_array_bytes(type.dims, *type.dtype).count();
  return Bytes(ceil_div(bytes, tpu_alignment) * tpu_alignment);
}

DeviceMemory device_memory(const Module& per_device, MemoryTarget target) {
  const Function& main = inlined_main(per_device);
  DeviceMemory memory;
  for (const ValueId argument : main.body().arguments) {
    memory.arguments += allocated_bytes(main.type_of(argument), target);
  }
  const std::vector<int> donors = donors_of_results(per_device, main);
  memory.outputs = pointer_table(main.results.size(), target);
  for (std::size_t i = 0; i < main.results.size(); ++i) {
    const Bytes bytes = allocated_bytes(main.results[i].type, target);
    memory.outputs += bytes;
    if (donors[i] >= 0) memory.aliased += bytes;
  }
  TemporaryPeak peak = temporary_peak(main, kernels_of(per_device, main, target), target);
  memory.temporaries = peak.bytes;
  memory.at_peak = std::move(peak.alive);
  std::stable_sort(memory.at_peak.begin(), memory.at_peak.end(),
                   [](const LiveBuffer& a, const LiveBuffer& b) { return a.bytes > b.bytes; });
  memory.peak = memory.arguments + memory.outputs - memory.aliased + memory.temporaries;
  return memory;
}

}  // namespace shardsim::spmd
