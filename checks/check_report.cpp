#include "checks/check_report.hpp"

#include <array>
#include <cassert>

namespace shardsim {
namespace {

struct FormatRow {
  const char* name;
  std::string (*render)(const CheckReport&);
};

constexpr std::array rows{FormatRow{"text", check_text},         FormatRow{"json", check_json},
                          FormatRow{"markdown", check_markdown}, FormatRow{"junit", check_junit},
                          FormatRow{"gitlab", check_gitlab},     FormatRow{"html", check_html}};

}  // namespace

const std::vector<std::string>& check_formats() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const FormatRow& row : rows) list.emplace_back(row.name);
    return list;
  }();
  return names;
}

std::string report_check(const CheckReport& report, const std::string& format) {
  for (const FormatRow& row : rows) {
    if (format == row.name) return row.render(report);
  }
  assert(false);  // one of check_formats()
  return {};
}

}  // namespace shardsim
