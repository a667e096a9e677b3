#include "strategies/strategy.hpp"

#include "base/json.hpp"
#include "strategies/rules/rule_system.hpp"
#include "strategies/strategy_keys.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <sstream>

using namespace shardsim;

namespace {

Strategy read(const char* text, const Mesh& mesh) {
  const Json json = parse_json(text, "a.json");
  return read_strategy(JsonReader(json, {"a.json", "/strategy"}), mesh);
}

const Mesh three({{"data", 2}, {"fsdp", 4}, {"model", 8}});

}  // namespace

// Under their headings the names two in, one to a line; what is said of them six in.
TEST_CASE("The help on strategies names every recipe, rule system and key") {
  using Names = std::vector<std::string>;
  std::map<std::string, Names> found;  // by heading
  std::string heading;
  std::istringstream text(strategy_keys_text());
  for (std::string line; std::getline(text, line);) {
    INFO(line);
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string::npos) continue;
    if (indent == 0) {
      heading = line;
      continue;
    }
    CHECK((indent == 2 || indent == 6));
    const std::size_t end = line.find(' ', indent);
    if (indent == 2) found[heading].push_back(line.substr(indent, end - indent));
  }
  Names expected;
  for (const Recipe& recipe : recipes()) expected.emplace_back(recipe.name);
  CHECK(found["Strategies:"] == expected);
  expected.clear();
  for (const RuleSystem& system : rule_systems()) expected.emplace_back(system.name);
  CHECK(found["Rule systems of frameworks (docs/rule-systems), with keys of their own:"] ==
        expected);
  expected.clear();
  for (const StrategyKey& key : strategy_keys()) expected.emplace_back(key.name);
  CHECK(found["Keys:"] == expected);
}

TEST_CASE("Defaults come from the mesh") {
  const Strategy both = read(R"("fsdp+tp")", three);
  CHECK(both.batch_axes == std::vector<std::string>{"data", "fsdp"});
  CHECK(both.shard_axis == "fsdp");
  CHECK(both.model_axis == "model");
  CHECK(read(R"("fsdp")", Mesh({{"data", 8}})).shard_axis == "data");
}

// strategies/layout/axis_roles.hpp, the list of names.
TEST_CASE("Axes have roles by their names") {
  const auto role = [](const char* axis) { return AxisRoles().of(axis); };
  for (const char* axis : {"data", "dp", "replica", "dp_replicate", "dcn", "diloco"}) {
    CHECK(role(axis) == AxisRole::batch);
  }
  for (const char* axis : {"fsdp", "dp_shard", "shard", "zero", "fsdp_transpose"}) {
    CHECK(role(axis) == AxisRole::shard);
  }
  for (const char* axis : {"tp", "model", "tensor", "tensor_sequence"}) {
    CHECK(role(axis) == AxisRole::model);
  }
  for (const char* axis : {"cp", "context", "sequence", "sp"}) {
    CHECK(role(axis) == AxisRole::context);
  }
  for (const char* axis : {"pp", "stage", "pipeline"}) CHECK(role(axis) == AxisRole::stages);
  for (const char* axis : {"ep", "expert", "exp"}) CHECK(role(axis) == AxisRole::experts);
  CHECK(role("etp") == AxisRole::etp);
  CHECK_FALSE(role("x"));
}

TEST_CASE("The batch goes over the axes that are for it, and over no other") {
  const Strategy options =
      read(R"("fsdp")", Mesh({{"dp", 2}, {"pp", 2}, {"cp", 2}, {"dp_shard", 2}, {"x", 2}}));
  CHECK(options.batch_axes == std::vector<std::string>{"dp", "dp_shard"});
  CHECK(options.shard_axis == "dp_shard");
  CHECK(options.model_axis.empty());
  CHECK(read(R"("dp")", Mesh({{"x", 4}})).batch_axes.empty());
  // To name an axis is to say what it is for.
  CHECK(read(R"({"name": "dp", "batch_axes": "x"})", Mesh({{"x", 4}})).batch_axes ==
        std::vector<std::string>{"x"});
  CHECK(read(R"({"name": "fsdp", "shard_axis": "x"})", Mesh({{"x", 4}})).batch_axes ==
        std::vector<std::string>{"x"});
  CHECK(read(R"({"name": "tp", "model_axis": "dp"})", Mesh({{"dp", 4}})).batch_axes.empty());
}

