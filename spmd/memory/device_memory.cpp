#include "spmd/memory/device_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/tile.hpp"
#include "spmd/memory/fusion.hpp"
#include "spmd/memory/kernels.hpp"
#include "spmd/memory/sweep.hpp"
#include "stablehlo/operand_counts.hpp"

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

// What the analysis relies on beyond what the parser checks.
void check(const Module& module, const Function& main, const Op& op) {
  check_operand_counts(OpView(module, main, op));
  const auto fail = [&](std::string_view what) {
    throw InputError(module.place_of(op), fmt::format("{}: {}", op.name, what));
  };
  if (op.name == "func.call" || op.name == "call") {
    throw InputError(module.place_of(op), "a call: memory is counted after inlining");
  }
  if (op.name == "stablehlo.while") {
    const auto count = op.results.size();
    const auto matches = [&](RegionId id) {
      return main.regions[at(id)].arguments.size() == count;
    };
    if (op.regions.size() != 2 || op.operands.size() != count ||
        !std::all_of(op.regions.begin(), op.regions.end(), matches)) {
      fail("a loop has a condition and a body, and both take its state");
    }
    const Region& body = main.regions[at(op.regions.back())];
    if (body.ops.empty() || main.op(body.ops.back()).operands.size() != count) {
      fail("the body of a loop returns its state");
    }
  }
  if (op.name == "stablehlo.optimization_barrier" && op.operands.size() != op.results.size()) {
    fail("gives as many results as it takes operands");
  }
}

const Function& inlined_main(const Module& module) {
  const Function* main = module.find_function("main");
  if (main == nullptr) throw InputError({module.file, ""}, "no function @main");
  if (main->body().ops.empty() ||
      main->op(main->body().ops.back()).operands.size() != main->results.size()) {
    throw InputError({module.file, fmt::format("line {}", main->line)},
                     "@main does not return its results");
  }
  for (const Op& op : main->ops) check(module, *main, op);
  for (const Value& value : main->values) {
    if (!value.type.is_tensor || value.type.dtype) continue;
    throw InputError({module.file, fmt::format("line {}", main->line)},
                     fmt::format("%{}: {} has an element type of unknown size", value.name,
                                 text_of(value.type)));
  }
  return *main;
}

// Does the compiler begin to save memory?
bool is_too_large(const DeviceMemory& memory, MemoryTarget target, Bytes capacity) {
  if (target == MemoryTarget::tpu) return memory.peak > capacity;
  constexpr std::int64_t usable_percent = 80;
  constexpr std::int64_t slop_percent = 95;
  const Bytes outside = memory.arguments + memory.outputs - memory.aliased;
  return memory.temporaries > (capacity * usable_percent / 100 - outside) * slop_percent / 100;
}

}  // namespace

Bytes allocated_bytes(const TensorType& type, MemoryTarget target) {
  if (!type.is_tensor || !type.dtype) return Bytes(0);
  if (target == MemoryTarget::gpu) return storage_bytes(type.elements(), *type.dtype);
  const std::int64_t bytes = tpu_array_bytes(type.dims, *type.dtype).count();
  return Bytes(ceil_div(bytes, tpu_alignment) * tpu_alignment);
}

DeviceMemory device_memory(const Module& per_device, MemoryTarget target,
                           std::optional<Bytes> capacity) {
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
  const auto estimate = [&](bool is_tight) {
    return temporary_peak(main, kernels_of(per_device, main, target, is_tight), target);
  };
  TemporaryPeak peak = estimate(/*is_tight=*/false);
  const auto take = [&] {
    memory.temporaries = peak.bytes;
    memory.peak = memory.arguments + memory.outputs - memory.aliased + memory.temporaries;
  };
  take();
  if (capacity && is_too_large(memory, target, *capacity)) {
    TemporaryPeak tight = estimate(/*is_tight=*/true);
    if (tight.bytes < peak.bytes) peak = std::move(tight);
    take();
  }
  memory.peak_op = peak.op;
  memory.at_peak = std::move(peak.alive);
  std::stable_sort(memory.at_peak.begin(), memory.at_peak.end(),
                   [](const LiveBuffer& a, const LiveBuffer& b) { return a.bytes > b.bytes; });
  return memory;
}

}  // namespace shardsim::spmd
