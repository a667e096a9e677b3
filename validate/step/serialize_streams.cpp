#include "validate/step/serialize_streams.hpp"

#include <algorithm>
#include <numeric>

#include "base/index.hpp"

namespace shardsim {
namespace {

std::vector<TaskId> order_of_starts(const std::vector<TaskTimes>& times) {
  std::vector<TaskId> order(times.size());
  std::iota(order.begin(), order.end(), 0);
  // What waits comes behind what it waits for: starts later, or at once when that takes no time,
  // and has the larger number.
  std::stable_sort(order.begin(), order.end(),
                   [&](TaskId a, TaskId b) { return times[at(a)].start < times[at(b)].start; });
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
    serial.programs[i] = in_order(plan.programs[i], order_of_starts(simulated.programs[i].tasks));
  }
  verify(serial);
  return serial;
}

}  // namespace shardsim
