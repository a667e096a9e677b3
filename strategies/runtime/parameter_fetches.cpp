#include "strategies/runtime/parameter_fetches.hpp"

#include <algorithm>

namespace shardsim {
namespace {

class Fetches {
 public:
  Fetches(const ModuleWalk& walk, const std::vector<std::int64_t>& elements,
          const FlatParameters& rule)
      : walk_(walk), elements_(elements), rule_(rule) {
    for (const ModuleStep& step : walk.steps) {
      if (!step.enters) continue;
      for (const std::size_t parameter : step.parameters) {
        uses_.push_back({parameter, static_cast<std::int64_t>(entries_.size())});
      }
      entries_.push_back(&step);
    }
    is_there_.resize(elements.size());
    for (std::size_t p = 0; p < elements.size(); ++p) is_there_[p] = stays(p);
    passed_.assign(elements.size(), -1);
  }

  std::vector<Fetch> run() {
    std::vector<Fetch> fetches;
    for (const ModuleStep& step : walk_.steps) {
      Fetch& fetch = fetches.emplace_back();
      if (step.enters) {
        enter(step, fetch);
      } else {
        leave(step, fetch);
      }
    }
    return fetches;
  }

 private:
  struct Use {
    std::size_t parameter;
    std::int64_t entry;  // of which module, in order
  };

  [[nodiscard]] bool stays(std::size_t p) const { return elements_[p] <= rule_.whole_elements; }

  void take(std::size_t p, std::vector<std::size_t>& call) {
    call.push_back(p);
    is_there_[p] = true;
    live_ += elements_[p];
  }

  void enter(const ModuleStep& step, Fetch& fetch) {
    std::size_t open = 0;  // uses of this module that no call ahead has passed
    for (const std::size_t p : step.parameters) {
      if (!is_there_[p]) take(p, fetch.now);
      if (passed_[p] < entry_) ++open;
    }
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

  // Over the next use, which is seen to.
  std::size_t pass() {
    const Use& use = uses_[next_++];
    passed_[use.parameter] = std::max(passed_[use.parameter], use.entry);
    return use.parameter;
  }

  void leave(const ModuleStep& step, Fetch& fetch) {
    std::vector<std::size_t> candidates;
    for (const std::size_t p : step.parameters) {
      if (!stays(p) && is_there_[p] && passed_[p] <= entry_) candidates.push_back(p);
    }
    std::int64_t distance = 0;
    for (auto e = static_cast<std::size_t>(entry_); e < entries_.size() && !candidates.empty();
         ++e) {
      if (distance >= rule_.reuse_elements) break;
      for (const std::size_t p : entries_[e]->parameters) {
        std::erase(candidates, p);
        distance += elements_[p];
      }
    }
    for (const std::size_t p : candidates) {
      is_there_[p] = false;
      live_ -= elements_[p];
    }
    fetch.released = std::move(candidates);
  }

  const ModuleWalk& walk_;
  const std::vector<std::int64_t>& elements_;
  const FlatParameters& rule_;
  std::vector<const ModuleStep*> entries_;  // steps that enter
  std::vector<Use> uses_;                   // of parameters, in order
  std::size_t next_ = 0;                    // use that no call has seen to
  std::vector<bool> is_there_;
  std::vector<std::int64_t> passed_;  // by parameter: the entry of its last use that is seen to
  std::int64_t entry_ = 0;            // that comes next
  std::int64_t live_ = 0;             // elements, without those that stay
};

}  // namespace

std::vector<Fetch> plan_fetches(const ModuleWalk& walk, const std::vector<std::int64_t>& elements,
                                const FlatParameters& rule) {
  return Fetches(walk, elements, rule).run();
}

}  // namespace shardsim
