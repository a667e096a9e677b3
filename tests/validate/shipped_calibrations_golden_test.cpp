// Every shipped calibration is what the tables of tests/measurements make: scripts/calibrate.sh.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "hardware_profiles/embedded_calibrations.hpp"
#include "validate/fit/calibration_tables.hpp"
#include "validate/fit/hold_out.hpp"

namespace shardsim {
namespace {

std::vector<std::string> measured_tables() {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(SHARDSIM_SOURCE_DIR "/tests/measurements/collectives")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("shipped calibrations are fitted to the measured tables") {
  const std::vector<std::string> files = measured_tables();
  REQUIRE_FALSE(files.empty());
  REQUIRE_FALSE(embedded_calibrations().empty());
  for (const EmbeddedFile& shipped : embedded_calibrations()) {
    const std::string name(shipped.name);
    CAPTURE(name);
    const Calibration header = load_calibration(name, {});
    CHECK(header.name == name);
    const CalibrationTables read = read_calibration_tables(files, {.of_class = name});
    Calibration calibration = fit_calibration(header, read.tables);
    add_errors(calibration, read.tables);
    CHECK(calibration_text(calibration) == shipped.text);
  }
}

}  // namespace shardsim
