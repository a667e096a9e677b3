#include "plan/repeat_plan.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <string_view>
#include <vector>

namespace shardsim {
namespace {

// Of a plan of several programs: the last of them tells the first what it has decided on, so the
// first can begin the next step no earlier than the last is through with this one.
constexpr std::int32_t token_channel = 2;  // beside activations and gradients

std::uint8_t stream_of(const Program& program, std::string_view name) {
  const auto place = std::find(program.streams.begin(), program.streams.end(), name);
  assert(place != program.streams.end());
  return static_cast<std::uint8_t>(place - program.streams.begin());
}

// The task that ends each microbatch of those from `begin` on.
std::map<std::int32_t, TaskId> ends_of_microbatches(const Program& program, std::size_t begin) {
  std::map<std::int32_t, TaskId> ends;
  for (std::size_t id = begin; id < program.tasks.size(); ++id) {
    ends[program.tasks[id].microbatch] = static_cast<TaskId>(id);
  }
  return ends;
}

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

  // One further step of all programs.
  void append() {
    const std::map<std::int32_t, TaskId> tokens =
        plan_.programs.size() > 1 ? hand_tokens_over() : std::map<std::int32_t, TaskId>{};
    for (std::size_t p = 0; p < plan_.programs.size(); ++p) {
      last_step_.resize(plan_.programs.size());
      last_step_[p] = plan_.programs[p].tasks.size();
      append(p, p == 0 ? tokens : std::map<std::int32_t, TaskId>{});
    }
  }

 private:
  // `tokens`: the task behind which a microbatch has what it starts from.
  void append(std::size_t number, const std::map<std::int32_t, TaskId>& tokens) {
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
      if (after.empty()) {
        const auto token = tokens.find(task.microbatch);
        if (token != tokens.end()) {
          after.push_back(token->second);
        } else if (begin > 0) {
          after.push_back(begin - 1);
        }
      }
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

  // Sends of the last program and receives of the first, of the step that was appended last.
  std::map<std::int32_t, TaskId> hand_tokens_over() {
    Program& last = plan_.programs.back();
    Program& first = plan_.programs.front();
    const std::size_t begin = last_step_.empty() ? 0 : last_step_.back();
    Transfer sent = next_token();
    sent.reason = "next tokens for the first stage";
    Transfer received = sent;
    received.sends = false;
    received.peer_program = static_cast<int>(plan_.programs.size()) - 1;
    received.reason = "next tokens of the last stage";
    std::map<std::int32_t, TaskId> tokens;
    for (const auto& [microbatch, end] : ends_of_microbatches(last, begin)) {
      Task message = last.tasks[static_cast<std::size_t>(end)];
      message.kind = TaskKind::transfer;
      message.stream = stream_of(last, "activation sends");
      message.work = transfer(sent);
      (void)last.add_task(message, {end});
      message.stream = stream_of(first, "activation receives");
      message.work = transfer(received);
      tokens[microbatch] = first.add_task(message, {});
    }
    return tokens;
  }

  // What the last kernel of a further step writes.
  [[nodiscard]] Transfer next_token() const {
    const Program& last = further_.programs.back();
    const auto end = static_cast<TaskId>(last.tasks.size()) - 1;
    assert(last.tasks.back().kind == TaskKind::kernel);
    Transfer token;
    token.dtype = further_.kernels[static_cast<std::size_t>(last.tasks.back().work)].dtype;
    token.channel = token_channel;
    for (const Buffer& buffer : last.buffers) {
      if (buffer.allocated_by == end) token.payload += buffer.bytes;
    }
    return token;
  }

  std::int32_t transfer(const Transfer& transfer) {
    const auto known = std::find(plan_.transfers.begin(), plan_.transfers.end(), transfer);
    const auto place = static_cast<std::int32_t>(known - plan_.transfers.begin());
    if (known == plan_.transfers.end()) plan_.transfers.push_back(transfer);
    return place;
  }

  Plan& plan_;
  const Plan& further_;
  std::int32_t kernels_;
  std::int32_t collectives_;
  std::int32_t transfers_;
  std::vector<std::int32_t> names_;     // of the further plan's
  std::vector<std::size_t> last_step_;  // by program, where the last one begins; empty: at 0
};

}  // namespace

Plan followed_by(Plan first, const Plan& further, std::int64_t times) {
  assert(first.mesh == further.mesh && first.programs.size() == further.programs.size());
  Appender appender(first, further);
  for (std::int64_t i = 0; i < times; ++i) appender.append();
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
