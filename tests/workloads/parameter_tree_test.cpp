#include "workloads/files/parameter_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "workloads/models/model_tree.hpp"

namespace shardsim::parameter_tree_test {

namespace {

ParameterTree tree_of(const std::string& parameters) {
  const Json document = parse_json(
      R"({"schema": "shardsim/parameter-tree/1", "parameters": )" + parameters + "}", "a.json");
  return read_parameter_tree(JsonReader(document, {"a.json", ""}));
}

std::vector<std::string> names_of(const ParameterTree& tree) {
  std::vector<std::string> names;
  for (const ParameterLeaf& leaf : tree.leaves) names.push_back(leaf.name);
  return names;
}

std::string error_of(const std::string& parameters) {
  try {
    static_cast<void>(tree_of(parameters));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

// The expected order is what jax 0.10.2 prints for the same nested dictionaries and lists:
//   [keystr(k, simple=True, separator="/") for k, _ in tree_flatten_with_path(tree)[0]]
TEST_CASE("leaves are ordered as jax.tree_util orders them") {
  const ParameterTree tree = tree_of(R"({
    "b": [{"shape": []}, {"shape": []}, {"shape": []}, {"shape": []}, {"shape": []},
          {"shape": []}, {"shape": []}, {"shape": []}, {"shape": []}, {"shape": []},
          {"shape": []}],
    "B": {"shape": []}, "a_10": {"shape": []}, "a_2": {"x": {"shape": []}},
    "a": {"y": [{"shape": []}, null]}, "a-b": {"shape": []}})");
  CHECK(names_of(tree) == std::vector<std::string>{"B", "a/y/0", "a-b", "a_10", "a_2/x", "b/0",
                                                   "b/1", "b/2", "b/3", "b/4", "b/5", "b/6", "b/7",
                                                   "b/8", "b/9", "b/10"});
}

// A strict weak ordering, which std::sort needs: "10" < "5x" < "9" as words, "9" < "10" as numbers
// would be a circle.
TEST_CASE("the order of paths is total") {
  const std::vector<std::string> paths = {"",
                                          "5x",
                                          "9",
                                          "10",
                                          "010",
                                          "a",
                                          "a/",
                                          "a/0",
                                          "a/9",
                                          "a/10",
                                          "a/5x",
                                          "a-b",
                                          "a/b",
                                          "ab",
                                          "a//",
                                          "a//b",
                                          "B",
                                          "_",
                                          "99999999999999999999"};
  for (const std::string& a : paths) {
    CHECK(!path_less(a, a));
    for (const std::string& b : paths) {
      if (a != b) CHECK(path_less(a, b) != path_less(b, a));
      for (const std::string& c : paths) {
        if (path_less(a, b) && path_less(b, c)) CHECK(path_less(a, c));
      }
    }
  }
}

TEST_CASE("flat, nested and list forms say the same") {
  const auto flat = tree_of(R"({"a/0/w": {"shape": [2]}, "a/1/w": {"shape": [3]}})");
  const auto nested = tree_of(R"({"a": {"1": {"w": {"shape": [3]}}, "0": {"w": {"shape": [2]}}}})");
  const auto list = tree_of(R"({"a": [{"w": {"shape": [2]}}, {"w": {"shape": [3]}}]})");
  for (const ParameterTree& tree : {nested, list}) {
    CHECK(names_of(tree) == names_of(flat));
    CHECK(tree.leaves[1].shape == flat.leaves[1].shape);
  }
  // A module may be called "shape": only a list makes a leaf.
  CHECK(names_of(tree_of(R"({"shape": {"shape": [2]}})")) == std::vector<std::string>{"shape"});
  // A tree that is a single array has the empty path.
  CHECK(names_of(tree_of(R"({"shape": [2]})")) == std::vector<std::string>{""});
  CHECK(tree_of("{}").leaves.empty());
}

TEST_CASE("a leaf has a shape, a dtype and perhaps logical axes") {
  const ParameterTree tree = tree_of(R"({
    "a": {"shape": [768, 1000], "dtype": "bfloat16", "logical_axes": ["embed", null]},
    "b": {"shape": [], "dtype": "int4"}, "c": {"shape": [3, 0, 7]}, "d": {"shape": [5],
    "dtype": "F4"}})");
  CHECK(byte_count(tree.leaves[0]) == Bytes(768 * 1000 * 2));
  CHECK(tree.leaves[0].logical_axes == LogicalAxes{"embed", std::nullopt});
  CHECK(tree.leaves[0].place.pointer == "/parameters/a");
  CHECK(element_count(tree.leaves[1]) == 1);
  CHECK(byte_count(tree.leaves[1]) == Bytes(1));
  CHECK(tree.leaves[2].dtype == DType::f32);  // where none is given
  CHECK(element_count(tree.leaves[2]) == 0);
  CHECK(byte_count(tree.leaves[3]) == Bytes(3));  // 20 bits
}

TEST_CASE("what is wrong with a tree is said with its place") {
  CHECK(error_of(R"({"a": {"b": {"shape": []}}, "a/b": {"shape": []}})") ==
        "a.json: /parameters/a~1b: parameter \"a/b\" is given twice");
  CHECK(error_of(R"({"a": {"shape": [], "dtype": "float31"}})") ==
        "a.json: /parameters/a/dtype: unknown dtype \"float31\"");
  CHECK(error_of(R"({"a": {"shape": [2, -1]}})") ==
        "a.json: /parameters/a/shape/1: -1 is out of range, must be from 0 to 9007199254740992");
  CHECK(error_of(R"({"a": {"shape": [1.5]}})") ==
        "a.json: /parameters/a/shape/0: expected an integer, found 1.5");
  CHECK(error_of(R"({"a": {"shape": [4294967296, 4294967296]}})") ==
        "a.json: /parameters/a: more than 2^53 elements");
  // Whichever comes first, the zero does not hide what would overflow.
  CHECK(error_of(R"({"a": {"shape": [4294967296, 4294967296, 0]}})") ==
        "a.json: /parameters/a: more than 2^53 elements");
  CHECK(error_of(R"({"a": {"shape": [9007199254740992]}, "b": {"shape": []}})") ==
        "a.json: /parameters/b: more than 2^53 elements with the parameters before it");
  CHECK(error_of(R"({"a": {"shape": [2], "dtpye": "int8"}})") ==
        "a.json: /parameters/a: unknown key \"dtpye\", did you mean \"dtype\"?");
  CHECK(error_of(R"({"a": {"shape": [2], "logical_axes": ["x", "y"]}})") ==
        "a.json: /parameters/a/logical_axes: 2 logical axes for 1 dimensions");
  CHECK(error_of(R"({"a": {"dtype": "int8"}})") ==
        "a.json: /parameters/a/dtype: expected an object, found a string");
  CHECK(error_of(R"("a")") == "a.json: /parameters: expected an object, found a string");
  CHECK(error_of(std::string(200, '[') + std::string(200, ']')) ==
        "a.json: nested deeper than 100 levels");
}

TEST_CASE("the document's own keys are checked") {
  const auto error = [](const std::string& text) -> std::string {
    try {
      const Json document = parse_json(text, "a.json");
      static_cast<void>(read_parameter_tree(JsonReader(document, {"a.json", ""})));
    } catch (const InputError& wrong) {
      return wrong.what();
    }
    return "";
  };
  CHECK(error(R"({"parameters": {}})") == "a.json: missing key \"schema\"");
  CHECK(error(R"({"schema": "shardsim/parameter-tree/2", "parameters": {}})") ==
        "a.json: /schema: unknown value \"shardsim/parameter-tree/2\", did you mean "
        "\"shardsim/parameter-tree/1\"?");
  CHECK(error(R"({"schema": "shardsim/parameter-tree/1"})") ==
        "a.json: missing key \"parameters\"");
  CHECK(error(R"({"schema": "shardsim/parameter-tree/1", "parameter": {}, "parameters": {}})") ==
        "a.json: unknown key \"parameter\", did you mean \"parameters\"?");
}

TEST_CASE("reading what was written gives the same tree") {
  const ParameterTree tree = tree_of(R"({
    "a": {"shape": [768, 1000], "dtype": "bfloat16", "logical_axes": ["embed", null]},
    "b/~/w": [{"shape": [], "dtype": "F8_E4M3"}, {"shape": [0]}]})");
  const Json document = parameter_tree_to_json(tree);
  const ParameterTree again = read_parameter_tree(JsonReader(document, {"b.json", ""}));
  REQUIRE(names_of(again) == names_of(tree));
  for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
    CHECK(again.leaves[i].shape == tree.leaves[i].shape);
    CHECK(again.leaves[i].dtype == tree.leaves[i].dtype);
    CHECK(again.leaves[i].logical_axes == tree.leaves[i].logical_axes);
  }
}

