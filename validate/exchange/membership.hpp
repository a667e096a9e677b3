// Who takes part in what of a plan, as communication libraries ask for it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/plan.hpp"

namespace shardsim {

using Groups = std::vector<std::vector<std::int64_t>>;  // positions in the mesh

// The groups of a collective; of a permute its pairs.
[[nodiscard]] Groups groups_of(const Plan& plan, const Collective& collective);

struct Membership {
  int color = 0;  // which of the groups
  int key = 0;    // which of its members
};
// Nothing where `position` is in none of them.
[[nodiscard]] std::optional<Membership> membership_in(const Groups& groups, std::int64_t position);

// Of a permute: whom `position` sends to and receives from, positions in the mesh.
struct Neighbours {
  std::vector<int> targets;
  std::vector<int> sources;
};
[[nodiscard]] Neighbours neighbours_in(const Plan& plan, const Collective& permute,
                                       std::int64_t position);

// Throws InputError where a message goes between programs of different size, which no backend runs.
void check_messages(const Plan& plan);
// Of a message of that program: the device of the same place in the other one.
[[nodiscard]] std::int64_t peer_of(const Plan& plan, std::size_t program, const Transfer& transfer,
                                   std::int64_t position);

}  // namespace shardsim
