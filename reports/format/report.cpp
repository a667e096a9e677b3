#include "reports/format/report.hpp"

#include <cassert>

#include "base/json.hpp"
#include "reports/format/figures.hpp"
#include "reports/format/verdict.hpp"
#include "reports/step/csv_report.hpp"
#include "reports/step/html_report.hpp"
#include "reports/step/json_report.hpp"
#include "reports/step/markdown_report.hpp"
#include "reports/step/text_report.hpp"

namespace shardsim {

std::string report_run(const Prediction& prediction, Format format, std::size_t width) {
  const Figures figures = figures_of(prediction);
  switch (format) {
    case Format::text:
      return text_run(figures, width);
    case Format::json:
      return json_text(result_to_json(figures));
    case Format::csv:
      return csv_report({figures});
    case Format::html:
      return html_run(figures, timeline_of(prediction, {}));
    case Format::markdown:
      return markdown_run(figures);
  }
  assert(false);
  return {};
}

std::string report_comparison(const std::vector<Prediction>& predictions, Format format,
                              std::size_t width) {
  const std::vector<Figures> all = figures_of(predictions);
  const Choice choice = choose(all);
  switch (format) {
    case Format::text:
      return text_comparison(all, choice, width);
    case Format::json:
      return json_text(comparison_to_json(all, choice));
    case Format::csv:
      return csv_report(all);
    case Format::html:
      return html_comparison(all, choice, timelines_of(predictions));
    case Format::markdown:
      return markdown_comparison(all, choice);
  }
  assert(false);
  return {};
}

}  // namespace shardsim
