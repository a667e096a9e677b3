// Names and shapes of every parameter, against lists from the frameworks themselves:
//   torch/params/*.json          Hugging Face names, written out by PyTorch
//   param_trees/bv_vit_b16*.json big_vision's ViT-B/16
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

#include "graph_helpers.hpp"

#include "base/json.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

namespace fs = std::filesystem;
using Shapes = std::map<std::string, std::vector<std::int64_t>>;

fs::path golden_directory() {
  const char* elsewhere = std::getenv("SHARDSIM_GOLDEN_DIR");
  return elsewhere != nullptr ? fs::path(elsewhere)
                              : fs::path(SHARDSIM_SOURCE_DIR) / "tests/golden";
}

// Every instance of every parameter.
Shapes shapes_of(const Workload& w) {
  Shapes shapes;
  for (const ParameterView& view : parameters(w)) {
    for (const std::int32_t i : view.numbers) {
      std::string name = at(w, view.tensor).name;
      if (const std::size_t place = name.find("{}"); place != std::string::npos) {
        name.replace(place, 2, std::to_string(i));
      }
      shapes[name] = view.shape;
    }
  }
  return shapes;
}

// The lists' GPT-2 is written with nn.Linear, whose weights lie as [out, in]; Hugging Face's Conv1D
// has [in, out].
bool is_conv1d(const std::string& name) {
  return name.find("c_attn.weight") != std::string::npos ||
         name.find("c_proj.weight") != std::string::npos ||
         name.find("c_fc.weight") != std::string::npos;
}

Shapes torch_shapes(const Json& record) {
  Shapes shapes;
  for (const Json& parameter : record["params"]) {
    const auto name = parameter["name"].get<std::string>();
    auto shape = parameter["shape"].get<std::vector<std::int64_t>>();
    if (is_conv1d(name)) std::swap(shape[0], shape[1]);
    shapes[name] = shape;
  }
  return shapes;
}

// Compares every file of `folder` that `expected` makes something of, and says so per file.
template <class Expected, class Graph>
void compare_folder(const char* folder, const Expected& expected, const Graph& graph) {
  const fs::path directory = golden_directory() / folder;
  if (!fs::is_directory(directory)) {
    std::cout << directory.string() << ": not there, skipped\n";
    return;
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const Json record = load_json(file.string());
    const Shapes wanted = expected(file, record);
    if (wanted.empty()) {
      std::cout << file.filename().string() << ": skipped, no such model is built here\n";
      continue;
    }
    const Shapes made = shapes_of(graph(record));
    std::size_t passed = 0;
    for (const auto& [name, shape] : wanted) {
      const auto found = made.find(name);
      passed += found != made.end() && found->second == shape ? 1 : 0;
    }
    std::cout << file.filename().string() << ": " << passed << " passed, " << wanted.size() - passed
              << " failed\n";
    CHECK(made == wanted);
  }
}

}  // namespace

TEST_CASE("Parameters have Hugging Face's names and shapes") {
  compare_folder(
      "torch/params",
      [](const fs::path&, const Json& record) {
        const std::string type = record["model"].value("model_type", "");
        return type == "llama" || type == "gpt2" ? torch_shapes(record) : Shapes{};
      },
      [](const Json& record) {
        Json config = record["model"];
        for (const char* own : {"name", "qk_norm"}) config.erase(own);  // no keys of a config.json
        return build_workload({"model", "model", OwnedJson(config)}, {1, 16, DType::bf16});
      });
}

TEST_CASE("ViT-B/16 has big_vision's parameter tree") {
  compare_folder(
      "param_trees",
      [](const fs::path& file, const Json& record) {
        Shapes shapes;
        if (!file.filename().string().starts_with("bv_vit_b16")) return shapes;
        for (const auto& [name, leaf] : record["params"].items()) {
          shapes[name] = leaf["shape"].get<std::vector<std::int64_t>>();
        }
        return shapes;
      },
      [](const Json&) { return forward_graph("vit-b16", 1, std::nullopt); });
}
