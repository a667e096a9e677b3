// Whether every key of a config.json is known: asked for by the family's reader, of no consequence
// (harmless_keys.hpp), or with a value that says what its absence says (`num_experts` 0). What is
// none of these might be what makes the model another, and is an error at its place.
//
//   const models::ModelSpec spec = read_known_model(json, "llama-3.1-8b");
//
// Nested configurations that a reader looks into (`text_config`, `vision_config`) likewise.
#pragma once

#include <string>
#include <vector>

#include "workloads/models/families/families.hpp"

namespace shardsim {

// Of this object alone.
[[nodiscard]] std::vector<std::string> known_keys(const JsonReader& json,
                                                  const models::AskedKeys& asked);

// As `shardsim model` reads a file: how weights are stored (quantization) and what a run would
// return are passed over. Throws InputError as read_model does and for keys that are not known.
[[nodiscard]] models::ModelSpec read_known_model(const JsonReader& config, const std::string& name);

}  // namespace shardsim
