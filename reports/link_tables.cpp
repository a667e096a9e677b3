#include "reports/link_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "reports/html.hpp"

namespace shardsim {
namespace {

constexpr std::size_t most_nodes_drawn = 128;
constexpr std::size_t most_links_drawn = 64;  // of a node
constexpr double as_busy = 1e-9;  // relative: sums of the same bytes, differently rounded

std::string way_of(const LinkView::Link& link) {
  return fmt::format("{} -> {}", link.from, link.to);
}

std::int64_t count_if(const LinkView& view, bool (*holds)(const LinkView::Link&, double),
                      double most) {
  return std::count_if(view.links.begin(), view.links.end(),
                       [&](const LinkView::Link& link) { return holds(link, most); });
}

std::string heat_cell(const LinkView::Link& link) {
  return fmt::format(
      "<td style=\"background: rgba(224, 83, 61, {:.3f}); color: inherit\" title=\"{}: {}\" "
      "data-value=\"{}\">{:.0f}</td>",
      link.busy, html_escape(way_of(link)), format_bytes(link.bytes), plain_number(link.busy),
      100 * link.busy);
}

}  // namespace

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
  if (alike > 1) sentence += fmt::format(", and {} as busy", counted(alike - 1, "link"));
  if (idle > 0) sentence += fmt::format("; of {} {} carry nothing", links, format_count(idle));
  return sentence;
}

Table link_table(const LinkView& view, std::size_t limit) {
  using Align = TextTable::Align;
  Table table{fmt::format("Busiest links, {}", format_bytes(view.size)),
              {{"from", Align::left},
               {"to", Align::left},
               {"carries", Align::right},
               {"busy", Align::right}},
              {}};
  for (std::size_t i = 0; i < std::min(limit, view.links.size()); ++i) {
    const LinkView::Link& link = view.links[i];
    table.rows.push_back({{link.from, ""},
                          {link.to, ""},
                          {format_bytes(link.bytes), std::to_string(link.bytes.count())},
                          {format_percent(link.busy), plain_number(link.busy)}});
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
