#include "experiments/missing_key.hpp"

#include <fmt/format.h>

#include <map>

namespace shardsim {

std::string missing_key(const std::string& key) {
  const std::map<std::string, std::string> flags = {
      {"workload", "--model, --batch and --sequence, or --program alone"},
      {"model", "--model, for example --model llama-3.1-8b"},
      {"batch", "--batch, for example --batch 64"},
      {"mesh", "--mesh, for example --mesh data=2,fsdp=4"},
      {"strategy", "--strategy, for example --strategy fsdp"},
      {"machine", "--machine, for example --machine dgx-h100"}};
  const auto flag = flags.find(key);
  const std::string text = fmt::format("missing key \"{}\"", key);
  return flag == flags.end() ? text : fmt::format("{}: give {}", text, flag->second);
}

}  // namespace shardsim
