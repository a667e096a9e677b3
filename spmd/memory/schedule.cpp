#include "spmd/memory/schedule.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

using Edges = std::vector<std::vector<int>>;

constexpr int after_all_loops = std::numeric_limits<int>::max();

// Which kernels must have run before each: those that write what it reads, and, of what it changes
// in place, those that read it before.
Edges dependencies_of(const KernelGraph& graph, const std::vector<Kernel>& kernels) {
  Edges dependencies(kernels.size());
  std::vector<int> writer(graph.buffers.size(), -1);
  std::vector<std::vector<int>> readers(graph.buffers.size());
  for (int k = 0; k < static_cast<int>(kernels.size()); ++k) {
    const Kernel& kernel = kernels[at(k)];
    std::set<int> before;
    for (const BufferId buffer : kernel.reads) {
      before.insert(writer[at(buffer)]);
      readers[at(buffer)].push_back(k);
    }
    if (kernel.updates != no_buffer) {
      before.insert(readers[at(kernel.updates)].begin(), readers[at(kernel.updates)].end());
      readers[at(kernel.updates)].clear();
      writer[at(kernel.updates)] = k;
    }
    for (const BufferId buffer : kernel.writes) writer[at(buffer)] = k;
    before.erase(-1);
    before.erase(k);
    dependencies[at(k)].assign(before.begin(), before.end());
  }
  return dependencies;
}

// Depth first from the kernels that nobody waits for, longest chains first.
class DepthFirst {
 public:
  explicit DepthFirst(const Edges& dependencies)
      : dependencies_(dependencies), depth_(dependencies.size()), seen_(dependencies.size()) {
    for (std::size_t k = 0; k < depth_.size(); ++k) {
      for (const int before : dependencies_[k]) {
        depth_[k] = std::max(depth_[k], depth_[at(before)] + 1);
      }
    }
  }

  std::vector<int> order() {
    std::vector<bool> is_waited_for(depth_.size());
    for (const auto& before : dependencies_) {
      for (const int k : before) is_waited_for[at(k)] = true;
    }
    std::vector<int> last;
    for (int k = 0; k < static_cast<int>(depth_.size()); ++k) {
      if (!is_waited_for[at(k)]) last.push_back(k);
    }
    for (const int k : deepest_first(std::move(last))) visit(k);
    return std::move(order_);
  }

 private:
  struct Frame {
    int kernel = 0;
    std::vector<int> before;
    std::size_t next = 0;
  };

  std::vector<int> deepest_first(std::vector<int> kernels) const {
    std::stable_sort(kernels.begin(), kernels.end(),
                     [&](int a, int b) { return depth_[at(a)] > depth_[at(b)]; });
    return kernels;
  }

  // Chains are as long as programs: no recursion.
  void visit(int kernel) {
    std::vector<Frame> stack;
    enter(kernel, stack);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.before.size()) {
        enter(frame.before[frame.next++], stack);
      } else {
        order_.push_back(frame.kernel);
        stack.pop_back();
      }
    }
  }

  void enter(int kernel, std::vector<Frame>& stack) {
    if (seen_[at(kernel)]) return;
    seen_[at(kernel)] = true;
    stack.push_back({kernel, deepest_first(dependencies_[at(kernel)])});
  }

  const Edges& dependencies_;
  std::vector<int> depth_;
  std::vector<bool> seen_;
  std::vector<int> order_;
};

class Scheduler {
 public:
  Scheduler(const KernelGraph& graph, stablehlo::RegionId region, MemoryTarget target)
      : graph_(graph),
        region_(region),
        target_(target),
        kernels_(graph.regions[at(region)].kernels),
        dependencies_(dependencies_of(graph, kernels_)),
        users_(kernels_.size()),
        waits_for_(kernels_.size()),
        phase_(kernels_.size(), after_all_loops),
        rank_(kernels_.size()),
        reads_left_(graph.buffers.size()),
        reads_ready_(graph.buffers.size()) {}

