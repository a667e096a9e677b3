#include "sim/step/time_parts.hpp"

#include "base/index.hpp"

namespace shardsim {

const std::array<TimePartRow, time_parts>& time_part_rows() {
  static constexpr std::array<TimePartRow, time_parts> rows{{
      {TimePart::forward, "compute", "forward"},
      {TimePart::recompute, "compute", "recompute"},
      {TimePart::backward, "compute", "backward"},
      {TimePart::optimizer, "compute", "optimizer"},
      {TimePart::contention, "contention", ""},
      {TimePart::tensor, "exposed", "tensor"},
      {TimePart::data, "exposed", "data"},
      {TimePart::context, "exposed", "context"},
      {TimePart::expert, "exposed", "expert"},
      {TimePart::pipeline, "exposed", "pipeline"},
      {TimePart::scalars, "exposed", "scalars"},
      {TimePart::communication, "exposed", "other"},
      {TimePart::host_copies, "exposed", "host copies"},
      {TimePart::host, "idle", "host"},
      {TimePart::bubble, "idle", "bubble"},
  }};
  return rows;
}

TimePart part_of_kernel(const Task& task) {
  if (task.recompute) return TimePart::recompute;
  if (task.phase == Phase::forward) return TimePart::forward;
  return task.phase == Phase::optimizer ? TimePart::optimizer : TimePart::backward;
}

TimePart part_of_communication(const Plan& plan, const Task& task) {
  if (is_host_copy(task.kind)) return TimePart::host_copies;
  if (task.kind == TaskKind::transfer) return TimePart::pipeline;
  switch (plan.collectives[at(task.work)].parallelism) {
    case Parallelism::tensor:
      return TimePart::tensor;
    case Parallelism::data:
      return TimePart::data;
    case Parallelism::pipeline:
      return TimePart::pipeline;
    case Parallelism::context:
      return TimePart::context;
    case Parallelism::expert:
      return TimePart::expert;
    case Parallelism::scalars:
      return TimePart::scalars;
    case Parallelism::unknown:
      break;
  }
  return TimePart::communication;
}

}  // namespace shardsim
