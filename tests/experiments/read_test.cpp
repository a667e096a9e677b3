#include <algorithm>
#include <catch2/catch.hpp>
#include <tuple>

#include "base/json.hpp"
#include "experiments/experiment.hpp"
#include "experiments/read_step.hpp"
#include "plan/read_mesh.hpp"

namespace shardsim {
namespace {

const char* const minimal = R"({"workload": {"model": "llama-3.1-8b", "batch": 8, "sequence": 64},
                                "mesh": {"data": 2, "fsdp": 4}, "strategy": "fsdp"})";

std::vector<Experiment> read(const Json& json) { return read_experiments(json, "dir/a.json"); }

const ModelStep& model_of(const Experiment& experiment) {
  return std::get<ModelStep>(experiment.subject);
}

// The minimal experiment with one value changed, read.
std::vector<Experiment> with(const char* path, const char* value) {
  Json json = Json::parse(minimal);
  apply_override(json, path, value);
  return read(json);
}

Mesh mesh(const char* value) { return model_of(with("mesh", value).at(0)).partitioning.mesh; }

// What axes are for (strategies/layout/axis_roles.hpp) is said at the mesh, or by the experiment.
TEST_CASE("an axis of a step has a role that its strategy serves") {
  CHECK_THROWS_WITH(with("mesh", "ep=2,dp=4"),
                    Catch::StartsWith("dir/a.json: /mesh: axis \"ep\" is for experts"));
  CHECK_THROWS_WITH(with("mesh", R"({"x": 2, "dp": 4})"),
                    Catch::StartsWith("dir/a.json: /mesh/x: axis \"x\" has no role by its name"));
  Json json = Json::parse(minimal);
  json["mesh"] = {{"x", 2}, {"dp", 4}};
  json["roles"] = {{"x", "shard"}};
  const Experiment experiment = read(json).at(0);
  CHECK(model_of(experiment).partitioning.strategy.shard_axis == "x");
  CHECK(*read(*experiment.resolved).at(0).resolved == *experiment.resolved);
  CHECK((*experiment.resolved)["roles"] == Json{{"x", "shard"}});
}

TEST_CASE("axes of one device change nothing") {
  for (const char* machine : {"dgx-h100", "tpu-v5p"}) {
    const auto step = [&](const char* strategy, const char* mesh) {
      Json json = Json::parse(minimal);
      json["workload"]["model"] = "gpt2";
      json["strategy"] = strategy;
      json["mesh"] = mesh;
      json["machine"] = machine;
      const Result result = predict(read(json).at(0), {}).result;
      Bytes sent{0};
      for (const CommunicationRow& row : result.communication) sent += row.wire_bytes_per_device;
      return std::tuple(result.step_time, result.peak(), sent, result.mfu);
    };
    CHECK(step("fsdp", "fsdp=8") == step("fsdp", "pp=1,x=1,fsdp=8,cp=1,tp=1,dp=1"));
    CHECK(step("fsdp", "data=8") == step("fsdp", "fsdp=1,data=8"));
    CHECK(step("dp", "data=8") == step("dp", "ep=1,data=8,model=1"));
    CHECK(step("fsdp+tp", "fsdp=2,tp=4") == step("fsdp+tp", "model=1,fsdp=2,y=1,tp=4,dp=1"));
  }
}

// The forms of experiments/read_placement.hpp; "data-fsdp" is the mesh's own axes, fastest first.
TEST_CASE("a placement is a name, axes or devices") {
  using Kind = DeviceOrder::Kind;
  const auto order = [](const char* value) { return with("placement", value).at(0).order; };
  CHECK(read(Json::parse(minimal)).at(0).order.kind == Kind::automatic);
  CHECK(order("jax").kind == Kind::jax);
  CHECK(order("row-major").kind == Kind::row_major);
  CHECK(order("megatron").axes == megatron_order());
  CHECK(order("data-fsdp").axes == std::vector<std::string>{"data", "fsdp"});
  CHECK(order(R"(["fsdp", "data"])").axes == std::vector<std::string>{"fsdp", "data"});
  CHECK(order("[7, 6, 5, 4, 3, 2, 1, 0]").devices.front() == 7);
  CHECK_THROWS_WITH(order("[]"), "dir/a.json: /placement: the list of axes or devices is empty");
  CHECK_THROWS_WITH(order("no-such.json"), Catch::Contains("dir/no-such.json: cannot be read"));
  CHECK(with("placement", "fsdp-data").at(0).resolved->at("placement") == "fsdp-data");
  CHECK_FALSE(read(Json::parse(minimal)).at(0).resolved->contains("placement"));
}

