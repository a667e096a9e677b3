// Finding model descriptions: by name, by path, written in place.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/json.hpp"
#include "workloads/models/build.hpp"

namespace shardsim::model_config_test {
namespace {

namespace fs = std::filesystem;

// A directory that is gone afterwards.
struct TemporaryDirectory {
  fs::path path = fs::path(SHARDSIM_BINARY_DIR) / "model_config_test_files";
  TemporaryDirectory() { fs::create_directories(path / "my-llama"); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { fs::remove_all(path); }
  void write(const std::string& name) const {
    std::ofstream(path / name) << load_model_config("gpt2", "", {}).json->dump();
  }
};

}  // namespace

TEST_CASE("Shipped models go by their name alone, with or without .json") {
  CHECK(shipped_models() ==
        std::vector<std::string>{"llama-2-7b", "llama-3.2-1b", "llama-3.1-8b", "llama-3.1-70b",
                                 "llama-3.1-405b", "llama-4-maverick", "mistral-7b-v0.1",
                                 "mixtral-8x7b", "qwen3-1.7b", "qwen3-30b-a3b", "qwen3-235b-a22b",
                                 "gpt-oss-120b", "nemotron-3-nano-30b-a3b", "deepseek-v3",
                                 "kimi-k2", "gpt2", "vit-b16"});
  for (const char* name : {"gpt2", "gpt2.json", "configs/gpt2.json"}) {
    const ModelConfig config = load_model_config(name, "/nowhere", {});
    CHECK(config.name == "gpt2");
    CHECK(config.json->at("n_layer") == 12);
  }
}

TEST_CASE("Shipped descriptions equal the files they come from") {
  for (const std::string& name : shipped_models()) {
    CHECK(*load_model_config(name, "", {}).json ==
          load_json(SHARDSIM_SOURCE_DIR "/workloads/configs/" + name + ".json"));
  }
}

TEST_CASE("A path is tried as given, then from the directory, with .json and as a folder") {
  const TemporaryDirectory directory;
  directory.write("tiny.json");
  directory.write("my-llama/config.json");
  const std::string here = directory.path.string();
  CHECK(load_model_config(here + "/tiny.json", "", {}).name == "tiny");
  CHECK(load_model_config("tiny.json", here, {}).path == here + "/tiny.json");
  CHECK(load_model_config("tiny", here, {}).name == "tiny");
  CHECK(load_model_config("my-llama", here, {}).name == "my-llama");
  CHECK(load_model_config("my-llama/config.json", here, {}).name == "my-llama");
}

TEST_CASE("A model that is not there is an error with a suggestion") {
  CHECK_THROWS_WITH(load_model_config("llama-3.1-8", "", {"a.json", "/workload/model"}),
                    "a.json: /workload/model: no model or file \"llama-3.1-8\", did you mean "
                    "\"llama-3.1-8b\"?");
  CHECK_THROWS_WITH(
      load_model_config("bert", "", {}),
      "no model or file \"bert\"; shipped are llama-2-7b, llama-3.2-1b, llama-3.1-8b, "
      "llama-3.1-70b, llama-3.1-405b, llama-4-maverick, mistral-7b-v0.1, mixtral-8x7b, "
      "qwen3-1.7b, qwen3-30b-a3b, qwen3-235b-a22b, gpt-oss-120b, "
      "nemotron-3-nano-30b-a3b, deepseek-v3, kimi-k2, gpt2, vit-b16");
  CHECK_THROWS_AS(load_model_config("", "", {}), InputError);
}

TEST_CASE("A description may be written in place, or by what it differs in") {
  const auto loaded = [](const Json& model) {
    return load_model_config(JsonReader(model, {"a.json", "/workload/model"}), "");
  };
  Json expected = *load_model_config("llama-3.1-8b", "", {}).json;
  CHECK(*loaded("llama-3.1-8b").json == expected);
  CHECK(*loaded(expected).json == expected);
  CHECK(loaded(expected).name == "llama");
  const ModelConfig shallow = loaded({{"base", "llama-3.1-8b"}, {"num_hidden_layers", 4}});
  expected["num_hidden_layers"] = 4;
  CHECK(*shallow.json == expected);
  CHECK(shallow.name == "llama-3.1-8b (num_hidden_layers=4)");
  // Of fewer layers the first, where a base lists a kind for each.
  const Json cut = *loaded({{"base", "gpt-oss-120b"}, {"num_hidden_layers", 3}}).json;
  CHECK(cut["layer_types"] == Json{"sliding_attention", "full_attention", "sliding_attention"});
  const Json mixed = *loaded({{"base", "nemotron-3-nano-30b-a3b"}, {"num_hidden_layers", 6}}).json;
  CHECK(mixed["hybrid_override_pattern"] == "MEMEM*");
  CHECK_THROWS_WITH(loaded({{"base", "llama-3.1-8"}}),
                    "a.json: /workload/model/base: no model or file \"llama-3.1-8\", did you mean "
                    "\"llama-3.1-8b\"?");
  CHECK_THROWS_WITH(
      loaded(3),
      "a.json: /workload/model: expected a model's name, a path, a config.json written "
      "in place, or {\"base\": a name, and the keys that differ}");
}

}  // namespace shardsim::model_config_test
