#include "reports/format/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "base/json.hpp"
#include "base/version.hpp"
#include "reports/html/resources.hpp"

namespace shardsim {
namespace {

// Row names up to this length stay on one line.
constexpr std::size_t unbroken = 24;
// Tables with more columns are no wider than a phone: each cell below the other, with its title.
constexpr std::size_t most_beside = 4;

std::string_view align_of(const TextTable::Column& column) {
  return column.align == TextTable::Align::right ? " class=\"number\"" : "";
}

std::string cell_html(const Cell& cell, const TextTable::Column& column, bool heads_row,
                      std::string_view link, bool stacks) {
  std::string content = html_escape(cell.text);
  if (!link.empty()) content = fmt::format("<a href=\"#{}\">{}</a>", html_escape(link), content);
  const std::string value =
      cell.value.empty() ? "" : fmt::format(" data-value=\"{}\"", html_escape(cell.value));
  if (!heads_row) {
    const std::string label =
        stacks ? fmt::format(" data-label=\"{}\"", html_escape(column.title)) : "";
    return fmt::format("<td{}{}{}>{}</td>", align_of(column), value, label, content);
  }
  if (!align_of(column).empty()) {
    return fmt::format("<th scope=\"row\"{}{}>{}</th>", align_of(column), value, content);
  }
  const bool is_short = cell.text.size() <= unbroken;
  return fmt::format("<th scope=\"row\"{}{}>{}</th>", is_short ? " class=\"short\"" : "", value,
                     content);
}

}  // namespace

std::string html_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string script_json(const Json& document) {
  const std::string json =
      document.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string fill(std::string_view skeleton, const Slots& slots) {
  std::string out;
  while (true) {
    const auto open = skeleton.find("{{");
    const auto close = skeleton.find("}}", open == std::string_view::npos ? 0 : open);
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    out += skeleton.substr(0, open);
    const std::string_view key = skeleton.substr(open + 2, close - open - 2);
    const auto slot =
        std::find_if(slots.begin(), slots.end(), [&](const auto& s) { return s.first == key; });
    assert(slot != slots.end());
    out += slot->second;
    skeleton.remove_prefix(close + 2);
  }
  return out + std::string(skeleton);
}

std::string html_opening(std::string_view title, std::string_view subject) {
  return fill(resources::opening_html, {{"title", html_escape(title)},
                                        {"subject", html_escape(subject)},
                                        {"version", program_version},
                                        {"css", std::string(resources::report_css)}});
}

std::string html_notes(const std::vector<std::string>& notes) {
  if (notes.empty()) return {};
  std::string out = "<h3>Notes</h3>\n<ul>\n";
  for (const std::string& note : notes) out += fmt::format("<li>{}</li>\n", html_escape(note));
  return out + "</ul>\n";
}

std::string html_end(const Json& data, std::string_view script) {
  return fill(resources::plots_end_html,
              {{"data", script_json(data)},
               {"chart_library", std::string(resources::chart_library_js)},
               {"common", std::string(resources::common_js)},
               {"plots", std::string(script)}});
}

std::string to_html(const Table& table, const std::vector<int>& emphasized,
                    const std::vector<std::string>& links) {
  const bool stacks = table.columns.size() > most_beside;
  std::string out = fmt::format(
      "<div class=\"scroll{1}\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n"
      "<table>\n<caption>{0}</caption>\n<thead><tr>",
      html_escape(table.caption), stacks ? " stacks" : "");
  for (const TextTable::Column& column : table.columns) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>", align_of(column), html_escape(column.title));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const bool is_best =
        std::find(emphasized.begin(), emphasized.end(), static_cast<int>(row)) != emphasized.end();
    out += is_best ? "<tr class=\"best\">" : "<tr>";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const bool heads_row = c == 0;
      const std::string link = heads_row && row < links.size() ? links[row] : std::string();
      out += cell_html(table.rows[row][c], table.columns[c], heads_row, link, stacks);
    }
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n</div>\n";
}

}  // namespace shardsim
