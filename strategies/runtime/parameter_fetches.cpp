#include "strategies/runtime/parameter_fetches.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace shardsim {
namespace {

using Numbers = std::vector<std::size_t>;  // of parameters

class Fetches {
 public:
  Fetches(const ModuleWalk& walk, const std::vector<std::int64_t>& elements,
          const FlatParameters& rule)
      : walk_(walk), elements_(elements), stay_whole_(stay_whole(elements, rule)), rule_(rule) {
    for (const ModuleStep& step : walk.steps) {
      if (!step.enters) continue;
      for (const std::size_t parameter : step.parameters) {
        uses_.push_back({parameter, static_cast<std::int64_t>(entries_.size())});
      }
      entries_.push_back(&step);
    }
    is_there_.resize(elements.size());
    for (std::size_t p = 0; p < elements.size(); ++p) is_there_[p] = stays(p);
  }

  // Parameters that stay whole, as they are before the first optimizer step of all: there are those
  // that no module which ends has let go.
  void leave_whole_away() {
    is_there_.assign(elements_.size(), false);
    for (const ModuleStep& step : walk_.steps) {
      if (step.enters || !step.at_the_end) continue;
      for (const std::size_t p : step.parameters) is_there_[p] = stays(p);
    }
  }

  // One microbatch. What is to be released is as in the first one.
  std::vector<Fetch> run() {
    next_ = 0;
    entry_ = live_ = 0;
    passed_.assign(elements_.size(), -1);
    std::vector<Fetch> fetches;
    for (std::size_t s = 0; s < walk_.steps.size(); ++s) {
      Fetch& fetch = fetches.emplace_back();
      if (walk_.steps[s].enters) {
        enter(walk_.steps[s], fetch);
      } else {
        leave(s, fetch);
      }
    }
    return fetches;
  }

 private:
  struct Use {
    std::size_t parameter;
    std::int64_t entry;  // of which module, in order
  };

  [[nodiscard]] bool stays(std::size_t p) const { return stay_whole_[p]; }

  void take(std::size_t p, Numbers& call) {
    call.push_back(p);
    is_there_[p] = true;
    live_ += elements_[p];
  }

  void enter(const ModuleStep& step, Fetch& fetch) {
    std::size_t open = 0;  // uses of this module that no call ahead has passed
    for (const std::size_t p : step.parameters) {
      if (!is_there_[p]) take(p, fetch.now);
      if (passed_[p] < entry_) ++open;
      read_by_[p].insert(step.module);
    }
    if (step.phase == Phase::backward) note_backward(step);
    for (; open > 0 && next_ < uses_.size(); --open) pass();
    const std::int64_t most = std::min(rule_.live_elements - live_, rule_.prefetch_elements);
    std::int64_t asked = 0;
    while (next_ < uses_.size() && asked < most) {
      const std::size_t p = pass();
      if (is_there_[p]) continue;
      asked += elements_[p];
      take(p, fetch.ahead);
    }
    ++entry_;
  }

  // Who is at work in backward, and what is computed again for it.
  void note_backward(const ModuleStep& step) {
    if (!step.again) {
      if (std::count(at_work_.begin(), at_work_.end(), step.module) == 0) {
        at_work_.push_back(step.module);
      }
      return;
    }
    if (at_work_.empty()) return;
    for (const std::size_t p : step.parameters) {
      if (!walk_.frozen[p]) continue;
      goes_with_[at_work_.back()].insert(p);
      read_by_[p].insert(at_work_.back());
    }
  }

  // Over the next use, which is seen to.
  std::size_t pass() {
    const Use& use = uses_[next_++];
    passed_[use.parameter] = std::max(passed_[use.parameter], use.entry);
    return use.parameter;
  }

  void leave(std::size_t number, Fetch& fetch) {
    const ModuleStep& step = walk_.steps[number];
    const auto known = to_release_.find(number);
    const Numbers& own =
        known != to_release_.end()
            ? known->second
            : to_release_.emplace(number, step.at_the_end ? own_of(step) : may_go(step))
                  .first->second;
    std::set<std::size_t> all(step.parameters.begin(), step.parameters.end());
    std::set<std::size_t> going(own.begin(), own.end());
    if (step.phase == Phase::backward && !step.again) {
      std::erase(at_work_, step.module);
      for (const std::size_t p : std::exchange(goes_with_[step.module], {})) {
        all.insert(p);
        if (!stays(p)) going.insert(p);
      }
    }
    for (const std::size_t p : all) {
      read_by_[p].erase(step.module);
      if (!going.contains(p) || !is_there_[p] || !read_by_[p].empty()) continue;
      is_there_[p] = false;
      live_ -= elements_[p];
      fetch.released.push_back(p);
    }
  }

  [[nodiscard]] Numbers own_of(const ModuleStep& step) const {
    Numbers own;
    for (const std::size_t p : step.parameters) {
      if (!stays(p)) own.push_back(p);
    }
    return own;
  }

  [[nodiscard]] Numbers may_go(const ModuleStep& step) const {
    Numbers candidates = own_of(step);
    std::erase_if(candidates, [&](std::size_t p) { return passed_[p] > entry_; });
    std::int64_t distance = 0;
    for (auto e = static_cast<std::size_t>(entry_); e < entries_.size() && !candidates.empty();
         ++e) {
      if (distance >= rule_.reuse_elements) break;
      for (const std::size_t p : entries_[e]->parameters) {
        std::erase(candidates, p);
        distance += elements_[p];
      }
    }
    return candidates;
  }

  const ModuleWalk& walk_;
  const std::vector<std::int64_t>& elements_;
  const std::vector<bool> stay_whole_;
  const FlatParameters& rule_;
  std::vector<const ModuleStep*> entries_;     // steps that enter
  std::vector<Use> uses_;                      // of parameters, in order
  std::map<std::size_t, Numbers> to_release_;  // by step that leaves
  std::vector<bool> is_there_;
  std::map<std::size_t, std::set<std::size_t>> read_by_;    // by parameter: modules at work
  Numbers at_work_;                                         // modules, in backward
  std::map<std::size_t, std::set<std::size_t>> goes_with_;  // by module: frozen parameters
  std::size_t next_ = 0;                                    // use that no call has seen to
  std::vector<std::int64_t> passed_;  // by parameter: the entry of its last use that is seen to
  std::int64_t entry_ = 0;            // that comes next
  std::int64_t live_ = 0;             // elements, without those that stay
};

}  // namespace

std::vector<bool> stay_whole(const std::vector<std::int64_t>& elements,
                             const FlatParameters& rule) {
  std::vector<bool> stay;
  std::int64_t in_all = 0;
  for (const std::int64_t own : elements) {
    const bool fits = rule.whole_in_all == 0 || in_all + own <= rule.whole_in_all;
    stay.push_back(own <= rule.whole_elements && fits);
    if (stay.back()) in_all += own;
  }
  return stay;
}

std::vector<Fetch> plan_fetches(const ModuleWalk& walk, const std::vector<std::int64_t>& elements,
                                const FlatParameters& rule, std::int64_t microbatches) {
  Fetches fetches(walk, elements, rule);
  if (microbatches > 1) {
    fetches.leave_whole_away();
    fetches.run();
  }
  return fetches.run();
}

}  // namespace shardsim
