// Which measured tables a calibration is made of.
#include "validate/fit/calibration_tables.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.hpp"
#include "base/json.hpp"
#include "tests/base/mistake.hpp"

namespace shardsim {
namespace {

using Catch::Contains;
using Catch::Equals;

Json measured(const std::string& id) {
  return {{"id", id},
          {"source", "a page"},
          {"machine", "dgx-h100"},
          {"collective", "all_reduce"},
          {"ranks", 8},
          {"nodes", 1},
          {"gpus_per_node", 8},
          {"algo", "Ring"},
          {"proto", "Simple"},
          {"healthy", true},
          {"rows", {{{"bytes", MiB}, {"time_us", 100}}, {{"bytes", GiB}, {"time_us", 9000}}}}};
}

Json measured_with(const std::string& id, const std::string& key, const Json& value) {
  Json document = measured(id);
  document[key] = value;
  return document;
}

// The path of a table that stands there now.
std::string written(const std::string& name, const Json& document) {
  const std::filesystem::path folder = SHARDSIM_BINARY_DIR "/tests/calibration_tables";
  std::filesystem::create_directories(folder);
  std::string path = (folder / (name + ".json")).string();
  write_file(path, document.dump());
  return path;
}

std::string reading_mistake(const std::vector<std::string>& files,
                            const std::optional<std::string>& of_class = {}) {
  return testing::mistake_of(
      [&] { return read_calibration_tables(files, {.of_class = of_class}); });
}

}  // namespace

// The ring's transfer of 1 GiB alone, 7/4 GiB at 0.824 * 450 GB/s, is 5.07 ms; with 14 steps of
// 3.4 us and a call of 8.4 us NCCL's ring takes 5.12 ms, whatever the profile's calibrations say.
TEST_CASE("a row is a sample: what was measured over what is modelled uncalibrated") {
  const CalibrationTables read = read_calibration_tables({written("plain", measured("plain"))});
  const std::vector<CalibrationTable>& tables = read.tables;
  CHECK(read.left_out.empty());
  CHECK(read.notes.empty());
  REQUIRE(tables.size() == 1);
  CHECK(tables[0].id == "plain");
  CHECK(tables[0].source == "a page");
  REQUIRE(tables[0].samples.size() == 2);
  const CalibrationSample& large = tables[0].samples[1];
  CHECK(large.key == CurveKey{Region::node, "all-reduce", "Ring"});
  CHECK(large.bytes == Bytes(GiB));
  CHECK(large.measured.count() == Approx(9e-3));
  CHECK(large.modelled.count() == Approx(1.75 * GiB / (0.824 * 450e9) + 14 * 3.4e-6 + 8.4e-6));
}

TEST_CASE("tables that say too little, or of a machine that is not well, are left out") {
  const std::string good = written("good", measured("good"));
  const auto why = [&](const std::string& key, const Json& value) {
    const std::string path = written("other", measured_with("other", key, value));
    const CalibrationTables read = read_calibration_tables({path, good});
    REQUIRE(read.tables.size() == 1);
    CHECK(read.tables[0].id == "good");
    REQUIRE(read.left_out.size() == 1);
    REQUIRE(read.left_out[0].rfind(path + ": ", 0) == 0);
    return read.left_out[0].substr(path.size() + 2);
  };
  CHECK(why("healthy", false) == "not marked healthy");
  CHECK(why("healthy", "unknown") == "not marked healthy");
  CHECK(why("machine", nullptr) == "names no machine");
  CHECK(why("collective", "unknown") == "does not say which collective");
  CHECK(why("ranks", nullptr) == "does not say how many ranks");
}

TEST_CASE("with a class, only tables whose machine names it") {
  const std::string hopper = written("hopper", measured("hopper"));
  const std::string ampere = written("ampere", measured_with("ampere", "machine", "dgx-a100"));
  const CalibrationTables read =
      read_calibration_tables({ampere, hopper}, {.of_class = "h100-nvswitch"});
  REQUIRE(read.tables.size() == 1);
  CHECK(read.tables[0].id == "hopper");
  CHECK(read.left_out ==
        std::vector<std::string>{ampere + ": dgx-a100 does not name h100-nvswitch"});
}

// 1 GiB takes 5.1 ms by the model; 9 ms are less than twice that, 15 ms are not. Of the two rows
// only the large one is transfer: 1.75 MiB at 371 GB/s are 5 us of 61.
TEST_CASE("what looks like a machine that is not well is told, and left out when asked for") {
  const std::string good = written("good", measured("good"));
  const Json slow_rows = {{{"bytes", MiB}, {"time_us", 100}}, {{"bytes", GiB}, {"time_us", 15400}}};
  const std::string slow = written("slow", measured_with("slow", "rows", slow_rows));
  const std::string told =
      slow + ": slow: sizes from 1.0 GiB on take 3.0 times what their links carry";

  const CalibrationTables kept = read_calibration_tables({good, slow});
  CHECK(kept.tables.size() == 2);
  CHECK(kept.suspicious == std::vector<std::string>{told});
  CHECK(kept.odd.empty());
  CHECK(kept.left_out.empty());

  const CalibrationTables excluded =
      read_calibration_tables({good, slow}, {.exclude_suspicious = true});
  REQUIRE(excluded.tables.size() == 1);
  CHECK(excluded.tables[0].id == "good");
  CHECK(excluded.left_out == std::vector<std::string>{told});
  CHECK(excluded.suspicious.empty());
}

TEST_CASE("what cannot be calibrated with is an error") {
  const std::string one = written("one", measured("same"));
  const std::string two = written("two", measured("same"));
  CHECK_THAT(reading_mistake({one, two}),
             Equals(two + ": /id: \"same\" is the id of another table, too"));
  CHECK_THAT(reading_mistake({}), Equals("command line: no tables are given"));
  const std::string ill = written("ill", measured_with("ill", "healthy", false));
  CHECK_THAT(
      reading_mistake({ill}),
      Equals("command line: no table is left to calibrate with: " + ill + ": not marked healthy"));
  CHECK_THAT(reading_mistake({ill, one}, "nvl72"),
             Equals("command line: no table is left to calibrate with: " + ill +
                    ": not marked healthy, and 1 more"));
  // An id that is left out does no harm.
  const std::string ill_one = written("ill_one", measured_with("same", "healthy", false));
  CHECK(reading_mistake({one, ill_one}) == "none");
}

// Of an all-gather and a reduce-scatter of two sizes, which go by one curve.
TEST_CASE("a trace is a table for each collective in it") {
  const std::string trace =
      SHARDSIM_SOURCE_DIR "/examples/kineto-traces/llama-3.2-fsdp-8xh100-rank0.json";
  const CalibrationTables read = read_calibration_tables({trace}, {.machine = "dgx-h100"});
  REQUIRE(read.tables.size() == 2);
  CHECK(read.tables[0].id == "llama-3.2-fsdp-8xh100-rank0_1n8g_all-gather");
  CHECK(read.tables[1].id == "llama-3.2-fsdp-8xh100-rank0_1n8g_reduce-scatter");
  CHECK(read.tables[0].samples.size() == 2);
  CHECK(read.tables[0].samples[1].measured.count() == Approx(1130.748e-6));
  // What both say is said once.
  CHECK(read.notes.size() == 3);
  CHECK_THAT(reading_mistake({trace}), Contains("names no machine, and 1 more"));
}

// The folder that the test runs in is another.
TEST_CASE("a machine that is a file stands beside the table") {
  Json profile = {{"schema", "shardsim/profile/1"},
                  {"name", "mine"},
                  {"title", "a machine of my own"},
                  {"extends", "dgx-h100"}};
  written("machine", profile);
  const std::string table =
      written("on_a_machine", measured_with("mine", "machine", "machine.json"));
  const CalibrationTables read = read_calibration_tables({table}, {.of_class = "h100-nvswitch"});
  CHECK(read.tables.size() == 1);
}

}  // namespace shardsim