TEST_CASE("Axes of one device have no say in what the others are for") {
  const Mesh mesh({{"fsdp", 1}, {"data", 8}, {"model", 1}, {"tp", 4}});
  const Strategy options = read(R"("fsdp+tp")", mesh);
  CHECK(options.shard_axis == "data");
  CHECK(options.model_axis == "tp");
}

TEST_CASE("An experiment gives axes their roles, against their names too") {
  const Json json = parse_json(R"({"x": "model", "tp": "batch"})", "a.json");
  const Mesh mesh({{"x", 2}, {"tp", 4}});
  const AxisRoles roles(JsonReader(json, {"a.json", "/roles"}), mesh);
  const Json name = "tp";
  const Strategy options = read_strategy(JsonReader(name, {}), mesh, roles);
  CHECK(options.model_axis == "x");
  CHECK(options.batch_axes == std::vector<std::string>{"tp"});
  const auto message = [&](const char* text) -> std::string {
    try {
      const Json roles_json = parse_json(text, "a.json");
      const AxisRoles read(JsonReader(roles_json, {"a.json", "/roles"}), mesh);
      return "accepted";
    } catch (const InputError& error) {
      return error.what();
    }
  };
  CHECK(message(R"({"y": "model"})") == R"(a.json: /roles: unknown axis "y"; the mesh has x, tp)");
  CHECK(
      message(R"({"x": "modle"})") ==
      R"(a.json: /roles/x: unknown value "modle"; known are batch, shard, model, context, stages, experts, etp, did you mean "model"?)");
}

