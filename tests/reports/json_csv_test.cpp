// JSON: the keys are those of docs of "shardsim/result/1" in report.hpp and json_report.hpp. CSV:
// RFC 4180.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/version.hpp"
#include "fixture.hpp"

namespace shardsim {
namespace {

using Catch::Contains;

std::set<std::string> keys(const Json& object) {
  std::set<std::string> names;
  for (const auto& [key, value] : object.items()) names.insert(key);
  return names;
}

Json run_json(const Prediction& prediction) {
  return parse_json(report_run(prediction, Format::json), "run.json");
}

TEST_CASE("A result has exactly the keys of its schema") {
  const Json json = run_json(fixture::fsdp());
  CHECK(keys(json) == std::set<std::string>{"schema",
                                            "shardsim",
                                            "name",
                                            "experiment",
                                            "step_time_s",
                                            "known_error",
                                            "compute_time_s",
                                            "contention_time_s",
                                            "communication_time_s",
                                            "exposed_communication_s",
                                            "idle_time_s",
                                            "breakdown",
                                            "tokens_per_s_per_device",
                                            "mfu",
                                            "mfu_full_attention",
                                            "memory",
                                            "balance",
                                            "communication",
                                            "padding",
                                            "peak_buffers",
                                            "warnings",
                                            "notes"});
  CHECK(json["schema"] == "shardsim/result/1");
  CHECK(json["shardsim"] == program_version);
  CHECK(json["experiment"]["machine"] == "toy-machine");
  Prediction program = fixture::fsdp();
  program.experiment.subject = ProgramStep{.path = "step.mlir"};
  CHECK_FALSE(run_json(program).contains("known_error"));
  CHECK(keys(json["memory"]) ==
        std::set<std::string>{"capacity_bytes", "peak_bytes", "allocated_bytes", "reserved_bytes",
                              "process_bytes", "fits", "not_counted_bytes", "by_category",
                              "per_device_class", "peak_at_s", "peak_task"});
  CHECK(keys(json["memory"]["by_category"]) ==
        std::set<std::string>{"parameters", "gradients", "optimizer", "activations", "temporaries",
                              "communication", "gathered_parameters", "inputs", "cache"});
  CHECK(keys(json["balance"]) == std::set<std::string>{"memory", "compute", "links"});
  CHECK(keys(json["communication"][0]) == std::set<std::string>{"kind", "axes", "group_size",
                                                                "count", "payload_bytes",
                                                                "wire_bytes_per_device", "time_s",
                                                                "exposed_s", "algorithms", "what"});
}

TEST_CASE("A result has links over time where they were kept, in 60 bins") {
  Prediction prediction = fixture::fsdp();
  CHECK_FALSE(run_json(prediction).contains("links_over_time"));
  // 600 bins, of which ten make one: all of NVLink in the first, a quarter of it in the second.
  std::vector<double> taken(600, 0);
  std::fill_n(taken.begin(), 10, 1.0);
  std::fill_n(taken.begin() + 10, 5, 0.5);
  prediction.result.programs[0].links = {{LinkLevel::scale_up, LinkDirection::both, taken}};
  const Json links = run_json(prediction)["links_over_time"];
  CHECK(links["count"] == 60);
  CHECK(links["start_s"] == 0);
  CHECK(links["duration_s"] == 1.25 / 60);
  const Json& level = links["per_device_class"][0]["levels"][0];
  CHECK(level["level"] == "scale-up");
  CHECK(level["direction"] == "both");
  REQUIRE(level["utilisation"].size() == 60);
  CHECK(level["utilisation"][0] == 1);
  CHECK(level["utilisation"][1] == 0.25);
  CHECK(level["utilisation"][2] == 0);
  // What does not divide into 60 stays as it is.
  prediction.result.programs[0].links = {{LinkLevel::scale_up, LinkDirection::both, {0.5, 1}}};
  CHECK(run_json(prediction)["links_over_time"]["count"] == 2);
  CHECK_FALSE(level.contains("link"));
  prediction.result.programs[0].links = {
      {LinkLevel::network, LinkDirection::out, {0.5, 1}, "leaf 0 -> spine 0", 16}};
  const Json one = run_json(prediction)["links_over_time"]["per_device_class"][0]["levels"][0];
  CHECK(one["level"] == "network");
  CHECK(one["link"] == "leaf 0 -> spine 0");
  CHECK(one["links"] == 16);
}

TEST_CASE("A result holds the figures as plain numbers") {
  Prediction prediction = fixture::fsdp();
  prediction.result.programs[0].compute_time = SimTime(700'000'000'000);  // picoseconds
  prediction.result.programs[0].contention_time = SimTime(100'000'000'000);
  const Json json = run_json(prediction);
  CHECK(json["step_time_s"] == 1.25);
  CHECK(json["compute_time_s"] == 0.7);
  CHECK(json["contention_time_s"] == 0.1);
  CHECK(json["communication_time_s"] == 0.75);
  CHECK(json["exposed_communication_s"] == 0.4);
  CHECK(json["breakdown"]["compute_backward_s"] == 0.4);
  CHECK(json["breakdown"]["exposed_data_s"] == 0.4);
  CHECK(json["breakdown"].size() == 15);
  CHECK(json["tokens_per_s_per_device"] == 800);
  CHECK(json["memory"]["peak_bytes"] == 7 * GiB);
  CHECK(json["memory"]["fits"] == true);
  CHECK(json["memory"]["by_category"]["optimizer"] == 3 * GiB);
  CHECK(json["memory"]["per_device_class"][0]["peak_bytes"] == 7 * GiB);
  CHECK(json["communication"][1]["kind"] == "reduce-scatter");
  CHECK(json["communication"][1]["axes"] == Json::array({"data"}));
  CHECK(json["padding"][0]["padded_size"] == 6);
  CHECK(json["peak_buffers"][0]["category"] == "optimizer");
}

TEST_CASE("What would fit is suggested, in every format that people read and in JSON") {
  Prediction prediction = fixture::dp();
  CHECK_FALSE(run_json(prediction).contains("suggestions"));
  prediction.suggestions = {
      {.settings = {{"strategy.name", "fsdp"}, {"workload.microbatches", "2"}},
       .step = fixture::ms(1250),
       .peak = fixture::gib(7),
       .fits = true}};
  CHECK(run_json(prediction)["suggestions"] ==
        Json::array({{{"set", {{"strategy.name", "fsdp"}, {"workload.microbatches", "2"}}},
                      {"step_time_s", 1.25},
                      {"peak_bytes", 7 * GiB},
                      {"fits", true},
                      {"fits_narrowly", false}}}));
  for (const Format format : {Format::text, Format::markdown, Format::html}) {
    for (const std::string& report :
         {report_run(prediction, format), report_comparison({prediction}, format)}) {
      CHECK_THAT(report, Contains("--set strategy.name=fsdp --set workload.microbatches=2"));
      CHECK_THAT(report, Contains("7.0 GiB"));
    }
  }
}

TEST_CASE("What has no meaning is left out of the JSON and empty in the CSV") {
  Prediction images = fixture::dp();
  images.result.tokens_per_second_per_device = 0;
  images.result.mfu = images.result.mfu_full_attention = 0;
  const Json json = run_json(images);
  CHECK_FALSE(json.contains("tokens_per_s_per_device"));
  CHECK_FALSE(json.contains("mfu"));
  CHECK_FALSE(json.contains("mfu_full_attention"));
  CHECK_THAT(report_run(images, Format::csv), Contains(",0.05,,,,"));  // after idle_time_s
}

TEST_CASE("A comparison holds its results, the best and why") {
  const Json json = parse_json(report_comparison({fixture::dp(), fixture::fsdp()}, Format::json),
                               "comparison.json");
  CHECK(keys(json) ==
        std::set<std::string>{"schema", "shardsim", "results", "best", "ties", "why"});
  CHECK(json["schema"] == "shardsim/comparison/1");
  CHECK(json["results"].size() == 2);
  CHECK(json["results"][0]["name"] == "dp");
  CHECK(json["best"] == "fsdp");
  CHECK(json["ties"] == Json::array());
  Prediction twin = fixture::fsdp();
  twin.experiment.name = "twin";
  CHECK(parse_json(report_comparison({fixture::fsdp(), twin}, Format::json), "x")["ties"] ==
        Json{"twin"});
  const Json none = parse_json(report_comparison({fixture::dp()}, Format::json), "none.json");
  CHECK(none["best"].is_null());
}

TEST_CASE("Names that are not UTF-8 do not stop the report") {
  Prediction prediction = fixture::dp();
  prediction.experiment.name = "\xff";
  CHECK(run_json(prediction)["name"] == "\xEF\xBF\xBD");
}

TEST_CASE("CSV has stable columns, one row per configuration, and ends lines in CR LF") {
  const std::string csv = report_comparison({fixture::dp(), fixture::fsdp()}, Format::csv);
  const std::string header =
      "name,model,strategy,mesh,machine,devices,step_time_s,compute_time_s,contention_time_s,"
      "communication_time_s,exposed_communication_s,idle_time_s,tokens_per_s_per_device,mfu,"
      "mfu_full_attention,wire_bytes_per_device,"
      "peak_bytes,reserved_bytes,process_bytes,capacity_bytes,fits,parameters_bytes,gradients_"
      "bytes,optimizer_bytes,"
      "activations_bytes,temporaries_bytes,communication_bytes,gathered_parameters_bytes,"
      "inputs_bytes,cache_bytes,compute_forward_s,compute_recompute_s,compute_backward_s,"
      "compute_optimizer_s,exposed_tensor_s,exposed_data_s,exposed_context_s,exposed_expert_s,"
      "exposed_pipeline_s,exposed_scalars_s,exposed_other_s,exposed_host_copies_s,idle_host_s,"
      "idle_bubble_s,padding_bytes_per_device,memory_balance,compute_balance,link_"
      "balance\r\n";
  // GiB = 1073741824.
  const std::string dp =
      "dp,toy,dp,data=2,toy-machine,2,1,0.8,0,0.5,0.15,0.05,1000,0.5,0.75,2147483648,12884901888,"
      "0,12884901888,10737418240,false,2147483648,1073741824,6442450944,3221225472,0,0,0,0,0,"
      "0.4,0,0.4,0,0,0.15,0,0,0,0,0,0,0.05,0,0,1,1,1\r\n";
  const std::string fsdp =
      "fsdp,toy,fsdp,data=2,toy-machine,2,1.25,0.8,0,0.75,0.4,0.05,800,0.4,0.6,3221225472,"
      "7516192768,0,7516192768,10737418240,true,1073741824,0,3221225472,3221225472,0,0,0,0,0,"
      "0.4,0,0.4,0,0,0.4,0,0,0,0,0,0,0.05,0,1024,1,1,1\r\n";
  CHECK(csv == header + dp + fsdp);
  CHECK(report_run(fixture::dp(), Format::csv) == header + dp);
}

TEST_CASE("CSV quotes what RFC 4180 wants quoted") {
  Prediction prediction = fixture::dp();
  prediction.experiment.name = "a \"b\", c";
  prediction.step.plan.mesh = Mesh({{"data", 1}, {"fsdp", 2}});
  CHECK_THAT(report_run(prediction, Format::csv),
             Contains("\r\n\"a \"\"b\"\", c\",toy,dp,\"data=1,fsdp=2\",toy-machine,"));
}

}  // namespace
}  // namespace shardsim
