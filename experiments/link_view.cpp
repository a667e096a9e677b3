#include "experiments/link_view.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace shardsim {
namespace {

constexpr double millionths = 1e6;

// Numbers the histories that can be told apart: classes of links may carry the same at all times,
// and without classes every link has a history of its own.
class Histories {
 public:
  Histories(const LinkLoads& loads, LinkView& view)
      : loads_(loads), view_(view), numbers_(loads.histories.size()) {}

  std::size_t of(const LinkLoad& load) {
    std::optional<std::size_t>& number = numbers_[load.history];
    if (!number) number = number_of(load);
    ++view_.histories[*number].links;
    return *number;
  }

 private:
  using Key = std::pair<Bytes, std::vector<std::int64_t>>;

  std::size_t number_of(const LinkLoad& load) {
    const network::LinkHistory& carried = loads_.histories[load.history];
    const double full = load.link.wire.bandwidth.count() * loads_.bin.count();
    Key key{load.bytes, {}};
    LinkView::History history{{}, carried.full, carried.first_full, carried.last_full};
    for (const double bytes : carried.bytes) {
      key.second.push_back(std::llround(bytes / full * millionths));
      history.utilisation.push_back(static_cast<double>(key.second.back()) / millionths);
    }
    const auto [found, is_new] = known_.try_emplace(std::move(key), view_.histories.size());
    if (is_new) view_.histories.push_back(std::move(history));
    return found->second;
  }

  const LinkLoads& loads_;
  LinkView& view_;
  std::vector<std::optional<std::size_t>> numbers_;  // by class of links
  std::map<Key, std::size_t> known_;
};

}  // namespace

LinkView view_links(const Collective& collective, CollectiveCosts& costs) {
  const CostBreakdown whole = costs.flow_cost(collective);
  LinkView view{collective.payload, whole.latency + whole.transfer, whole.algorithm, {}};
  LinkLoads loads = costs.link_loads(collective);
  std::stable_sort(loads.links.begin(), loads.links.end(),
                   [](const LinkLoad& a, const LinkLoad& b) { return a.busy > b.busy; });
  const bool over_time = !loads.histories.empty();
  view.bin = loads.bin;
  view.too_many_histories = !over_time && whole.total() > Seconds(0);
  Histories histories(loads, view);
  const NodeNames& name = costs.graph().name;
  for (const LinkLoad& load : loads.links) {
    view.links.push_back({name(load.link.from), name(load.link.to), load.bytes, load.busy,
                          over_time ? histories.of(load) : 0});
  }
  return view;
}

}  // namespace shardsim
