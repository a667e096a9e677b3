#include "spmd/memory/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/index.hpp"
#include "spmd/memory/schedule.hpp"

namespace shardsim::spmd {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

namespace {

class Sweep {
 public:
  Sweep(const Function& main, const KernelGraph& graph, RegionId region, MemoryTarget target)
      : main_(main),
        graph_(graph),
        kernels_(graph.regions[at(region)].kernels),
        region_(region),
        target_(target),
        order_(run_order(graph, region, target)),
        last_use_(graph.buffers.size(), never),
        held_(graph.buffers.size()) {}

  TemporaryPeak run() {
    for (int step = 0; step < static_cast<int>(order_.size()); ++step) {
      const Kernel& kernel = kernel_at(step);
      for (const BufferId buffer : kernel.reads) last_use_[at(buffer)] = step;
      for (const BufferId buffer : kernel.writes) last_use_[at(buffer)] = step;
    }
    for (int step = 0; step < static_cast<int>(order_.size()); ++step) advance(step);
    return std::move(peak_);
  }

 private:
  static constexpr int never = -1;

  const Kernel& kernel_at(int step) const { return kernels_[at(order_[at(step)])]; }
  const Buffer& buffer(BufferId id) const { return graph_.buffers[at(id)]; }

  void advance(int step) {
    const Kernel& kernel = kernel_at(step);
    for (const BufferId id : kernel.writes) {
      if (buffer(id).is_outside || is_home_free(id, step) || takes_over(id, step)) continue;
      held_[at(id)] = buffer(id).bytes;
      now_ += buffer(id).bytes;
    }
    TemporaryPeak inner;
    for (const RegionId region : kernel.inner) {
      TemporaryPeak peak = Sweep(main_, graph_, region, target_).run();
      if (peak.bytes > inner.bytes) inner = std::move(peak);
    }
    if (now_ + inner.bytes > peak_.bytes) note(step, std::move(inner));
    for (const BufferId id : kernel.reads) release(id, step);
    for (const BufferId id : kernel.writes) release(id, step);
  }

  bool is_freed_at(BufferId id, int step) const {
    return !buffer(id).is_kept && buffer(id).region == region_ && last_use_[at(id)] == step;
  }

  bool is_home_free(BufferId id, int step) const {
    const BufferId home = buffer(id).home;
    if (home == no_buffer) return false;
    const int last = last_use_[at(home)];
    return last < step || (last == step && may_replace(home, id, kernel_at(step)));
  }

  static bool may_replace(BufferId read, BufferId written, const Kernel& kernel) {
    if (kernel.in_place != InPlace::initial) return kernel.in_place == InPlace::any;
    const auto write = std::find(kernel.writes.begin(), kernel.writes.end(), written);
    return kernel.initial[at(write - kernel.writes.begin())] == read;
  }

  bool takes_over(BufferId id, int step) {
    const Kernel& kernel = kernel_at(step);
    for (const BufferId read : kernel.reads) {
      if (!is_freed_at(read, step) || held_[at(read)] == Bytes(0)) continue;
      if (held_[at(read)] != buffer(id).bytes || !may_replace(read, id, kernel)) continue;
      std::swap(held_[at(id)], held_[at(read)]);
      return true;
    }
    return false;
  }

  void release(BufferId id, int step) {
    if (!is_freed_at(id, step)) return;
    now_ -= held_[at(id)];
    held_[at(id)] = Bytes(0);
  }

  void note(int step, TemporaryPeak inner) {
    peak_.bytes = now_ + inner.bytes;
    peak_.op = inner.bytes > Bytes(0) ? inner.op : kernel_at(step).op;
    peak_.alive = std::move(inner.alive);
    for (BufferId id = 0; id < static_cast<BufferId>(held_.size()); ++id) {
      if (held_[at(id)] == Bytes(0)) continue;
      const Op& op = main_.op(buffer(id).op);
      peak_.alive.push_back({.bytes = held_[at(id)],
                             .type = text_of(buffer(id).type),
                             .op = op.name,
                             .line = op.line,
                             .made_by = buffer(id).op,
                             .why = reason(id, step)});
    }
  }

  std::string reason(BufferId id, int step) const {
    if (buffer(id).is_kept) return "a result";
    const int last = last_use_[at(id)];
    const int line = main_.op(kernel_at(last).op).line;
    if (last > step) return fmt::format("read at line {}", line);
    return fmt::format("used here, line {}", line);
  }

  const Function& main_;
  const KernelGraph& graph_;
  const std::vector<Kernel>& kernels_;
  RegionId region_;
  MemoryTarget target_;
  std::vector<int> order_;
  std::vector<int> last_use_;  // by buffer
  std::vector<Bytes> held_;    // by buffer, while it counts
  Bytes now_;
  TemporaryPeak peak_;
};

}  // namespace

TemporaryPeak temporary_peak(const Function& main, const KernelGraph& graph, MemoryTarget target) {
  return Sweep(main, graph, 0, target).run();
}

}  // namespace shardsim::spmd
