// Gradients that lie tensor by tensor, clipped by the norm of them all, as PyTorch's
// clip_grad_norm_ does it: the norm of each, put side by side and added up over one mesh axis after
// another; then every gradient is scaled. (Of a gradient buffer: emit_optimizer.cpp.)
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {
namespace {

struct NormGroup {  // gradients that lie over the same axes
  AxisList axes;
  std::vector<AxisList> sums;  // of experts that are dealt out
  std::int64_t parameters = 0;
};

}  // namespace

// Once for all stages of the rank.
void ProgramEmitter::clip_gradients() {
  if (!input_.clips || !open_buckets_.empty() || std::exchange(gradients_are_done_, true)) return;
  add_up_shared();
  std::vector<NormGroup> groups;
  std::vector<BufferIndex> gradients;
  std::int64_t bytes = 0;
  std::int64_t elements = 0;
  DType dtype = DType::f32;
  for (const std::int16_t stage : input_.schedule.shape.stages_of(rank_)) {
    for (const BlockInstance& instance : instances_of(stage)) {
      for (const ClippedGradient& clipped : program_of(instance).clipped) {
        const Value& value = buffers_.value(clipped.gradient);
        auto group = std::find_if(groups.begin(), groups.end(), [&](const NormGroup& one) {
          return one.axes == clipped.axes && one.sums == clipped.sums;
        });
        if (group == groups.end()) {
          group = groups.insert(groups.end(), {clipped.axes, clipped.sums, 0});
        }
        ++group->parameters;
        gradients.push_back(buffers_.buffer_of(clipped.gradient, instance.ordinal));
        dtype = value.dtype;
        bytes += value.bytes.count();
        elements += value.bytes.count() / size_of(value.dtype).count();
      }
    }
  }
  if (gradients.empty()) return;
  // Those of experts first (torchtitan/distributed/utils.py, _clip_grad_norm_with_ep).
  std::stable_partition(groups.begin(), groups.end(),
                        [](const NormGroup& group) { return !group.sums.empty(); });
  set_phase(Phase::optimizer);
  const bool on_host = buffers_[gradients.front()].buffer.on_host;
  norm_ = on_host ? emit_on_host("l2_norm", Bytes(bytes), "gradient norms", gradients, {})
                  : emit_kernel({"l2_norm", KernelClass::memory, dtype,
                                 Flops(2 * static_cast<double>(elements)), Bytes(bytes)},
                                "gradient norms", gradients, {});
  for (const NormGroup& group : groups) {
    for (const AxisList& axes : group.sums.empty() ? one_after_another(group.axes) : group.sums) {
      add_up_norms(axes, {}, dtype, group.parameters,
                   fmt::format("norms of {} gradients that lie over {}", group.parameters,
                               input_.mesh.names_of(group.axes).front()));
    }
  }
  if (has_stages_) {
    const AxisRef stages = input_.mesh.whole(*input_.mesh.find(input_.stages_axis));
    add_up_norms({}, input_.mesh.groups({stages}), dtype, 1, "the norm of all stages' gradients");
  }
  if (on_host) {
    emit_on_host("multiply", Bytes(2 * bytes), "gradient clipping", {}, gradients);
    return;
  }
  emit_kernel({"multiply", KernelClass::memory, dtype, Flops(static_cast<double>(elements)),
               Bytes(2 * bytes)},
              "gradient clipping", {}, gradients);
}

// Axes that parameters are sharded over as over one are one of PyTorch's mesh, and so are parts of
// one axis.
std::vector<AxisList> ProgramEmitter::one_after_another(const AxisList& axes) const {
  std::vector<AxisList> all;
  bool is_shared_there = false;
  for (const AxisRef& axis : merged(axes)) {
    const bool is_shared = contains(input_.shard_axes, axis);
    if (is_shared && is_shared_there) {
      all.back().push_back(axis);
    } else {
      all.push_back({axis});
    }
    is_shared_there = is_shared;
  }
  return all;
}

void ProgramEmitter::add_up_norms(const AxisList& axes,
                                  std::vector<std::vector<std::int64_t>> groups, DType dtype,
                                  std::int64_t norms, const std::string& what) {
  const Bytes payload = norms * size_of(dtype);
  const std::string name = "gradient norms";
  norm_ = reduce_behind(norm_, name,
                        {CollectiveKind::all_reduce,
                         axes,
                         std::move(groups),
                         {},
                         dtype,
                         payload,
                         {{name, payload}},
                         what + ", by which they are clipped",
                         {},
                         Parallelism::scalars});
}

}  // namespace shardsim
