// What the descriptions of encoders with decoders share.
#pragma once

#include <string_view>

#include "workloads/models/families/decoder.hpp"

namespace shardsim::models {

// Where a class of the family is not T5's.
struct T5Kind {
  std::string_view form = "relu";  // default of feed_forward_proj
  bool biases_everywhere = false;  // a table of distances in every layer (UMT5)
};

[[nodiscard]] ModelSpec t5_like(const Config& c, const T5Kind& kind);
// Both sides' tables of their own, the one beside them idle: nothing is tied.
void untie_tables(ModelSpec& spec);
[[nodiscard]] ModelSpec bart(const Config& c);
[[nodiscard]] Stack bart_decoder(const Config& c);  // of bart, the second stack
[[nodiscard]] ModelSpec mbart(const Config& c);     // norms before the branches
// BART with norms before; positions are sines, which have no table, and are added before no norm.
[[nodiscard]] ModelSpec m2m100(const Config& c);

}  // namespace shardsim::models
