#include "reports/collective/link_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>

#include "base/text.hpp"
#include "reports/format/html.hpp"

namespace shardsim {
namespace {

constexpr std::size_t most_nodes_drawn = 128;
constexpr std::size_t most_links_drawn = 64;  // of a node
constexpr double as_busy = 1e-9;  // relative: sums of the same bytes, differently rounded

std::int64_t count_if(const LinkView& view, bool (*holds)(const LinkView::Link&, double),
                      double most) {
  return std::count_if(view.links.begin(), view.links.end(),
                       [&](const LinkView::Link& link) { return holds(link, most); });
}

std::string in_tenths(const std::vector<double>& utilisation) {
  constexpr std::size_t most = 20;
  const std::size_t together = std::max<std::size_t>(1, utilisation.size() / most);
  std::string text;
  for (std::size_t begin = 0; begin < utilisation.size(); begin += together) {
    const std::size_t bins = std::min(together, utilisation.size() - begin);
    const auto first = utilisation.begin() + static_cast<std::ptrdiff_t>(begin);
    const double sum = std::accumulate(first, first + static_cast<std::ptrdiff_t>(bins), 0.0);
    const auto tenths = std::lround(10 * sum / static_cast<double>(bins));
    text += tenths <= 0 ? '.' : tenths >= 10 ? '#' : static_cast<char>('0' + tenths);
  }
  return text;
}

std::string heat_cell(const LinkView::Link& link) {
  return fmt::format(
      "<td style=\"background: rgba(224, 83, 61, {:.3f}); color: inherit\" title=\"{}: {}\" "
      "data-value=\"{}\">{:.0f}</td>",
      link.busy, html_escape(way_of(link)), format_bytes(link.bytes), plain_number(link.busy),
      100 * link.busy);
}

// "gpu# -> nic#" of "gpu3 -> nic3".
std::string kind_of(const LinkView::Link& link) {
  std::string kind;
  for (const char c : way_of(link)) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!is_digit) {
      kind += c;
    } else if (kind.empty() || kind.back() != '#') {
      kind += '#';
    }
  }
  return kind;
}

// Of the `alike` links that are the busiest, how many there are of each kind: ", as are all 64
// rail# -> host#.nic#", ", as are 3 of 16 leaf# -> spine#".
std::string others_as_busy(const LinkView& view, std::int64_t alike) {
  if (alike < 2) return "";
  std::map<std::string, std::int64_t> all;
  for (const LinkView::Link& link : view.links) ++all[kind_of(link)];
  std::map<std::string, std::int64_t> busy;
  for (std::int64_t i = 0; i < alike; ++i) ++busy[kind_of(view.links[static_cast<std::size_t>(i)])];
  std::vector<std::string> kinds;
  for (const auto& [kind, count] : busy) {
    const std::int64_t there = all.at(kind);
    kinds.push_back(count == there ? fmt::format("all {} {}", format_count(there), kind)
                                   : fmt::format("{} of {} {}", format_count(count),
                                                 format_count(there), kind));
  }
  constexpr std::size_t most_kinds = 4;
  if (kinds.size() > most_kinds) {
    return fmt::format(", and {} as busy", counted(alike - 1, "link"));
  }
  return fmt::format(", as are {}", fmt::join(kinds, ", "));
}

}  // namespace

std::string way_of(const LinkView::Link& link) {
  return fmt::format("{} -> {}", link.from, link.to);
}

std::string bottleneck_sentence(const LinkView& view) {
  const auto links = counted(static_cast<std::int64_t>(view.links.size()), "link");
  if (view.links.empty() || view.links.front().bytes == Bytes(0)) {
    return fmt::format("{}, which carry nothing", links);
  }
  const LinkView::Link& first = view.links.front();
  const std::int64_t alike = count_if(
      view, [](const LinkView::Link& link, double most) { return link.busy >= most; },
      first.busy * (1 - as_busy));
  const std::int64_t idle = count_if(
      view, [](const LinkView::Link& link, double) { return link.bytes == Bytes(0); }, 0);
  std::string sentence =
      fmt::format("bottleneck: {}, {} busy", way_of(first), format_percent(first.busy));
  sentence += others_as_busy(view, alike);
  if (idle > 0) sentence += fmt::format("; of {} {} carry nothing", links, format_count(idle));
  return sentence;
}

std::string full_bandwidth_sentence(const LinkView& view) {
  if (view.histories.empty() || view.links.front().bytes == Bytes(0)) return {};
  const std::string way = way_of(view.links.front());
  const LinkView::History& history = view.histories[view.links.front().history];
  if (history.full == Seconds(0)) return way + " is never at its full bandwidth";
  const std::string first = format_seconds(history.first_full);
  const std::string last = format_seconds(history.last_full);
  if (history.full >= (history.last_full - history.first_full) * (1 - as_busy)) {
    return fmt::format("{} is at its full bandwidth from {} to {}", way, first, last);
  }
  return fmt::format("{} is at its full bandwidth for {} between {} and {}", way,
                     format_seconds(history.full), first, last);
}

Table link_table(const LinkView& view, bool over_time, std::size_t limit) {
  using Align = TextTable::Align;
  Table table{fmt::format("Busiest links, {}", format_bytes(view.size)),
              {{"from", Align::left},
               {"to", Align::left},
               {"carries", Align::right},
               {"busy", Align::right}},
              {}};
  const bool has_histories = over_time && !view.histories.empty();
  if (has_histories) table.columns.push_back({"over time (tenths, # full)", Align::left});
  for (std::size_t i = 0; i < std::min(limit, view.links.size()); ++i) {
    const LinkView::Link& link = view.links[i];
    table.rows.push_back({{link.from, ""},
                          {link.to, ""},
                          {format_bytes(link.bytes), std::to_string(link.bytes.count())},
                          {format_percent(link.busy), plain_number(link.busy)}});
    if (!has_histories) continue;
    table.rows.back().push_back({in_tenths(view.histories[link.history].utilisation), ""});
  }
  return table;
}

std::string link_heat_map(const LinkView& view) {
  std::vector<std::string> nodes;  // by their busiest link
  std::map<std::string, std::vector<const LinkView::Link*>> out;
  for (const LinkView::Link& link : view.links) {
    if (out[link.from].empty()) nodes.push_back(link.from);
    out[link.from].push_back(&link);
  }
  std::string html =
      "<figure class=\"picture\">\n<figcaption>How busy every link is, in % of the time: a row for "
      "the links out of a node; point at one for where it leads and what it carries</figcaption>\n"
      "<table>\n<tbody>\n";
  for (std::size_t i = 0; i < std::min(nodes.size(), most_nodes_drawn); ++i) {
    const auto& links = out.at(nodes[i]);
    html += fmt::format("<tr><th scope=\"row\">{}</th>", html_escape(nodes[i]));
    for (std::size_t k = 0; k < std::min(links.size(), most_links_drawn); ++k) {
      html += heat_cell(*links[k]);
    }
    if (links.size() > most_links_drawn) {
      html += fmt::format("<td>and {} more</td>", links.size() - most_links_drawn);
    }
    html += "</tr>\n";
  }
  html += "</tbody>\n</table>\n</figure>\n";
  if (nodes.size() > most_nodes_drawn) {
    html += fmt::format("<p class=\"quiet\">and {} more nodes, whose links are no busier</p>\n",
                        nodes.size() - most_nodes_drawn);
  }
  return html;
}

}  // namespace shardsim
