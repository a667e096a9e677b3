#include "hlo/diff.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace shardsim {
namespace {

using Uses = std::vector<CollectiveUse>;

void drop_spent(Uses& uses) {
  uses.erase(std::remove_if(uses.begin(), uses.end(),
                            [](const CollectiveUse& use) { return use.count == 0; }),
             uses.end());
}

// Hands `take` one use of each program as long as there are two with the same `key_of`; it takes
// executions off both, all of at least one. What is used up goes.
template <class KeyOf, class Take>
void match(Uses& before, Uses& after, KeyOf key_of, Take take) {
  std::map<decltype(key_of(before[0])), std::deque<CollectiveUse*>> waiting;
  for (CollectiveUse& use : after) waiting[key_of(use)].push_back(&use);
  for (CollectiveUse& use : before) {
    const auto found = waiting.find(key_of(use));
    while (found != waiting.end() && !found->second.empty() && use.count > 0) {
      take(use, *found->second.front());
      if (found->second.front()->count == 0) found->second.pop_front();
    }
  }
  drop_spent(before);
  drop_spent(after);
}

using Counts = std::map<CollectiveKey, std::int64_t>;

Counts executions_by_key(const std::vector<const CollectiveUse*>& uses) {
  Counts counts;
  for (const CollectiveUse* use : uses) counts[use->key] += use->count;
  return counts;
}

Counts executions_by_key(const Uses& uses) {
  Counts counts;
  for (const CollectiveUse& use : uses) counts[use.key] += use.count;
  return counts;
}

// Changes by what was and what is, so that one change of many layers is one row.
class Changes {
 public:
  void add(const CollectiveUse* before, const CollectiveUse* after) {
    Sides sides;
    if (before != nullptr) sides.first.push_back(before);
    if (after != nullptr) sides.second.push_back(after);
    add(sides);
  }

  using Sides = std::pair<std::vector<const CollectiveUse*>, std::vector<const CollectiveUse*>>;
  void add(const Sides& sides) {
    const Counts before = executions_by_key(sides.first);
    const Counts after = executions_by_key(sides.second);
    Sum& sum = sums_[{keys_of(before), keys_of(after)}];
    for (const auto& [key, count] : before) sum.before[key] += count;
    for (const auto& [key, count] : after) sum.after[key] += count;
    const auto& named = sides.first.empty() ? sides.second : sides.first;
    for (const CollectiveUse* use : named) sum.reasons.insert(use->reason);
  }

  [[nodiscard]] std::vector<CollectiveChange> list() const {
    std::vector<CollectiveChange> changes;
    for (const auto& [keys, sum] : sums_) {
      CollectiveChange change;
      for (const auto& [key, count] : sum.before) change.before.push_back({key, count});
      for (const auto& [key, count] : sum.after) change.after.push_back({key, count});
      change.reasons.assign(sum.reasons.begin(), sum.reasons.end());
      changes.push_back(std::move(change));
    }
    return changes;
  }

 private:
  using Keys = std::vector<CollectiveKey>;
  struct Sum {
    Counts before;
    Counts after;
    std::set<std::string> reasons;
  };

  static Keys keys_of(const Counts& counts) {
    Keys keys;
    for (const auto& [key, count] : counts) keys.push_back(key);
    return keys;
  }

