// The model descriptions of workloads/configs/, compiled in by embed_configs.cmake.
#pragma once

#include <string>
#include <vector>

namespace shardsim {

struct ShippedConfig {
  std::string name;  // "llama-3.1-8b"
  std::string text;
};
[[nodiscard]] std::vector<ShippedConfig> shipped_configs();

}  // namespace shardsim
