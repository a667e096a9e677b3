#include "plan/repeat_plan.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <vector>

namespace shardsim {
namespace {

class Appender {
 public:
  Appender(Plan& plan, const Plan& further)
      : plan_(plan),
        further_(further),
        kernels_(static_cast<std::int32_t>(plan.kernels.size())),
        collectives_(static_cast<std::int32_t>(plan.collectives.size())),
        transfers_(static_cast<std::int32_t>(plan.transfers.size())) {
    std::map<std::string, std::int32_t> known;
    for (const std::string& name : plan.names) known.emplace(name, known.size());
    for (const std::string& name : further.names) {
      const auto [place, is_new] =
          known.emplace(name, static_cast<std::int32_t>(plan.names.size()));
      if (is_new) plan.names.push_back(name);
      names_.push_back(place->second);
    }
    plan.kernels.insert(plan.kernels.end(), further.kernels.begin(), further.kernels.end());
    plan.collectives.insert(plan.collectives.end(), further.collectives.begin(),
                            further.collectives.end());
    plan.transfers.insert(plan.transfers.end(), further.transfers.begin(), further.transfers.end());
  }

  void append(std::size_t number) {
    Program& program = plan_.programs[number];
    const Program& more = further_.programs[number];
    assert(program.devices == more.devices && program.streams == more.streams);
    const auto begin = static_cast<TaskId>(program.tasks.size());
    const auto moved = [&](std::span<const TaskId> tasks) {
      std::vector<TaskId> ids;
      for (const TaskId id : tasks) ids.push_back(id == before_the_step ? id : id + begin);
      return ids;
    };
    for (const Task& task : more.tasks) {
      std::vector<TaskId> after = moved(more.after(task));
      if (after.empty() && begin > 0) after.push_back(begin - 1);
      Task copy = task;
      copy.work += task.kind == TaskKind::collective ? collectives_
                   : task.kind == TaskKind::transfer ? transfers_
                                                     : kernels_;
      copy.name = names_[static_cast<std::size_t>(task.name)];
      (void)program.add_task(copy, after);
    }
    for (const Buffer& buffer : more.buffers) {
      if (buffer.free_count == 0) continue;
      Buffer copy = buffer;
      copy.name = names_[static_cast<std::size_t>(buffer.name)];
      if (copy.allocated_by != before_the_step) copy.allocated_by += begin;
      (void)program.add_buffer(copy, moved(more.freed_after(buffer)));
    }
  }

 private:
  Plan& plan_;
  const Plan& further_;
  std::int32_t kernels_;
  std::int32_t collectives_;
  std::int32_t transfers_;
  std::vector<std::int32_t> names_;  // of the further plan's
};

}  // namespace

Plan followed_by(Plan first, const Plan& further, std::int64_t times) {
  assert(first.mesh == further.mesh && first.programs.size() == further.programs.size());
  Appender appender(first, further);
  for (std::int64_t i = 0; i < times; ++i) {
    for (std::size_t p = 0; p < first.programs.size(); ++p) appender.append(p);
  }
  const auto n = static_cast<double>(times);
  first.subject.model_flops += Flops(n * further.subject.model_flops.count());
  first.subject.model_flops_full_attention +=
      Flops(n * further.subject.model_flops_full_attention.count());
  first.subject.tokens_per_step += times * further.subject.tokens_per_step;
  for (const std::string& note : further.notes) {
    if (std::count(first.notes.begin(), first.notes.end(), note) == 0) first.notes.push_back(note);
  }
  return first;
}

}  // namespace shardsim
