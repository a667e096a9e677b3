// A step's keys: what is written is read back, what means nothing is an error.
#include "experiments/read_step.hpp"

#include <catch2/catch.hpp>

#include <tuple>

#include "base/json.hpp"
#include "experiments/experiment.hpp"

namespace shardsim::read_step_test {

// Every key of "workload" at another value than its default.
TEST_CASE("a step reads back as the same step") {
  Step step{.kind = StepKind::forward, .batch = 12, .sequence = 64, .microbatches = 3};
  step.metrics = {"loss", "accuracy"};
  step.outputs = {"labels"};
  step.precision = {DType::f32, {DType::f64, DType::f16}, DType::i32};
  step.optimizer = {"sgd",       false,        DType::f32,  DType::f16,
                    DType::bf16, std::nullopt, DType::bf16, false};
  step.gradient_clipping = true;
  step.rematerialization = {Rematerialization::Policy::named, {"q_proj", "mlp"}};
  step.trainable = {"norm"};
  step.lora = Lora{8, {"attention"}};
  step.dropout = 0.5;
  step.mtp_layers = 1;
  Step narrow;
  narrow.precision.products = {ProductFormat::mxfp8, "blockwise", true, true, 1, 2};
  for (const Step& one : {step, narrow, Step{}}) {
    const Json json = step_to_json(one);
    CHECK(read_step(JsonReader(json, {"a.json", "/workload"})) == one);
  }
}

TEST_CASE("types that are not said") {
  const auto read_types = [](const char* text) {
    Json workload = Json::parse(R"({"model": "gpt2", "batch": 8})");
    workload["precision"] = Json::parse(text);
    return step_to_json(read_step(JsonReader(workload, {"a.json", "/workload"})))["precision"];
  };
  CHECK(read_types(R"({"parameters": "fp32"})")["master"] == "none");
  CHECK(read_types(R"({"parameters": "fp32", "master": "fp32"})")["master"] == "fp32");
  CHECK(read_types(R"({"parameters": "bf16"})")["master"] == "fp32");
  CHECK(read_types(R"({"reduce": "fp32"})")["reduce"] == "fp32");
  CHECK_FALSE(read_types(R"({"reduce": "fp32", "gradients": "fp32"})").contains("reduce"));
  CHECK(read_types(R"({"reduce": "bf16", "gradients": "fp32"})")["reduce"] == "bf16");
  CHECK_THROWS_WITH(read_types(R"({"scaling": "delayed"})"),
                    "a.json: /workload/precision/scaling: is of products in a narrow format: "
                    "\"compute\" fp8, mxfp8, nvfp4 or int8");
  CHECK_THROWS_WITH(read_types(R"({"compute": "fp9"})"),
                    "a.json: /workload/precision/compute: \"fp9\" is nothing to compute in; known "
                    "are fp64, fp32, bf16, fp16 and, of products, fp8, mxfp8, nvfp4, int8");
}

// In every form that it can be written in.
TEST_CASE("what a step keeps reads back as it was written") {
  const auto read_back = [](const char* text) {
    Json workload = Json::parse(R"({"model": "gpt2", "batch": 8})");
    workload["rematerialization"] = Json::parse(text);
    const Step step = read_step(JsonReader(workload, {"a.json", "/workload"}));
    return step_to_json(step)["rematerialization"];
  };
  for (const char* text :
       {R"("none")", R"("full")", R"("selective")", R"({"save": ["q", "mlp"]})",
        R"({"policy": "save_qkv_proj"})", R"({"policy": "minimal_offloaded"})",
        R"({"save": ["q"], "offload": ["k", "v"]})", R"({"save": [], "offload": ["q"]})",
        R"({"modules": ["core_attn", "mlp"]})", R"({"every": 2})",
        R"({"layers": 4, "method": "block"})", R"({"layers": 1, "method": "uniform"})"}) {
    CHECK(read_back(text) == Json::parse(text));
  }
  CHECK(read_back(R"({"modules": ["core_attention"]})") ==
        Json::parse(R"({"modules": ["core_attn"]})"));
  CHECK(read_back(R"({"save": ["q"], "offload": []})") == Json::parse(R"({"save": ["q"]})"));
}

TEST_CASE("what a step cannot keep is an error") {
  const auto error = [](const char* text) -> std::string {
    Json workload = Json::parse(R"({"model": "gpt2", "batch": 8})");
    workload["rematerialization"] = Json::parse(text);
    try {
      static_cast<void>(read_step(JsonReader(workload, {"a.json", "/workload"})));
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  const std::string at = "a.json: /workload/rematerialization";
  CHECK(error(R"({"save": ["q"], "offload": "k"})").starts_with(at + "/offload"));
  CHECK(error(R"({"layers": 2, "method": "uniform"})") ==
        at + "/layers: groups of 2 layers that are repeated together are not supported by this "
             "version; \"layers\": 1 repeats each for itself");
  CHECK(error(R"({"modules": []})") == at + "/modules: names no module; without any say \"none\"");
  CHECK(error(R"({"modules": ["mpl"]})").ends_with("did you mean \"mlp\"?"));
  CHECK(error(R"({"layers": 4})") == at + ": missing key \"method\"");
  CHECK(error(R"({"every": 0})").starts_with(at + "/every"));
  CHECK(error(R"({"every": 2, "modules": ["mlp"]})") ==
        at + ": unknown key \"every\"; known are modules");
}

}  // namespace shardsim::read_step_test
