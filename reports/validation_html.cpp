#include "reports/validation_html.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "reports/html.hpp"
#include "reports/html/resources.hpp"
#include "reports/validation_tables.hpp"

namespace shardsim {
namespace {

// {"tasks": [{"name", "kind", "bytes", "predicted_s", "measured_s"}...]}: those that were measured.
Json validation_data(const StepValidation& validation) {
  Json data = {{"tasks", Json::array()}};
  for (const ValidatedTask& task : validation.tasks) {
    if (!task.time.relative_error() || !(task.time.predicted > Seconds(0))) continue;
    data["tasks"].push_back({{"name", task.name},
                             {"kind", task.kind},
                             {"bytes", task.payload.count()},
                             {"predicted_s", task.time.predicted.count()},
                             {"measured_s", task.time.measured.count()}});
  }
  return data;
}

std::string validation_notes(const std::vector<std::string>& notes) {
  if (notes.empty()) return {};
  std::string out = "<h3>Notes</h3>\n<ul>\n";
  for (const std::string& note : notes) out += fmt::format("<li>{}</li>\n", html_escape(note));
  return out + "</ul>\n";
}

}  // namespace

std::string validation_html(const StepValidation& validation) {
  return fill(
      resources::validation_html,
      {{"opening", html_opening(validation_title(validation), validation_subject(validation))},
       {"how", html_escape(measured_how(validation))},
       {"summary", to_html(validation_summary(validation))},
       {"table", to_html(validation_rows(validation))},
       {"notes", validation_notes(validation.notes)},
       {"data", script_json(validation_data(validation))},
       {"chart_library", std::string(resources::chart_library_js)},
       {"common", std::string(resources::common_js)},
       {"validation", std::string(resources::validation_js)}});
}

}  // namespace shardsim
