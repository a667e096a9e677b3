#include "validate/step/serialize_streams.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/index.hpp"

namespace shardsim {
namespace {

// Messages that end at one moment come in one order on all sides: by channel, then by who sends to
// whom. Else two devices could each wait for the other to take what it sends.
std::array<std::int32_t, 3> place_among_messages(const Transfer& transfer, std::int32_t program) {
  const auto [low, high] = std::minmax(program, static_cast<std::int32_t>(transfer.peer_program));
  return {transfer.channel, low, high};
}

// By when tasks start or, of calls that programs make together, when they end: one of them may be
// there long before the others, and would keep its device from what these wait for.
std::vector<TaskId> order_of(const Plan& plan, std::int32_t number,
                             const std::vector<TaskTimes>& times) {
  const Program& program = plan.programs[at(number)];
  const auto waits = [&](TaskId task) {
    return plan.programs.size() > 1 && program.tasks[at(task)].kind != TaskKind::kernel;
  };
  const auto moment = [&](TaskId task) {
    return waits(task) ? times[at(task)].end : times[at(task)].start;
  };
  const auto is_message = [&](TaskId task) {
    return program.tasks[at(task)].kind == TaskKind::transfer;
  };
  const auto place = [&](TaskId task) {
    return place_among_messages(plan.transfers[at(program.tasks[at(task)].work)], number);
  };
  std::vector<TaskId> order(times.size());
  std::iota(order.begin(), order.end(), 0);
  // What waits comes behind what it waits for: has its moment later, or at once when that takes no
  // time, and has the larger number.
  std::stable_sort(order.begin(), order.end(),
                   [&](TaskId a, TaskId b) { return moment(a) < moment(b); });
  for (auto first = order.begin(); first != order.end();) {
    const auto end = std::find_if(first + 1, order.end(), [&](TaskId task) {
      return !is_message(task) || !is_message(*first) || moment(task) != moment(*first);
    });
    if (is_message(*first)) {
      std::stable_sort(first, end, [&](TaskId a, TaskId b) { return place(a) < place(b); });
    }
    first = end;
  }
  return order;
}

Program in_order(const Program& program, const std::vector<TaskId>& order) {
  std::vector<TaskId> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[at(order[i])] = static_cast<TaskId>(i);
  const auto placed = [&](std::span<const TaskId> tasks) {
    std::vector<TaskId> places;
    for (const TaskId task : tasks) places.push_back(place[at(task)]);
    return places;
  };
  Program serial;
  serial.name = program.name;
  serial.devices = program.devices;
  serial.streams = {"compute"};
  for (const TaskId id : order) {
    Task task = program.tasks[at(id)];
    const std::vector<TaskId> after = placed(program.after(task));
    task.stream = 0;
    (void)serial.add_task(task, after);
  }
  for (const Buffer& given : program.buffers) {
    Buffer buffer = given;
    if (buffer.allocated_by != before_the_step) buffer.allocated_by = place[at(given.allocated_by)];
    serial.add_buffer(buffer, placed(program.freed_after(given)));
  }
  return serial;
}

}  // namespace

Plan serialize_streams(const Plan& plan, const Result& simulated) {
  Plan serial = plan;
  for (std::size_t i = 0; i < plan.programs.size(); ++i) {
    const auto order = order_of(plan, static_cast<std::int32_t>(i), simulated.programs[i].tasks);
    serial.programs[i] = in_order(plan.programs[i], order);
  }
  verify(serial);
  return serial;
}

}  // namespace shardsim
