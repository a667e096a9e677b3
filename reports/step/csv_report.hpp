// CSV as RFC 4180 has it: a header, one row per configuration, lines that end in CR LF, columns
// with their unit as suffix. Columns may be added at the end; those that are here stay.
#pragma once

#include <string>
#include <vector>

#include "reports/format/figures.hpp"

namespace shardsim {

struct Field {
  std::string column;
  std::string value;  // empty where the notion has no meaning
};
[[nodiscard]] std::vector<Field> csv_fields(const Figures& figures);

[[nodiscard]] std::string csv_report(const std::vector<Figures>& all);

}  // namespace shardsim
