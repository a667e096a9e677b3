#include "reports/step/html_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "reports/format/html.hpp"
#include "reports/format/html_data.hpp"
#include "reports/format/known_error.hpp"
#include "reports/format/tables.hpp"
#include "reports/format/verdict.hpp"
#include "reports/html/resources.hpp"
#include "reports/step/csv_report.hpp"

namespace shardsim {
namespace {

std::string anchor(std::size_t index) { return fmt::format("configuration-{}", index); }

std::string html_remarks(std::string_view heading, const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string out = fmt::format("<h3>{}</h3>\n<ul>\n", heading);
  for (const std::string& line : lines) out += fmt::format("<li>{}</li>\n", html_escape(line));
  return out + "</ul>\n";
}

// The figures that count, large, above everything else of a configuration.
std::string cards(const Figures& figures) {
  std::string out;
  const auto add = [&](std::string_view label, std::string_view value, std::string_view extra) {
    out += fmt::format("<div class=\"card\"><dt>{}</dt><dd>{}<small>{}</small></dd></div>\n", label,
                       html_escape(value), html_escape(extra));
  };
  const Table row = comparison_table({figures});
  const auto cell = [&](std::string_view column) {
    for (std::size_t c = 0; c < row.columns.size(); ++c) {
      if (row.columns[c].title == column) return row.rows[0][c].text;
    }
    return std::string();
  };
  add("Step time", cell("step time"),
      figures.known_error ? fmt::format("measured steps took {:.2f} to {:.2f} times as long",
                                        figures.known_error->low, figures.known_error->high)
                          : "");
  if (figures.tokens_per_second_per_device) {
    add("Tokens/s/device", cell("tokens/s/device"), "");
  }
  if (figures.mfu) add("MFU", cell("MFU"), "");
  if (figures.bubble) {
    add("Bubble", format_seconds(to_seconds(*figures.bubble)),
        fmt::format("{} of the step, on average", format_percent(figures.share(*figures.bubble))));
  }
  add("Peak memory per device", cell("memory"),
      fmt::format("of {}", format_bytes(figures.capacity)));
  add("Exposed communication", cell("exposed"),
      fmt::format("{} of the step{}", format_percent(figures.share(figures.exposed)),
                  figures.classes.size() > 1 ? ", of the busiest stage" : ""));
  return out;
}

std::string step_in_words(const Figures& figures) {
  return fmt::format(
      "One step of {}: {}, of which {} compute, {} contention, {} exposed communication and {} "
      "idle. Memory peaks at {}, {} into the step.",
      figures.name, format_seconds(to_seconds(figures.step)),
      format_percent(figures.share(figures.compute)),
      format_percent(figures.share(figures.contention)),
      format_percent(figures.share(figures.exposed)), format_percent(figures.share(figures.idle)),
      format_bytes(figures.peak), format_seconds(to_seconds(figures.peak_time)));
}

std::string step_view(std::size_t index, const Figures& figures, const Timeline& timeline) {
  if (timeline.empty()) {
    return "<p class=\"quiet\">The simulation kept no timeline of this step.</p>\n";
  }
  const bool has_passes = std::any_of(timeline.classes.begin(), timeline.classes.end(),
                                      [](const TimelineClass& one) { return !one.passes.empty(); });
  const bool has_links = std::any_of(timeline.classes.begin(), timeline.classes.end(),
                                     [](const TimelineClass& one) { return !one.links.empty(); });
  std::string out = fmt::format(
      "<figure class=\"step-view\" data-configuration=\"{}\">\n"
      "<figcaption>One step over time{}{}, and the memory of a device</figcaption>\n"
      "<canvas role=\"img\" tabindex=\"0\" aria-label=\"{}\"></canvas>\n</figure>\n",
      index, has_passes ? ", with the numbers of microbatches" : "",
      has_links ? ", how much it takes of links" : "", html_escape(step_in_words(figures)));
  if (timeline.merged) {
    out +=
        "<p class=\"quiet\">Neighbouring tasks are drawn as one where they would be too narrow "
        "to see; point at one for how many they are.</p>\n";
  }
  return out;
}

// Bars of where the time of each stage goes.
std::string class_times(std::size_t index, const Figures& figures) {
  if (figures.classes.size() < 2) return "";
  return fmt::format(
      "<figure class=\"class-times\" data-configuration=\"{}\">\n"
      "<figcaption>Where the step goes on each</figcaption>\n"
      "<div class=\"chart\"><canvas role=\"img\" aria-label=\"Stacked bars: the time of each "
      "device "
      "class by cause. The figures are in the table of the same name.\"></canvas></div>\n"
      "</figure>\n",
      index);
}

std::string paragraph(const std::string& text) {
  return text.empty() ? "" : fmt::format("<p>{}</p>\n", html_escape(text));
}

std::string suggestions_html(const std::vector<Figures>& all) {
  const Table table = suggestion_table(all);
  return table.rows.empty() ? "" : to_html(table);
}

std::string configuration(std::size_t index, const Figures& figures, const Timeline& timeline) {
  std::string tables;
  for (const Table& table : run_tables(figures)) tables += to_html(table);
  return fill(resources::configuration_html,
              {{"id", anchor(index)},
               {"name", html_escape(figures.name)},
               {"title", html_escape(title_of(figures))},
               {"machine", html_escape(machine_line(figures))},
               {"workload", paragraph(workload_line(figures))},
               {"suggestions", suggestions_html({figures})},
               {"verdict_class", figures.fits ? "good" : "bad"},
               {"verdict", html_escape(memory_verdict(figures))},
               {"cards", cards(figures)},
               {"step_view", step_view(index, figures, timeline)},
               {"class_times", class_times(index, figures)},
               {"tables", tables},
               {"warnings", html_remarks("Warnings", figures.warnings)},
               {"notes", html_remarks("Notes", figures.notes)}});
}

// The CSV, turned on its side: one column per configuration.
Table all_figures(const std::vector<Figures>& all) {
  Table table{"Every figure, as in the CSV", {{"figure", TextTable::Align::left}}, {}};
  for (const Field& field : csv_fields(Figures{})) table.rows.push_back({{field.column, {}}});
  for (const Figures& figures : all) {
    table.columns.push_back({figures.name, TextTable::Align::right});
    const std::vector<Field> fields = csv_fields(figures);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      table.rows[i].push_back({fields[i].value, fields[i].value});
    }
  }
  return table;
}

// "llama-3.1-8b train step on dgx-h100 (8 devices, 1 node; H100)", as far as all agree.
std::string subject(const std::vector<Figures>& all) {
  std::set<std::string> models;
  std::set<std::string> machines;
  std::set<std::string> workloads;
  for (const Figures& figures : all) {
    models.insert(fmt::format("{} {} step", figures.model, figures.step_kind));
    machines.insert(machine_line(figures));
    workloads.insert(workload_line(figures));
  }
  const std::string text =
      fmt::format("{} on {}", fmt::join(models, ", "), fmt::join(machines, ", "));
  const bool one = workloads.size() == 1 && !workloads.begin()->empty();
  return one ? fmt::format("{}; {}", text, *workloads.begin()) : text;
}

struct Lead {
  std::string title;
  std::string css_class;  // good or bad
  std::string heading;
  std::string text;
  std::vector<int> best = {};
};

std::string page(const std::vector<Figures>& all, const std::vector<Timeline>& timelines,
                 const Lead& lead) {
  std::vector<std::string> links;
  std::string configurations;
  for (std::size_t i = 0; i < all.size(); ++i) {
    links.push_back(anchor(i));
    configurations += configuration(i, all[i], timelines[i]);
  }
  return fill(resources::page_html,
              {{"opening", html_opening(lead.title, subject(all))},
               {"lead_class", lead.css_class},
               {"lead_heading", html_escape(lead.heading)},
               {"lead", html_escape(lead.text)},
               {"overview_heading", all.size() == 1 ? "At a glance" : "Side by side"},
               {"comparison", to_html(comparison_table(all), lead.best, links)},
               {"suggestions", all.size() == 1 ? "" : suggestions_html(all)},
               {"configurations", configurations},
               {"all_figures", to_html(all_figures(all))},
               {"data", script_json(page_data(all, timelines))},
               {"chart_library", std::string(resources::chart_library_js)},
               {"common", std::string(resources::common_js)},
               {"charts", std::string(resources::charts_js)},
               {"step_links", std::string(resources::step_links_js)},
               {"step_passes", std::string(resources::step_passes_js)},
               {"step_views", std::string(resources::step_view_js)}});
}

}  // namespace

