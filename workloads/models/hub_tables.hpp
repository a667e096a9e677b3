// What files on the hub call the tensors of a family's modules (hub_names.hpp), family by family.
#pragma once

#include <string_view>
#include <vector>

#include "workloads/models/hub_names.hpp"

namespace shardsim::models {

// A part of a name; "^" in front: of its beginning alone. "#" stands for a number.
struct Renaming {
  std::string_view module;
  std::string_view file;
};

// Modules whose rows lie in files as one matrix's, in this order.
struct Fusion {
  std::vector<std::string_view> modules;
  std::string_view file;
};

// A module whose rows lie in files as parts of as many rows each.
struct Cut {
  std::string_view module;
  std::vector<std::string_view> files;
  std::size_t dimension = 0;  // that is cut
};

struct HubFamily {
  std::vector<std::string_view> families;
  std::vector<Renaming> renamings{};
  ExpertFiles experts{};
  std::vector<Fusion> fusions{};
  std::vector<Cut> cuts{};
  std::string_view behind{};               // whose experts' numbers follow those of others
  std::vector<std::string_view> turned{};  // files have these matrices [in, out]
};

using HubTable = std::vector<HubFamily>;

[[nodiscard]] const HubTable& hub_families();
// Of these the ones of a file of their own.
[[nodiscard]] HubTable recent_hub_families();

}  // namespace shardsim::models
