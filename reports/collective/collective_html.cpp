#include "reports/collective/collective_html.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "reports/collective/collective_tables.hpp"
#include "reports/collective/link_history_map.hpp"
#include "reports/collective/link_tables.hpp"
#include "reports/format/html.hpp"
#include "reports/html/resources.hpp"

namespace shardsim {
namespace {

// {"rows": [{"bytes", "time_s", "busbw_Bps", "measured_time_s", "measured_busbw_Bps"}...]}
Json collective_data(const CollectivePrediction& prediction) {
  Json data = {{"rows", Json::array()}};
  for (const CollectiveFigures& row : figures_of(prediction)) {
    Json point = {{"bytes", row.bytes.count()},
                  {"time_s", row.time.count()},
                  {"busbw_Bps", row.bus_bandwidth.count()}};
    if (row.measured) {
      point["measured_time_s"] = row.measured->count();
      point["measured_busbw_Bps"] = row.measured_bus_bandwidth->count();
    }
    data["rows"].push_back(std::move(point));
  }
  return data;
}

std::string lead(const CollectivePrediction& prediction) {
  if (!prediction.experiment.measured) return {};
  const std::string errors = error_sentence(prediction);
  return fmt::format(
      "<section>\n<h2>Beside measurements</h2>\n<p>{}</p>\n<p class=\"quiet\">{}</p>\n"
      "</section>\n\n",
      html_escape(errors.empty() ? "no row tells a time" : errors),
      html_escape(measured_what(prediction)));
}

std::string links_html(const std::optional<LinkView>& links) {
  if (!links) return {};
  std::string bottleneck = html_escape(bottleneck_sentence(*links));
  const std::string when = html_escape(full_bandwidth_sentence(*links));
  if (!when.empty()) bottleneck += "<br>\n" + when;
  constexpr std::size_t most_listed = 500;
  const Table listed = link_table(*links, /*over_time=*/false, most_listed);
  return fmt::format(
      "<section class=\"unbroken\">\n<h2>Links, {}</h2>\n<p>{}</p>\n{}{}"
      "<details>\n<summary>The {} busiest, one by one</summary>\n{}</details>\n</section>\n\n",
      format_bytes(links->size), bottleneck, link_history_map(*links), link_heat_map(*links),
      listed.rows.size(), to_html(listed));
}

}  // namespace

std::string collective_html(const CollectivePrediction& prediction) {
  const std::string title = title_of(prediction);
  return fill(resources::collective_html,
              {{"opening", html_opening(title, subject_of(prediction))},
               {"lead", lead(prediction)},
               {"links", links_html(prediction.links)},
               {"table", to_html(collective_table(prediction))},
               {"notes", html_notes(prediction.notes)},
               {"end", html_end(collective_data(prediction), resources::collective_js)}});
}

}  // namespace shardsim
