#include "reports/machine/machine_report.hpp"

#include <fmt/format.h>

#include "base/version.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "reports/format/html.hpp"
#include "reports/html/resources.hpp"
#include "reports/machine/machine_picture.hpp"

namespace shardsim {
namespace {

bool is_written_in_place(const Machine& machine) {
  const auto* network = std::get_if<NetworkDescription>(&machine.profile.network);
  return network != nullptr && !network->graph;
}

Table numbers_table(const Profile& profile) {
  Table table{"Every number", {{"quantity"}, {"value"}, {"kind"}, {"date"}, {"source"}}, {}};
  for (const ProfileNumber& number : numbers_of(profile)) {
    std::string source = number.source;
    if (!number.note.empty()) source += " (" + number.note + ")";
    table.rows.push_back({{number.quantity, ""},
                          {number.value, ""},
                          {number.kind, ""},
                          {number.date, ""},
                          {source, ""}});
  }
  return table;
}

std::string figure_html(const Machine& machine, const Place& place) {
  const auto picture = picture_of(machine, place);
  if (!picture) {
    return fmt::format("<p class=\"quiet\">{} devices are too many to draw.</p>\n",
                       machine.devices);
  }
  return to_svg(*picture, "picture of " + machine.profile.name);
}

}  // namespace

std::string machine_report_text(const Machine& machine, const Place& place, std::size_t width) {
  std::string text =
      fmt::format("{}\n\n{}", profile_heading(machine.profile), machine_text(machine, place));
  if (!is_written_in_place(machine)) text += "\n" + profile_numbers_text(machine.profile, width);
  return text;
}

std::string machine_report_html(const Machine& machine, const Place& place) {
  std::string legend;
  for (const std::string& line : machine_legend(machine, place)) {
    legend += fmt::format("<li>{}</li>\n", html_escape(line));
  }
  std::string numbers;
  if (!is_written_in_place(machine)) {
    numbers = "<section class=\"numbers\">\n<h2>Where its numbers come from</h2>\n" +
              to_html(numbers_table(machine.profile)) + "</section>\n";
  }
  return fill(resources::machine_html,
              {{"opening", html_opening(machine.profile.name, machine.profile.title)},
               {"picture", figure_html(machine, place)},
               {"legend", legend},
               {"numbers", numbers}});
}

}  // namespace shardsim
