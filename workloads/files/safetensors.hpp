// The parameters of a checkpoint in the safetensors format, from headers alone: no tensor is read,
// however large the model.
//
//   8 bytes      length N of the header, little-endian, at most 100 MB
//   N bytes      JSON: {"lm_head.weight": {"dtype": "BF16", "shape": [128256, 4096],
//                                          "data_offsets": [0, 1050673152]},
//                       "__metadata__": {"format": "pt"}}, padded with spaces
//   the rest     the tensors, without gaps; offsets count from its first byte
//
// A model of several files has an index, `model.safetensors.index.json`, whose "weight_map" says
// which file beside it holds which tensor. Tensors of a file that the index does not look for there
// are left out, as transformers leaves them out.
//
// Names are the file's, as they are: "model.layers.0.mlp.up_proj.weight". Places of leaves are
// pointers into the header.
//
// Source: README.md ("Format") and safetensors/src/tensor.rs of github.com/huggingface/safetensors,
// whose reader refuses what is refused here: lengths that do not fit the file, tensors that overlap
// or leave gaps, sizes that are not shape times dtype, names given twice. All are InputErrors with
// file and place.
#pragma once

#include <string>

#include "base/json_reader.hpp"
#include "workloads/files/parameter_tree.hpp"

namespace shardsim {

[[nodiscard]] ParameterTree read_safetensors_file(const std::string& path);
// `index` is the document in the file `path`; names of shards are relative to its folder.
[[nodiscard]] ParameterTree read_safetensors_index(const JsonReader& index,
                                                   const std::string& path);
// The folder's model.safetensors or model.safetensors.index.json; else its only index; else its
// only .safetensors file.
[[nodiscard]] ParameterTree read_safetensors_directory(const std::string& path);

}  // namespace shardsim
