#include "workloads/files/tree_file.hpp"

#include <array>
#include <filesystem>
#include <fstream>

#include "base/file_kind.hpp"
#include "base/gzip.hpp"
#include "base/json.hpp"
#include "workloads/files/safetensors.hpp"

namespace shardsim {

bool is_safetensors(const std::string& path) {
  std::error_code unreadable;
  if (std::filesystem::is_directory(path, unreadable) || path.ends_with(".safetensors"))
    return true;
  // A length below 2^32, then the header's brace. JSON text holds no NUL.
  std::array<char, 9> begin{};
  std::ifstream stream(path, std::ios::binary);
  return stream.read(begin.data(), begin.size()) && begin[8] == '{' &&
         std::string_view(&begin[4], 4) == std::string_view("\0\0\0\0", 4);
}

Json load_tree_document(const std::string& path) {
  const std::string text = read_maybe_gzip(path);
  require_kind(text, FileKind::parameter_tree, path);
  Json document = parse_json(text, path);
  if (is_safetensors_index(document)) return document;
  require_kind_of_document(document, FileKind::parameter_tree, path);
  if (document.is_object() && document.contains("schema")) return document;
  throw InputError({path, ""},
                   "is no parameter tree (\"schema\": \"shardsim/parameter-tree/1\"), safetensors "
                   "file or index of such (\"weight_map\")");
}

bool is_safetensors_index(const Json& document) {
  return document.is_object() && document.contains("weight_map");
}

ParameterTree read_tree_file(const std::string& path) {
  std::error_code unreadable;
  if (std::filesystem::is_directory(path, unreadable)) return read_safetensors_directory(path);
  if (is_safetensors(path)) return read_safetensors_file(path);
  const Json document = load_tree_document(path);
  const JsonReader reader(document, {path, ""});
  if (is_safetensors_index(document)) return read_safetensors_index(reader, path);
  return read_parameter_tree(reader);
}

}  // namespace shardsim
