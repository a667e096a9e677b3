#include "workloads/files/safetensors.hpp"

#include "base/json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <tuple>
#include <unordered_map>

namespace shardsim {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t longest_header = 100'000'000;  // MAX_HEADER_SIZE of the original
constexpr std::int64_t most_bytes = std::int64_t{1} << 62;
const std::string index_suffix = ".safetensors.index.json";

struct Header {
  std::string text;
  std::int64_t data_bytes = 0;  // of the file, after the header
};

Header read_header(const std::string& path) {
  const Place place{path, ""};
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw InputError(place, fmt::format("cannot be read: {}", std::strerror(errno)));
  const std::uint64_t size =
      stream.seekg(0, std::ios::end) ? static_cast<std::uint64_t>(stream.tellg()) : 0;
  std::array<char, 8> prefix{};
  if (!stream.seekg(0) || !stream.read(prefix.data(), prefix.size())) {
    throw InputError(place,
                     fmt::format("is no safetensors file: {} bytes, a header takes 8", size));
  }
  std::uint64_t length = 0;
  for (std::size_t i = prefix.size(); i-- > 0;) {
    length = length << 8U | static_cast<unsigned char>(prefix.at(i));
  }
  if (length > longest_header) {
    throw InputError(place, fmt::format("is no safetensors file: a header of {} bytes, the format "
                                        "allows {}",
                                        length, longest_header));
  }
  if (length > size - prefix.size()) {
    throw InputError(
        place, fmt::format("is cut short: a header of {} bytes, {} are left in the file", length,
                           size - prefix.size()));
  }
  Header header{std::string(length, '\0'),
                static_cast<std::int64_t>(size - prefix.size() - length)};
  if (!stream.read(header.text.data(), static_cast<std::streamsize>(length))) {
    throw InputError(place, "the header cannot be read");
  }
  return header;
}

struct Extent {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t leaf = 0;
};

DType read_capital_dtype(const JsonReader& json) {
  const std::string text = json.string();
  // The format writes capitals; "float32" is no name of its.
  const bool is_capital =
      std::none_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  const std::optional<DType> dtype = is_capital ? parse_dtype(text) : std::nullopt;
  if (!dtype) json.fail(fmt::format("unknown dtype \"{}\"", text));
  return *dtype;
}

ParameterLeaf read_tensor(const std::string& name, const JsonReader& json) {
  ParameterLeaf leaf;
  leaf.name = name;
  leaf.place = json.place();
  leaf.dtype = read_capital_dtype(json.at("dtype"));
  for (const JsonReader& size : json.at("shape").elements()) {
    leaf.shape.push_back(size.integer(0, most_elements));
  }
  const std::optional<std::int64_t> elements = checked_elements(leaf.shape);
  if (!elements) json.at("shape").fail("more than 2^53 elements");
  if (*elements * bits_of(leaf.dtype) % 8 != 0) {
    json.at("shape").fail(
        fmt::format("{} elements of {} do not fill whole bytes", *elements, name_of(leaf.dtype)));
  }
  return leaf;
}

Extent read_extent(const ParameterLeaf& leaf, const JsonReader& json, std::int64_t data_bytes) {
  const std::vector<JsonReader> offsets = json.elements();
  if (offsets.size() != 2) json.fail("expected two numbers, begin and end");
  const Extent extent{offsets[0].integer(0, most_bytes), offsets[1].integer(0, most_bytes), 0};
  if (extent.begin > extent.end) {
    json.fail(fmt::format("begins at {}, behind its end at {}", extent.begin, extent.end));
  }
  if (extent.end > data_bytes) {
    json.fail(fmt::format("ends at {}, the file has {} bytes of data", extent.end, data_bytes));
  }
  const std::int64_t expected = byte_count(leaf).count();
  if (extent.end - extent.begin != expected) {
    json.fail(fmt::format("{} bytes, {} of shape [{}] takes {}", extent.end - extent.begin,
                          name_of(leaf.dtype), fmt::join(leaf.shape, ", "), expected));
  }
  return extent;
}

// Tensors cover the data without gaps.
void check_cover(std::vector<Extent> extents, const std::vector<ParameterLeaf>& leaves,
                 const Header& header, const std::string& path) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::tie(a.begin, a.end, a.leaf) < std::tie(b.begin, b.end, b.leaf);
  });
  std::int64_t covered = 0;
  std::string before = "the header";
  for (const Extent& extent : extents) {
    const ParameterLeaf& leaf = leaves[extent.leaf];
    const Place place{path, leaf.place.pointer + "/data_offsets"};
    if (extent.begin < covered) throw InputError(place, fmt::format("overlaps \"{}\"", before));
    if (extent.begin > covered) {
      throw InputError(
          place, fmt::format("leaves {} bytes unused behind {}", extent.begin - covered, before));
    }
    covered = extent.end;
    before = leaf.name;
  }
  if (covered != header.data_bytes) {
    throw InputError({path, ""}, fmt::format("{} bytes of data that belong to no tensor",
                                             header.data_bytes - covered));
  }
}