  std::vector<int> order() {
    rank_kernels();
    for (int k = 0; k < count(); ++k) {
      waits_for_[at(k)] = dependencies_[at(k)].size();
      for (const int before : dependencies_[at(k)]) users_[at(before)].push_back(k);
      for (const BufferId buffer : kernels_[at(k)].reads) ++reads_left_[at(buffer)];
    }
    for (int k = 0; k < count(); ++k) {
      if (waits_for_[at(k)] == 0) make_ready(k);
    }
    std::vector<int> order;
    while (!ready_.empty()) {
      const auto next = choose();
      const int k = next->second;
      ready_.erase(next);
      order.push_back(k);
      last_ = k;
      for (const BufferId buffer : kernels_[at(k)].reads) {
        --reads_left_[at(buffer)];
        --reads_ready_[at(buffer)];
      }
      for (const int user : users_[at(k)]) {
        if (--waits_for_[at(user)] == 0) make_ready(user);
      }
    }
    return order;
  }

 private:
  using Ready = std::set<std::pair<int, int>>;  // rank, kernel

  [[nodiscard]] int count() const { return static_cast<int>(kernels_.size()); }

  void make_ready(int k) {
    ready_.emplace(rank_[at(k)], k);
    for (const BufferId buffer : kernels_[at(k)].reads) ++reads_ready_[at(buffer)];
  }

  // By phase, the loop that a kernel has to precede, then depth first.
  void rank_kernels() {
    std::vector<int> order = DepthFirst(dependencies_).order();
    int phase = 0;
    for (const int k : order) {
      if (kernels_[at(k)].kind == KernelKind::loop) precede(k, phase++);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return phase_[at(a)] < phase_[at(b)]; });
    for (int i = 0; i < count(); ++i) rank_[at(order[at(i)])] = i;
  }

  void precede(int loop, int phase) {
    std::vector<int> open{loop};
    while (!open.empty()) {
      const int k = open.back();
      open.pop_back();
      if (phase_[at(k)] <= phase) continue;
      phase_[at(k)] = phase;
      for (const int before : dependencies_[at(k)]) open.push_back(before);
    }
  }

  Ready::const_iterator choose() const {
    auto best = ready_.begin();
    const int phase = phase_[at(best->second)];
    std::int64_t most = 0;
    for (auto it = ready_.begin(); it != ready_.end(); ++it) {
      const int k = it->second;
      const KernelKind kind = kernels_[at(k)].kind;
      if (kind == KernelKind::collective) {
        if (follows_last(k)) return it;
        continue;
      }
      const bool may_wait = phase_[at(k)] != phase;
      if (may_wait && kernels_[at(k)].is_windowed) continue;
      std::int64_t freed = bytes_freed(k);
      if (kind == KernelKind::reduction) freed = std::max<std::int64_t>(freed, 1);
      if (freed <= most) continue;
      most = freed;
      best = it;
    }
    return best;
  }

  // The reduce_scatter of the dot that has just run.
  bool follows_last(int k) const {
    if (last_ < 0 || kernels_[at(last_)].reduced == no_buffer) return false;
    return kernels_[at(k)].writes.front() == kernels_[at(last_)].reduced;
  }

  std::int64_t bytes_freed(int k) const {
    Bytes bytes;
    for (const BufferId id : kernels_[at(k)].reads) {
      const Buffer& buffer = graph_.buffers[at(id)];
      const bool is_temporary = buffer.region == region_ && !buffer.is_outside && !buffer.is_kept;
      const int left = reads_left_[at(id)];
      if (is_temporary && reads_ready_[at(id)] == left) bytes += buffer.bytes / left;
    }
    const BufferId reduced = kernels_[at(k)].reduced;
    const std::vector<BufferId> shard{reduced};
    for (const BufferId id : reduced == no_buffer ? kernels_[at(k)].writes : shard) {
      const Buffer& buffer = graph_.buffers[at(id)];
      if (!buffer.is_outside && buffer.home == no_buffer) bytes -= buffer.bytes;
    }
    return bytes.count();
  }

  const KernelGraph& graph_;
  stablehlo::RegionId region_;
  MemoryTarget target_;
  const std::vector<Kernel>& kernels_;
  Edges dependencies_;
  Edges users_;
  std::vector<std::size_t> waits_for_;
  std::vector<int> phase_;
  std::vector<int> rank_;
  std::vector<int> reads_left_;   // by buffer: readers that have not run
  std::vector<int> reads_ready_;  // by buffer: those of them that could
  int last_ = -1;                 // what ran before
  Ready ready_;
};

}  // namespace

std::vector<int> run_order(const KernelGraph& graph, stablehlo::RegionId region,
                           MemoryTarget target) {
  return Scheduler(graph, region, target).order();
}

}  // namespace shardsim::spmd
