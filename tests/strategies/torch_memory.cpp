#include "torch_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace shardsim::test {
namespace {

constexpr double of_category = 0.01;
constexpr double of_all = 0.001;
constexpr double of_peak = 0.03;

// Bytes by the records' categories; theirs that are one for us are added up.
using Alive = std::map<std::string, double>;

const std::map<BufferCategory, std::string> ours = {
    {BufferCategory::parameters, "parameters"},   {BufferCategory::gathered_parameters, "gathered"},
    {BufferCategory::communication, "gathered"},  {BufferCategory::gradients, "gradients"},
    {BufferCategory::optimizer, "optimizer"},     {BufferCategory::activations, "activations"},
    {BufferCategory::temporaries, "temporaries"}, {BufferCategory::inputs, "inputs"}};
const std::map<std::string, std::string> theirs = {{"sharded_param", "parameters"},
                                                   {"unsharded_param", "gathered"},
                                                   {"sharded_grad", "gradients"},
                                                   {"grad", "gradients"},
                                                   {"reduce_buffer", "gradients"},
                                                   {"opt_state", "optimizer"},
                                                   {"activation", "activations"},
                                                   {"temp", "temporaries"},
                                                   {"input", "inputs"},
                                                   {"buffer", "inputs"}};

double total(const Alive& alive) {
  double sum = 0;
  for (const auto& [category, bytes] : alive) sum += bytes;
  return sum;
}

struct Replay {
  std::vector<Alive> within;   // while a task runs
  std::vector<Alive> between;  // after it
};

// Gradients on their way are gradients there, what is gathered is apart.
const std::string& category_of(const Plan& plan, const Buffer& buffer) {
  static const std::string gradients = "gradients";
  const bool moves = buffer.category == BufferCategory::communication;
  return moves && plan.buffer_name(buffer).ends_with(".grad") ? gradients
                                                              : ours.at(buffer.category);
}

template <class CategoryOf>
Replay replay(const Program& program, const CategoryOf& category_of) {
  const std::size_t tasks = program.tasks.size();
  std::vector<Alive> born(tasks), dead(tasks);
  Alive now;
  for (const Buffer& buffer : program.buffers) {
    const std::string& category = category_of(buffer);
    const auto bytes = static_cast<double>(buffer.bytes.count());
    if (buffer.allocated_by == before_the_step) {
      now[category] += bytes;
    } else {
      born[static_cast<std::size_t>(buffer.allocated_by)][category] += bytes;
    }
    if (buffer.free_count == 0) continue;
    const auto first = program.frees.begin() + buffer.first_free;
    const TaskId last = *std::max_element(first, first + buffer.free_count);
    dead[static_cast<std::size_t>(last)][category] += bytes;
  }
  Replay replay;
  for (std::size_t t = 0; t < tasks; ++t) {
    for (const auto& [category, bytes] : born[t]) now[category] += bytes;
    replay.within.push_back(now);
    for (const auto& [category, bytes] : dead[t]) now[category] -= bytes;
    replay.between.push_back(now);
  }
  return replay;
}

Alive recorded(const Json& mark) {
  Alive alive;
  for (const auto& [key, bytes] : mark.items()) {
    const auto category = theirs.find(key);
    if (category != theirs.end()) alive[category->second] += bytes.get<double>();
  }
  return alive;
}

// Categories that may be further off at a mark, and why.
struct KnownCategories {
  std::set<std::string> categories = {};
  std::string reason = {};
};

// GPT-OSS's clamped activation is one kernel here, and so is attention with its sinks.
bool has_many_kernels(const Json& record) { return record["model"]["model_type"] == "gpt_oss"; }

bool has_tied_head(const Json& record) {
  const Json& parameters = record["params_local"];
  return std::none_of(parameters.begin(), parameters.end(),
                      [](const Json& one) { return one["name"] == "lm_head.weight"; });
}

KnownCategories known_categories(const Json& record) {
  const Json& settings = record["strategy"]["settings"];
  if (record.value("real_cpu_tensors", false))
    return {{"gradients", "activations"},
            "DDP's second set of buckets counts as activations there"};
  if (record["model"]["model_type"] == "mixtral")
    return {{"activations"}, "experts are routed by plain torch code"};
  if (settings.value("reshard_after_forward", Json()).is_number())
    return {{"activations", "gathered"},
            "what forward keeps in slices counts as activations there, as gathered here"};
  if (!settings.contains("backend")) return {};
  KnownCategories titan = {{"inputs"}, "each of torchtitan's layers has a table of rotations"};
  if (settings["loss"] == "chunked") {
    titan.categories.insert({"activations", "temporaries"});
    titan.reason += "; its loss in chunks keeps what it reads and that gradient whole";
    if (has_tied_head(record)) {
      titan.categories.insert("gradients");
      titan.reason += ", and the norm's gradient the array that a tied table's second came in";
    }
  }
  if (record["model"]["model_type"] == "deepseek_v3" && settings.value("pads_values", true)) {
    titan.categories.insert("activations");
    titan.reason += "; its flash attention has values padded to the width of keys";
  }
  if (has_many_kernels(record)) {
    titan.categories.insert("activations");
    titan.reason += "; its experts' activation and its sinks are many kernels";
  }
  return titan;
}

// Why the peak is.
std::string known_peak(const Json& record) {
  if (record["model"]["model_type"] == "mixtral") return "experts are routed by plain torch code";
  if (has_many_kernels(record)) return "its experts' activation and its sinks are many kernels";
  return "";
}

bool is_known(bool same, const std::string& reason) {
  if (!same && !reason.empty()) std::cout << "    known: " << reason << "\n";
  return same || !reason.empty();
}

bool is_near(double mine, double other, double all, double relative) {
  return std::abs(mine - other) <= std::max(relative * other, of_all * all);
}

struct MarkRules {
  bool padded = false;
  bool stateless = false;  // the optimizer has not run yet
  KnownCategories known;
};

bool same_mark(const std::string& name, const Alive& mine, const Json& mark,
               const MarkRules& rules) {
  const Alive other = recorded(mark);
  Alive both = mine;
  both.insert(other.begin(), other.end());
  bool same = true;
  for (const auto& [category, unused] : both) {
    // PyTorch keeps state for the rows that a rank owns, we for the padded shard.
    if ((rules.padded || rules.stateless) && category == "optimizer") continue;
    const double a = mine.contains(category) ? mine.at(category) : 0;
    const double b = other.contains(category) ? other.at(category) : 0;
    if (is_near(a, b, total(other), of_category)) continue;
    std::cout << fmt::format("  {}: {} {:.0f}, PyTorch {:.0f}\n", name, category, a, b);
    same &= is_known(false, rules.known.categories.contains(category) ? rules.known.reason : "");
  }
  return same;
}

// While tasks run of phases that the record has; of a first step without what the optimizer makes.
double peak_of(const Program& program, const Replay& ours, const Json& memory, bool stateless) {
  const Json phases = memory.value("peak_by_phase", Json());
  double peak = 0;
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    const bool updates = program.tasks[t].phase == Phase::optimizer;
    if (updates && phases.is_object() && !phases.contains("optimizer")) continue;
    Alive alive = ours.within[t];
    if (stateless && !updates) alive.erase("optimizer");
    peak = std::max(peak, total(alive));
  }
  return peak;
}

}  // namespace

