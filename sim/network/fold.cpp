// fold(): classes of ranks and links by colour refinement.
#include <algorithm>
#include <map>
#include <set>

#include "base/index.hpp"
#include "sim/network/traffic.hpp"

namespace shardsim::network {
namespace {

using Colour = std::int32_t;
using Signature = std::vector<std::int64_t>;

// Numbers signatures in the order in which they are seen first.
class Palette {
 public:
  Colour colour(Signature signature) {
    return colours_.try_emplace(std::move(signature), static_cast<Colour>(colours_.size()))
        .first->second;
  }
  [[nodiscard]] std::size_t size() const { return colours_.size(); }

 private:
  std::map<Signature, Colour> colours_;
};

class Folding {
 public:
  explicit Folding(const Traffic& traffic)
      : traffic_(traffic), ranks_(traffic.ranks.size(), 0), links_(traffic.capacities.size(), 0) {
    std::map<Bandwidth, Colour> kinds;
    for (const Bandwidth capacity : traffic.capacities) kinds.try_emplace(capacity, 0);
    for (auto& [capacity, colour] : kinds) colour = static_cast<Colour>(link_colours_++);
    for (std::size_t link = 0; link < links_.size(); ++link) {
      links_[link] = kinds.at(traffic.capacities[link]);
    }
  }

  // Refines until nothing is told apart any more.
  void refine() {
    while (true) {
      const std::size_t before = rank_colours_ + link_colours_;
      colour_links();
      colour_ranks();
      if (rank_colours_ + link_colours_ == before) return;
    }
  }

  [[nodiscard]] Traffic folded() const;

 private:
  // How many messages of each class of ranks a link of each class carries in a phase.
  using Load = std::map<std::pair<Colour, Colour>, std::int32_t>;

  [[nodiscard]] TrafficPhase folded(const TrafficPhase& phase,
                                    std::vector<Crossing>& crossings) const;
  [[nodiscard]] Load load_of(const TrafficPhase& phase) const;

  [[nodiscard]] RankId colour_of(RankId rank) const {
    return rank == nobody ? nobody : ranks_[at(rank)];
  }

  // A rank is told by its colour, and in each phase by those of its partners and the links to one.
  void colour_ranks() {
    Palette palette;
    std::vector<Colour> colours;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      Signature signature{ranks_[rank]};
      for (const TrafficPhase& phase : traffic_.phases) {
        const Send& send = phase.sends[rank];
        signature.insert(signature.end(),
                         {colour_of(send.receiver), colour_of(phase.senders[rank]),
                          send.latency.count(), static_cast<std::int64_t>(send.crossings)});
        const auto first = static_cast<std::ptrdiff_t>(signature.size());
        for (const Crossing& crossing : traffic_.crossings_of(send)) {
          signature.push_back(links_[at(crossing.link)]);
        }
        std::sort(signature.begin() + first, signature.end());
      }
      colours.push_back(palette.colour(std::move(signature)));
    }
    ranks_ = std::move(colours);
    rank_colours_ = palette.size();
  }

  // A link by its colour and those of the ranks whose messages it carries, phase by phase.
  void colour_links() {
    std::vector<Signature> carried(links_.size());
    for (std::size_t phase = 0; phase < traffic_.phases.size(); ++phase) {
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        const std::int64_t message =
            static_cast<std::int64_t>(phase * rank_colours_) + ranks_[rank];
        for (const Crossing& crossing : traffic_.crossings_of(traffic_.phases[phase].sends[rank])) {
          carried[at(crossing.link)].push_back(message);
        }
      }
    }
    Palette palette;
    for (std::size_t link = 0; link < links_.size(); ++link) {
      std::sort(carried[link].begin(), carried[link].end());
      carried[link].push_back(links_[link]);
      links_[link] = palette.colour(std::move(carried[link]));
    }
    link_colours_ = palette.size();
  }

  const Traffic& traffic_;
  std::vector<Colour> ranks_;
  std::vector<Colour> links_;
  std::size_t rank_colours_ = 1;
  std::size_t link_colours_ = 0;
};

Traffic Folding::folded() const {
  Traffic result;
  result.capacities.resize(link_colours_);
  result.links.assign(link_colours_, 0);
  for (std::size_t link = 0; link < links_.size(); ++link) {
    result.capacities[at(links_[link])] = traffic_.capacities[link];
    result.links[at(links_[link])] += traffic_.links[link];
  }
  result.ranks.assign(rank_colours_, 0);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    result.ranks[at(ranks_[rank])] += traffic_.ranks[rank];
  }
  for (const TrafficPhase& phase : traffic_.phases) {
    result.phases.push_back(folded(phase, result.crossings));
  }
  return result;
}

// Of every class some rank, with the messages of its class on some link of each class it crosses.
TrafficPhase Folding::folded(const TrafficPhase& phase, std::vector<Crossing>& crossings) const {
  const Load load = load_of(phase);
  TrafficPhase result{phase.steps, phase.bytes, std::vector<Send>(rank_colours_),
                      std::vector<RankId>(rank_colours_, nobody)};
  std::vector<bool> is_done(rank_colours_, false);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const Colour colour = ranks_[rank];
    if (is_done[at(colour)]) continue;
    is_done[at(colour)] = true;
    const Send& send = phase.sends[rank];
    std::set<Colour> crossed;
    for (const Crossing& crossing : traffic_.crossings_of(send)) {
      crossed.insert(links_[at(crossing.link)]);
    }
    result.senders[at(colour)] = colour_of(phase.senders[rank]);
    result.sends[at(colour)] = {colour_of(send.receiver), send.latency,
                                static_cast<std::uint32_t>(crossings.size()),
                                static_cast<std::uint32_t>(crossed.size())};
    for (const Colour link : crossed) crossings.push_back({link, load.at({link, colour})});
  }
  return result;
}

Folding::Load Folding::load_of(const TrafficPhase& phase) const {
  std::vector<LinkId> some_link(link_colours_);
  for (std::size_t link = 0; link < links_.size(); ++link) {
    some_link[at(links_[link])] = static_cast<LinkId>(link);
  }
  Load load;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    for (const Crossing& crossing : traffic_.crossings_of(phase.sends[rank])) {
      const Colour colour = links_[at(crossing.link)];
      if (some_link[at(colour)] == crossing.link) load[{colour, ranks_[rank]}] += crossing.flows;
    }
  }
  return load;
}

}  // namespace

Traffic fold(const Traffic& traffic) {
  Folding folding(traffic);
  folding.refine();
  return folding.folded();
}

}  // namespace shardsim::network
