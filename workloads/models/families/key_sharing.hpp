// What Gemma 3n and 4 share: norms, and layers at the end that read others' keys and values.
#pragma once

#include <string>
#include <vector>

#include "workloads/models/families/decoder.hpp"

namespace shardsim::models {

// The weight is multiplied in fp32, and the mean is taken to a power; or there is no weight.
[[nodiscard]] Norm power_norm(std::string name);
[[nodiscard]] Norm plain_power_norm(std::string name);

// How a layer comes to keys and values: those of layers at the end are of the last one before them
// that is of their type.
struct KeySharing {
  std::int64_t first_reader = 0;
  std::vector<std::string> types;

  [[nodiscard]] bool reads(std::int64_t layer) const { return layer >= first_reader; }
  [[nodiscard]] bool hands_on(std::int64_t layer) const;
  // Whose keys and values a layer has, and norms of queries and of those that it makes itself.
  void set(std::int64_t layer, Attention& attention) const;
};

// num_kv_shared_layers, `usual` where the file does not say it.
[[nodiscard]] KeySharing read_key_sharing(const Config& c, const Sizes& n,
                                          std::vector<std::string> types, std::int64_t usual);

}  // namespace shardsim::models
