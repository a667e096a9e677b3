// MaxText's decoder blocks that have a config.json of their own, whose sizes are MaxText's under
// other names: {"decoder_block": "llama4", "base_moe_mlp_dim": 8192} is {"model_type":
// "llama4_text", "intermediate_size": 8192}. Read in both directions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/facts.hpp"

namespace shardsim {

[[nodiscard]] bool is_maxtext_block(std::string_view name);
[[nodiscard]] std::vector<std::string> maxtext_block_names();

// Throws InputError at a key that has what the block is not.
[[nodiscard]] Json config_of_maxtext_block(const Facts& facts);

[[nodiscard]] bool has_maxtext_block(const Json& config);
// Throws InputError for a config.json that leaves a size out.
void add_maxtext_block_facts(const Json& given, const Place& place, Facts& facts);

}  // namespace shardsim
