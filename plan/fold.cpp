#include "plan/fold.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace shardsim {
namespace {

// Gemma 3 has five windowed layers and a full one, Jamba repeats after eight.
constexpr int most_layers_of_a_period = 16;

auto what_it_does(const Task& task) {
  return std::tuple(task.kind, task.phase, task.recompute, task.stream, task.work, task.name,
                    task.dependency_count, task.layer < 0);
}

// How far layer and microbatch move from one repetition to the next.
struct Step {
  std::int32_t layer = 0;
  std::int32_t microbatch = 0;
};

class Folder {
 public:
  explicit Folder(const Program& program) : program_(program), next_(program.tasks.size()) {
    std::map<decltype(what_it_does(Task{})), TaskId> last;
    for (std::size_t i = next_.size(); i-- > 0;) {
      const auto id = static_cast<TaskId>(i);
      const auto place = last.try_emplace(what_it_does(task(id)), id).first;
      next_[i] = std::exchange(place->second, id);
    }
  }

  // The longest repetition that begins at `first`, by the nearest possible period: that of one
  // layer or, where kinds of layers take turns, of a few.
  [[nodiscard]] Section section_at(TaskId first) const {
    TaskId second = first;
    for (int tried = 0; tried < most_layers_of_a_period; ++tried) {
      const TaskId before = std::exchange(second, next_[static_cast<std::size_t>(second)]);
      if (second == before) break;
      const Section section = section_of(first, second);
      if (section.repeats > 1) return section;
    }
    return {first};
  }

 private:
  [[nodiscard]] Section section_of(TaskId first, TaskId second) const {
    const Step step{task(second).layer - task(first).layer,
                    task(second).microbatch - task(first).microbatch};
    const bool moves =
        (step.layer != 0 && step.microbatch == 0) || (step.layer == 0 && step.microbatch == 1);
    if (!moves) return {first};
    const TaskId period = second - first;
    TaskId same = 0;
    while (second + same < size() && corresponds(first + same, second + same, period, step)) ++same;
    return {first, period, same / period + 1};
  }

  [[nodiscard]] const Task& task(TaskId id) const {
    return program_.tasks[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] TaskId size() const { return static_cast<TaskId>(program_.tasks.size()); }

  // `b` does for the next repetition what `a` does for this one.
  [[nodiscard]] bool one_step_on(TaskId a, TaskId b, Step step) const {
    if (what_it_does(task(a)) != what_it_does(task(b))) return false;
    const std::int32_t layers = task(a).layer < 0 ? 0 : step.layer;
    return task(b).layer - task(a).layer == layers &&
           task(b).microbatch - task(a).microbatch == step.microbatch;
  }

  [[nodiscard]] bool corresponds(TaskId a, TaskId b, TaskId period, Step step) const {
    if (!one_step_on(a, b, step)) return false;
    const auto before_a = program_.after(task(a));
    const auto before_b = program_.after(task(b));
    for (std::size_t i = 0; i < before_a.size(); ++i) {
      if (before_b[i] != before_a[i] && before_b[i] != before_a[i] + period &&
          !one_step_on(before_a[i], before_b[i], step)) {
        return false;
      }
    }
    return true;
  }

  const Program& program_;
  // The next task that does the same for some layer; itself where there is none.
  std::vector<TaskId> next_;
};

}  // namespace

std::vector<Section> fold(const Program& program) {
  const Folder folder(program);
  std::vector<Section> sections;
  const auto size = static_cast<TaskId>(program.tasks.size());
  for (TaskId first = 0; first < size;) {
    const Section section = folder.section_at(first);
    const bool joins = section.repeats == 1 && !sections.empty() && sections.back().repeats == 1;
    if (joins) {
      sections.back().length += section.length;
    } else {
      sections.push_back(section);
    }
    first += static_cast<TaskId>(section.length * section.repeats);
  }
  return sections;
}

std::vector<TaskId> representatives(const Program& program, const std::vector<Section>& sections) {
  std::vector<TaskId> result;
  result.reserve(program.tasks.size());
  for (const Section& section : sections) {
    for (std::int64_t repeat = 0; repeat < section.repeats; ++repeat) {
      for (TaskId i = 0; i < section.length; ++i) result.push_back(section.first + i);
    }
  }
  return result;
}

}  // namespace shardsim