// The forms of experiments/read_algorithms.hpp.
TEST_CASE("algorithms are told by kind and axes, as an object or a list") {
  const auto told = [](const char* value) { return with("algorithms", value).at(0).told; };
  CHECK(read(Json::parse(minimal)).at(0).told.empty());
  for (const char* value :
       {R"({"all-gather over data+fsdp": "Ring/LL128", "all-reduce": "/Simple"})",
        "all-gather over data+fsdp=Ring/LL128, all-reduce = /Simple"}) {
    const std::vector<ToldAlgorithm> all = told(value);
    REQUIRE(all.size() == 2);
    CHECK(all[0].kind == CollectiveKind::all_gather);
    CHECK(all[0].axes == std::vector<std::string>{"data", "fsdp"});
    CHECK(all[0].algorithm == "Ring");
    CHECK(all[0].protocol == "LL128");
    CHECK(all[1].kind == CollectiveKind::all_reduce);
    CHECK(all[1].axes.empty());
    CHECK(all[1].algorithm.empty());
    CHECK(all[1].protocol == "Simple");
  }
  const char* const tree = "all-reduce=Tree";
  CHECK(with("algorithms", tree).at(0).resolved->at("algorithms") == tree);
  CHECK_THROWS_WITH(told("Tree"), Catch::Contains("/algorithms: \"Tree\" is not KIND=ALGORITHM"));
  CHECK_THROWS_WITH(told("all-reduec=Tree"), Catch::Contains("did you mean \"all-reduce\"?"));
  CHECK_THROWS_WITH(told("all-reduce over +data=Tree"), Catch::Contains("names no axes"));
  CHECK_THROWS_WITH(told(R"({"all-reduce": "Ring/LL/LL"})"),
                    "dir/a.json: /algorithms/all-reduce: \"Ring/LL/LL\" is not ALGORITHM, "
                    "ALGORITHM/PROTOCOL or /PROTOCOL");
  CHECK_THROWS_WITH(told(R"({"all-reduce": "Ring/"})"), Catch::Contains("is not ALGORITHM"));
  CHECK_THROWS_WITH(told(R"({"all-reduce": ""})"), Catch::Contains("is not ALGORITHM"));
}

// 1 Llama layer's all-reduces of tensor parallelism on 8 GPUs: NCCL takes the switch, a ring that
// it is told sends 7/4 of the payload where the switch takes 9/8 at 0.85 of the bandwidth.
TEST_CASE("a step's collectives go by what they are told") {
  Json json = Json::parse(minimal);
  json.update({{"machine", "dgx-h100"}, {"mesh", {{"model", 8}}}, {"strategy", "tp"}});
  const auto run = [&](const char* algorithms) {
    if (algorithms != nullptr) apply_override(json, "algorithms", algorithms);
    return predict(read(json).at(0), {}).result;
  };
  const auto row = [](const Result& result) {
    for (const CommunicationRow& one : result.communication) {
      if (one.kind == "all-reduce") return one;
    }
    return CommunicationRow{};
  };
  const Result free = run(nullptr);
  CHECK(row(free).algorithms.size() > 0);
  const Result ring = run("all-reduce=Ring/Simple, broadcast=Ring");
  CHECK(row(ring).algorithms == std::vector<std::string>{"Ring Simple"});
  CHECK(row(ring).time > row(free).time);
  CHECK(std::count(ring.notes.begin(), ring.notes.end(),
                   "algorithms: the step has no broadcast, which was told one") == 1);
}

