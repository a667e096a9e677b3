#include "report_format.hpp"

#include <cassert>

namespace shardsim {
namespace {

struct Row {
  const char* name;
  Format format;
};
constexpr Row rows[] = {{"text", Format::text},
                        {"json", Format::json},
                        {"csv", Format::csv},
                        {"html", Format::html},
                        {"markdown", Format::markdown}};

}  // namespace

std::vector<std::string> report_formats() {
  std::vector<std::string> names;
  for (const Row& row : rows) names.emplace_back(row.name);
  return names;
}

Format report_format(const std::string& name) {
  for (const Row& row : rows) {
    if (name == row.name) return row.format;
  }
  assert(false);  // read_outputs has checked
  return Format::text;
}

}  // namespace shardsim