  std::map<std::pair<Keys, Keys>, Sum> sums_;
};

// Collectives of one kind, devices and element type that carry as much in other portions.
void match_portions(Uses& before, Uses& after, Changes& changes) {
  const auto where = [](const CollectiveKey& key) {
    return std::tuple(key.kind, key.over, key.group_size, key.dtype);
  };
  struct Portions {
    Changes::Sides sides;
    std::array<Bytes, 2> payload;
  };
  std::map<decltype(where(before[0].key)), Portions> all;
  for (const CollectiveUse& use : before) {
    Portions& portions = all[where(use.key)];
    portions.sides.first.push_back(&use);
    portions.payload[0] += use.key.payload * use.count;
  }
  for (const CollectiveUse& use : after) {
    Portions& portions = all[where(use.key)];
    portions.sides.second.push_back(&use);
    portions.payload[1] += use.key.payload * use.count;
  }
  const auto is_portion = [&](const CollectiveUse& use) {
    const auto found = all.find(where(use.key));
    return found != all.end() && found->second.payload[0] == found->second.payload[1];
  };
  for (const auto& [key, portions] : all) {
    if (portions.payload[0] == portions.payload[1]) changes.add(portions.sides);
  }
  before.erase(std::remove_if(before.begin(), before.end(), is_portion), before.end());
  after.erase(std::remove_if(after.begin(), after.end(), is_portion), after.end());
}

std::int64_t count_of(const Counts& counts, const CollectiveKey& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

void tell_staying(const HloDiff& diff, std::vector<CollectiveChange>& changes) {
  const Counts before = executions_by_key(diff.before.collectives);
  const Counts after = executions_by_key(diff.after.collectives);
  for (CollectiveChange& change : changes) {
    if (!change.before.empty() && !change.after.empty()) continue;
    const CollectiveKey& key = (change.before.empty() ? change.after : change.before)[0].key;
    change.staying = std::min(count_of(before, key), count_of(after, key));
  }
}

void diff_collectives(HloDiff& diff) {
  Uses before = diff.before.collectives;
  Uses after = diff.after.collectives;
  const auto strike_out = [&](CollectiveUse& one, CollectiveUse& other) {
    const std::int64_t both = std::min(one.count, other.count);
    one.count -= both;
    other.count -= both;
    diff.equal_collectives += both;
  };
  Changes changes;
  const auto pair_up = [&](CollectiveUse& one, CollectiveUse& other) {
    changes.add(&one, &other);
    one.count = 0;
    other.count = 0;
  };
  match(
      before, after, [](const auto& use) { return std::pair(use.key, use.reason); }, strike_out);
  match(
      before, after, [](const auto& use) { return use.key; }, strike_out);
  match_portions(before, after, changes);
  match(
      before, after, [](const auto& use) { return std::pair(use.key.kind, use.reason); }, pair_up);
  match(
      before, after,
      [](const auto& use) { return std::tuple(use.key.over, use.key.group_size, use.reason); },
      pair_up);
  for (const CollectiveUse& use : before) changes.add(&use, nullptr);
  for (const CollectiveUse& use : after) changes.add(nullptr, &use);
  diff.collectives = changes.list();
  tell_staying(diff, diff.collectives);
  std::stable_sort(diff.collectives.begin(), diff.collectives.end(),
                   [](const CollectiveChange& a, const CollectiveChange& b) {
                     return std::abs(a.wire_difference().count()) >
                            std::abs(b.wire_difference().count());
                   });
}

void diff_work(HloDiff& diff) {
  std::map<std::string, WorkChange> all;
  for (const auto& [name, work] : diff.before.work) all[name].before = work;
  for (const auto& [name, work] : diff.after.work) all[name].after = work;
  const auto total = [](const HloSummary& program) {
    return std::pair(program.matmuls.flops.count() + program.others.flops.count(),
                     static_cast<double>((program.matmuls.bytes + program.others.bytes).count()));
  };
  const auto [flops_before, bytes_before] = total(diff.before);
  const auto [flops_after, bytes_after] = total(diff.after);
  const double flops = std::max({flops_before, flops_after, 1.0});
  const double bytes = std::max({bytes_before, bytes_after, 1.0});
  const auto share = [&](const WorkChange& change) {
    return std::abs((change.after.flops - change.before.flops).count()) / flops +
           std::abs(static_cast<double>((change.after.bytes - change.before.bytes).count())) /
               bytes;
  };
  for (auto& [name, change] : all) {
    if (change.before == change.after) continue;
    change.op_name = name;
    diff.work.push_back(std::move(change));
  }
  std::stable_sort(diff.work.begin(), diff.work.end(),
                   [&](const WorkChange& a, const WorkChange& b) { return share(a) > share(b); });
}

void diff_opcodes(HloDiff& diff) {
  std::map<std::string, OpcodeChange> all;
  for (const auto& [opcode, count] : diff.before.opcodes) all[opcode].before = count;
  for (const auto& [opcode, count] : diff.after.opcodes) all[opcode].after = count;
  for (auto& [opcode, change] : all) {
    if (change.before == change.after) continue;
    change.opcode = opcode;
    diff.opcodes.push_back(std::move(change));
  }
  std::stable_sort(diff.opcodes.begin(), diff.opcodes.end(),
                   [](const OpcodeChange& a, const OpcodeChange& b) {
                     return std::abs(a.after - a.before) > std::abs(b.after - b.before);
                   });
}

}  // namespace

Bytes CollectiveChange::wire_difference() const {
  Bytes difference;
  for (const CountedCollective& collective : after) difference += collective.wire_bytes();
  for (const CountedCollective& collective : before) difference -= collective.wire_bytes();
  return difference;
}

HloDiff diff_hlo(HloSummary before, HloSummary after) {
  HloDiff diff;
  diff.before = std::move(before);
  diff.after = std::move(after);
  diff_collectives(diff);
  diff_work(diff);
  diff_opcodes(diff);
  return diff;
}

}  // namespace shardsim
