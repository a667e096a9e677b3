// A parameter tree from whatever file holds one.
//
//   tree.json, tree.json.gz          `shardsim/parameter-tree/1` (parameter_tree.hpp)
//   model.safetensors                the header of a checkpoint (safetensors.hpp)
//   model.safetensors.index.json     the index of one in several files
//   Llama-3.1-8B/                    a folder with either
//
// What a file is shows in its content; its name does not matter.
#pragma once

#include <string>

#include "base/json_reader.hpp"
#include "workloads/files/parameter_tree.hpp"

namespace shardsim {

// Throws InputError.
[[nodiscard]] ParameterTree read_tree_file(const std::string& path);

// The steps of it, for readers that want more of a document than its tree.
[[nodiscard]] bool is_safetensors(const std::string& path);  // a file or folder of that format
// The JSON in any other file; an InputError when it is neither of the two documents above.
[[nodiscard]] Json load_tree_document(const std::string& path);
[[nodiscard]] bool is_safetensors_index(const Json& document);

}  // namespace shardsim
