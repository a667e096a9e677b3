#include "spmd/memory_schedule.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace shardsim::spmd {
namespace {
std::size_t index(int id) { return static_cast<std::size_t>(id); }
}  // namespace

std::vector<std::vector<int>> dependencies_of(const KernelGraph& graph,
                                              stablehlo::RegionId region) {
  const auto& kernels = graph.regions[index(region)].kernels;
  std::vector<std::vector<int>> dependencies(kernels.size());
  std::vector<int> writer(graph.buffers.size(), -1);
  std::vector<std::vector<int>> readers(graph.buffers.size());
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const Kernel& kernel = kernels[k];
    std::set<int> before;
    for (const BufferId buffer : kernel.reads) {
      if (writer[index(buffer)] >= 0) before.insert(writer[index(buffer)]);
      readers[index(buffer)].push_back(static_cast<int>(k));
    }
    if (kernel.updates != no_buffer) {
      for (const int reader : readers[index(kernel.updates)]) before.insert(reader);
      readers[index(kernel.updates)].clear();
      writer[index(kernel.updates)] = static_cast<int>(k);
    }
    for (const BufferId buffer : kernel.writes) writer[index(buffer)] = static_cast<int>(k);
    before.erase(static_cast<int>(k));
    dependencies[k].assign(before.begin(), before.end());
  }
  return dependencies;
}

std::vector<int> deepest_first(const std::vector<std::vector<int>>& dependencies, int policy) {
  const int count = static_cast<int>(dependencies.size());
  std::vector<int> depth(dependencies.size(), 0);
  std::vector<bool> is_sink(dependencies.size(), true);
  for (int k = 0; k < count; ++k) {
    for (const int before : dependencies[index(k)]) {
      depth[index(k)] = std::max(depth[index(k)], depth[index(before)] + 1);
      is_sink[index(before)] = false;
    }
  }
  const auto deeper = [&](int a, int b) {
    if (policy == 0) return a < b;
    if (policy == 2) return a > b;
    if (policy == 3) return depth[index(a)] < depth[index(b)];
    return depth[index(a)] > depth[index(b)];
  };
  std::vector<int> sinks;
  for (int k = 0; k < count; ++k) {
    if (is_sink[index(k)]) sinks.push_back(k);
  }
  std::stable_sort(sinks.begin(), sinks.end(), deeper);
  std::vector<int> order;
  std::vector<char> state(dependencies.size(), 0);
  struct Frame {
    int kernel;
    std::vector<int> before;
    std::size_t next = 0;
  };
  std::vector<Frame> stack;
  const auto push = [&](int kernel) {
    if (state[index(kernel)] != 0) return;
    state[index(kernel)] = 1;
    std::vector<int> before = dependencies[index(kernel)];
    std::stable_sort(before.begin(), before.end(), deeper);
    stack.push_back({kernel, std::move(before)});
  };
  for (const int sink : sinks) {
    push(sink);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.before.size()) {
        push(frame.before[frame.next++]);
      } else {
        order.push_back(frame.kernel);
        stack.pop_back();
      }
    }
  }
  return order;
}

std::vector<int> hybrid_order(const KernelGraph& graph, stablehlo::RegionId region,
                              const std::vector<std::vector<int>>& dependencies,
                              const std::vector<int>& base, bool eager_dots,
                              const std::vector<bool>& is_dot, const std::vector<bool>& is_reduce) {
  const auto& kernels = graph.regions[index(region)].kernels;
  const int count = static_cast<int>(kernels.size());
  std::vector<std::vector<int>> users(kernels.size());
  std::vector<int> waiting(kernels.size(), 0);
  for (int k = 0; k < count; ++k) {
    waiting[index(k)] = static_cast<int>(dependencies[index(k)].size());
    for (int b : dependencies[index(k)]) users[index(b)].push_back(k);
  }
  std::vector<int> reads_left(graph.buffers.size(), 0);
  for (const Kernel& kernel : kernels)
    for (BufferId b : kernel.reads) ++reads_left[index(b)];
  const auto freed = [&](int k) {
    std::int64_t bytes = 0;
    for (BufferId b : kernels[index(k)].reads) {
      const Buffer& buffer = graph.buffers[index(b)];
      if (reads_left[index(b)] == 1 && buffer.region == region && !buffer.outside && !buffer.kept)
        bytes += buffer.bytes.count();
    }
    for (BufferId b : kernels[index(k)].writes) {
      const Buffer& buffer = graph.buffers[index(b)];
      if (!buffer.outside && buffer.home == no_buffer) bytes -= buffer.bytes.count();
    }
    return bytes;
  };
  std::vector<int> phase(kernels.size(), 1 << 30);
  int next_phase = 0;
  for (int k : base) {
    if (kernels[index(k)].body < 0) continue;
    std::vector<int> stack{k};
    while (!stack.empty()) {
      int at = stack.back();
      stack.pop_back();
      if (phase[index(at)] <= next_phase) continue;
      phase[index(at)] = next_phase;
      for (int b : dependencies[index(at)]) stack.push_back(b);
    }
    ++next_phase;
  }
  std::vector<int> rank(kernels.size(), 0);
  std::vector<int> sorted = base;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](int a, int b) { return phase[index(a)] < phase[index(b)]; });
  for (int i = 0; i < count; ++i) rank[index(sorted[index(i)])] = i;
  std::set<std::pair<int, int>> ready;  // rank, kernel
  for (int k = 0; k < count; ++k)
    if (waiting[index(k)] == 0) ready.insert({rank[index(k)], k});
  std::vector<int> order;
  while (!ready.empty()) {
    auto best = ready.begin();
    const int now = phase[index(best->second)];
    std::int64_t most = 0;
    for (auto it = ready.begin(); it != ready.end(); ++it) {
      const int k = it->second;
      if (phase[index(k)] != now && is_dot[index(k)] && !eager_dots) continue;
      std::int64_t f = freed(k);
      if (is_reduce[index(k)]) f = std::max<std::int64_t>(f, 1);
      if (f > most) {
        most = f;
        best = it;
      }
    }
    const int k = best->second;
    ready.erase(best);
    order.push_back(k);
    for (BufferId b : kernels[index(k)].reads) --reads_left[index(b)];
    for (int u : users[index(k)])
      if (--waiting[index(u)] == 0) ready.insert({rank[index(u)], u});
  }
  return order;
}

