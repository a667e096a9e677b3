#include "reports/step/validation_html.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "reports/format/html.hpp"
#include "reports/html/resources.hpp"
#include "reports/step/validation_tables.hpp"

namespace shardsim {
namespace {

// Of every program two bars, of bytes by category.
void add_memory(const StepValidation& validation, Json& data) {
  data["categories"] = Json::array();
  for (const BufferCategory category : categories_in_reports) {
    data["categories"].push_back(
        {{"key", category_key(category)}, {"label", category_label(category)}});
  }
  data["memory"] = Json::array();
  for (const ValidatedMemory& memory : validation.memory) {
    Json predicted = Json::array();
    Json measured = Json::array();
    for (const BufferCategory category : categories_in_reports) {
      const ComparedBytes& bytes = memory.by_category[static_cast<std::size_t>(category)];
      predicted.push_back(bytes.predicted.count());
      measured.push_back(bytes.measured.count());
    }
    data["memory"].push_back({{"program", memory.program},
                              {"predicted_bytes", std::move(predicted)},
                              {"measured_bytes", std::move(measured)},
                              {"shared_bytes", memory.shared().count()}});
  }
}

std::string memory_section(const StepValidation& validation) {
  if (validation.memory.empty()) return {};
  return fill(resources::validation_memory_html,
              {{"table", to_html(validation_memory(validation))}});
}

// {"tasks": [{"name", "kind", "bytes", "predicted_s", "measured_s"}...]}: those that were measured;
// "categories" and "memory" as above.
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
  add_memory(validation, data);
  return data;
}

}  // namespace

std::string validation_html(const StepValidation& validation) {
  return fill(
      resources::validation_html,
      {{"opening", html_opening(validation_title(validation), validation_subject(validation))},
       {"how", html_escape(measured_how(validation))},
       {"summary", to_html(validation_summary(validation))},
       {"memory", memory_section(validation)},
       {"table", to_html(validation_rows(validation))},
       {"notes", html_notes(validation.notes)},
       {"end", html_end(validation_data(validation), resources::validation_js)}});
}

}  // namespace shardsim
