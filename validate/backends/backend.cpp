#include "validate/backends/backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "plan/plan_io.hpp"

namespace shardsim {
std::size_t program_at(const Plan& plan, std::int64_t position) {
  for (std::size_t i = 0; i < plan.programs.size(); ++i) {
    const auto& devices = plan.programs[i].devices;
    const bool has_it = std::find(devices.begin(), devices.end(), position) != devices.end();
    if (devices.empty() || has_it) return i;
  }
  throw std::logic_error(fmt::format("no program runs at position {}", position));
}

std::string task_in_words(const Plan& plan, const Task& task) {
  std::string name = plan.task_name(task);
  if (task.kind != TaskKind::collective) return name;
  const Collective& collective = plan.collectives[at(task.work)];
  return fmt::format("{} of {} ({})", name_of(collective.kind), format_bytes(collective.payload),
                     name);
}

void check_same_plan(Exchange& exchange, const Plan& plan) {
  const std::string text = plan_to_json(plan).dump();
  const std::size_t digest = std::hash<std::string>()(text);
  const std::vector<std::string> plans =
      exchange.all_gather(fmt::format("{} {}", text.size(), digest));
  if (plans[static_cast<std::size_t>(exchange.rank())] == plans.front()) return;
  throw InputError({fmt::format("rank {}", exchange.rank()), ""},
                   "its plan is not that of rank 0: all processes need the same program, files and "
                   "flags");
}

}  // namespace shardsim