std::vector<int> list_order(const KernelGraph& graph, stablehlo::RegionId region,
                            const std::vector<std::vector<int>>& dependencies, bool loops_first) {
  const auto& kernels = graph.regions[index(region)].kernels;
  const int count = static_cast<int>(kernels.size());
  std::vector<std::vector<int>> users(kernels.size());
  std::vector<int> waiting(kernels.size(), 0);
  for (int k = 0; k < count; ++k) {
    waiting[index(k)] = static_cast<int>(dependencies[index(k)].size());
    for (int b : dependencies[index(k)]) users[index(b)].push_back(k);
  }
  std::vector<int> reads_left(graph.buffers.size(), 0);
  for (const Kernel& kernel : kernels)
    for (BufferId b : kernel.reads) ++reads_left[index(b)];
  const auto counts = [&](BufferId b) {
    const Buffer& buffer = graph.buffers[index(b)];
    return buffer.region == region && !buffer.outside && !buffer.kept;
  };
  const auto freed = [&](int k) {
    std::int64_t bytes = 0;
    for (BufferId b : kernels[index(k)].reads)
      if (reads_left[index(b)] == 1 && counts(b)) bytes += graph.buffers[index(b)].bytes.count();
    std::int64_t defined = 0;
    for (BufferId b : kernels[index(k)].writes) {
      const Buffer& buffer = graph.buffers[index(b)];
      if (!buffer.outside && buffer.home == no_buffer) defined += buffer.bytes.count();
    }
    defined = std::max(defined, kernels[index(k)].inner.count());
    return bytes - defined;
  };
  std::vector<int> phase(kernels.size(), 0);
  if (loops_first) {
    int next = 0;
    std::fill(phase.begin(), phase.end(), 1 << 30);
    for (int k = 0; k < count; ++k) {
      if (kernels[index(k)].body < 0) continue;
      std::vector<int> stack{k};
      while (!stack.empty()) {
        int at = stack.back();
        stack.pop_back();
        if (phase[index(at)] <= next) continue;
        phase[index(at)] = next;
        for (int b : dependencies[index(at)]) stack.push_back(b);
      }
      ++next;
    }
  }
  std::set<int> ready;
  for (int k = 0; k < count; ++k)
    if (waiting[index(k)] == 0) ready.insert(k);
  std::vector<int> order;
  while (!ready.empty()) {
    int best = -1;
    std::int64_t best_freed = 0;
    int lowest = 1 << 30;
    for (int k : ready) lowest = std::min(lowest, phase[index(k)]);
    for (int k : ready) {
      if (phase[index(k)] != lowest) continue;
      const auto f = freed(k);
      if (best < 0 || f > best_freed ||
          (f == best_freed && users[index(k)].size() > users[index(best)].size())) {
        best = k;
        best_freed = f;
      }
    }
    ready.erase(best);
    order.push_back(best);
    for (BufferId b : kernels[index(best)].reads) --reads_left[index(b)];
    for (int u : users[index(best)])
      if (--waiting[index(u)] == 0) ready.insert(u);
  }
  return order;
}

}  // namespace shardsim::spmd
