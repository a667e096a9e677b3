// Files are built byte by byte as README.md ("Format") of github.com/huggingface/safetensors says;
// what must be refused is what safetensors/src/tensor.rs there refuses.
#include "workloads/files/safetensors.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "scratch_folder.hpp"
#include "workloads/files/tree_file.hpp"

using namespace shardsim;  // NOLINT(google-build-using-namespace)
using shardsim::test::ScratchFolder;

namespace {

std::string length_prefix(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i, length >>= 8U) bytes += static_cast<char>(length & 0xffU);
  return bytes;
}

std::string safetensors(const std::string& header, std::size_t data_bytes) {
  return length_prefix(header.size()) + header + std::string(data_bytes, '\0');
}

template <class Function>
std::string error_of(Function function) {
  try {
    static_cast<void>(function());
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// What is said about a file of these bytes, without its path.
std::string refusal(const std::string& bytes) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.safetensors", bytes);
  const std::string error = error_of([&] { return read_safetensors_file(path); });
  return error.starts_with(path + ": ") ? error.substr(path.size() + 2) : error;
}

// One F32 tensor "w" of 4 bytes, with these members.
std::string tensor(const std::string& shape, const std::string& offsets,
                   const std::string& dtype = "F32") {
  return R"({"dtype": ")" + dtype + R"(", "shape": )" + shape + R"(, "data_offsets": )" + offsets +
         "}";
}

}  // namespace

TEST_CASE("a checkpoint's tensors are read from its header") {
  const ScratchFolder folder;
  const std::string header = R"({"__metadata__": {"format": "pt"},
    "model.norm.weight": {"dtype": "BF16", "shape": [8], "data_offsets": [0, 16]},
    "lm_head.weight": {"dtype": "F8_E4M3", "shape": [4, 8], "data_offsets": [16, 48]},
    "step": {"dtype": "I64", "shape": [], "data_offsets": [48, 56]},
    "none": {"dtype": "F32", "shape": [0, 4], "data_offsets": [56, 56]}}   )";
  const ParameterTree tree =
      read_safetensors_file(folder.write("tiny-1.5b.safetensors", safetensors(header, 56)));
  CHECK(tree.model == "tiny-1.5b");
  REQUIRE(tree.leaves.size() == 4);
  CHECK(tree.leaves[0].name == "lm_head.weight");
  CHECK(tree.leaves[0].shape == std::vector<std::int64_t>{4, 8});
  CHECK(tree.leaves[0].dtype == DType::f8_e4m3);
  CHECK(tree.leaves[0].place.pointer == "/lm_head.weight");
  CHECK(tree.leaves[1].name == "model.norm.weight");
  CHECK(tree.leaves[2].name == "none");
  CHECK(element_count(tree.leaves[2]) == 0);
  CHECK(tree.leaves[3].shape.empty());
}

TEST_CASE("two 4-bit elements share a byte") {
  const ScratchFolder folder;
  const auto read = [&](const std::string& shape, const std::string& end) {
    return read_safetensors_file(
        folder.write("a.safetensors",
                     safetensors(R"({"w": )" + tensor(shape, "[0, " + end + "]", "F4") + "}", 3)));
  };
  CHECK(byte_count(read("[3, 2]", "3").leaves[0]) == Bytes(3));
  CHECK_THROWS_WITH(read("[5]", "3"),
                    Catch::EndsWith("/w/shape: 5 elements of fp4_e2m1 do not fill whole bytes"));
}

TEST_CASE("a damaged or hostile file is refused with its place") {
  CHECK(refusal("") == "is no safetensors file: 0 bytes, a header takes 8");
  CHECK(refusal("{\"a\": 1") == "is no safetensors file: 7 bytes, a header takes 8");
  CHECK(refusal(length_prefix(10) + "{}") ==
        "is cut short: a header of 10 bytes, 2 are left in the file");
  CHECK(refusal(length_prefix(100'000'001)) ==
        "is no safetensors file: a header of 100000001 bytes, the format allows 100000000");
  CHECK(refusal(std::string(16, '\xff')) ==
        "is no safetensors file: a header of 18446744073709551615 bytes, the format allows "
        "100000000");
  CHECK(refusal(safetensors("[]", 0)) == "expected an object, found an array");
  CHECK(refusal(safetensors("{", 0)) ==
        "line 1, column 2: JSON ends too early: the \"{\" of line 1 is not closed");
  CHECK(refusal(safetensors("{\"\xff\": 1}", 0)) ==
        "line 1, column 3: not valid JSON: text that is not UTF-8");
  const std::string w = tensor("[1]", "[0, 4]");
  CHECK(refusal(safetensors(R"({"w": )" + w + R"(, "w": )" + w + "}", 4)) ==
        "key \"w\" is given twice");
}

