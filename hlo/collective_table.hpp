// The collectives of a module as entries of a plan: equal ones are one entry.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/collectives.hpp"
#include "hlo/scattered.hpp"
#include "plan/plan.hpp"

namespace shardsim {

// What collectives the computation of a fusion holds, and what part they are of an asynchronous
// one.
struct HeldCollectives {
  std::vector<HloId> collectives;
  bool starts = false;  // holds TPU's AsyncCollectiveStart
};

class CollectiveTable {
 public:
  CollectiveTable(const HloModule& module, Plan& plan)
      : module_(module), plan_(plan), devices_(devices_of(module)), scatters_(module) {
    find_async_channels();
  }

  // Index into plan.collectives of the collective instruction `id`.
  [[nodiscard]] std::int32_t entry(HloId id);
  // Of a fusion's or async-start's computation, fusions inside included.
  [[nodiscard]] const HeldCollectives& held(HloComputationId computation);
  // Whether TPU spreads this one over several fusions.
  [[nodiscard]] bool is_spread(HloId id) const;

  [[nodiscard]] const std::set<std::string>& notes() const { return notes_; }

 private:
  void find_async_channels();
  [[nodiscard]] Collective translate(HloId id);

  const HloModule& module_;
  Plan& plan_;
  HloDevices devices_;
  ScatterFinder scatters_;
  std::unordered_map<HloId, std::int32_t> entries_;
  std::map<std::string, std::int32_t> by_content_;
  std::unordered_map<HloComputationId, HeldCollectives> held_;
  std::set<std::int64_t> async_channels_;
  std::set<std::string> notes_;
};

}  // namespace shardsim
