#include "hlo/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/index.hpp"
#include "hlo/heap.hpp"

namespace shardsim {
namespace {

std::string over_text(const Plan& plan, const Collective& collective) {
  if (!collective.axes.empty()) {
    return fmt::format("{}", fmt::join(plan.mesh.names_of(collective.axes), ","));
  }
  std::vector<std::string> parts;
  for (const auto& [source, target] : collective.source_targets) {
    parts.push_back(fmt::format("{}>{}", source, target));
  }
  for (const auto& group : collective.groups) {
    parts.push_back(fmt::format("{{{}}}", fmt::join(group, ",")));
  }
  std::sort(parts.begin(), parts.end());
  return fmt::format("{}", fmt::join(parts, " "));
}

std::vector<CollectiveUse> uses_of(const Plan& plan) {
  const std::vector<std::int64_t> executed = executions(plan);
  std::map<std::pair<CollectiveKey, std::string>, std::int64_t> counts;
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const Collective& collective = plan.collectives[i];
    CollectiveKey key{collective.kind, collective.payload, over_text(plan, collective),
                      group_size(plan, collective), collective.dtype};
    if (executed[i] > 0) counts[{std::move(key), collective.reason}] += executed[i];
  }
  std::vector<CollectiveUse> uses;
  for (const auto& [use, count] : counts) uses.push_back({use.first, use.second, count});
  return uses;
}

// What an operation is called when it is looked for in another program, by the name of its
// instruction. Of two instructions of one name the later counts: the entry stands last.
class OpNames {
 public:
  explicit OpNames(const HloModule& module) : module_(module) {
    for (HloId id = 0; id < static_cast<HloId>(module.instructions().size()); ++id) {
      by_name_[module.instruction(id).name] = id;
    }
  }

  [[nodiscard]] std::string of(std::string_view instruction) const {
    const HloId id = by_name_.at(instruction);
    std::string op_name = module_.op_name(id);
    return op_name.empty() ? fmt::format("({})", module_.instruction(id).opcode) : op_name;
  }

 private:
  const HloModule& module_;
  std::unordered_map<std::string_view, HloId> by_name_;
};

void add(HloWork& sum, const Kernel& kernel) {
  sum.flops += kernel.flops;
  sum.bytes += kernel.bytes;
}

void add_work(const HloModule& module, const Plan& plan, HloSummary& summary) {
  const OpNames op_names(module);
  std::map<std::int32_t, HloWork> by_name;
  for (const Program& program : plan.programs) {
    for (const Task& task : program.tasks) {
      if (task.kind != TaskKind::kernel) continue;
      const Kernel& kernel = plan.kernels[at(task.work)];
      const bool is_matmul = kernel.kernel_class == KernelClass::matmul;
      add(is_matmul ? summary.matmuls : summary.others, kernel);
      add(by_name[task.name], kernel);
    }
  }
  for (const auto& [name, work] : by_name) {
    HloWork& sum = summary.work[op_names.of(plan.names[at(name)])];
    sum.flops += work.flops;
    sum.bytes += work.bytes;
  }
}

}  // namespace

bool operator<(const CollectiveKey& a, const CollectiveKey& b) {
  return std::tie(a.kind, b.payload, a.over, a.group_size, a.dtype) <
         std::tie(b.kind, a.payload, b.over, b.group_size, b.dtype);
}

Bytes CollectiveKey::wire_bytes() const { return wire_bytes_per_device(kind, group_size, payload); }

HloSummary summarize_hlo(const HloModule& module, const HloImportOptions& options) {
  const Plan plan = plan_from_hlo(module, options);
  HloSummary summary;
  summary.file = module.source().file;
  summary.name = module.name();
  summary.mesh = plan.mesh;
  summary.collectives = uses_of(plan);
  add_work(module, plan, summary);
  summary.memory = entry_memory(module);
  summary.temporaries = options.temporaries;
  if (!summary.temporaries && is_scheduled(module)) summary.temporaries = temporary_bytes(module);
  for (const HloInstruction& instruction : module.instructions()) {
    ++summary.opcodes[std::string(instruction.opcode)];
  }
  const std::string told = memory_note(summary.memory);
  std::copy_if(plan.notes.begin(), plan.notes.end(), std::back_inserter(summary.notes),
               [&](const std::string& note) { return note != told; });
  return summary;
}

}  // namespace shardsim