// Which axes a strategy serves; those of one device are out of the question.
TEST_CASE("An axis without a meaning is an error, and so is one that the strategy cannot serve") {
  const auto message = [](const char* strategy, const char* mesh_text,
                          const char* roles_text = "{}") -> std::string {
    const Json mesh_json = parse_json(mesh_text, "a.json");
    const Json roles_json = parse_json(roles_text, "a.json");
    std::vector<MeshAxis> axes;
    for (const auto& [name, size] : mesh_json.items()) axes.push_back({name, size.get<int>()});
    const Mesh mesh(axes);
    const AxisRoles roles(JsonReader(roles_json, {"a.json", "/roles"}), mesh);
    try {
      const Json json = parse_json(strategy, "a.json");
      const Strategy options =
          read_strategy(JsonReader(json, {"a.json", "/strategy"}), mesh, roles);
      require_served_axes(options, mesh, roles, JsonReader(mesh_json, {"a.json", "/mesh"}));
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(message(R"("fsdp")", R"({"pp": 2, "dp": 4})") == "accepted");
  CHECK(
      message(R"("dp")", R"({"context": 8})") ==
      R"(a.json: /mesh/context: axis "context" is for parts of the sequence, which strategy "dp" )"
      R"(does not split over it: it serves batch, shard and stages axes; "sequence_axes": ["context"] in )"
      R"(the strategy splits the sequence over it, with keys and values gathered)");
  CHECK(
      message(R"("tp")", R"({"ep": 2, "tp": 4})") ==
      R"(a.json: /mesh/ep: axis "ep" is for experts, which strategy "tp" does not split over it: )"
      R"(it serves batch, shard and stages axes and one model axis)");
  CHECK(
      message(R"("dp")", R"({"dp": 2, "tp": 4})") ==
      R"(a.json: /mesh/tp: axis "tp" is for the model, which strategy "dp" does not split over it: )"
      R"(it serves batch, shard and stages axes; strategies with a model axis are tp and fsdp+tp)");
  CHECK(
      message(R"("tp")", R"({"tensor": 2, "tensor_sequence": 2})") ==
      R"(a.json: /mesh/tensor_sequence: axis "tensor_sequence" is for the model, which strategy )"
      R"("tp" does not split over it: it serves batch, shard and stages axes and one model axis; that is )"
      R"("tensor", or "model_axis" in the strategy)");
  CHECK(
      message(R"("dp")", R"({"x": 2})") ==
      R"(a.json: /mesh/x: axis "x" has no role by its name: give it one, "roles": {"x": "model"} )"
      R"(for example, or name it in the strategy's "batch_axes" or rules; roles are batch, shard, )"
      R"(model, context, stages, experts, etp)");
  CHECK(message(R"("tp")", R"({"modle": 2, "tp": 2})") ==
        R"(a.json: /mesh/modle: axis "modle" has no role by its name, did you mean "model"?)");
  CHECK(message(R"("fsdp")", R"({"pp": 1, "dp": 4, "x": 1, "cp": 1, "ep": 1})") == "accepted");
  CHECK(message(R"("dp")", R"({"x": 2})", R"({"x": "batch"})") == "accepted");
  CHECK(message(R"("tp")", R"({"x": 2})", R"({"x": "model"})") == "accepted");
  CHECK(message(R"({"name": "dp", "sequence_axes": ["cp"]})", R"({"dp": 2, "cp": 4})") ==
        "accepted");
  CHECK(message(R"({"name": "rules", "rules": [{"pattern": "w", "spec": ["x"]}]})",
                R"({"x": 2})") == "accepted");
  // Rules of other systems name axes in languages of their own.
  CHECK(message(R"x({"name": "big_vision", "rules": [[".*", "fsdp(axis='x')"]]})x",
                R"({"x": 2})") == "accepted");
  CHECK(message(R"x({"name": "big_vision", "rules": [[".*", "fsdp(axis='x')"]]})x", R"({"xy": 2})")
            .starts_with(R"(a.json: /mesh/xy: axis "xy" has no role)"));
  CHECK(message(R"({"name": "praxis", "weights": [["w$", ["data", "mdl"]]]})",
                R"({"replica": 1, "data": 64, "mdl": 24})") == "accepted");
  CHECK(message(R"({"name": "praxis", "weights": [["w$", ["stage", "mdl"]]]})",
                R"({"stage": 2, "mdl": 24})")
            .starts_with(R"(a.json: /mesh/stage: axis "stage" is for pipeline stages)"));
  const std::string advice =
      R"(; "roles": {"expert": "model"} splits over it what its rules say, and "batch" the batch, too)";
  const char* const experts =
      R"({"name": "match_partition_rules", "rules": [[".*", [["data", "expert"]]]]})";
  const std::string refused = message(experts, R"({"data": 4, "expert": 2})");
  CHECK(refused.ends_with("batch, shard and model axes" + advice));
  for (const char* role : {R"({"expert": "model"})", R"({"expert": "batch"})"}) {
    CHECK(message(experts, R"({"data": 4, "expert": 2})", role) == "accepted");
  }
  CHECK(
      message(R"({"name": "fsdp", "batch_axes": ["y"]})", R"({"fsdp": 4, "y": 1})") ==
      R"(a.json: /mesh/fsdp: axis "fsdp" is for shards of the parameters, but not among the strategy's "batch_axes")");
}

TEST_CASE("What is written out reads back the same") {
  for (const std::string& name : strategy_names()) {
    const Strategy first = read(("\"" + name + "\"").c_str(), three);
    const Json json = strategy_to_json(first);
    CHECK(strategy_to_json(read_strategy(JsonReader(json, {}), three)) == json);
  }
  const Json json = strategy_to_json(read(R"({"name": "rules", "batch_axes": "data",
      "gather_embedding": false, "reduce_loss": true, "rules": [{"pattern": "x", "spec": [null, ["model", "fsdp"]]}]})",
                                          three));
  CHECK(json["rules"][0]["spec"].dump() == R"([null,["model","fsdp"]])");
  CHECK(json["gather_embedding"] == false);
  CHECK(json["reduce_loss"] == true);
  CHECK(strategy_to_json(read_strategy(JsonReader(json, {}), three)) == json);
}