std::vector<Timeline> timelines_of(const std::vector<Prediction>& predictions) {
  const TimelineLimits whole_page;
  const std::size_t count = std::max<std::size_t>(1, predictions.size());
  const TimelineLimits each{.segments = whole_page.segments / count,
                            .samples = whole_page.samples / count};
  std::vector<Timeline> timelines;
  for (const Prediction& prediction : predictions) {
    timelines.push_back(timeline_of(prediction, each));
  }
  return timelines;
}

std::string html_run(const Figures& figures, const Timeline& timeline) {
  return page({figures}, {timeline},
              {.title = fmt::format("{}: {}", figures.name, title_of(figures)),
               .css_class = figures.fits ? "good" : "bad",
               .heading = figures.fits ? "It fits" : "It does not fit",
               .text = memory_verdict(figures)});
}

std::string html_comparison(const std::vector<Figures>& all, const Choice& choice,
                            const std::vector<Timeline>& timelines) {
  const bool found = choice.best >= 0;
  std::vector<int> best;
  if (found) best.push_back(choice.best);
  best.insert(best.end(), choice.ties.begin(), choice.ties.end());
  std::vector<std::string> names;
  for (const int i : best) names.push_back(all[static_cast<std::size_t>(i)].name);
  const std::string heading =
      found ? fmt::format("{}: {}", names.size() > 1 ? "A tie" : "Best", fmt::join(names, ", "))
            : "Nothing fits";
  const std::string error = known_error_text(all);
  return page(
      all, timelines,
      {.title =
           fmt::format("Comparison of {} configuration{}", all.size(), all.size() == 1 ? "" : "s"),
       .css_class = found ? "good" : "bad",
       .heading = heading,
       .text = choice.why + (error.empty() ? "." : fmt::format(". Known error: {}.", error)),
       .best = std::move(best)});
}

}  // namespace shardsim
