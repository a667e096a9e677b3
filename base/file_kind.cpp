#include "base/file_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/gzip.hpp"
#include "base/json.hpp"

namespace shardsim {
namespace {

struct KindRow {
  FileKind kind;
  std::string_view schema;  // "shardsim/SCHEMA/1"; empty: it has none
  std::string_view name;
  std::string_view use;
};

constexpr std::array kinds{
    KindRow{FileKind::experiment, "", "an experiment",
            "give it by its name alone, to run, compare, plan or specs"},
    KindRow{FileKind::profile, "profile", "a hardware profile", "give it with --machine"},
    KindRow{FileKind::kernels, "kernels", "a table of kernels",
            "name it in the \"device\" of a profile, as its \"kernels\""},
    KindRow{FileKind::calibration, "calibration", "a calibration",
            "give it with --calibration, or name it in the \"calibration\" of a profile"},
    KindRow{FileKind::plan, "plan", "a plan", "give the experiment that it was made of"},
    KindRow{FileKind::result, "result", "a result", "its \"experiment\" is one"},
    KindRow{FileKind::report, "", "a report of shardsim", ""},
    KindRow{FileKind::parameter_tree, "parameter-tree", "a parameter tree",
            "give it with --tree, to specs"},
    KindRow{FileKind::sweep, "sweep", "a sweep", "give it to calibrate"},
    KindRow{FileKind::baseline, "baseline", "a baseline", "give it to check"},
    KindRow{FileKind::budgets, "limits", "a file of limits",
            "give it to check, in place of a baseline"},
    KindRow{FileKind::measured_table, "", "a measured table",
            "give it to collective --against, or to calibrate"},
    KindRow{FileKind::trace, "", "a trace of the PyTorch profiler",
            "give it to collective --against, or to calibrate"},
    KindRow{FileKind::reshard, "", "a change of shardings", "give it to reshard"},
    KindRow{FileKind::model_config, "", "a model's config.json", "give it with --model"},
    KindRow{FileKind::safetensors_index, "", "the index of safetensors files",
            "give it with --tree, to specs"},
    KindRow{FileKind::safetensors, "", "a safetensors file", "give it with --tree, to specs"},
    KindRow{FileKind::stablehlo, "", "a StableHLO program", "give it with --program"},
    KindRow{FileKind::stablehlo_bytecode, "", "a program in MLIR's bytecode",
            "have it printed as text, as jax.jit(f).lower(...).as_text() does"},
    KindRow{FileKind::hlo, "", "compiled HLO", "give it with --program"},
    KindRow{FileKind::nccl_tests_log, "", "output of nccl-tests",
            "give it to collective --against, or to calibrate"},
    KindRow{FileKind::gzip, "", "compressed twice", ""},
    KindRow{FileKind::binary, "", "a binary file", ""},
};

const KindRow& kind_row(FileKind kind) {
  return *std::find_if(kinds.begin(), kinds.end(),
                       [&](const KindRow& row) { return row.kind == kind; });
}

// The first words that are no comments of MLIR.
bool begins_as_mlir(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    at = end + 1;
    if (line.empty() || line.starts_with("//")) continue;
    for (const std::string_view begin :
         {"module @", "module {", "module attributes", "builtin.module", "\"builtin.module\"",
          "func.func", "#loc", "sdy.mesh"}) {
      if (line.starts_with(begin)) return true;
    }
    return line.starts_with('#') && line.find(" = loc(") != std::string_view::npos;
  }
  return false;
}

// A length below 2^32, then the header's brace.
bool begins_as_safetensors(std::string_view text) {
  constexpr std::size_t length_bytes = 8;
  return text.size() > length_bytes && text[length_bytes] == '{' &&
         text.substr(length_bytes / 2, length_bytes / 2) == std::string_view("\0\0\0\0", 4);
}

bool has_any(const Json& document, std::initializer_list<const char*> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const char* key) { return document.contains(key); });
}

std::optional<FileKind> kind_of_schema(std::string_view schema) {
  constexpr std::string_view ours = "shardsim/";
  if (!schema.starts_with(ours)) return std::nullopt;
  schema.remove_prefix(ours.size());
  schema = schema.substr(0, schema.find('/'));
  for (const KindRow& row : kinds) {
    if (!row.schema.empty() && schema == row.schema) return row.kind;
  }
  return FileKind::report;
}

[[noreturn]] void refuse(FileKind kind, FileKind wanted, const std::string& file) {
  throw InputError({file, ""}, fmt::format("is {}, not {}{}{}", name_of(kind), name_of(wanted),
                                           use_of(kind).empty() ? "" : ": ", use_of(kind)));
}

}  // namespace

std::string_view name_of(FileKind kind) { return kind_row(kind).name; }
std::string_view use_of(FileKind kind) { return kind_row(kind).use; }

std::optional<FileKind> kind_of_text(std::string_view content) {
  constexpr std::size_t looked_at = 4096;
  const std::string_view text = content.substr(0, looked_at);
  if (text.starts_with("\x1f\x8b")) return FileKind::gzip;
  if (text.starts_with("ML\xefR")) return FileKind::stablehlo_bytecode;
  if (begins_as_safetensors(text)) return FileKind::safetensors;
  if (text.find('\0') != std::string_view::npos) return FileKind::binary;
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  if (text.substr(begin).starts_with("HloModule")) return FileKind::hlo;
  if (begins_as_mlir(text)) return FileKind::stablehlo;
  if (text.find("# nThread") != std::string_view::npos) return FileKind::nccl_tests_log;
  return std::nullopt;
}

std::optional<FileKind> kind_of_document(const Json& document) {
  if (!document.is_object()) return std::nullopt;
  const auto schema = document.find("schema");
  if (schema != document.end() && schema->is_string()) {
    if (const auto kind = kind_of_schema(schema->get_ref<const std::string&>())) return kind;
  }
  if (has_any(document, {"workload", "strategy", "program", "variants"})) {
    return FileKind::experiment;
  }
  if (document.contains("traceEvents")) return FileKind::trace;
  if (document.contains("weight_map")) return FileKind::safetensors_index;
  if (document.contains("rows")) return FileKind::measured_table;
  // A tree may lie as it says itself.
  if (document.contains("to") && has_any(document, {"from", "tree"})) return FileKind::reshard;
  if (has_any(document, {"model_type", "architectures", "_class_name"}))
    return FileKind::model_config;
  return std::nullopt;
}

void require_kind(std::string_view content, FileKind wanted, const std::string& file) {
  const auto kind = kind_of_text(content);
  if (kind && *kind != wanted) refuse(*kind, wanted, file);
}

void require_kind_of_document(const Json& document, FileKind wanted, const std::string& file) {
  const auto kind = kind_of_document(document);
  if (kind && *kind != wanted) refuse(*kind, wanted, file);
}

Json load_json(const std::string& path, FileKind wanted) {
  const std::string text = read_maybe_gzip(path);
  require_kind(text, wanted, path);
  Json document = parse_json(text, path);
  require_kind_of_document(document, wanted, path);
  return document;
}

}  // namespace shardsim
