#include "reports/step/explanation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include "base/text.hpp"

namespace shardsim {
namespace {

std::string over_of(const Plan& plan, const Collective& collective) {
  if (!collective.axes.empty()) {
    return fmt::format("{}", fmt::join(plan.mesh.names_of(collective.axes), ","));
  }
  return collective.source_targets.empty() ? "groups" : "pairs";
}

// The text with every number replaced by one sign.
std::string without_numbers(const std::string& text) {
  std::string masked;
  for (const char c : text) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) {
      masked += c;
    } else if (masked.empty() || masked.back() != '#') {
      masked += '#';
    }
  }
  return masked;
}

// One task name in one phase: how often it is there.
struct Uses {
  std::set<std::int32_t> layers;
  std::set<std::int32_t> microbatches;
};
// By first appearance: (name, phase, what the compiler calls it).
struct Places {
  using Key = std::tuple<std::int32_t, Phase, std::string>;
  std::vector<Key> order;
  std::map<Key, Uses> uses;

  void add(const Task& task, const std::string& op_name) {
    const Key key(task.name, task.phase, op_name);
    const auto [found, is_new] = uses.try_emplace(key);
    if (is_new) order.push_back(key);
    if (task.layer >= 0) found->second.layers.insert(task.layer);
    found->second.microbatches.insert(task.microbatch);
  }
};

class Explainer {
 public:
  Explainer(const Plan& plan, const Result* result) : plan_(plan), result_(result) {}

  Explanation run() {
    describe_plan();
    make_rows();
    visit_tasks();
    for (std::size_t row = 0; row < explanation_.collectives.size(); ++row) write_where(row);
    add_up();
    return std::move(explanation_);
  }

 private:
  void describe_plan() {
    std::vector<std::string> axes;
    for (const MeshAxis& axis : plan_.mesh.axes()) {
      axes.push_back(fmt::format("{}={}", axis.name, axis.size));
    }
    const std::string mesh = axes.empty() ? "one device" : fmt::format("{}", fmt::join(axes, ","));
    explanation_.title =
        fmt::format("{}, {} on {}", plan_.subject.model, plan_.subject.strategy, mesh);
    explanation_.compiled = plan_.subject.strategy == "compiled";
    explanation_.programs = plan_.programs.size();
    if (result_ != nullptr) explanation_.step = result_->step_time;
    std::set<Phase> phases;
    for (const Program& program : plan_.programs) {
      for (const Task& task : program.tasks) phases.insert(task.phase);
    }
    says_phases_ = phases.size() > 1;
  }

  void make_rows() {
    std::map<std::tuple<CollectiveKind, std::string, std::int64_t, DType, Bytes, std::string>,
             std::size_t>
        rows;
    for (const Collective& collective : plan_.collectives) {
      const std::int64_t size = group_size(plan_, collective);
      const std::string over = over_of(plan_, collective);
      const std::string words = without_numbers(collective.reason + "\n" + collective.remedy);
      const auto [found, is_new] =
          rows.try_emplace({collective.kind, over, size, collective.dtype, collective.payload,
                            explanation_.compiled ? "" : words},
                           explanation_.collectives.size());
      row_of_.push_back(found->second);
      if (is_new) {
        ExplainedCollective row;
        row.kind = collective.kind;
        row.over = over;
        row.group_size = size;
        row.dtype = collective.dtype;
        row.payload = collective.payload;
        row.wire_bytes = wire_bytes_per_device(collective.kind, size, collective.payload);
        row.reason = explanation_.compiled ? "" : collective.reason;
        row.remedy = collective.remedy;
        if (result_ != nullptr) row.time = SimTime(0);
        explanation_.collectives.push_back(std::move(row));
      }
      ++explanation_.collectives[found->second].places;
      if (!explanation_.compiled) reasons_[found->second].insert(collective.reason);
    }
    places_.resize(explanation_.collectives.size());
    for (const auto& [row, reasons] : reasons_) {
      explanation_.collectives[row].reasons = static_cast<std::int64_t>(reasons.size());
    }
  }

  void visit_tasks() {
    for (std::size_t p = 0; p < plan_.programs.size(); ++p) {
      const Program& program = plan_.programs[p];
      for (std::size_t t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (task.kind != TaskKind::collective) continue;
        const std::size_t at = row_of_[static_cast<std::size_t>(task.work)];
        ExplainedCollective& row = explanation_.collectives[at];
        ++row.count;
        places_[at].add(task, explanation_.compiled
                                  ? plan_.collectives[static_cast<std::size_t>(task.work)].reason
                                  : "");
        if (result_ == nullptr) continue;
        const TaskTimes& times = result_->programs[p].tasks[t];
        *row.time += times.end - times.start;
      }
    }
  }

  void write_where(std::size_t at) {
    for (const Places::Key& key : places_[at].order) {
      const auto& [name, phase, op_name] = key;
      const Uses& uses = places_[at].uses.at(key);
      std::string text = plan_.names[static_cast<std::size_t>(name)];
      if (!op_name.empty()) text += fmt::format(" of {}", op_name);
      if (says_phases_) text += fmt::format(", {}", name_of(phase));
      if (uses.layers.size() > 1) text += fmt::format(", {} layers", uses.layers.size());
      if (uses.microbatches.size() > 1) {
        text += fmt::format(", {} microbatches", uses.microbatches.size());
      }
      explanation_.collectives[at].where.push_back(std::move(text));
    }
  }

  void add_up() {
    std::vector<ExplainedCollective>& rows = explanation_.collectives;
    std::erase_if(rows, [](const ExplainedCollective& row) { return row.count == 0; });
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
      if (a.time != b.time) return a.time > b.time;
      return a.total_wire_bytes() > b.total_wire_bytes();
    });
    if (result_ != nullptr) explanation_.time = SimTime(0);
    for (const ExplainedCollective& row : rows) {
      explanation_.count += row.count;
      explanation_.wire_bytes += row.total_wire_bytes();
      if (row.time) *explanation_.time += *row.time;
    }
  }

  const Plan& plan_;
  const Result* result_;
  Explanation explanation_;
  bool says_phases_ = false;
  std::vector<std::size_t> row_of_;                       // by entry of plan.collectives
  std::map<std::size_t, std::set<std::string>> reasons_;  // by row
  std::vector<Places> places_;                            // by row, until they are sorted
};

}  // namespace

double Explanation::share_of_bytes(const ExplainedCollective& row) const {
  if (wire_bytes.count() == 0) return 0;
  return static_cast<double>(row.total_wire_bytes().count()) /
         static_cast<double>(wire_bytes.count());
}

double Explanation::share_of_step(SimTime part) const {
  if (!step || step->count() == 0) return 0;
  return static_cast<double>(part.count()) / static_cast<double>(step->count());
}

Explanation explain(const Plan& plan, const Result* result) {
  return Explainer(plan, result).run();
}

}  // namespace shardsim