TEST_CASE("tensors that contradict themselves or the file are refused") {
  const auto one = [](const std::string& json, std::size_t data) {
    return refusal(safetensors(R"({"w": )" + json + "}", data));
  };
  CHECK(one(tensor("[1]", "[0, 4]"), 4).empty());
  CHECK(one(tensor("[1]", "[0, 4]", "float32"), 4) == "/w/dtype: unknown dtype \"float32\"");
  CHECK(one(tensor("[1]", "[0, 4]", "F33"), 4) == "/w/dtype: unknown dtype \"F33\"");
  CHECK(one(tensor("[1]", "[0, 4]", ""), 4) == "/w/dtype: unknown dtype \"\"");
  CHECK(one(tensor("[2]", "[0, 4]"), 4) == "/w/data_offsets: 4 bytes, fp32 of shape [2] takes 8");
  CHECK(one(tensor("[1]", "[4, 0]"), 4) == "/w/data_offsets: begins at 4, behind its end at 0");
  CHECK(one(tensor("[1]", "[4, 8]"), 4) ==
        "/w/data_offsets: ends at 8, the file has 4 bytes of data");
  CHECK(one(tensor("[1]", "[0]"), 4) == "/w/data_offsets: expected two numbers, begin and end");
  CHECK(one(tensor("[1]", "[-4, 0]"), 4) ==
        "/w/data_offsets/0: -4 is out of range, must be from 0 to 4611686018427387904");
  CHECK(one(tensor("[4294967296, 4294967296]", "[0, 4]"), 4) ==
        "/w/shape: more than 2^53 elements");
  CHECK(one(tensor("[-1]", "[0, 4]"), 4) ==
        "/w/shape/0: -1 is out of range, must be from 0 to 9007199254740992");
  CHECK(one(R"({"dtype": "F32", "shape": [1]})", 4) == "/w: missing key \"data_offsets\"");
  CHECK(one(R"({"dtype": "F32", "shape": [1], "data_offset": [0, 4]})", 4) ==
        "/w: unknown key \"data_offset\", did you mean \"data_offsets\"?");
  CHECK(one("7", 0) == "/w: expected an object, found a number");
  CHECK(refusal(safetensors(R"({"__metadata__": {"step": 1}})", 0)) ==
        "/__metadata__/step: expected a string, found a number");
}

TEST_CASE("tensors cover the data once") {
  const auto two = [](const std::string& a, const std::string& b, std::size_t data) {
    return refusal(safetensors(
        R"({"a": )" + tensor("[2]", a) + R"(, "b/c": )" + tensor("[2]", b) + "}", data));
  };
  CHECK(two("[0, 8]", "[8, 16]", 16).empty());
  CHECK(two("[8, 16]", "[0, 8]", 16).empty());
  CHECK(two("[0, 8]", "[4, 12]", 12) == "/b~1c/data_offsets: overlaps \"a\"");
  CHECK(two("[0, 8]", "[0, 8]", 8) == "/b~1c/data_offsets: overlaps \"a\"");
  CHECK(two("[0, 8]", "[12, 20]", 20) == "/b~1c/data_offsets: leaves 4 bytes unused behind a");
  CHECK(two("[8, 16]", "[16, 24]", 24) ==
        "/a/data_offsets: leaves 8 bytes unused behind the header");
  CHECK(two("[0, 8]", "[8, 16]", 17) == "1 bytes of data that belong to no tensor");
}

namespace {

// Two shards, "a" in the first, "b" and "c" in the second.
class Sharded {
 public:
  Sharded() {
    write("model-00001-of-00002.safetensors", R"({"a": )" + tensor("[1]", "[0, 4]") + "}", 4);
    write("model-00002-of-00002.safetensors",
          R"({"b": )" + tensor("[2]", "[0, 8]") + R"(, "c": )" + tensor("[1]", "[8, 12]") + "}",
          12);
  }
  void write(const std::string& name, const std::string& header, std::size_t data) const {
    static_cast<void>(folder.write("tiny/" + name, safetensors(header, data)));
  }
  [[nodiscard]] std::string index(const std::string& weight_map) const {
    return folder.write("tiny/model.safetensors.index.json",
                        R"({"metadata": {"total_size": 16}, "weight_map": )" + weight_map + "}");
  }
  // What is said about an index with this map, after its path.
  [[nodiscard]] std::string refusal(const std::string& weight_map) const {
    const std::string path = index(weight_map);
    const std::string error = error_of([&] { return read_tree_file(path); });
    return error.starts_with(path + ": ") ? error.substr(path.size() + 2) : error;
  }

  ScratchFolder folder;
};

const std::string whole_map = R"({"a": "model-00001-of-00002.safetensors",
  "b": "model-00002-of-00002.safetensors", "c": "model-00002-of-00002.safetensors"})";

}  // namespace

