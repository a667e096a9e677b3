// Keys of Hugging Face config.json files that change nothing of what a training step costs, each
// with the reason. Every other key is used by the model's reader or an error: what is not known
// cannot be passed over (docs/models.md has this table for people).
#pragma once

#include <string_view>
#include <vector>

namespace shardsim {

struct HarmlessKey {
  std::string_view key;
  std::string_view reason;
};

[[nodiscard]] const std::vector<HarmlessKey>& harmless_keys();
// Is its value a number, or several? A word there is a mistake, whatever it would cost.
[[nodiscard]] bool is_number(const HarmlessKey& key);

// Of no consequence with this value alone.
struct HarmlessValue {
  std::string_view key;
  std::string_view value;  // as JSON
};

[[nodiscard]] const std::vector<HarmlessValue>& harmless_values();

}  // namespace shardsim