// "llama-3.1-8b" for llama-3.1-8b.safetensors and for llama-3.1-8b/model.safetensors.
std::string checkpoint_name(const fs::path& path) {
  std::string name = path.filename().string();
  for (const std::string& suffix : {index_suffix, std::string(".safetensors")}) {
    if (name.ends_with(suffix)) name.erase(name.size() - suffix.size());
  }
  if (name != "model") return name;
  const std::string folder = fs::absolute(path).parent_path().filename().string();
  return folder.empty() ? name : folder;
}

// A name in "weight_map" is that of a file in the index's folder: not a way to other places.
fs::path shard_path(const JsonReader& file, const fs::path& folder) {
  const fs::path name = file.string();
  const bool leaves_folder = std::find(name.begin(), name.end(), fs::path("..")) != name.end();
  if (name.empty() || name.is_absolute() || leaves_folder) {
    file.fail(fmt::format("\"{}\" is no file beside the index", name.string()));
  }
  return folder / name;
}

}  // namespace

ParameterTree read_safetensors_file(const std::string& path) {
  const Header header = read_header(path);
  const Json document = parse_json(header.text, path);
  ParameterTree tree;
  tree.model = checkpoint_name(path);
  std::vector<Extent> extents;
  for (const auto& [name, json] : JsonReader(document, {path, ""}).members()) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : json.members()) static_cast<void>(value.string());
      continue;
    }
    json.only_keys({"dtype", "shape", "data_offsets"});
    tree.leaves.push_back(read_tensor(name, json));
    extents.push_back(read_extent(tree.leaves.back(), json.at("data_offsets"), header.data_bytes));
    extents.back().leaf = tree.leaves.size() - 1;
  }
  check_cover(std::move(extents), tree.leaves, header, path);
  sort_leaves(tree.leaves);
  return tree;
}

ParameterTree read_safetensors_index(const JsonReader& index, const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  ParameterTree tree;
  tree.model = checkpoint_name(path);
  // Tensors by the file that holds them: each is opened once.
  std::map<std::string, std::vector<std::pair<std::string, JsonReader>>> tensors_of;
  for (const auto& [tensor, file] : index.at("weight_map").members()) {
    tensors_of[shard_path(file, folder).string()].emplace_back(tensor, file);
  }
  for (const auto& [shard, tensors] : tensors_of) {
    std::error_code unreadable;
    if (!fs::is_regular_file(shard, unreadable)) {
      tensors[0].second.fail(fmt::format("there is no file \"{}\"", shard));
    }
    std::unordered_map<std::string, ParameterLeaf> found;
    for (ParameterLeaf& leaf : read_safetensors_file(shard).leaves) {
      const std::string name = leaf.name;
      found.emplace(name, std::move(leaf));
    }
    for (const auto& [tensor, file] : tensors) {
      const auto leaf = found.find(tensor);
      if (leaf == found.end()) file.fail(fmt::format("\"{}\" has no such tensor", shard));
      tree.leaves.push_back(std::move(leaf->second));
    }
  }
  sort_leaves(tree.leaves);
  return tree;
}

ParameterTree read_safetensors_directory(const std::string& path) {
  std::vector<std::string> indices;
  std::vector<std::string> files;
  std::error_code unreadable;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, unreadable)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(index_suffix)) indices.push_back(name);
    if (name.ends_with(".safetensors")) files.push_back(name);
  }
  if (unreadable) throw InputError({path, ""}, "cannot be read: " + unreadable.message());
  std::sort(indices.begin(), indices.end());
  std::sort(files.begin(), files.end());
  const auto holds = [](const std::vector<std::string>& names, const std::string& name) {
    return std::binary_search(names.begin(), names.end(), name);
  };
  const fs::path folder = path;
  if (holds(files, "model.safetensors")) {
    return read_safetensors_file((folder / "model.safetensors").string());
  }
  if (holds(indices, "model" + index_suffix)) indices = {"model" + index_suffix};
  if (indices.size() == 1) {
    const std::string index = (folder / indices[0]).string();
    const Json document = load_json(index);
    return read_safetensors_index(JsonReader(document, {index, ""}), index);
  }
  if (indices.empty() && files.size() == 1)
    return read_safetensors_file((folder / files[0]).string());
  if (indices.empty() && files.empty()) throw InputError({path, ""}, "holds no .safetensors file");
  const std::vector<std::string>& several = indices.empty() ? files : indices;
  throw InputError({path, ""},
                   fmt::format("holds several, name one: {}", fmt::join(several, ", ")));
}

}  // namespace shardsim