TEST_CASE("an index joins the files beside it") {
  const Sharded sharded;
  const std::string index = sharded.index(whole_map);
  for (const std::string& path :
       {index, sharded.folder.path("tiny"), sharded.folder.path("tiny/")}) {
    const ParameterTree tree = read_tree_file(path);
    CHECK(tree.model == "tiny");
    REQUIRE(tree.leaves.size() == 3);
    CHECK(tree.leaves[1].name == "b");
    CHECK(tree.leaves[1].shape == std::vector<std::int64_t>{2});
  }
  // The index decides: a tensor that it does not name is not the model's.
  CHECK(
      read_tree_file(sharded.index(R"({"b": "model-00002-of-00002.safetensors"})")).leaves.size() ==
      1);
}

TEST_CASE("an index that does not fit its files is refused") {
  const Sharded sharded;
  CHECK(sharded.refusal(R"({"a": "model-00003.safetensors"})") ==
        "/weight_map/a: there is no file \"" + sharded.folder.path("tiny/model-00003.safetensors") +
            "\"");
  CHECK(sharded.refusal(R"({"x": "model-00001-of-00002.safetensors"})") ==
        "/weight_map/x: \"" + sharded.folder.path("tiny/model-00001-of-00002.safetensors") +
            "\" has no such tensor");
  CHECK(sharded.refusal(R"({"a": 1})") == "/weight_map/a: expected a string, found a number");
  CHECK(sharded.refusal(R"({"a": "x", "a": "y"})") == "key \"a\" is given twice");
  CHECK(sharded.refusal("[]") == "/weight_map: expected an object, found an array");
  for (const std::string outside : {"/etc/passwd", "../a.safetensors", "b/../../a", ""}) {
    CHECK(sharded.refusal(R"({"a": ")" + outside + "\"}") ==
          "/weight_map/a: \"" + outside + "\" is no file beside the index");
  }
}

TEST_CASE("a folder holds one checkpoint") {
  const ScratchFolder folder;
  const std::string one = safetensors(R"({"w": )" + tensor("[1]", "[0, 4]") + "}", 4);
  const auto error = [&](const std::string& name) {
    return error_of([&] { return read_tree_file(folder.path(name)); });
  };
  static_cast<void>(folder.write("none/config.json", "{}"));
  CHECK(error("none") == folder.path("none") + ": holds no .safetensors file");
  static_cast<void>(folder.write("one/weights.safetensors", one));
  CHECK(read_tree_file(folder.path("one")).model == "weights");
  static_cast<void>(folder.write("two/b.safetensors", one));
  static_cast<void>(folder.write("two/a.safetensors", one));
  CHECK(error("two") ==
        folder.path("two") + ": holds several, name one: a.safetensors, b.safetensors");
  static_cast<void>(folder.write("two/model.safetensors", one));
  CHECK(read_tree_file(folder.path("two")).model == "two");
}

TEST_CASE("what a file is shows in its content") {
  const ScratchFolder folder;
  const std::string header = R"({"w": )" + tensor("[1]", "[0, 4]") + "}";
  CHECK(read_tree_file(folder.write("blob", safetensors(header, 4))).leaves[0].name == "w");
  CHECK(read_tree_file(folder.write("tree.txt", R"({"schema": "shardsim/parameter-tree/1",
                                                    "parameters": {"v": {"shape": [2]}}})"))
            .leaves[0]
            .name == "v");
  const std::string config = folder.write("config.json", R"({"model_type": "llama"})");
  CHECK(error_of([&] { return read_tree_file(config); }) ==
        config + ": is a model's config.json, not a parameter tree: give it with --model");
  const std::string other = folder.write("other.json", R"({"colour": "blue"})");
  CHECK(error_of([&] { return read_tree_file(other); }) ==
        other +
            ": is no parameter tree (\"schema\": \"shardsim/parameter-tree/1\"), safetensors "
            "file or index of such (\"weight_map\")");
  const std::string nowhere = folder.path("nowhere.json");
  CHECK(error_of([&] { return read_tree_file(nowhere); }) ==
        nowhere + ": cannot be read: No such file or directory");
}

// 92,000 tensors, as DeepSeek-V3 has: nothing that reads them may look at all for each.
TEST_CASE("a large header is read") {
  std::string header = "{";
  constexpr int tensors = 92'000;
  for (int i = 0; i < tensors; ++i) {
    header += (i == 0 ? "\"" : ",\"") + std::string("model.layers.0.mlp.experts.") +
              std::to_string(i) + ".down_proj.weight\": " +
              tensor("[1]", "[" + std::to_string(4 * i) + "," + std::to_string(4 * i + 4) + "]");
  }
  const ScratchFolder folder;
  const std::string path =
      folder.write("large.safetensors", safetensors(header + "}", 4 * std::size_t{tensors}));
  CHECK(read_tree_file(path).leaves.size() == tensors);
}
