#include "megatron_records.hpp"

#include <filesystem>

#include "tests/base/golden_files.hpp"

namespace shardsim::test {

std::vector<MegatronRecord> megatron_records() {
  std::vector<MegatronRecord> records;
  for (const std::string& path : golden_files(golden_folder("megatron"), ".json")) {
    MegatronRecord record{std::filesystem::path(path).filename().string(), load_json(path)};
    if (!record.document.contains("collectives")) continue;  // layouts, schedules, index
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace shardsim::test
