// What a file is, by its content, so that one given in the wrong place is told so:
//
//   step.mlir: is a StableHLO program, not an experiment: give it with --program
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_reader.hpp"

namespace shardsim {

enum class FileKind : std::uint8_t {
  experiment,
  profile,
  calibration,
  kernels,
  plan,
  result,
  report,  // any other document that shardsim prints
  parameter_tree,
  sweep,
  baseline,
  budgets,
  measured_table,
  trace,
  reshard,
  model_config,
  safetensors_index,
  safetensors,
  stablehlo,
  stablehlo_bytecode,
  hlo,
  nccl_tests_log,
  gzip,
  binary,
};

[[nodiscard]] std::string_view name_of(FileKind kind);  // "a StableHLO program"
[[nodiscard]] std::string_view use_of(FileKind kind);   // "give it with --program"; may be empty

// Of what has marks of its own; nothing for other text, which may be JSON. Looks at the beginning.
[[nodiscard]] std::optional<FileKind> kind_of_text(std::string_view content);
// By "schema", else by keys that only one kind has.
[[nodiscard]] std::optional<FileKind> kind_of_document(const Json& document);

// Throws InputError where the content is known to be of another kind.
void require_kind(std::string_view content, FileKind wanted, const std::string& file);
void require_kind_of_document(const Json& document, FileKind wanted, const std::string& file);
// load_json, of a kind. A document that is not known to be of another is what is wanted.
[[nodiscard]] Json load_json(const std::string& path, FileKind wanted);

}  // namespace shardsim
