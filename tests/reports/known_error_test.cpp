// The figures of known_error.hpp from the table that docs/accuracy.md is about: linear percentiles.
#include "reports/known_error.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.hpp"

namespace shardsim {
namespace {

struct Row {
  std::string comparable;  // source, machine, model and sequence
  double ratio = 0;        // measured over predicted
};

std::vector<Row> measured_steps() {
  std::istringstream lines(read_file(SHARDSIM_SOURCE_DIR "/tests/measurements/steps.csv"));
  std::vector<Row> rows;
  std::string line;
  std::getline(lines, line);
  REQUIRE(line ==
          "id,source,machine,model,sequence,batch,microbatches,rematerialization,mesh,predicted_s,"
          "measured_s");
  while (std::getline(lines, line)) {
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, ',');) fields.push_back(field);
    REQUIRE(fields.size() == 11);
    rows.push_back({fields[1] + "," + fields[2] + "," + fields[3] + "," + fields[4],
                    std::stod(fields[10]) / std::stod(fields[9])});
  }
  return rows;
}

double percentile(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  const double place = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

TEST_CASE("The known error is that of the measured steps") {
  constexpr double last_digit = 0.005;
  std::vector<double> ratios;
  std::map<std::string, std::vector<double>> alike;
  for (const Row& row : measured_steps()) {
    ratios.push_back(row.ratio);
    alike[row.comparable].push_back(row.ratio);
  }
  CHECK(static_cast<int>(ratios.size()) == known_error.steps);
  CHECK(percentile(ratios, 0.1) == Approx(known_error.low).margin(last_digit));
  CHECK(percentile(ratios, 0.5) == Approx(known_error.median).margin(last_digit));
  CHECK(percentile(ratios, 0.9) == Approx(known_error.high).margin(last_digit));
  std::vector<double> between_two;
  for (const auto& [what, group] : alike) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      for (std::size_t k = i + 1; k < group.size(); ++k) {
        between_two.push_back(std::max(group[i], group[k]) / std::min(group[i], group[k]));
      }
    }
  }
  CHECK(static_cast<int>(between_two.size()) == known_error.pairs);
  CHECK(percentile(between_two, 0.9) == Approx(known_error.between_two).margin(last_digit));
}

}  // namespace
}  // namespace shardsim
