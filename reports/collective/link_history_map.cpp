#include "reports/collective/link_history_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/text.hpp"
#include "reports/collective/link_tables.hpp"
#include "reports/format/html.hpp"

namespace shardsim {
namespace {

constexpr std::size_t most_rows = 32;
constexpr std::size_t bins_of_a_figure = 4;  // as wide as "100"
constexpr int most_ticks = 6;

// Neighbouring bins of one whole percentage.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  double utilisation = 0;  // mean
};

std::vector<Stretch> stretches_of(const LinkView::History& history) {
  std::vector<Stretch> stretches;
  const auto percent = [](double utilisation) { return std::lround(100 * utilisation); };
  for (std::size_t bin = 0; bin < history.utilisation.size(); ++bin) {
    const double here = history.utilisation[bin];
    const bool goes_on =
        bin > 0 && percent(history.utilisation[stretches.back().begin]) == percent(here);
    if (!goes_on) stretches.push_back({bin, bin, 0});
    stretches.back().end = bin + 1;
    stretches.back().utilisation += here;
  }
  for (Stretch& stretch : stretches) {
    stretch.utilisation /= static_cast<double>(stretch.end - stretch.begin);
  }
  return stretches;
}

// As the heat map of totals.
std::string heat(double utilisation) {
  return fmt::format("background: rgba(224, 83, 61, {:.3f})", utilisation);
}

std::string cells(const LinkView& view, const LinkView::History& history) {
  std::string html;
  for (const Stretch& stretch : stretches_of(history)) {
    const std::size_t bins = stretch.end - stretch.begin;
    const Seconds from = view.bin * static_cast<double>(stretch.begin);
    const Seconds to = view.bin * static_cast<double>(stretch.end);
    const std::string figure = fmt::format("{:.0f}", 100 * stretch.utilisation);
    html += fmt::format("<span style=\"flex-grow: {}; {}\" title=\"{} to {}: {}\">{}</span>", bins,
                        heat(stretch.utilisation), format_seconds(from), format_seconds(to),
                        format_percent(stretch.utilisation),
                        bins >= bins_of_a_figure ? figure : std::string());
  }
  return html;
}

// A round step that leaves at most so many ticks.
double step_of(double whole) {
  const double least = whole / most_ticks;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) return factor * power;
  }
  return 10 * power;
}

std::string axis(double whole) {
  struct Unit {
    const char* name;
    double seconds;
  };
  constexpr std::array units{Unit{"s", 1}, Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"ns", 1e-9}};
  const auto* unit = std::find_if(units.begin(), units.end() - 1,
                                  [&](const Unit& each) { return whole >= each.seconds; });
  const double step = step_of(whole);
  std::string html;
  for (int i = 0; i * step <= whole; ++i) {
    html +=
        fmt::format("<span style=\"left: {:.3f}%\">{}</span>", 100 * i * step / whole,
                    i == 0 ? "0" : fmt::format("{:g} {}", i * step / unit->seconds, unit->name));
  }
  return html;
}

std::string legend() {
  std::string html = "<ul class=\"legend\">";
  for (const int percent : {0, 25, 50, 75, 100}) {
    html += fmt::format("<li><span style=\"{}\"></span>{} %</li>", heat(percent / 100.0), percent);
  }
  return html + "</ul>\n";
}

std::string when_full(const LinkView::History& history) {
  if (history.full == Seconds(0)) return "never";
  return fmt::format("{}<small>{} to {}</small>", format_seconds(history.full),
                     format_seconds(history.first_full), format_seconds(history.last_full));
}

std::string row(const LinkView& view, const LinkView::Link& link) {
  const LinkView::History& history = view.histories[link.history];
  std::string name = html_escape(way_of(link));
  if (history.links > 1) {
    name += fmt::format("<small>and {} more</small>", format_count(history.links - 1));
  }
  return fmt::format(
      "<tr><th scope=\"row\">{}</th><td><div class=\"history\">{}</div></td>"
      "<td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}</td></tr>\n",
      name, cells(view, history), format_percent(link.busy), format_bytes(link.bytes),
      when_full(history));
}

}  // namespace

std::string link_history_map(const LinkView& view) {
  if (view.histories.empty()) return {};
  std::string html =
      "<figure class=\"picture histories\">\n<figcaption>How much of its bandwidth every link "
      "uses over time, in %; links that carry the same at any time are one row</figcaption>\n" +
      legend() +
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Links over time\">\n"
      "<table>\n<thead><tr><th scope=\"col\">link</th><th scope=\"col\">over time</th>"
      "<th scope=\"col\">busy</th><th scope=\"col\">carries</th>"
      "<th scope=\"col\">at full bandwidth</th></tr></thead>\n<tbody>\n";
  std::size_t rows = 0;
  std::int64_t left_out = 0;
  for (const LinkView::Link& link : view.links) {
    if (link.history < rows) continue;  // shown
    if (rows == most_rows) {
      ++left_out;
      continue;
    }
    html += row(view, link);
    ++rows;
  }
  html += fmt::format(
      "</tbody>\n<tfoot><tr><td></td><td><div class=\"axis\">{}</div></td></tr></tfoot>\n"
      "</table>\n</div>\n</figure>\n",
      axis(view.time.count()));
  if (left_out > 0) {
    html += fmt::format("<p class=\"quiet\">and {}, which are no busier</p>\n",
                        counted(left_out, "more link"));
  }
  return html;
}

}  // namespace shardsim
