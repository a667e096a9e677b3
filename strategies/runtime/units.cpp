#include "strategies/runtime/units.hpp"

#include "base/index.hpp"

namespace shardsim {

Units::Units(const Workload& workload, const std::vector<StageRange>& stages)
    : workload_(workload),
      has_stages_(stages.size() > 1),
      stage_of_(workload.blocks.size(), 0),
      roots_(stages.size()) {
  for (std::size_t s = 0; s < stages.size(); ++s) {
    bool is_first = true;
    for (std::size_t i = 0; i < stages[s].count; ++i) {
      const auto block = static_cast<std::size_t>(workload.order[stages[s].first + i].block);
      if (!is_root(block)) continue;
      stage_of_[block] = s;
      if (is_first) roots_[s].first = block;
      roots_[s].last = block;
      is_first = false;
    }
  }
}

bool Units::is_root(std::size_t block) const { return !workload_.blocks[block].is_layer; }

bool Units::are_one(std::size_t block, std::size_t other) const {
  if (block == other) return true;
  return is_root(block) && is_root(other) && stage_of_[block] == stage_of_[other];
}

bool Units::is_first(std::size_t block) const { return roots_[stage_of_[block]].first == block; }

bool Units::is_last(std::size_t block) const { return roots_[stage_of_[block]].last == block; }

std::string Units::name(std::size_t block) const {
  return is_root(block) ? "root" : workload_.blocks[block].name;
}

}  // namespace shardsim
