#include "checks/causes.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "tests/checks/fixture.hpp"

namespace shardsim {
namespace {

using Catch::Contains;

// By suspicion: the experiment, its model, the machine's profile, its calibration, shardsim.
TEST_CASE("what changed is told in the order of suspicion") {
  const Recorded before = fixture::recorded_before();
  Recorded now = before;
  CHECK_THAT(changed_inputs(before, now), Contains("shardsim itself changed, though its version"));
  now.made_from.shardsim = "0.2.0";
  CHECK(changed_inputs(before, now) == "shardsim itself changed: 0.1.0 -> 0.2.0");
  now.made_from.calibration = "c2";
  now.made_from.machine = "p2";
  CHECK(changed_inputs(before, now) ==
        "the machine's profile changed (dgx-h100); the calibration of the machine changed "
        "(dgx-h100); shardsim itself changed: 0.1.0 -> 0.2.0");
  now = before;
  now.made_from.model = "m2";
  CHECK(changed_inputs(before, now) == "the model's file changed (toy)");
  now.made_from.experiment = "e2";
  (*now.settings)["workload"]["batch"] = 16;
  (*now.settings)["strategy"]["reshard_after_forward"] = true;
  CHECK(changed_inputs(before, now) ==
        "the experiment changed: strategy.reshard_after_forward false -> true, workload.batch 8 "
        "-> 16; the model's file changed (toy)");
}

TEST_CASE("another machine by name is told once, with the experiment") {
  const Recorded before = fixture::recorded_before();
  Recorded now = before;
  now.made_from.experiment = "e2";
  now.made_from.machine = "p2";
  now.made_from.calibration = "c2";
  (*now.settings)["machine"] = "dgx-a100";
  CHECK(changed_inputs(before, now) == "the experiment changed: machine dgx-h100 -> dgx-a100");
}

TEST_CASE("the collective that is new is named with its reason and remedy") {
  const Recorded before = fixture::recorded_before();
  const Measured now = fixture::measured_worse();
  CHECK(grown_collectives(&before, now.explanation, "") ==
        std::vector<std::string>{
            "all-gather over fsdp, 1.0 GiB bf16, 32 times, is new: model.layers.{}, backward, 32 "
            "layers; why: parameters are stored over fsdp; to avoid: \"reshard_after_forward\": "
            "false"});
  CHECK(grown_collectives(&before, now.explanation, "reduce-scatter").empty());
}

TEST_CASE("a collective that runs more often, or is larger, is told with what it was") {
  const Recorded before = fixture::recorded_before();
  Explanation now = fixture::measured_before().explanation;
  now.collectives[0].count = 40;
  CHECK_THAT(grown_collectives(&before, now, "all-gather over fsdp").at(0),
             Contains("40 times where it was 32 times"));
  now.collectives[0].count = 32;
  now.collectives[0].payload = Bytes(2 * GiB);
  CHECK_THAT(grown_collectives(&before, now, "").at(0),
             Contains("2.0 GiB bf16, 32 times, was 1.0 GiB bf16, 32 times"));
}

// Another name of a layer, or fewer of them in a row: nothing that a device sends has changed.
TEST_CASE("a collective in another place is not a new one") {
  const Recorded before = fixture::recorded_before();
  Explanation now = fixture::measured_before().explanation;
  now.collectives[0].where = {"decoder.{}, forward, 32 layers"};
  CHECK(grown_collectives(&before, now, "").empty());
}

TEST_CASE("categories and buffers that grew, parts of the step, shardings") {
  const Recorded before = fixture::recorded_before();
  Recorded now = fixture::measured_worse().recorded;
  CHECK(grown_memory(&before, now) ==
        std::vector<std::string>{"what grew: activations 4.5 GiB (+512.0 MiB)",
                                 "buffers: model.layers.{}.mlp +512.0 MiB"});
  // 0.25 s - 0.15 s are two thirds of 0.15 s.
  CHECK(grown_times(before, now) == "exposed communication +100.00 ms (+66.7 %)");
  CHECK(changed_shardings(before, now).empty());
  now.shardings["lm_head.weight"] = "P(None, fsdp)";
  CHECK(changed_shardings(before, now) ==
        std::vector<std::string>{"sharding of lm_head.weight: P(fsdp, None) -> P(None, fsdp)"});
}

}  // namespace
}  // namespace shardsim
