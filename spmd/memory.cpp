#include "spmd/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <cstdlib>
#include "base/error.hpp"
#include "base/tile.hpp"
#include "spmd/memory_fusion.hpp"
#include "spmd/memory_kernels.hpp"
#include "spmd/memory_schedule.hpp"

namespace shardsim::spmd {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

namespace {

// Temporaries of one region over the order of its kernels.
class Sweep {
 public:
  Sweep(const Function& main, KernelGraph& graph, RegionId region, MemoryTarget target)
      : main_(main),
        target_(target),
        graph_(graph),
        kernels_(graph.regions[index(region)].kernels),
        region_(region) {}

  Bytes run() {
    const int end = static_cast<int>(kernels_.size());
    for (int k = 0; k < end; ++k) {
      Kernel& kernel = graph_.regions[index(region_)].kernels[index(k)];
      for (const RegionId inner : main_.op(kernel.op).regions) {
        if (kernel.body < 0) break;
        Sweep sweep(main_, graph_, inner, target_);
        const Bytes bytes = sweep.run();
        if (bytes >= kernel.inner) {
          kernel.inner = bytes;
          inner_peaks_[kernel.op] = sweep.at_peak();
        }
      }
    }
    kernels_ = graph_.regions[index(region_)].kernels;
    const char* e = std::getenv("ORDER");
    const int which = e ? std::atoi(e) : 31;
    const auto deps = dependencies_of(graph_, region_);
    if (which == 0 || which >= 20) {
      go({});
    }
    if (which >= 1 && which <= 4) go(deepest_first(deps, which - 1));
    if (which == 6) go(list_order(graph_, region_, deps, true));
    if (which == 7)
      go(region_ == 0 ? list_order(graph_, region_, deps, true) : deepest_first(deps, 1));
    if (which == 8)
      go(region_ != 0 ? list_order(graph_, region_, deps, true) : deepest_first(deps, 1));
    if (which >= 30 && which < 40) {
      std::vector<bool> is_dot, is_reduce;
      for (auto& k : kernels_) is_reduce.push_back(main_.op(k.op).name == "stablehlo.reduce");
      for (auto& k : kernels_)
        is_dot.push_back(main_.op(k.op).name == "stablehlo.dot_general" ||
                         main_.op(k.op).name == "stablehlo.convolution");
      go(hybrid_order(graph_, region_, deps, deepest_first(deps, which % 10),
                      target_ == MemoryTarget::gpu && !std::getenv("LAZY"), is_dot, is_reduce));
    }
    if (which == 5) go(list_order(graph_, region_, deps));
    if (which >= 10 && which < 20) {
      const Bytes a = go(deepest_first(deps, which % 10));
      const auto pa = at_peak_;
      const Bytes b = go(list_order(graph_, region_, deps));
      if (a < b) {
        at_peak_ = pa;
        peak_ = a;
      }
    }
    return peak_;
  }
  Bytes go(const std::vector<int>& order) {
    const int end = static_cast<int>(kernels_.size());
    if (!order.empty()) {
      if (order.size() != kernels_.size()) throw InputError({"", ""}, "order");
      std::vector<Kernel> sorted;
      for (int k : order) sorted.push_back(graph_.regions[index(region_)].kernels[index(k)]);
      kernels_ = sorted;
    }
    now_ = peak_ = Bytes(0);
    last_use_.assign(graph_.buffers.size(), -1);
    held_.assign(graph_.buffers.size(), Bytes(0));
    inner_peak_.clear();
    for (int k = 0; k < end; ++k) {
      Kernel& kernel = kernels_[index(k)];
      for (const BufferId buffer : kernel.reads) last_use_[index(buffer)] = k;
      for (const BufferId buffer : kernel.writes) last_use_[index(buffer)] = k;
      if (auto f = inner_peaks_.find(kernel.op); f != inner_peaks_.end())
        inner_peak_[k] = f->second;
    }
    for (int k = 0; k < end; ++k) step(k);
    return peak_;
  }
  [[nodiscard]] const std::vector<LiveBuffer>& at_peak() const { return at_peak_; }

 private:
  static std::size_t index(int id) { return static_cast<std::size_t>(id); }

  bool is_freed_at(BufferId id, int k) const {
    const Buffer& buffer = graph_.buffers[index(id)];
    return !buffer.kept && buffer.region == region_ && last_use_[index(id)] == k;
  }

  void step(int k) {
    const Kernel& kernel = kernels_[index(k)];
    for (const BufferId id : kernel.writes) {
      const Buffer& buffer = graph_.buffers[index(id)];
      if (buffer.outside || fits_home(id, kernel, k) || takes_over(id, kernel, k)) continue;
      held_[index(id)] = buffer.bytes;
      now_ += buffer.bytes;
    }
    if (now_ + kernel.inner > peak_) note(k);
    for (const BufferId id : kernel.reads) release(id, k);
    for (const BufferId id : kernel.writes) release(id, k);
  }

