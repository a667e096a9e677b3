#include "strategies/strategy.hpp"

#include "base/json.hpp"

#include <catch2/catch.hpp>

using namespace shardsim;

namespace {

StrategyOptions read(const char* text, const Mesh& mesh) {
  const Json json = parse_json(text, "a.json");
  return read_strategy(JsonReader(json, {"a.json", "/strategy"}), mesh);
}

const Mesh three({{"data", 2}, {"fsdp", 4}, {"model", 8}});

}  // namespace

TEST_CASE("Defaults come from the mesh") {
  const StrategyOptions both = read(R"("fsdp+tp")", three);
  CHECK(both.batch_axes == std::vector<std::string>{"data", "fsdp"});
  CHECK(both.shard_axis == "fsdp");
  CHECK(both.model_axis == "model");
  CHECK(read(R"("fsdp")", Mesh({{"data", 8}})).shard_axis == "data");
  CHECK(read(R"("dp")", Mesh({{"x", 4}, {"y", 2}})).batch_axes ==
        std::vector<std::string>{"x", "y"});
}

TEST_CASE("What is written out reads back the same") {
  for (const std::string& name : strategy_names()) {
    const StrategyOptions first = read(("\"" + name + "\"").c_str(), three);
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
  CHECK(message(R"("fsdp")", Mesh({{"x", 2}, {"y", 2}})) ==
        R"(a.json: /strategy: strategy "fsdp" needs "shard_axis": the batch is over x, y)");
  CHECK(
      message(R"("hsdp")", Mesh({{"fsdp", 8}})) ==
      R"(a.json: /strategy: strategy "hsdp" needs two batch axes: one of shards, one of replicas)");
  CHECK(message(R"({"name": "fsdp", "zero_stage": 1})", three) ==
        R"(a.json: /strategy/zero_stage: strategy "fsdp" is ZeRO stage 3 by itself)");
  CHECK(message(R"({"name": "dp", "zero_stage": 3})", three) ==
        R"(a.json: /strategy/zero_stage: 3 is out of range, must be from 0 to 2)");
  CHECK(
      message(R"({"name": "fsdp", "batch_axes": ["data"], "shard_axis": "model"})", three) ==
      R"(a.json: /strategy: "shard_axis" is "model", which splits neither the batch nor the sequence)");
}
