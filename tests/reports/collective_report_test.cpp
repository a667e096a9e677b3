// A collective in every format. The machine has round numbers, so that the figures can be worked
// out: a node of 4, 1 GB/s each way, a step of 1 ms, a launch of 1 ms.
//
//   all-gather of 4 MB over 4: launch 1 ms, 3 steps 3 ms, 3 MB at 1 GB/s 3 ms: 7 ms
//   algorithm bandwidth 4 MB / 7 ms = 571.43 MB/s; bus bandwidth 3/4 of it = 428.57 MB/s
#include "reports/collective/collective_report.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"

namespace shardsim::collective_report_test {
namespace {

using Catch::Contains;

constexpr const char* hostile = "</script><script>alert(1)</script>|<b>,\"";

CollectivePrediction prediction() {
  CollectivePrediction made;
  made.experiment.machine = "round";
  made.experiment.kind = CollectiveKind::all_gather;
  made.experiment.devices = 4;
  made.machine.profile.name = "round";
  made.machine.profile.device.name = "device";
  made.machine.devices = 4;
  CollectivePoint point;
  point.bytes = Bytes(4'000'000);
  point.cost.algorithm = "ring, \"in\" the node";
  point.cost.launch = Seconds(1e-3);
  point.cost.latency = point.cost.transfer = Seconds(3e-3);
  point.cost.links = {{LinkLevel::scale_up}};
  made.points = {point};
  return made;
}

// Measured 3.5 ms: predicted twice that, an error of 1.
CollectivePrediction beside_measured() {
  CollectivePrediction made = prediction();
  CollectiveMeasurement measured;
  measured.file = "table.json";
  measured.id = "a table";
  measured.source = "somebody";
  measured.rows = {{Bytes(4'000'000), Seconds(3.5e-3)}, {Bytes(8), std::nullopt}};
  made.experiment.measured = measured;
  made.points[0].measured = Seconds(3.5e-3);
  made.points.push_back(made.points[0]);
  made.points[1].bytes = Bytes(8);
  made.points[1].measured = std::nullopt;
  made.errors = ErrorSummary{1, 1, 1};
  made.notes = {"a note"};
  return made;
}

Json json_of(const CollectivePrediction& made) {
  return parse_json(report_collective(made, Format::json), "json");
}

TEST_CASE("the JSON of a collective") {
  const Json json = json_of(prediction());
  CHECK(json["schema"] == "shardsim/collective/1");
  CHECK(json["machine"] == "round");
  CHECK(json["kind"] == "all-gather");
  CHECK(json["devices"] == 4);
  CHECK(json["nodes"] == 1);
  const Json& row = json["rows"].at(0);
  CHECK(row["bytes"] == 4'000'000);
  CHECK(row["time_s"].get<double>() == Approx(7e-3));
  CHECK(row["algbw_Bps"].get<double>() == Approx(4e9 / 7));
  CHECK(row["busbw_Bps"].get<double>() == Approx(3e9 / 7));
  CHECK(row["launch_s"] == 1e-3);
  CHECK(row["algorithm"] == "ring, \"in\" the node");
  for (const char* key : {"measured_s", "relative_error"}) CHECK_FALSE(row.contains(key));
  CHECK_FALSE(json.contains("against"));
  CHECK_FALSE(json.contains("errors"));
}

TEST_CASE("the JSON of a collective beside measurements") {
  const Json json = json_of(beside_measured());
  CHECK(json["rows"][0]["measured_s"] == 3.5e-3);
  CHECK(json["rows"][0]["relative_error"].get<double>() == Approx(1));
  CHECK(json["rows"][1]["measured_s"].is_null());
  CHECK(json["rows"][1]["relative_error"].is_null());
  CHECK(json["against"]["id"] == "a table");
  CHECK(json["against"]["healthy"] == true);
  CHECK(json["errors"]["rows"] == 1);
  CHECK(json["errors"]["median_absolute_relative_error"] == 1);
  CHECK(json["notes"] == Json{"a note"});
  CollectivePrediction none = beside_measured();
  none.errors = std::nullopt;
  CHECK(json_of(none)["errors"].is_null());
}

TEST_CASE("text and Markdown have the columns and units of nccl-tests") {
  const std::string text = report_collective(beside_measured(), Format::text, unlimited_text_width);
  CHECK_THAT(text, Contains("all-gather over 4 devices on round (1 node, device)\n"
                            "beside a table (somebody)\n"));
  CHECK_THAT(text, Contains("size (B)  time (us)  measured (us)     error  algbw (GB/s)  busbw"));
  CHECK_THAT(text, Contains("4000000    7000.00        3500.00  +100.0 %          0.57"));
  CHECK_THAT(text,
             Contains("absolute error over 1 row: median 100.0 %, 90th percentile 100.0 %\n"));
  CHECK_THAT(text, Contains("Notes\n  - a note\n"));
  CHECK_THAT(report_collective(prediction(), Format::text), !Contains("measured"));
  CHECK_THAT(report_collective(beside_measured(), Format::markdown),
             Contains("| 4000000 | 7000.00 | 3500.00 | +100.0 % |"));
}

TEST_CASE("NCCL's protocol and estimate stand beside the prediction where it runs") {
  CollectivePrediction made = prediction();
  CHECK_THAT(report_collective(made, Format::text), !Contains("NCCL"));
  CHECK(json_of(made)["rows"][0]["protocol"].is_null());
  made.points[0].cost.algorithm = "NVLS";
  made.points[0].cost.protocol = "Simple";
  made.points[0].cost.nccl_estimate = Seconds(6e-3);
  made.points[0].cost.factor = 1.5;
  CHECK_THAT(report_collective(made, Format::csv), Contains(",NVLS,Simple,0.006,1.5\n"));
  CHECK_THAT(report_collective(made, Format::text, unlimited_text_width),
             Contains("calibrated by"));
  const Json row = json_of(made)["rows"][0];
  CHECK(row["protocol"] == "Simple");
  CHECK(row["nccl_estimate_s"] == 6e-3);
  CHECK(row["calibration_factor"] == 1.5);
}

TEST_CASE("what the TPU compiler chooses stands beside the prediction where it is known") {
  CollectivePrediction made = prediction();
  tpu::Choice choice;
  choice.instruction = tpu::Instruction::all_reduce;
  choice.emitter = tpu::Emitter::rotated_pincer;
  choice.strategy = tpu::Strategy::nd;
  choice.colors = 3;
  choice.phases = 3;
  choice.scheduler_latency = Seconds(6e-3);
  made.points[0].tpu = choice;
  CHECK_THAT(report_collective(made, Format::csv),
             Contains(",as all-reduce: RotatedPincerEmitter StrategyND,0.006\n"));
  const Json json = json_of(made)["rows"][0]["tpu"];
  CHECK(json["instruction"] == "all-reduce");
  CHECK(json["colors"] == 3);
  CHECK(json["scheduler_s"] == 6e-3);
  made.experiment.model = collective_models::tpu_scheduler;
  CHECK(json_of(made)["model"] == "tpu-scheduler");
  CHECK_THAT(report_collective(made, Format::text), Contains(", tpu-scheduler ("));
}

TEST_CASE("CSV has every digit, and nothing where nothing was measured") {
  CHECK(report_collective(beside_measured(), Format::csv)
            .starts_with(
                "bytes,time_s,measured_s,relative_error,algbw_Bps,busbw_Bps,measured_busbw_Bps,"
                "launch_s,latency_s,transfer_s,algorithm\n4000000,0.007,0.0035,1,"));
  const std::string csv = report_collective(beside_measured(), Format::csv);
  CHECK_THAT(csv, Contains("\n8,0.007,,,"));
  CHECK_THAT(csv, Contains(",\"ring, \"\"in\"\" the node\"\n"));
}

TEST_CASE("links come with the bottleneck, as figures and as a heat map") {
  CollectivePrediction made = prediction();
  made.links = LinkView{Bytes(4'000'000),
                        Seconds(0.004),
                        "direct",
                        {{"device 1", "leaf 0", Bytes(3'000'000), 0.75},
                         {"device 0", "leaf 0", Bytes(3'000'000), 0.75},
                         {"leaf 0", hostile, Bytes(0), 0}}};
  const std::string text = report_collective(made, Format::text);
  CHECK_THAT(text, Contains("bottleneck: device 1 -> leaf 0, 75.0 % busy, as are all 2 "
                            "device # -> leaf #; of 3 "
                            "links 1 carry nothing"));
  CollectivePrediction all_busy = made;
  all_busy.links->links.pop_back();
  CHECK_THAT(report_collective(all_busy, Format::text),
             Contains("75.0 % busy") && !Contains("carry nothing"));
  const Json view = json_of(made)["link_view"];
  CHECK(view["bytes"] == 4'000'000);
  CHECK(view["time_s"] == 0.004);
  CHECK(view["algorithm"] == "direct");
  CHECK(
      view["links"][0] ==
      Json({{"from", "device 1"}, {"to", "leaf 0"}, {"bytes", 3'000'000}, {"utilisation", 0.75}}));
  const std::string page = report_collective(made, Format::html);
  CHECK_THAT(page, Contains("title=\"device 1 -&gt; leaf 0: "));
  CHECK_THAT(page, !Contains("<script>alert"));
  CHECK_FALSE(json_of(prediction()).contains("link_view"));
}

// Four bins of 1 ms: two links at all of their bandwidth in the second and third, one at half of
// it in the first.
CollectivePrediction over_time() {
  CollectivePrediction made = prediction();
  made.links = LinkView{Bytes(4'000'000),
                        Seconds(0.004),
                        "direct",
                        {{"device 1", "leaf 0", Bytes(2'000'000), 0.5, 0},
                         {"device 0", "leaf 0", Bytes(2'000'000), 0.5, 0},
                         {"leaf 0", hostile, Bytes(500'000), 0.125, 1}},
                        Seconds(0.001),
                        {{{0, 1, 1, 0}, Seconds(0.002), Seconds(0.001), Seconds(0.003), 2},
                         {{0.5, 0, 0, 0}, Seconds(0), Seconds(0), Seconds(0), 1}}};
  return made;
}

TEST_CASE("links over time: when the bottleneck is full, in tenths, as figures") {
  CollectivePrediction made = over_time();
  const std::string text = report_collective(made, Format::text);
  CHECK_THAT(text, Contains("  over time (tenths, # full)\n"));
  CHECK_THAT(text, Contains("50.0 %  .##.\n"));
  CHECK_THAT(text, Contains("12.5 %  5...\n"));
  CHECK_THAT(text,
             Contains("\ndevice 1 -> leaf 0 is at its full bandwidth from 1.00 ms to 3.00 ms\n"));
  CHECK_THAT(report_collective(made, Format::markdown), !Contains("tenths"));
  const Json view = json_of(made)["link_view"];
  CHECK(view["links"][2]["history"] == 1);
  CHECK(view["bins"]["count"] == 4);
  CHECK(view["bins"]["start_s"] == 0);
  CHECK(view["bins"]["duration_s"] == 0.001);
  CHECK(view["bins"]["histories"] == Json::array({{{"links", 2},
                                                   {"full_s", 0.002},
                                                   {"first_full_s", 0.001},
                                                   {"last_full_s", 0.003},
                                                   {"utilisation", {0.0, 1.0, 1.0, 0.0}}},
                                                  {{"links", 1},
                                                   {"full_s", 0.0},
                                                   {"first_full_s", nullptr},
                                                   {"last_full_s", nullptr},
                                                   {"utilisation", {0.5, 0.0, 0.0, 0.0}}}}));
  made.links->histories[0].full = Seconds(0.0015);
  CHECK_THAT(report_collective(made, Format::text),
             Contains("is at its full bandwidth for 1.50 ms between 1.00 ms and 3.00 ms\n"));
  made.links->histories[0].full = Seconds(0);
  CHECK_THAT(report_collective(made, Format::text), Contains("is never at its full bandwidth\n"));
}

TEST_CASE("links over time are a row of cells for each history") {
  const std::string page = report_collective(over_time(), Format::html);
  CHECK_THAT(page, Contains("device 1 -&gt; leaf 0<small>and 1 more</small>"));
  CHECK_THAT(page, Contains("flex-grow: 2; background: rgba(224, 83, 61, 1.000)\" "
                            "title=\"1.00 ms to 3.00 ms: 100.0 %\""));
  CHECK_THAT(page, Contains("2.00 ms<small>1.00 ms to 3.00 ms</small>"));
  CHECK_THAT(page, Contains("<span style=\"left: 25.000%\">1 ms</span>"));
  CHECK_THAT(page, !Contains("<script>alert"));
  // Of more rows than there are shown the rest is counted.
  CollectivePrediction many = over_time();
  for (std::size_t i = 2; i < 40; ++i) {
    many.links->histories.push_back(many.links->histories[1]);
    many.links->links.push_back({"leaf 1", "leaf 2", Bytes(1), 0, i});
  }
  const std::string cut = report_collective(many, Format::html);
  CHECK_THAT(cut, Contains("and 8 more links, which are no busier"));
}

TEST_CASE("the page draws what the rows say, and text stays text") {
  CollectivePrediction made = beside_measured();
  made.experiment.measured->id = hostile;
  made.machine.profile.name = hostile;
  made.notes = {hostile};
  made.points[0].cost.algorithm = hostile;
  const std::string page = report_collective(made, Format::html);
  CHECK_THAT(page, !Contains("<script>alert"));
  CHECK_THAT(page, !Contains(" src="));
  CHECK_THAT(page, Contains("\"measured_time_s\":0.0035"));
  CHECK_THAT(page, Contains("data-value=\"4000000\""));
  CHECK_THAT(page, Contains("<canvas id=\"bandwidth-over-size\""));
}

TEST_CASE("the same prediction gives the same bytes in every format") {
  for (const Format format :
       {Format::text, Format::json, Format::csv, Format::html, Format::markdown}) {
    CHECK(report_collective(beside_measured(), format) ==
          report_collective(beside_measured(), format));
  }
}

}  // namespace
}  // namespace shardsim::collective_report_test