TEST_CASE("what is left out gets the documented default") {
  const Experiment e = read(Json::parse(minimal)).at(0);
  const Step& step = model_of(e).step;
  CHECK(e.name == "a");
  CHECK(e.directory == "dir");
  CHECK(step.kind == StepKind::train);
  CHECK(model_of(e).partitioning.mesh == Mesh({{"data", 2}, {"fsdp", 4}}));
  CHECK(step.precision.compute == DType::bf16);
  CHECK_FALSE(step.precision.weights.norms.has_value());
  CHECK_FALSE(step.precision.weights.look_ups.has_value());
  CHECK(step.precision.indices == DType::i64);
  CHECK(step.optimizer.kind == "adamw");
  CHECK(step.optimizer.parameters == DType::bf16);
  CHECK(step.optimizer.gradients == DType::bf16);
  CHECK(step.optimizer.master == DType::f32);
  CHECK(step.optimizer.moments == DType::f32);
  CHECK(step.rematerialization.policy == Rematerialization::Policy::none);
  CHECK(e.machine.empty());
  CHECK_FALSE(e.topology.has_value());
}

TEST_CASE("the resolved experiment is an experiment and resolves to itself") {
  Json json = Json::parse(minimal);
  json["machine"] = "dgx-h100";
  json["topology"] = "4x4";
  json["calibration"] = {"h100-nvswitch"};
  json["workload"]["precision"] = {{"master", nullptr},
                                   {"parameters", "float32"},
                                   {"norms", "f32"},
                                   {"look_ups", "fp32"},
                                   {"indices", "int32"}};
  json["workload"]["rematerialization"] = {{"save", {"q_proj", "mlp"}}};
  json["strategy"] = {{"name", "fsdp"}, {"prefetch", 3}};
  json["mesh"] = "data=2,fsdp=4";
  const Json resolved = *read(json).at(0).resolved;
  CHECK(resolved["workload"]["precision"]["master"] == "none");
  CHECK(resolved["workload"]["precision"]["parameters"] == "fp32");
  CHECK(resolved["workload"]["precision"]["norms"] == "fp32");
  CHECK(resolved["workload"]["precision"]["look_ups"] == "fp32");
  CHECK(resolved["workload"]["precision"]["indices"] == "int32");
  CHECK(resolved["mesh"] == Json::parse(R"({"data": 2, "fsdp": 4})"));
  CHECK(resolved["calibration"] == Json::parse(R"(["h100-nvswitch"])"));
  CHECK(read(resolved).at(0).resolved->dump() == resolved.dump());
  const Json defaults = *read(Json::parse(minimal)).at(0).resolved;
  CHECK(read(defaults).at(0).resolved->dump() == defaults.dump());
}

// Whatever the file's: documents of two experiments are compared line by line. The order is that
// in which experiments are written, what first and then on what.
TEST_CASE("what is resolved has its keys in one order") {
  const auto keys = [](const Json& object) {
    std::vector<std::string> names;
    for (const auto& [name, value] : object.items()) names.push_back(name);
    return names;
  };
  const Json json = Json::parse(R"({"algorithms": {"all-reduce": "Ring"}, "collectives": "flows",
      "placement": "row-major", "slices": 1, "calibration": [], "topology": "2x4",
      "machine": "dgx-h100", "roles": {"x": "shard"}, "allow_uneven": true,
      "mesh": {"x": 2, "dp": 4}, "strategy": "fsdp", "name": "all",
      "workload": {"rematerialization": "full", "donate": false, "optimizer": "sgd",
                   "precision": {"indices": "int32", "norms": "fp32", "compute": "fp16"},
                   "sequence": 64, "outputs": ["logits"], "metrics": ["loss"], "microbatches": 1,
                   "batch": 8, "step": "train", "model": "gpt2"}})");
  using Keys = std::vector<std::string>;
  const Json resolved = *read(json).at(0).resolved;
  CHECK(keys(resolved) == Keys{"name", "workload", "strategy", "mesh", "allow_uneven", "roles",
                               "machine", "topology", "calibration", "slices", "placement",
                               "collectives", "algorithms"});
  CHECK(keys(resolved["workload"]) == Keys{"model", "step", "batch", "microbatches", "metrics",
                                           "outputs", "sequence", "precision", "optimizer",
                                           "donate", "rematerialization"});
  CHECK(keys(resolved["workload"]["precision"]) ==
        Keys{"compute", "parameters", "gradients", "master", "moments", "norms", "indices"});
  const Json program =
      Json::parse(R"({"machine": "tpu-v5e", "mesh": {"x": 2}, "like": "xla", "program": "a.hlo"})");
  CHECK(keys(*read(program).at(0).resolved) == Keys{"name", "program", "like", "mesh", "machine"});
}

