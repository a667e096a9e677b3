#include "sim/step/memory.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/index.hpp"

namespace shardsim {
namespace {

// The moments of a task, first and last.
struct Moments {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

bool computes(const Task& task) { return task.stream == 0; }

// Of every task, how many compute tasks have ended when it starts, and how many have started
// without waiting for it.
struct Surroundings {
  std::vector<std::size_t> ended;
  std::vector<std::size_t> free_of_it;
};

// Visits (before, task): what a task waits for, and the task before it in its stream; tasks in
// issue order.
template <class Visit>
void for_each_wait(const Program& program, const std::vector<TaskId>& on_stream_before,
                   std::size_t task, Visit visit) {
  for (const TaskId before : program.after(program.tasks[task])) visit(at(before));
  if (on_stream_before[task] >= 0) visit(at(on_stream_before[task]));
}

Surroundings surroundings_of(const Program& program, std::size_t compute_tasks) {
  const std::size_t count = program.tasks.size();
  std::vector<TaskId> on_stream_before(count, before_the_step);
  std::vector<TaskId> last(program.streams.size(), before_the_step);
  for (std::size_t i = 0; i < count; ++i) {
    on_stream_before[i] = std::exchange(last[program.tasks[i].stream], static_cast<TaskId>(i));
  }
  Surroundings result{std::vector<std::size_t>(count, 0),
                      std::vector<std::size_t>(count, compute_tasks)};
  for (std::size_t i = 0; i < count; ++i) {
    for_each_wait(program, on_stream_before, i, [&](std::size_t before) {
      const std::size_t with_it = computes(program.tasks[before]) ? 1 : 0;
      result.ended[i] = std::max(result.ended[i], result.ended[before] + with_it);
    });
  }
  for (std::size_t i = count; i-- > 0;) {
    const std::size_t own = computes(program.tasks[i]) ? result.ended[i] : result.free_of_it[i];
    for_each_wait(program, on_stream_before, i, [&](std::size_t before) {
      result.free_of_it[before] = std::min(result.free_of_it[before], own);
    });
  }
  return result;
}

constexpr int no_stream = -1;
constexpr int several_streams = -2;

// Of every gap between compute tasks, the stream of what runs in it alone.
std::vector<int> streams_of_gaps(const Program& program, const Surroundings& around,
                                 std::size_t compute_tasks) {
  std::vector<int> streams(compute_tasks + 1, no_stream);
  for (std::size_t i = 0; i < program.tasks.size(); ++i) {
    const Task& task = program.tasks[i];
    if (computes(task) || around.ended[i] != around.free_of_it[i]) continue;
    int& stream = streams[around.ended[i]];
    const bool is_first = stream == no_stream || stream == task.stream;
    stream = is_first ? task.stream : several_streams;
  }
  return streams;
}

std::vector<Moments> moments_of(const Program& program) {
  std::vector<std::int64_t> compute;  // moments of compute tasks
  for (std::size_t i = 0; i < program.tasks.size(); ++i) {
    if (computes(program.tasks[i])) compute.push_back(static_cast<std::int64_t>(i));
  }
  const Surroundings around = surroundings_of(program, compute.size());
  const std::vector<int> streams = streams_of_gaps(program, around, compute.size());
  std::vector<Moments> moments;
  moments.reserve(program.tasks.size());
  for (std::size_t i = 0; i < program.tasks.size(); ++i) {
    const auto own = static_cast<std::int64_t>(i);
    const std::size_t ended = around.ended[i];
    const std::size_t free_of_it = around.free_of_it[i];
    const bool has_a_gap_in_order = ended == free_of_it && streams[ended] != several_streams;
    if (computes(program.tasks[i]) || has_a_gap_in_order) {
      moments.push_back({own, own});
      continue;
    }
    const std::int64_t end = free_of_it < compute.size()
                                 ? compute[free_of_it]
                                 : static_cast<std::int64_t>(program.tasks.size());
    moments.push_back({ended > 0 ? compute[ended - 1] + 1 : 0, end - 1});
  }
  return moments;
}

// When each moment begins, and when the last one ends. What may run at several has no time of its
// own.
std::vector<SimTime> times_of(const std::vector<Moments>& moments,
                              const std::vector<TaskTimes>& tasks) {
  std::vector<SimTime> times;
  times.reserve(tasks.size() + 1);
  SimTime now{0};
  SimTime end{0};
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (moments[i].first == moments[i].last) now = std::max(now, tasks[i].start);
    end = std::max(end, tasks[i].end);
    times.push_back(now);
  }
  times.push_back(end);
  return times;
}

struct MemoryChange {
  std::int64_t moment = 0;
  BufferCategory category = BufferCategory::temporaries;
  Bytes bytes{0};  // negative where a buffer dies
};

std::vector<MemoryChange> changes_of(const Program& program,
                                     const std::vector<BufferLifetime>& lifetimes) {
  // Moments are few and dense: one pass counts what changes at each, the next puts it there.
  std::vector<std::size_t> place(program.tasks.size() + 2, 0);
  const auto for_each_change = [&](const auto& visit) {
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
      const Buffer& buffer = program.buffers[i];
      if (buffer.on_host) continue;
      visit(MemoryChange{lifetimes[i].begin, buffer.category, buffer.bytes});
      if (lifetimes[i].end == BufferLifetime::beyond_the_step) continue;
      visit(MemoryChange{lifetimes[i].end, buffer.category, Bytes(0) - buffer.bytes});
    }
  };
  for_each_change([&](const MemoryChange& change) { ++place[at(change.moment) + 1]; });
  for (std::size_t moment = 1; moment < place.size(); ++moment) place[moment] += place[moment - 1];
  std::vector<MemoryChange> changes(place.back());
  for_each_change(
      [&](const MemoryChange& change) { changes[place[at(change.moment)]++] = change; });
  return changes;
}

std::vector<BufferLifetime> lifetimes_at(const Program& program,
                                         const std::vector<Moments>& moments) {
  std::vector<BufferLifetime> lifetimes;
  lifetimes.reserve(program.buffers.size());
  for (const Buffer& buffer : program.buffers) {
    BufferLifetime lifetime;
    if (buffer.allocated_by != before_the_step) {
      lifetime.begin = moments[at(buffer.allocated_by)].first;
    }
    if (buffer.free_count > 0) lifetime.end = lifetime.begin + 1;
    for (const TaskId last : program.freed_after(buffer)) {
      lifetime.end = std::max(lifetime.end, moments[at(last)].last + 1);
    }
    lifetimes.push_back(lifetime);
  }
  return lifetimes;
}

Bytes total_of(const MemorySample& sample) {
  Bytes total{0};
  for (const Bytes bytes : sample.by_category) total += bytes;
  return total;
}

// Of moments of one time the fullest is shown.
void show(const MemorySample& sample, std::vector<MemorySample>& curve) {
  const bool is_new = curve.empty() || curve.back().time != sample.time;
  if (is_new) {
    curve.push_back(sample);
  } else if (total_of(curve.back()) < total_of(sample)) {
    curve.back() = sample;
  }
}

// The kernel that runs on the compute stream at `time`, or else the first task that starts then.
std::string running_at(SimTime time, const Plan& plan, const Program& program,
                       const std::vector<TaskTimes>& tasks) {
  const Task* starting = nullptr;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = program.tasks[i];
    if (task.kind == TaskKind::kernel && task.stream == 0 && tasks[i].start <= time &&
        time < tasks[i].end) {
      return plan.task_name(task);
    }
    if (tasks[i].start == time && starting == nullptr) starting = &task;
  }
  return starting == nullptr ? std::string() : plan.task_name(*starting);
}

