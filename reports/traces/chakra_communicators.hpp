// Who the ranks of a plan are and how they meet: the program that each runs, the group in which it
// takes part in a collective, those to whom a permute leads it. A rank is a position in the mesh.
//
// Ranks that meet in several collectives are one group. Groups are in the order in which programs
// first execute them.
//
// Cost: O(devices) for every set of axes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/index.hpp"
#include "plan/plan.hpp"

namespace shardsim {

class ChakraCommunicators {
 public:
  using Ranks = std::vector<std::int64_t>;
  static constexpr std::int32_t none = -1;

  // How the ranks meet in a collective.
  struct Grouping {
    std::vector<std::int32_t> group_of;       // by rank: index into groups(); none: it has no part
    std::vector<std::int32_t> sends_to = {};  // of a permute, by rank
    std::vector<std::int32_t> receives_from = {};
  };

  // The plan outlives it. Throws InputError for messages between programs of different size, and
  // for collectives that reach into another program.
  explicit ChakraCommunicators(const Plan& plan);

  [[nodiscard]] Ranks devices_of(const Program& program) const;
  // `none`: the rank runs nothing.
  [[nodiscard]] std::int32_t program_of(std::int64_t rank) const { return program_of_[at(rank)]; }
  // Among the devices of its program.
  [[nodiscard]] std::int64_t place_of(std::int64_t rank) const { return place_of_[at(rank)]; }
  [[nodiscard]] const std::vector<Ranks>& groups() const { return groups_; }
  // Of one that a program executes.
  [[nodiscard]] const Grouping& grouping_of(std::int32_t collective) const {
    return groupings_[at(grouping_of_[at(collective)])];
  }

 private:
  void place_ranks();
  void check_messages(const Program& program) const;
  void group_ranks();
  [[nodiscard]] Grouping make_grouping(const Collective& collective) const;
  void number_groups(std::size_t program, const Collective& collective, Grouping& grouping);

  const Plan& plan_;
  std::vector<std::int32_t> program_of_;  // by rank
  std::vector<std::int64_t> place_of_;    // by rank
  std::vector<Ranks> groups_;
  std::map<Ranks, std::int32_t> group_index_;  // into groups_
  std::vector<Grouping> groupings_;
  std::vector<std::int32_t> grouping_of_;  // by collective; none: it is not executed
};

}  // namespace shardsim
