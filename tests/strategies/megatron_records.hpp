// Megatron-Core's recorded steps (tests/golden/megatron/README.md) that ours are compared with.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"

namespace shardsim::test {

struct MegatronRecord {
  std::string file;  // without its folder
  Json document;
};

[[nodiscard]] std::vector<MegatronRecord> megatron_records();

}  // namespace shardsim::test