// Llama 3.1 8B has 8,030,261,248 parameters in 32 * 9 + 3 tensors (its model card and the index of
// its checkpoint); the names are those of the checkpoint.
TEST_CASE("a model's description gives every layer's parameters") {
  const ParameterTree tree = model_tree(load_model_config("llama-3.1-8b", "", {}));
  CHECK(tree.leaves.size() == 291);
  std::int64_t elements = 0;
  for (const ParameterLeaf& leaf : tree.leaves) elements += element_count(leaf);
  CHECK(elements == 8'030'261'248);
  const auto names = names_of(tree);
  for (const char* name : {"model.layers.0.self_attn.q_proj.weight", "lm_head.weight",
                           "model.layers.31.mlp.down_proj.weight"}) {
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  }
}

TEST_CASE("elements have the type that the description says") {
  ModelConfig config = load_model_config("gpt2", "", {});
  CHECK(model_tree(config).leaves[0].dtype == DType::f32);
  (*config.json)["torch_dtype"] = "bfloat16";
  CHECK(model_tree(config).leaves[0].dtype == DType::bf16);
  (*config.json)["torch_dtype"] = "bfloat17";
  CHECK_THROWS_WITH(model_tree(config), "gpt2.json: /torch_dtype: unknown dtype \"bfloat17\"");
}

}  // namespace shardsim::parameter_tree_test
