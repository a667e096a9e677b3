#include "experiments/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/file_kind.hpp"
#include "base/gzip.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "hlo/buffer_assignment.hpp"
#include "hlo/to_plan.hpp"
#include "spmd/partition.hpp"
#include "spmd/propagation/prepare.hpp"
#include "spmd/propagation/propagate.hpp"
#include "spmd/reasons.hpp"
#include "spmd/to_plan.hpp"
#include "stablehlo/flops.hpp"
#include "stablehlo/model_work.hpp"
#include "stablehlo/module.hpp"

namespace shardsim {
namespace {

Plan compiled_plan(const std::string& text, const std::string& path,
                   const ProgramOptions& options) {
  HloImportOptions import;
  import.mesh = options.mesh;
  if (!options.buffers.empty()) {
    import.temporaries =
        parse_buffer_assignment(read_maybe_gzip(options.buffers), options.buffers).temporaries();
  }
  return plan_from_hlo(HloModule::parse(text, path), import);
}

// `changes`: is given what remedies propose; may be null.
Plan partitioned(stablehlo::Module program, const ProgramOptions& options,
                 std::vector<spmd::Change>* changes) {
  spmd::propagate(program);
  spmd::PartitionChoice choice;
  if (options.like_xla) {
    choice.local = spmd::partition(program, {.like_xla = true});
  } else {
    choice = spmd::partition_by_choice(program);
  }
  if (changes != nullptr) *changes = spmd::proposed_changes(choice.local);
  Plan plan = spmd::plan_of(choice.local, options.target, options.capacity);
  if (choice.wire_bytes >= choice.like_xla_wire_bytes) return plan;
  plan.notes.push_back(fmt::format(
      "a device sends {} per step where XLA's partitioner sends {}: some arrays are resharded in "
      "other steps (--like xla shows XLA's)",
      format_bytes(Bytes(std::llround(choice.wire_bytes))),
      format_bytes(Bytes(std::llround(choice.like_xla_wire_bytes)))));
  return plan;
}

// Indices into plan.collectives, those that send most first.
std::vector<std::size_t> by_price(const Plan& plan) {
  const std::vector<std::int64_t> counts = executions(plan);
  std::vector<std::size_t> order(plan.collectives.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto price = [&](std::size_t i) {
    const Collective& collective = plan.collectives[i];
    return counts[i] *
           wire_bytes_per_device(collective.kind, group_size(plan, collective), collective.payload);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return price(a) > price(b); });
  return order;
}

// The remedy with what it brings; without the change where it cannot be done or spares nothing.
std::string tried(const spmd::Change& change, stablehlo::Module program, Bytes before) {
  if (!spmd::apply(change, program)) return change.otherwise;
  try {
    const Bytes after = wire_bytes_per_device(partitioned(std::move(program), {}, nullptr));
    if (after >= before) return change.otherwise;
    return fmt::format("{}; tried: a device then sends {} per step instead of {}", change.remedy,
                       format_bytes(after), format_bytes(before));
  } catch (const InputError&) {
    return change.otherwise;
  }
}

// MFU counts what a config.json's step would count.
void add_model_work(const stablehlo::Module& module, Plan& plan) {
  const stablehlo::Function& main = *module.find_function("main");
  const stablehlo::ProgramWork all = stablehlo::work_of(module, main);
  const stablehlo::ModelWork work = stablehlo::model_work(module, main);
  plan.subject.model_flops = work.needed();
  plan.subject.model_flops_full_attention = work.full_attention();
  if (work.recomputed > Flops(0)) {
    plan.notes.push_back(
        fmt::format("of the program's {} in products {} repeat earlier ones (rematerialization): "
                    "they take time "
                    "and do not count in MFU",
                    format_flops(work.executed), format_flops(work.recomputed)));
  }
  if (work.masked > Flops(0)) {
    plan.notes.push_back(fmt::format(
        "attention's scores are arrays, {} in all, written and read again, and computed whole "
        "under "
        "their causal mask, of which MFU counts half; a config.json's step has one kernel for "
        "attention that stores no scores and skips what is masked",
        format_bytes(work.scores->elements() * size_of(work.scores->dtype.value_or(DType::f32)))));
  }
  for (const auto& [target, count] : all.unknown_calls) {
    plan.notes.push_back(fmt::format("MFU does not count what custom call \"{}\" does", target));
  }
}

// Text that is not known to be something else goes to the parser, which says where it stops.
void require_program(const std::string& text, const std::string& path) {
  require_kind(text, FileKind::stablehlo, path);
  const bool is_json = Json::accept(text, /*ignore_comments=*/true);
  if (is_json) require_kind_of_document(parse_json(text, path), FileKind::stablehlo, path);
}

}  // namespace

bool is_hlo(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && text.compare(begin, 9, "HloModule") == 0;
}

Plan program_plan(const std::string& path, const ProgramOptions& options) {
  return program_plan(read_maybe_gzip(path), path, options);
}

Plan program_plan(const std::string& text, const std::string& path, const ProgramOptions& options) {
  if (is_hlo(text)) return compiled_plan(text, path, options);
  require_program(text, path);
  if (!options.mesh.axes().empty()) {
    throw InputError({path, ""}, "a StableHLO program brings its own mesh: leave out the other");
  }
  const stablehlo::Module module = stablehlo::parse_module(text, path);
  Plan plan = partitioned(spmd::prepare(module), options, nullptr);
  add_model_work(module, plan);
  return plan;
}

void try_remedies(const std::string& path, Plan& plan) {
  const std::string text = read_maybe_gzip(path);
  if (is_hlo(text)) return;
  const stablehlo::Module program = spmd::prepare(stablehlo::parse_module(text, path));
  std::vector<spmd::Change> changes;
  const Bytes before = wire_bytes_per_device(partitioned(program, {}, &changes));
  std::map<std::string, std::string> known;
  for (const std::size_t i : by_price(plan)) {
    std::string& remedy = plan.collectives[i].remedy;
    const auto change = std::find_if(changes.begin(), changes.end(),
                                     [&](const auto& one) { return one.remedy == remedy; });
    if (change == changes.end()) continue;
    auto found = known.find(remedy);
    if (found == known.end()) {
      if (known.size() == remedies_tried) continue;
      found = known.emplace(remedy, tried(*change, program, before)).first;
    }
    remedy = found->second;
  }
}

}  // namespace shardsim
