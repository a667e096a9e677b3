// The tables that the programs of a plan share: names and pieces of work, each once.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "strategies/partition/spmd.hpp"

namespace shardsim {

// An item with its work and name found in the plan's tables.
struct ResolvedItem {
  const Item* item = nullptr;
  std::int32_t work = 0;
  std::int32_t name = 0;
};

struct ResolvedPass {
  const BlockPass* pass = nullptr;
  std::vector<ResolvedItem> gathers, body, reductions, additions, last_reductions;
  // Of a backward pass, by item of the body: is it needed for the gradient that goes to the block
  // before? The others make gradients of weights.
  std::vector<bool> for_input;
  // What the gathers bring that can stay for later passes; empty: they run every time. Of the
  // block's unit, and of the one within.
  std::vector<ValueId> kept, kept_within;
};

struct ResolvedBlock {
  ResolvedPass forward, backward, optimizer;
  std::vector<ResolvedItem> shared;
};

class PlanTables {
 public:
  // Fills the tables of `plan` with everything that the passes of all blocks do.
  PlanTables(const SpmdStep& step, Plan& plan);

  [[nodiscard]] const ResolvedBlock& block(std::int32_t id) const {
    return blocks_[static_cast<std::size_t>(id)];
  }
  std::int32_t name(const std::string& name);
  std::int32_t name_of_value(ValueId id);
  std::int32_t transfer(const Transfer& transfer);
  std::int32_t kernel(const Kernel& kernel);
  std::int32_t collective(const Collective& collective);

 private:
  [[nodiscard]] std::vector<ResolvedItem> resolve_all(const std::vector<Item>& items);
  [[nodiscard]] ResolvedPass resolve(const BlockPass& pass, const std::set<ValueId>& given_back);

  const SpmdStep& step_;
  Plan& plan_;
  std::map<std::string, std::int32_t> names_;
  std::vector<ResolvedBlock> blocks_;
  std::vector<std::int32_t> value_names_;  // of values whose name has been asked for
};

}  // namespace shardsim
