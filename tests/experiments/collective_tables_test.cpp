// Measured tables of collectives: what is read of them, and what stands beside the predictions.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.hpp"
#include "base/json.hpp"
#include "experiments/collective_experiment.hpp"
#include "tests/base/mistake.hpp"

namespace shardsim::collective_tables_test {
namespace {

using Catch::Contains;
using Catch::Equals;

Json with(Json document, const Json& more) {
  document.update(more);
  return document;
}

const Json table = {{"id", "a table"},
                    {"machine", "dgx-h100"},
                    {"collective", "all_gather"},
                    {"ranks", 8},
                    {"nodes", 1},
                    {"gpus_per_node", 8},
                    {"rows", {{{"bytes", MiB}, {"time_us", 50}}}}};

CollectiveMeasurement measurement(const Json& document) {
  return read_measurement(document, "table.json", {});
}

std::string table_mistake(const Json& document) {
  return testing::mistake_of([&] { return measurement(document); });
}

}  // namespace

// 7/8 of 1 MiB in 50 us is 18.35 GB/s on the bus, 1 MiB in 50 us is 20.97 GB/s.
TEST_CASE("a row without a time has one by its bandwidth") {
  const auto time_of = [](const Json& row) {
    const auto time = measurement(with(table, {{"rows", {row}}})).rows.at(0).time;
    return time ? time->count() * 1e6 : 0;
  };
  const double bus = 7.0 / 8 * MiB / 50e-6 / 1e9;
  const double algorithm = MiB / 50e-6 / 1e9;
  CHECK(time_of({{"bytes", MiB}, {"time_us", 50}, {"busbw_GBps", 1}}) == Approx(50));
  CHECK(time_of({{"bytes", MiB}, {"busbw_GBps", bus}}) == Approx(50));
  CHECK(time_of({{"bytes", MiB}, {"algbw_GBps", algorithm}}) == Approx(50));
  CHECK(time_of({{"bytes", MiB}, {"busbw_GBps", 0}, {"inplace_busbw_GBps", bus}}) == Approx(50));
  CHECK(time_of({{"bytes", MiB}, {"busbw_GBps", 0.0}}) == 0);
}

TEST_CASE("a table of TPUs counts chips") {
  const Json tpu = with(table, {{"ranks", nullptr},
                                {"gpus_per_node", nullptr},
                                {"hardware", {{"accelerator", "TPU v5p"}, {"chips", 4}}}});
  CHECK(measurement(tpu).group.ranks == 4);
  CHECK(measurement(with(tpu, {{"hardware", "TPU v5p"}})).group.ranks == std::nullopt);
  CHECK(measurement(with(table, {{"hardware", {{"chips", 4}}}})).group.ranks == 8);
}

// 24 thread blocks of 20.5 GB/s carry more than 8 NICs of 48.5, 16 do not.
TEST_CASE("a table says how many channels NCCL was told to take at the least") {
  CHECK(measurement(table).least_channels == 0);
  CHECK(measurement(with(table, {{"env", "NCCL_MIN_CTAS=24"}})).least_channels == 0);
  const Json ring = with(table, {{"ranks", 16},
                                 {"nodes", 2},
                                 {"algo", "Ring"},
                                 {"proto", "Simple"},
                                 {"rows", {{{"bytes", GiB}, {"time_us", 3000}}}}});
  const auto transfer = [&](const char* name, const Json& value) {
    CollectiveExperiment experiment =
        experiment_of(measurement(with(ring, {{"env", {{name, value}}}})), std::nullopt);
    experiment.model = collective_models::uncalibrated;
    return predict_collective(experiment).points.at(0).cost.transfer.count();
  };
  const double wire = 15.0 / 16 * GiB;
  CHECK(transfer("NCCL_DEBUG", "INFO") == Approx(wire / (16 * 20.5e9)));
  CHECK(transfer("NCCL_MIN_CTAS", "24") == Approx(wire / (0.824 * 450e9)));
  CHECK(transfer("NCCL_MIN_NCHANNELS", 24) == Approx(wire / (0.824 * 450e9)));
  CHECK_THAT(table_mistake(with(table, {{"env", {{"NCCL_MIN_CTAS", "many"}}}})),
             Equals("table.json: /env/NCCL_MIN_CTAS: \"many\" is no number of channels from 1 to "
                    "64"));
}

TEST_CASE("a table says what is doubtful about it") {
  // nccl-tests print hundredths of a GB/s: of small arrays 0.01 is left, or nothing.
  const Json rows = {{{"bytes", 8}, {"busbw_GBps", 0.01}}, {{"bytes", 4}, {"busbw_GBps", 0}}};
  const CollectiveMeasurement doubtful = measurement(
      with(table,
           {{"rows", rows}, {"healthy", "unknown"}, {"weather", "fine"}, {"env", Json::object()}}));
  CHECK_FALSE(doubtful.healthy);
  CHECK(doubtful.notes ==
        std::vector<std::string>{"1 of 2 measured rows print no time: it is worked out from a "
                                 "bandwidth that is printed rounded",
                                 "1 of 2 measured rows say nothing of the time",
                                 "table.json has keys that are not read: weather"});
}

TEST_CASE("a table that cannot be read says where") {
  const auto without = [](const char* key) {
    Json document = table;
    document.erase(key);
    return document;
  };
  const auto row = [](const Json& one) { return with(table, {{"rows", {one}}}); };
  CHECK_THAT(table_mistake(with(without("ranks"), {{"rank", 8}})),
             Equals("table.json: unknown key \"rank\", did you mean \"ranks\"?"));
  CHECK_THAT(table_mistake(row({{"bytes", 8}, {"tme_us", 8}})),
             Equals("table.json: /rows/0: unknown key \"tme_us\", did you mean \"time_us\"?"));
  CHECK_THAT(table_mistake(without("rows")), Equals("table.json: missing key \"rows\""));
  CHECK_THAT(table_mistake(with(table, {{"rows", Json::array()}})),
             Equals("table.json: /rows: no row was measured"));
  CHECK_THAT(table_mistake(row({{"time_us", 8}})),
             Equals("table.json: /rows/0: missing key \"bytes\""));
  CHECK_THAT(table_mistake(row({{"bytes", 0}, {"time_us", 8}})),
             Contains("/rows/0/bytes: 0 is out of range"));
  CHECK_THAT(table_mistake(row({{"bytes", 8}, {"time_us", 0}})),
             Equals("table.json: /rows/0/time_us: 0 makes 0 s, which is no time of a collective"));
  CHECK_THAT(table_mistake(row({{"bytes", 8}, {"time_us", -1}})),
             Equals("table.json: /rows/0/time_us: -1 is less than nothing"));
  CHECK_THAT(table_mistake(with(table, {{"gpus_per_node", 4}})),
             Equals("table.json: /gpus_per_node: 4 on each of 1 node are not 8 ranks"));
  CHECK_THAT(table_mistake(with(table, {{"healthy", "ill"}})),
             Contains("table.json: /healthy: unknown value \"ill\""));
  CHECK_THAT(table_mistake(Json::array()), Contains("expected an object, found an array"));
}

// Between 1, 2 and 4 the median is 2; the 90th percentile lies at 0.9 * 2 = 1.8, from 2 to 4.
TEST_CASE("quantiles are interpolated") {
  CHECK(quantile({4, 1, 2}, 0.5) == 2);
  CHECK(quantile({4, 1, 2}, 0.9) == Approx(3.6));
  CHECK(quantile({1, 2}, 0.5) == 1.5);
  CHECK(quantile({7}, 0.9) == 7);
}

// Of every table: errors are predicted over measured, the machine is the one that it names.
TEST_CASE("every measured table among the examples says what it teaches and is predicted") {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SHARDSIM_SOURCE_DIR "/examples/collectives")) {
    const std::string path = entry.path().string();
    INFO(path);
    CHECK(read_file(path).rfind("// ", 0) == 0);
    const CollectivePrediction prediction =
        predict_collective(read_collective({{"against", path}}, "test"));
    REQUIRE(prediction.errors);
    CHECK(prediction.errors->rows == prediction.points.size());
    for (const CollectivePoint& point : prediction.points) {
      CHECK(
          *point.relative_error() ==
          Approx((point.cost.total().count() - point.measured->count()) / point.measured->count()));
    }
    ++count;
  }
  CHECK(count > 0);
}

}  // namespace shardsim::collective_tables_test
