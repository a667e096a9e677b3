#include "workloads/models/families/key_sharing.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardsim::models {

Norm power_norm(std::string name) {
  Norm norm{NormKind::rms_cast, std::move(name)};
  norm.by_power = true;
  return norm;
}

Norm plain_power_norm(std::string name) {
  Norm norm{NormKind::rms_plain, std::move(name)};
  norm.by_power = true;
  return norm;
}

bool KeySharing::hands_on(std::int64_t layer) const {
  const auto own = types.begin() + layer;
  const auto readers = types.begin() + first_reader;
  return !reads(layer) && std::find(own + 1, readers, *own) == readers &&
         std::find(readers, types.end(), *own) != types.end();
}

void KeySharing::set(std::int64_t layer, Attention& attention) const {
  const std::string& type = types[static_cast<std::size_t>(layer)];
  attention.q_norm = power_norm("q_norm");
  if (reads(layer)) {
    attention.reads = type;
    return;
  }
  attention.k_norm = power_norm("k_norm");
  attention.v_norm = plain_power_norm("v_norm");
  if (hands_on(layer)) attention.hands_on = type;
}

KeySharing read_key_sharing(const Config& c, const Sizes& n, std::vector<std::string> types,
                            std::int64_t usual) {
  KeySharing sharing{n.layers, std::move(types)};
  const std::int64_t readers = c.count("num_kv_shared_layers", usual);
  if (readers == 0) return sharing;
  if (readers >= n.layers) c.fail("num_kv_shared_layers", "leaves no layer with keys of its own");
  sharing.first_reader = n.layers - readers;
  const auto first = sharing.types.begin() + sharing.first_reader;
  for (auto type = first; type != sharing.types.end(); ++type) {
    if (std::find(sharing.types.begin(), first, *type) == first) {
      c.fail("num_kv_shared_layers",
             fmt::format("no layer before those that share has the type \"{}\"", *type));
    }
  }
  return sharing;
}

}  // namespace shardsim::models
