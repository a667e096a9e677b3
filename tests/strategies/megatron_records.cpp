#include "megatron_records.hpp"

#include <filesystem>
#include <iostream>

#include "tests/base/golden_files.hpp"

namespace shardsim::test {
namespace {

// Empty: it is compared.
std::string skip_reason(const Json& record) {
  const Json& settings = record["strategy"]["settings"];
  // The record is of Megatron's local layers, which split what goes down to latents; those of
  // Transformer Engine keep it whole (README.md there).
  const bool is_latent = record["model"].contains("multi_latent_attention");
  if (is_latent && settings["tp"] != 1) return "latent attention of the local specification";
  return "";
}

}  // namespace

std::vector<MegatronRecord> megatron_records() {
  std::vector<MegatronRecord> records;
  for (const std::string& path : golden_files(golden_folder("megatron"), ".json")) {
    MegatronRecord record{std::filesystem::path(path).filename().string(), load_json(path)};
    if (!record.document.contains("collectives")) continue;  // layouts, schedules, index
    const std::string reason = skip_reason(record.document);
    if (reason.empty()) {
      records.push_back(std::move(record));
    } else {
      std::cout << record.file << ": skipped (" << reason << ")\n";
    }
  }
  return records;
}

}  // namespace shardsim::test