Bytes most_on_host(const Program& program, const std::vector<BufferLifetime>& lifetimes) {
  std::map<std::int64_t, Bytes> changes;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (!buffer.on_host) continue;
    changes[lifetimes[i].begin] += buffer.bytes;
    changes[lifetimes[i].end] += Bytes(0) - buffer.bytes;
  }
  Bytes now{0};
  Bytes most{0};
  for (const auto& [moment, change] : changes) most = std::max(most, now += change);
  return most;
}

std::vector<PeakBuffer> alive_at(std::int64_t moment, const Plan& plan, const Program& program,
                                 const std::vector<BufferLifetime>& lifetimes, Bytes workspaces) {
  std::map<std::pair<std::int32_t, BufferCategory>, PeakBuffer> alive;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    if (lifetimes[i].begin > moment || lifetimes[i].end <= moment) continue;
    const Buffer& buffer = program.buffers[i];
    if (buffer.on_host) continue;
    auto [found, is_new] = alive.try_emplace({buffer.name, buffer.category});
    PeakBuffer& together = found->second;
    together.count = is_new ? 1 : together.count + 1;
    together.bytes += buffer.bytes;
  }
  std::vector<PeakBuffer> result;
  if (workspaces > Bytes(0)) {
    result.push_back({"workspaces of libraries", BufferCategory::temporaries, 1, workspaces});
  }
  for (auto& [key, together] : alive) {
    together.name = plan.names[static_cast<std::size_t>(key.first)];
    together.category = key.second;
    result.push_back(std::move(together));
  }
  std::sort(result.begin(), result.end(), [](const PeakBuffer& a, const PeakBuffer& b) {
    return std::tie(b.bytes, a.name, a.category) < std::tie(a.bytes, b.name, b.category);
  });
  return result;
}

}  // namespace

std::vector<BufferLifetime> lifetimes_of(const Program& program) {
  return lifetimes_at(program, moments_of(program));
}

std::vector<BufferLifetime> replay_memory(const Plan& plan, const Program& program,
                                          Bytes workspaces, bool keep_curve,
                                          ProgramResult& result) {
  const std::vector<Moments> moments = moments_of(program);
  const std::vector<SimTime> times = times_of(moments, result.tasks);
  std::vector<BufferLifetime> lifetimes = lifetimes_at(program, moments);
  const std::vector<MemoryChange> changes = changes_of(program, lifetimes);
  MemorySample now;
  std::int64_t fullest = 0;
  now.by_category[static_cast<std::size_t>(BufferCategory::temporaries)] = workspaces;
  Bytes total = workspaces;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    now.by_category[static_cast<std::size_t>(changes[i].category)] += changes[i].bytes;
    total += changes[i].bytes;
    if (i + 1 < changes.size() && changes[i + 1].moment == changes[i].moment) continue;
    now.time = times[static_cast<std::size_t>(changes[i].moment)];
    if (keep_curve) show(now, result.memory_curve);
    if (total <= result.peak) continue;
    fullest = changes[i].moment;
    result.peak = total;
    result.peak_time = now.time;
    result.peak_by_category = now.by_category;
  }
  result.on_host = most_on_host(program, lifetimes);
  result.peak_task = running_at(result.peak_time, plan, program, result.tasks);
  result.peak_buffers = alive_at(fullest, plan, program, lifetimes, workspaces);
  return lifetimes;
}

}  // namespace shardsim