TEST_CASE("a mesh without axes is one device, resolved, too") {
  Json json = Json::parse(minimal);
  json["mesh"] = Json::object();
  json["strategy"] = "dp";
  const Json resolved = *read(json).at(0).resolved;
  CHECK(resolved["mesh"] == Json::object());
  CHECK(*read(resolved).at(0).resolved == resolved);
}

// A name that stands for another name is looked up once: the axis of that name is not in the mesh,
// for which eformer skips the constraint.
TEST_CASE("activations of a rule system resolve to themselves, in its own words") {
  Json json = Json::parse(minimal);
  json["strategy"] = Json::parse(R"({
      "name": "match_partition_rules", "rules": [[".*", []]], "batch_axes": ["data", "fsdp"],
      "partition_axis": {"batch_axis": "hidden_state_axis", "hidden_state_axis": "fsdp"},
      "activations": [{"pattern": "mlp", "spec": ["batch_axis"]}]})");
  const auto of = [](const Json& document) { return read(document).at(0); };
  const Experiment stated = of(json);
  const Experiment again = of(*stated.resolved);
  CHECK(*again.resolved == *stated.resolved);
  const auto activations = [](const Experiment& e) {
    return model_of(e).partitioning.strategy.activations;
  };
  CHECK(activations(again).at(0).spec == activations(stated).at(0).spec);
}

TEST_CASE("variants are laid over the rest of the file") {
  Json json = Json::parse(minimal);
  json["variants"] = Json::parse(R"([{"name": "one"},
      {"name": "two", "workload": {"batch": 16}, "mesh": {"data": null}, "strategy": "fsdp"}])");
  const auto experiments = read(json);
  REQUIRE(experiments.size() == 2);
  CHECK(experiments[0].name == "one");
  CHECK(model_of(experiments[0]).step.batch == 8);
  CHECK(model_of(experiments[1]).step.batch == 16);
  CHECK(model_of(experiments[1]).step.sequence == 64);
  // null removes, RFC 7396
  CHECK(model_of(experiments[1]).partitioning.mesh == Mesh({{"fsdp", 4}}));
}

TEST_CASE("what is wrong with variants that are not wanted does not matter") {
  Json json = Json::parse(minimal);
  json["variants"] = Json::parse(R"([{"name": "one", "mesh": {"data": 0}}, {"name": "two"}])");
  const auto two = read_experiments(json, "dir/a.json", {"two"});
  REQUIRE(two.size() == 1);
  CHECK(two.front().name == "two");
  CHECK_THROWS_AS(read_experiments(json, "dir/a.json", {"one"}), InputError);
  // A name that is not there: all are read, for whoever knows what is meant.
  CHECK_THROWS_AS(read_experiments(json, "dir/a.json", {"two", "three"}), InputError);
}

TEST_CASE("errors of a variant are placed in the variant") {
  Json json = Json::parse(minimal);
  json["variants"] = Json::parse(R"([{"name": "one"}, {"name": "two", "mesh": {"data": 0}}])");
  CHECK_THROWS_WITH(read(json),
                    "dir/a.json: /variants/1/mesh/data: 0 is out of range, must be from 1 to "
                    "2147483648");
  json["variants"][1] = {{"name", "one"}};
  CHECK_THROWS_WITH(read(json), "dir/a.json: /variants/1/name: another variant is called \"one\"");
  json["variants"][1] = {{"mesh", {{"data", 1}}}};
  CHECK_THROWS_WITH(read(json), "dir/a.json: /variants/1: missing key \"name\"");
  json["variants"] = Json::array();
  CHECK_THROWS_WITH(read(json), "dir/a.json: /variants: there are no variants in the list");
}

TEST_CASE("sizes of a mesh") {
  CHECK_THROWS_WITH(with("mesh.data", "0"),
                    "dir/a.json: /mesh/data: 0 is out of range, must be from 1 to 2147483648");
  CHECK_THROWS_WITH(with("mesh.data", "-2"),
                    "dir/a.json: /mesh/data: -2 is out of range, must be from 1 to 2147483648");
  CHECK_THROWS_WITH(
      with("mesh.data", "9223372036854775808"),
      "dir/a.json: /mesh/data: 9223372036854775808 is out of range, must be from 1 to "
      "2147483648");
  CHECK_THROWS_WITH(with("mesh.data", "2.5"),
                    "dir/a.json: /mesh/data: expected an integer, found 2.5");
  CHECK_THROWS_WITH(with("mesh.data", "\"2\""),
                    "dir/a.json: /mesh/data: expected an integer, found a string");
  // 65536 x 65536 = 2^32 devices.
  CHECK_THROWS_WITH(with("mesh", "a=65536,b=65536"),
                    "dir/a.json: /mesh: a=65536 x b=65536 has more than 2147483648 devices");
  CHECK(mesh("fsdp=2147483648").devices() == most_devices);
}