double replayed_peak(const Program& program) {
  const auto category_of = [](const Buffer& buffer) { return ours.at(buffer.category); };
  double peak = 0;
  for (const Alive& alive : replay(program, category_of).within)
    peak = std::max(peak, total(alive));
  return peak;
}

bool same_memory(const Json& record, const Plan& plan) {
  const Program& program = plan.programs[0];
  const Replay ours =
      replay(program, [&](const Buffer& buffer) { return category_of(plan, buffer); });
  std::size_t forward = 0;
  std::size_t backward = 0;
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    if (program.tasks[t].phase == Phase::forward) forward = t;
    if (program.tasks[t].phase == Phase::backward) backward = t;
  }
  const Json& memory = record["memory"]["steps"].back();
  const bool stateless = !memory["marks"]["after_forward"].contains("opt_state");
  const bool is_padded = record.contains("padding") && !record["padding"].empty();
  const MarkRules rules{is_padded, stateless, known_categories(record)};
  const std::string id = record["id"];
  bool same = same_mark(id + " after forward", ours.between[forward],
                        memory["marks"]["after_forward"], rules);
  same &= same_mark(id + " after backward", ours.between[backward],
                    memory["marks"]["after_backward"], rules);
  const double peak = peak_of(program, ours, memory, stateless);
  const double other = memory["peak"]["total"];
  const bool same_peak = is_near(peak, other, 0, of_peak);
  if (!same_peak) {
    std::cout << fmt::format("  {}: peak {:.0f}, PyTorch {:.0f} ({:+.1f} %)\n", id, peak, other,
                             100 * (peak / other - 1));
  }
  return is_known(same_peak, known_peak(record)) && same;
}

}  // namespace shardsim::test
