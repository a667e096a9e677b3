#include "strategies/rules/rule_matches.hpp"

namespace shardsim {

RuleIndex RuleMatches::add(const std::vector<std::size_t>& matching) {
  if (matching.empty()) return std::nullopt;
  for (std::size_t i = 0; i < matching.size(); ++i) {
    ++rules_[matching[i]].matches;
    for (std::size_t j = i + 1; j < matching.size(); ++j) ++both_[{matching[i], matching[j]}];
  }
  ++rules_[matching[0]].decides;
  return matching[0];
}

std::vector<RuleUse> RuleMatches::uses() const {
  std::vector<RuleUse> uses = rules_;
  for (std::size_t late = 0; late < uses.size(); ++late) {
    if (uses[late].decides > 0) continue;
    for (std::size_t early = 0; early < late && !uses[late].shadowed_by; ++early) {
      const auto both = both_.find({early, late});
      const bool takes_all = both != both_.end() && both->second == uses[late].matches;
      if (takes_all && uses[early].matches > uses[late].matches) uses[late].shadowed_by = early;
    }
  }
  return uses;
}

}  // namespace shardsim