TEST_CASE("a mesh as on the command line") {
  CHECK(mesh("fsdp=4,data=2") == Mesh({{"fsdp", 4}, {"data", 2}}));
  CHECK_THROWS_WITH(with("mesh", "fsdp"),
                    "dir/a.json: /mesh: \"fsdp\" is not AXIS=SIZE, expected for example "
                    "\"data=2,fsdp=4\"");
  CHECK_THROWS_WITH(with("mesh", "fsdp=4,"),
                    "dir/a.json: /mesh: \"\" is not AXIS=SIZE, expected for example "
                    "\"data=2,fsdp=4\"");
  CHECK_THROWS_WITH(with("mesh", "fsdp=four"),
                    "dir/a.json: /mesh: \"four\" is no size for axis \"fsdp\"");
  CHECK_THROWS_WITH(with("mesh", "fsdp=4,fsdp=2"),
                    "dir/a.json: /mesh: axis \"fsdp\" is given twice");
  CHECK_THROWS_WITH(
      with("mesh", "4=4"),
      "dir/a.json: /mesh: axis name \"4\" must be letters, digits and _, no digit first");
  CHECK_THROWS_WITH(
      with("mesh", "fsdp=9223372036854775808"),
      "dir/a.json: /mesh/fsdp: 9223372036854775808 is out of range, must be from 1 to "
      "2147483648");
}

TEST_CASE("the number of devices, where it is given, is that of the mesh") {
  CHECK_NOTHROW(with("devices", "8"));
  CHECK_THROWS_WITH(with("devices", "16"),
                    "dir/a.json: /devices: mesh data=2 x fsdp=4 has 8 devices, not 16");
}

TEST_CASE("the workload") {
  CHECK_THROWS_WITH(with("workload.batch", "0"),
                    "dir/a.json: /workload/batch: 0 is out of range, must be from 1 to 2147483648");
  CHECK_THROWS_WITH(with("workload.sequnce", "1"),
                    "dir/a.json: /workload: unknown key \"sequnce\", did you mean \"sequence\"?");
  CHECK_THROWS_WITH(with("workload.step", "decode"),
                    R"(dir/a.json: /workload: "step": "decode" needs "context")");
  CHECK_THROWS_WITH(with("workload.precision.moments", "int32"),
                    "dir/a.json: /workload/precision/moments: \"int32\" is no floating-point type; "
                    "known are fp64, fp32, bf16, fp16, fp8");
  CHECK_THROWS_WITH(
      with("workload.rematerialization", "ful"),
      "dir/a.json: /workload/rematerialization: unknown value \"ful\"; known are none, "
      "full, selective, did you mean \"full\"?");
  CHECK_THROWS_WITH(with("stratgy", "dp"),
                    "dir/a.json: unknown key \"stratgy\", did you mean \"strategy\"?");
}

TEST_CASE("a step has at most 2^40 tokens") {
  Json json = Json::parse(minimal);
  json["workload"]["batch"] = std::int64_t{1} << 20;
  json["workload"]["sequence"] = std::int64_t{1} << 20;
  CHECK_NOTHROW(read(json));
  json["workload"]["sequence"] = (std::int64_t{1} << 20) + 1;
  CHECK_THROWS_WITH(read(json),
                    "dir/a.json: /workload: 1048576 sequences of 1048577 tokens are more than "
                    "1099511627776 tokens");
}

TEST_CASE("sections that must be there") {
  for (const char* section : {"workload", "mesh", "strategy"}) {
    Json json = Json::parse(minimal);
    json.erase(section);
    CHECK_THROWS_WITH(read(json), Catch::StartsWith("dir/a.json: missing key \"" +
                                                    std::string(section) + "\": give --"));
  }
  CHECK_THROWS_WITH(read(Json::array()), "dir/a.json: expected an object, found an array");
}

}  // namespace
}  // namespace shardsim