  // The place that a value is to have in the end is free when nothing reads it any more.
  bool fits_home(BufferId id, const Kernel& kernel, int k) const {
    const BufferId home = graph_.buffers[index(id)].home;
    if (home == no_buffer) return false;
    const int last = last_use_[index(home)];
    return last < k || (last == k && may_replace(home, id, kernel));
  }

  static bool may_replace(BufferId read, BufferId written, const Kernel& kernel) {
    if (kernel.in_place != InPlace::initial) return kernel.in_place == InPlace::any;
    const auto at = std::find(kernel.writes.begin(), kernel.writes.end(), written);
    return kernel.initial[static_cast<std::size_t>(at - kernel.writes.begin())] == read;
  }

  bool takes_over(BufferId id, const Kernel& kernel, int k) {
    for (const BufferId read : kernel.reads) {
      if (!is_freed_at(read, k) || held_[index(read)] == Bytes(0)) continue;
      if (held_[index(read)] != graph_.buffers[index(id)].bytes) continue;
      if (!may_replace(read, id, kernel)) continue;
      held_[index(id)] = held_[index(read)];
      held_[index(read)] = Bytes(0);
      return true;
    }
    return false;
  }

  void release(BufferId id, int k) {
    if (!is_freed_at(id, k)) return;
    now_ -= held_[index(id)];
    held_[index(id)] = Bytes(0);
  }

  void note(int k) {
    const Kernel& kernel = kernels_[index(k)];
    peak_ = now_ + kernel.inner;
    at_peak_.clear();
    if (const auto inner = inner_peak_.find(k); inner != inner_peak_.end())
      at_peak_ = inner->second;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (held_[i] == Bytes(0)) continue;
      const Buffer& buffer = graph_.buffers[i];
      const Op& op = main_.op(buffer.op);
      const int last = last_use_[i];
      const std::string why =
          buffer.kept ? "a result"
          : last == k ? "in use"
                      : fmt::format("read at line {}", main_.op(kernels_[index(last)].op).line);
      at_peak_.push_back({held_[i], buffer.type, op.name, op.line, why});
    }
  }

  const Function& main_;
  MemoryTarget target_;
  KernelGraph& graph_;
  std::vector<Kernel> kernels_;
  std::map<OpId, std::vector<LiveBuffer>> inner_peaks_;
  RegionId region_;
  std::vector<int> last_use_;
  std::vector<Bytes> held_;  // by buffer, while it is a temporary here
  std::map<int, std::vector<LiveBuffer>> inner_peak_;
  Bytes now_;
  Bytes peak_;
  std::vector<LiveBuffer> at_peak_;
};

}  // namespace

Bytes allocated_bytes(const TensorType& type, MemoryTarget target) {
  if (!type.is_tensor) return Bytes(0);
  if (!type.dtype) {
    throw InputError({"", ""}, fmt::format("{}: an element type of unknown size", text_of(type)));
  }
  if (target == MemoryTarget::gpu) return storage_bytes(type.elements(), *type.dtype);
  const std::int64_t bytes = tpu_array_bytes(type.dims, *type.dtype).count();
  return Bytes(ceil_div(bytes, tpu_alignment) * tpu_alignment);
}

DeviceMemory device_memory(const Module& per_device, MemoryTarget target) {
  const Function* main = per_device.find_function("main");
  if (main == nullptr) throw InputError({per_device.file, ""}, "no function @main");
  DeviceMemory memory;
  for (const ValueId argument : main->body().arguments) {
    memory.arguments += allocated_bytes(main->type_of(argument), target);
  }
  const std::vector<int> donors = donors_of_results(per_device, *main);
  for (std::size_t i = 0; i < main->results.size(); ++i) {
    const Bytes bytes = allocated_bytes(main->results[i].type, target);
    memory.outputs += bytes;
    if (donors[i] >= 0) memory.aliased += bytes;
  }
  KernelGraph graph = kernels_of(per_device, *main, target);
  Sweep sweep(*main, graph, 0, target);
  memory.temporaries = sweep.run();
  memory.at_peak = sweep.at_peak();
  std::stable_sort(memory.at_peak.begin(), memory.at_peak.end(),
                   [](const LiveBuffer& a, const LiveBuffer& b) { return a.bytes > b.bytes; });
  memory.peak = memory.arguments + memory.outputs - memory.aliased + memory.temporaries;
  return memory;
}

}  // namespace shardsim::spmd
