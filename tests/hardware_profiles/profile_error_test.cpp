// A profile file with one mistake: the exact message. Each case is a JSON patch of a shipped file.
#include <catch2/catch.hpp>

#include "hardware_profiles/profile_io.hpp"

#include "base/json.hpp"

using namespace shardsim;  // NOLINT(google-build-using-namespace)

namespace {

// The error after setting the member at `pointer` to `value`.
std::string error_with(const std::string& profile, const std::string& pointer, const Json& value) {
  Json document = profile_to_json(load_profile(profile, {}));
  document[Json::json_pointer(pointer)] = value;
  try {
    (void)read_profile(document, "my.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// The error after removing the member `key` of the object at `pointer`.
std::string error_without(const std::string& pointer, const std::string& key) {
  Json document = profile_to_json(load_profile("dgx-h100", {}));
  document.at(Json::json_pointer(pointer)).erase(key);
  try {
    (void)read_profile(document, "my.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

const std::string up = "/cluster/scale_up/bandwidth";

}  // namespace

TEST_CASE("a number without its source, date, kind or value") {
  CHECK(error_without(up, "source") ==
        "my.json: /cluster/scale_up/bandwidth: missing key \"source\"");
  CHECK(error_without(up, "date") == "my.json: /cluster/scale_up/bandwidth: missing key \"date\"");
  CHECK(error_without(up, "kind") == "my.json: /cluster/scale_up/bandwidth: missing key \"kind\"");
  CHECK(error_without(up, "value") ==
        "my.json: /cluster/scale_up/bandwidth: missing key \"value\"");
  CHECK(error_with("dgx-h100", up + "/source", "") ==
        "my.json: /cluster/scale_up/bandwidth/source: is empty");
}

TEST_CASE("a bare number has its unit") {
  CHECK(error_with("dgx-h100", up, "450 GB/s") == "no error");
  CHECK(error_with("dgx-h100", up, 450) ==
        "my.json: /cluster/scale_up/bandwidth: \"450\" has no unit, expected for example \"450 "
        "GB/s\"");
  CHECK(error_with("dgx-h100", "/cluster/devices_per_node", "eight") ==
        "my.json: /cluster/devices_per_node: expected an integer, found a string");
}

TEST_CASE("a network that reduces, wrongly") {
  const std::string reduction = "/cluster/scale_out/reduction";
  const Json efficiency = {
      {"value", 0.95}, {"kind", "measured"}, {"date", "2020-05"}, {"source", "a paper"}};
  CHECK(error_with("dgx-h100", reduction, Json::object()) ==
        "my.json: /cluster/scale_out/reduction: missing key \"efficiency\"");
  CHECK(error_with("dgx-h100", reduction, {{"efficiency", efficiency}, {"broadcast", true}}) ==
        "my.json: /cluster/scale_out/reduction: unknown key \"broadcast\"; known are efficiency, "
        "all_gather, reduce_scatter");
  Json too_much = efficiency;
  too_much["value"] = 2;
  CHECK(error_with("dgx-h100", reduction, {{"efficiency", too_much}}) ==
        "my.json: /cluster/scale_out/reduction/efficiency/value: 2 is not an efficiency, must be "
        "above 0 and at most 1");
  Json flag = efficiency;
  flag["value"] = "yes";
  CHECK(error_with("dgx-h100", reduction, {{"efficiency", efficiency}, {"all_gather", flag}}) ==
        "my.json: /cluster/scale_out/reduction/all_gather/value: expected true or false, found a "
        "string");
}

TEST_CASE("a date or kind that is none") {
  CHECK(error_with("dgx-h100", up + "/date", "2026") ==
        "my.json: /cluster/scale_up/bandwidth/date: \"2026\" is not a date, expected for example "
        "\"2026-08\"");
  CHECK(
      error_with("dgx-h100", up + "/date", "Aug 2026") ==
      "my.json: /cluster/scale_up/bandwidth/date: \"Aug 2026\" is not a date, expected for example "
      "\"2026-08\"");
  CHECK(error_with("dgx-h100", up + "/kind", "mesured") ==
        "my.json: /cluster/scale_up/bandwidth/kind: unknown value \"mesured\"; known are "
        "vendor, code, measured, derived, estimate, assumed, did you mean \"measured\"?");
}

TEST_CASE("a unit that is missing or wrong") {
  CHECK(error_with("dgx-h100", up + "/value", "450") ==
        "my.json: /cluster/scale_up/bandwidth/value: \"450\" has no unit, expected for example "
        "\"450 GB/s\"");
  CHECK(error_with("dgx-h100", up + "/value", 450) ==
        "my.json: /cluster/scale_up/bandwidth/value: \"450\" has no unit, expected for example "
        "\"450 GB/s\"");
  CHECK(error_with("dgx-h100", up + "/value", "450 GBps") ==
        "my.json: /cluster/scale_up/bandwidth/value: unknown unit \"GBps\" of a bandwidth, did you "
        "mean "
        "\"GB/s\"?");
  CHECK(error_with("dgx-h100", "/collective_launch/value", "8.4") ==
        "my.json: /collective_launch/value: \"8.4\" has no unit, expected for example \"2 us\"");
}

TEST_CASE("a number that cannot be") {
  CHECK(error_with("dgx-h100", up + "/value", "0 GB/s") ==
        "my.json: /cluster/scale_up/bandwidth/value: must be more than zero");
  CHECK(error_with("dgx-h100", "/device/memory_capacity/value", "0 GB") ==
        "my.json: /device/memory_capacity/value: must be more than zero");
  CHECK(error_with("dgx-h100", "/device/matmul_efficiency/value", 80.3) ==
        "my.json: /device/matmul_efficiency/value: 80.3 is not an efficiency, must be above 0 and "
        "at most 1");
  CHECK(error_with("dgx-h100", "/device/matmul_efficiency/value", 0) ==
        "my.json: /device/matmul_efficiency/value: 0 is not an efficiency, must be above 0 and at "
        "most 1");
  CHECK(error_with("dgx-h100", "/cluster/scale_out/nics_per_node/value", 3) ==
        "my.json: /cluster/scale_out/nics_per_node: 3 NICs cannot be shared out evenly among 8 "
        "devices");
  const Json hosts{
      {"value", 3}, {"kind", "vendor"}, {"date", "2026-11"}, {"source", "a data sheet"}};
  CHECK(error_with("dgx-h100", "/cluster/devices_per_host", hosts) ==
        "my.json: /cluster/devices_per_host: hosts of 3 do not make up a node of 8");
  CHECK(error_with("dgx-h100", "/cluster/scale_up/fabric/value", "nvlnk") ==
        "my.json: /cluster/scale_up/fabric/value: unknown value \"nvlnk\"; known are nvswitch, "
        "nvlink, "
        "cube_mesh, xgmi, pcie, did you mean \"nvlink\"?");
  CHECK(error_with("gb200-nvl72", "/cluster/scale_up/fabric/value", "cube_mesh") ==
        "my.json: /cluster/scale_up/fabric: a cube mesh joins 8 devices, and half of it 4, not 72");
  CHECK(error_with("dgx-h100", "/cluster/nccl/compute_capability/value", 90.25) ==
        "my.json: /cluster/nccl/compute_capability/value: 90.25 is not a compute capability, "
        "expected for example 9.0");
  CHECK(error_with("mi300x", "/cluster/rccl/architecture/value", "gfx940") ==
        "my.json: /cluster/rccl/architecture/value: unknown value \"gfx940\", did you mean "
        "\"gfx942\"?");
  const Json nccl = profile_to_json(load_profile("dgx-h100", {}))["cluster"]["nccl"];
  CHECK(error_with("mi300x", "/cluster/nccl", nccl) ==
        "my.json: /cluster/rccl: stands beside \"nccl\": one of the two libraries runs");
  CHECK(error_with("tpu-v5p", "/torus/dcn/bandwidth/value", "6.25") ==
        "my.json: /torus/dcn/bandwidth/value: \"6.25\" has no unit, expected for example \"450 "
        "GB/s\"");
  CHECK(error_with("dgx-h100", "/cluster/devices_per_node/value", 0) ==
        "my.json: /cluster/devices_per_node/value: 0 is out of range, must be from 1 to "
        "1099511627776");
}

TEST_CASE("unknown keys, names and schemas") {
  CHECK(error_with("dgx-h100", "/cluster/scale_up/bandwith", Json::object()) ==
        "my.json: /cluster/scale_up: unknown key \"bandwith\", did you mean \"bandwidth\"?");
  CHECK(error_with("dgx-h100", up + "/sources", "x") ==
        "my.json: /cluster/scale_up/bandwidth: unknown key \"sources\", did you mean \"source\"?");
  CHECK(error_with("dgx-h100", "/device/peak/bf61", Json::object()) ==
        "my.json: /device/peak: unknown dtype \"bf61\", expected for example \"bf16\"");
  Json twice = profile_to_json(load_profile("dgx-h100", {})).at("device").at("peak").at("bf16");
  CHECK(error_with("dgx-h100", "/device/peak/bfloat16", twice) ==
        "my.json: /device/peak: dtype bf16 is given twice");
  CHECK(error_with("dgx-h100", "/device/peak", Json::object()) ==
        "my.json: /device/peak: is empty, expected at least one dtype");
  CHECK(error_with("dgx-h100", "/schema", "shardsim/profile/2") ==
        "my.json: /schema: unknown value \"shardsim/profile/2\", did you mean "
        "\"shardsim/profile/1\"?");
}

TEST_CASE("no network, or two") {
  const std::string message =
      "my.json: expected exactly one of \"cluster\", \"torus\" and \"graph\"";
  CHECK(error_without("", "cluster") == message);
  CHECK(error_with("dgx-h100", "/torus", Json::object()) == message);
}

TEST_CASE("slices and wraparound that make no sense") {
  const std::string slices = "/torus/slices/value";
  CHECK(error_with("tpu-v5p", slices + "/listed/1", "2x2") ==
        "my.json: /torus/slices/value/listed/1: has another number of dimensions than the shapes "
        "before it");
  CHECK(error_with("tpu-v5p", slices + "/listed/0", "2by2") ==
        "my.json: /torus/slices/value/listed/0: \"2by2\" is not a shape, expected for example "
        "\"4x4x4\"");
  CHECK(error_with("tpu-v5p", slices + "/listed", Json::array()) ==
        "my.json: /torus/slices/value/listed: is empty, expected at least one shape");
  CHECK(error_with("tpu-v5p", slices + "/listed", Json{"2x2x2x2"}) ==
        "my.json: /torus/slices/value/listed: a torus has at most 3 dimensions");
  CHECK(error_with("tpu-v5p", slices + "/largest", "16x16") ==
        "my.json: /torus/slices/value/largest: has another number of dimensions than \"listed\"");
  CHECK(error_with("tpu-v5p", slices + "/largest", "4000x4000x4000") ==
        "my.json: /torus/slices/value/largest: allows more than a million shapes");
  // Multiples of 4: 100 * 100 * 100 are a million, 101 * 9901 * 1 one more.
  CHECK(error_with("tpu-v5p", slices + "/largest", "400x400x400") == "no error");
  CHECK(error_with("tpu-v5p", slices + "/largest", "400x40000x4") == "no error");
  CHECK(error_with("tpu-v5p", slices + "/largest", "404x39604x4") ==
        "my.json: /torus/slices/value/largest: allows more than a million shapes");
  CHECK(error_with("tpu-v5e", slices + "/largest", "16x16") ==
        "my.json: /torus/slices/value: \"largest\" is given without \"multiples_of\"");
  CHECK(error_with("tpu-v5e", slices + "/multiples_of", 4) ==
        "my.json: /torus/slices/value: missing key \"largest\"");
  CHECK(error_with("tpu-v5e", "/torus/wraparound/value", "axis_of_8") ==
        "my.json: /torus/wraparound/value: unknown value \"axis_of_8\"; known are axis_of_16, "
        "axis_of_32, multiples_of_4, did you mean \"axis_of_16\"?");
}
