#include "tests/checks/fixture.hpp"

#include "base/json.hpp"

namespace shardsim::fixture {
namespace {

ExplainedCollective gather(const std::string& phase) {
  ExplainedCollective row;
  row.kind = CollectiveKind::all_gather;
  row.over = "fsdp";
  row.group_size = 4;
  row.payload = Bytes(GiB);
  row.wire_bytes = Bytes(GiB * 3 / 4);
  row.count = 32;
  row.where = {"model.layers.{}, " + phase + ", 32 layers"};
  row.reason = "parameters are stored over fsdp";
  row.remedy = "\"reshard_after_forward\": false";
  return row;
}

ExplainedCollective scatter() {
  ExplainedCollective row = gather("backward");
  row.kind = CollectiveKind::reduce_scatter;
  row.reason = "gradients are reduced over fsdp";
  row.remedy = "";
  return row;
}

Recorded common() {
  Recorded recorded;
  recorded.file = "toy.json";
  recorded.name = "fsdp";
  recorded.made_from = {
      .experiment = "e1", .model = "m1", .machine = "p1", .calibration = "c1", .shardsim = "0.1.0"};
  *recorded.settings = {{"workload", {{"model", "toy"}, {"batch", 8}}},
                        {"strategy", {{"name", "fsdp"}, {"reshard_after_forward", false}}},
                        {"machine", "dgx-h100"}};
  recorded.values = {{"step_time_s", 1.0},
                     {"compute_time_s", 0.8},
                     {"exposed_communication_s", 0.15},
                     {"idle_time_s", 0.05},
                     {"fits", 1},
                     {"capacity_bytes", 80.0 * GiB},
                     {"peak_bytes", 10.0 * GiB},
                     {"replicated_parameters", 65}};
  recorded.by_category = {{"parameters", 6 * GiB}, {"activations", 4 * GiB}};
  recorded.communication = {{"all-gather over fsdp", {32, Bytes(24 * GiB)}},
                            {"reduce-scatter over fsdp", {32, Bytes(24 * GiB)}}};
  recorded.collectives = {recorded_of(gather("forward")), recorded_of(scatter())};
  recorded.peak_buffers = {{"model.layers.{}.mlp", 3 * GiB}};
  recorded.shardings = {{"lm_head.weight", "P(fsdp, None)"}, {"norm.weight", "P(None)"}};
  return recorded;
}

}  // namespace

Recorded recorded_before() { return common(); }

Measured measured_before() {
  Measured measured;
  measured.recorded = common();
  measured.explanation.collectives = {gather("forward"), scatter()};
  return measured;
}

Measured measured_worse() {
  Measured measured;
  Recorded& recorded = measured.recorded = common();
  recorded.made_from.experiment = "e2";
  (*recorded.settings)["strategy"]["reshard_after_forward"] = true;
  recorded.values["step_time_s"] = 1.1;
  recorded.values["exposed_communication_s"] = 0.25;
  recorded.values["peak_bytes"] = 10.5 * GiB;
  recorded.by_category["activations"] = 4 * GiB + GiB / 2;
  recorded.communication["all-gather over fsdp"] = {64, Bytes(48 * GiB)};
  recorded.collectives.push_back(recorded_of(gather("backward")));
  recorded.peak_buffers["model.layers.{}.mlp"] = 3 * GiB + GiB / 2;
  measured.explanation.collectives = {gather("forward"), gather("backward"), scatter()};
  return measured;
}

CheckedExperiment check_against_before(const Measured& measured, const std::string& limits) {
  const Json document = parse_json(limits, "limits.json");
  const Recorded before = recorded_before();
  return check_experiment("fsdp", &before, measured,
                          read_limits(JsonReader(document, {"limits.json", ""})), {});
}

}  // namespace shardsim::fixture
