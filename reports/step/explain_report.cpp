#include "reports/step/explain_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "reports/format/tables.hpp"

namespace shardsim {
namespace {

constexpr std::size_t places_shown = 4;

std::string duration(SimTime time) { return format_seconds(to_seconds(time)); }

std::string times(std::int64_t count) {
  return count == 1 ? "once" : fmt::format("{} times", format_count(count));
}

std::string title_of(const ExplainedCollective& row) {
  return fmt::format("{} over {} ({} devices), {} {}, {}", name_of(row.kind), row.over,
                     format_count(row.group_size), format_bytes(row.payload), name_of(row.dtype),
                     times(row.count));
}

std::string most_expensive(const Explanation& explanation) {
  const ExplainedCollective& row = explanation.collectives.front();
  return fmt::format("{} over {}, {} ({})", name_of(row.kind), row.over,
                     format_bytes(row.total_wire_bytes()),
                     format_percent(explanation.share_of_bytes(row)));
}

// Of a pipeline the stages are added up.
std::string who_sends(const Explanation& explanation) {
  if (explanation.programs == 1) return "a device sends";
  return fmt::format("a device of each of {} classes together send", explanation.programs);
}

std::string summary_of(const Explanation& explanation) {
  if (explanation.collectives.empty()) return "No collectives: devices never exchange anything.";
  std::string text =
      fmt::format("{} collective{}, {} distinct; {} {} per step", format_count(explanation.count),
                  explanation.count == 1 ? "" : "s", explanation.collectives.size(),
                  who_sends(explanation), format_bytes(explanation.wire_bytes));
  if (explanation.time) {
    text +=
        fmt::format(" in {} ({} of the step, where nothing hides it)", duration(*explanation.time),
                    format_percent(explanation.share_of_step(*explanation.time)));
  }
  return text + fmt::format("; the most expensive: {}.", most_expensive(explanation));
}

std::string sends(const Explanation& explanation, const ExplainedCollective& row) {
  std::string text = fmt::format("{} per device", format_bytes(row.wire_bytes));
  if (row.count > 1) {
    text += fmt::format(" each time, {} per step", format_bytes(row.total_wire_bytes()));
  }
  return text + fmt::format(" ({} of all)", format_percent(explanation.share_of_bytes(row)));
}

std::string takes(const Explanation& explanation, const ExplainedCollective& row) {
  return fmt::format("{} per step ({} of it, where nothing hides it)", duration(*row.time),
                     format_percent(explanation.share_of_step(*row.time)));
}

std::string where(const ExplainedCollective& row) {
  const std::size_t shown = std::min(places_shown, row.where.size());
  std::string text = fmt::format(
      "{}",
      fmt::join(row.where.begin(), row.where.begin() + static_cast<std::ptrdiff_t>(shown), "; "));
  if (row.where.size() > shown) {
    text += fmt::format("; and {} more places", row.where.size() - shown);
  }
  return text;
}

std::string reason(const Explanation& explanation, const ExplainedCollective& row) {
  if (!row.reason.empty()) return row.reason;
  return explanation.compiled ? "not known: compiled HLO does not say" : "not known";
}

std::string remedy(const Explanation& explanation, const ExplainedCollective& row) {
  if (!row.remedy.empty()) return row.remedy;
  return explanation.compiled ? "not known: compiled HLO does not say" : "nothing known";
}

// (label, value) pairs of one row, in order of reading.
std::vector<std::pair<std::string, std::string>> lines(const Explanation& explanation,
                                                       const ExplainedCollective& row) {
  std::vector<std::pair<std::string, std::string>> result;
  result.emplace_back("why", reason(explanation, row));
  result.emplace_back("to avoid", remedy(explanation, row));
  if (row.reasons > 1) {
    result.emplace_back("alike", fmt::format("{} more, whose words differ from these in numbers "
                                             "only: lines, arguments, sizes",
                                             row.reasons - 1));
  }
  result.emplace_back("sends", sends(explanation, row));
  if (row.time) result.emplace_back("takes", takes(explanation, row));
  result.emplace_back("where", where(row));
  return result;
}

}  // namespace

std::string explain_text(const Explanation& explanation, std::size_t width) {
  constexpr std::size_t indent = 13;
  std::string out = fmt::format("Collectives of {}\n\n{}\n", explanation.title,
                                wrapped(summary_of(explanation), 0, width));
  for (std::size_t i = 0; i < explanation.collectives.size(); ++i) {
    const ExplainedCollective& row = explanation.collectives[i];
    out += fmt::format("\n{}. {}\n", i + 1, title_of(row));
    for (const auto& [label, value] : lines(explanation, row)) {
      out += fmt::format("   {:<10}{}\n", label, wrapped(value, indent, width));
    }
  }
  return out;
}

std::string explain_markdown(const Explanation& explanation) {
  std::string out = fmt::format("## Collectives of {}\n\n{}\n", markdown_escape(explanation.title),
                                markdown_escape(summary_of(explanation)));
  for (std::size_t i = 0; i < explanation.collectives.size(); ++i) {
    const ExplainedCollective& row = explanation.collectives[i];
    out += fmt::format("\n### {}. {}\n\n", i + 1, markdown_escape(title_of(row)));
    for (const auto& [label, value] : lines(explanation, row)) {
      out += fmt::format("- **{}**: {}\n", label, markdown_escape(value));
    }
  }
  return out;
}

std::string explain_json(const Explanation& explanation) {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  const auto time_or_null = [](const std::optional<SimTime>& time) {
    return time ? Json(to_seconds(*time).count()) : Json(nullptr);
  };
  Json json;
  json["schema"] = "shardsim/explanation/1";
  json["shardsim"] = program_version;
  json["title"] = explanation.title;
  json["count"] = explanation.count;
  json["wire_bytes_per_device"] = explanation.wire_bytes.count();
  json["time_s"] = time_or_null(explanation.time);
  json["step_time_s"] = time_or_null(explanation.step);
  json["collectives"] = Json::array();
  for (const ExplainedCollective& row : explanation.collectives) {
    json["collectives"].push_back({{"kind", name_of(row.kind)},
                                   {"over", row.over},
                                   {"group_size", row.group_size},
                                   {"dtype", name_of(row.dtype)},
                                   {"payload_bytes", row.payload.count()},
                                   {"wire_bytes_per_execution", row.wire_bytes.count()},
                                   {"count", row.count},
                                   {"places", row.places},
                                   {"reasons_alike", row.reasons},
                                   {"wire_bytes_per_device", row.total_wire_bytes().count()},
                                   {"time_s", time_or_null(row.time)},
                                   {"where", row.where},
                                   {"reason", text_or_null(row.reason)},
                                   {"remedy", text_or_null(row.remedy)}});
  }
  return json.dump(2) + "\n";
}

}  // namespace shardsim