TEST_CASE("Every mistake has its message") {
  const auto message = [](const char* text, const Mesh& mesh) -> std::string {
    try {
      (void)read(text, mesh);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(message(R"("fsp")", three) ==
        R"(a.json: /strategy: unknown strategy "fsp", did you mean "fsdp"?)");
  CHECK(message(R"({"name": "fsdp", "prefech": 1})", three) ==
        R"(a.json: /strategy: unknown key "prefech", did you mean "prefetch"?)");
  CHECK(
      message(R"({"name": "rules", "rules": [{"pattern": "x", "spec": ["data", "modle"]}]})",
              three) ==
      R"(a.json: /strategy/rules/0/spec: ValueError: axis "modle" of P(data, modle) is not in the mesh (data, fsdp, model), did you mean "model"?)");
  CHECK(
      message(R"({"name": "rules", "rules": [{"pattern": "x", "spec": ["model", "model"]}]})",
              three) ==
      R"(a.json: /strategy/rules/0/spec: DuplicateSpecError: axis "model" is used twice in P(model, model))");
  CHECK(
      message(R"({"name": "rules", "rules": [{"pattern": "x", "spec": [["data", "data"]]}]})",
              three) ==
      R"(a.json: /strategy/rules/0/spec: DuplicateSpecError: axis "data" is used twice in P((data, data)))");
  CHECK(message(R"("tp")", Mesh({{"data", 8}})) ==
        R"(a.json: /strategy: strategy "tp" needs a model axis: the mesh has data)");
  CHECK(
      message(R"("fsdp")", Mesh({{"x", 2}, {"y", 2}})) ==
      R"(a.json: /strategy: strategy "fsdp" needs a batch or shard axis, or "shard_axis": the mesh has x, y)");
  CHECK(message(R"("fsdp")", Mesh({{"dp", 2}, {"replica", 2}})) ==
        R"(a.json: /strategy: strategy "fsdp" needs "shard_axis": the batch is over dp, replica)");
  CHECK(
      message(R"("hsdp")", Mesh({{"fsdp", 8}})) ==
      R"(a.json: /strategy: strategy "hsdp" needs two batch axes: one of shards, one of replicas)");
  CHECK(message(R"({"name": "fsdp", "zero_stage": 1})", three) ==
        R"(a.json: /strategy/zero_stage: strategy "fsdp" is ZeRO stage 3 by itself)");
  CHECK(
      message(R"({"name": "dp", "zero_stage": 3})", three) ==
      R"(a.json: /strategy/zero_stage: ZeRO 3 is "deepspeed" or, layer by layer, "fsdp", "fsdp1" )"
      R"(and "fsdp2")");
  CHECK(
      message(R"({"name": "fsdp", "batch_axes": ["data"], "shard_axis": "model"})", three) ==
      R"(a.json: /strategy: "shard_axis" is "model", which splits neither the batch nor the sequence)");
  // Each key is checked where nothing uses it, too.
  CHECK(message(R"({"name": "dp", "shard_axis": "nonsense"})", Mesh({{"dp", 8}})) ==
        R"(a.json: /strategy/shard_axis: unknown axis "nonsense"; the mesh has dp)");
  CHECK(
      message(R"({"name": "dp", "shard_axis": "dp"})", Mesh({{"dp", 8}})) ==
      R"(a.json: /strategy/shard_axis: strategy "dp" has no shard axis; those that have one are fsdp, hsdp and fsdp+tp)");
  CHECK(
      message(R"({"name": "fsdp", "model_axis": "fsdp"})", Mesh({{"fsdp", 8}})) ==
      R"(a.json: /strategy/model_axis: strategy "fsdp" does not split the model; those that do are tp and fsdp+tp)");
  CHECK(
      message(R"({"name": "fsdp+tp", "model_axis": "fsdp"})", Mesh({{"fsdp", 8}})) ==
      R"(a.json: /strategy: strategy "fsdp+tp" needs a batch or shard axis, or "shard_axis": the mesh has fsdp, and "fsdp" splits the model)");
  CHECK(
      message(R"({"name": "fsdp", "batch_axes": []})", Mesh({{"fsdp", 8}})) ==
      R"(a.json: /strategy: strategy "fsdp" needs a batch or shard axis, or "shard_axis": "batch_axes" is empty)");
  CHECK(message(R"({"name": "tp", "sequence_axes": "tp"})", Mesh({{"tp", 8}})) ==
        R"(a.json: /strategy: axis "tp" splits both the sequence and the model)");
  for (const char* name : {"dp", "fsdp", "rules"}) {
    CHECK(
        message((R"({"sequence_parallel": true, "name": ")" + std::string(name) + "\"}").c_str(),
                Mesh({{"fsdp", 8}})) ==
        R"(a.json: /strategy/sequence_parallel: true needs a model axis, one with that role or "model_axis": the mesh has fsdp)");
  }
  CHECK(message(R"({"name": "rules", "sequence_parallel": true})", three) == "accepted");
}
