// fold(): classes of streams and links by colour refinement.
#include <algorithm>
#include <cassert>
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
  Colour colour(const Signature& signature) {
    return colours_.try_emplace(signature, static_cast<Colour>(colours_.size())).first->second;
  }
  [[nodiscard]] std::size_t size() const { return colours_.size(); }

 private:
  std::map<Signature, Colour> colours_;
};

void sort_from(Signature& signature, std::size_t first) {
  std::sort(signature.begin() + static_cast<std::ptrdiff_t>(first), signature.end());
}

class Folding {
 public:
  explicit Folding(const Traffic& traffic)
      : traffic_(traffic),
        streams_(traffic.streams.size(), 0),
        links_(traffic.capacities.size(), 0) {
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
      const std::size_t before = stream_colours_ + link_colours_;
      colour_links();
      colour_streams();
      if (stream_colours_ + link_colours_ == before) return;
    }
  }

  [[nodiscard]] Traffic folded() const;

 private:
  // How many streams of each class a link of each class carries.
  using Load = std::map<std::pair<Colour, Colour>, std::int32_t>;

  void add_stream(StreamId id, const Load& load, Traffic& result) const;
  [[nodiscard]] Load load_of() const;

  // A stream is told by its messages, the links that it crosses and what it waits for. Streams of
  // `same` and `last` come before it and have their new colours: what tells streams apart goes all
  // along a chain of them at once.
  void colour_streams() {
    Palette palette;
    std::vector<Colour> colours;
    colours.reserve(streams_.size());
    Signature signature;
    for (std::size_t id = 0; id < streams_.size(); ++id) {
      const TrafficStream& stream = traffic_.streams[id];
      signature = {streams_[id], stream.kind, stream.latency.count(),
                   static_cast<std::int64_t>(stream.crossings)};
      std::size_t first = signature.size();
      for (const Crossing& crossing : traffic_.crossings_of(stream)) {
        signature.push_back(links_[at(crossing.link)]);
      }
      sort_from(signature, first);
      first = signature.size();
      for (const Wait& wait : traffic_.waits_of(stream)) {
        const bool is_before = wait.until != Until::previous;
        assert(!is_before || at(wait.stream) < id);
        const Colour awaited = (is_before ? colours : streams_)[at(wait.stream)];
        signature.push_back((std::int64_t{awaited} << 2) | static_cast<std::int64_t>(wait.until));
      }
      sort_from(signature, first);
      signature.erase(
          std::unique(signature.begin() + static_cast<std::ptrdiff_t>(first), signature.end()),
          signature.end());
      colours.push_back(palette.colour(signature));
    }
    streams_ = std::move(colours);
    stream_colours_ = palette.size();
  }

  // A link by its colour and those of the streams that it carries.
  void colour_links() {
    std::vector<std::vector<Colour>> carried(links_.size());
    for (std::size_t id = 0; id < streams_.size(); ++id) {
      for (const Crossing& crossing : traffic_.crossings_of(traffic_.streams[id])) {
        carried[at(crossing.link)].push_back(streams_[id]);
      }
    }
    Palette palette;
    for (std::size_t link = 0; link < links_.size(); ++link) {
      Signature signature(carried[link].begin(), carried[link].end());
      sort_from(signature, 0);
      signature.push_back(links_[link]);
      links_[link] = palette.colour(signature);
    }
    link_colours_ = palette.size();
  }

  const Traffic& traffic_;
  std::vector<Colour> streams_;
  std::vector<Colour> links_;
  std::size_t stream_colours_ = 1;
  std::size_t link_colours_ = 0;
};

Traffic Folding::folded() const {
  Traffic result;
  result.kinds = traffic_.kinds;
  result.capacities.resize(link_colours_);
  result.links.assign(link_colours_, 0);
  for (std::size_t link = 0; link < links_.size(); ++link) {
    result.capacities[at(links_[link])] = traffic_.capacities[link];
    result.links[at(links_[link])] += traffic_.links[link];
  }
  result.alike.assign(stream_colours_, 0);
  const Load load = load_of();
  for (std::size_t id = 0; id < streams_.size(); ++id) {
    // Colours are numbered as they come: of each class the first stream stands for it.
    if (at(streams_[id]) == result.streams.size()) {
      add_stream(static_cast<StreamId>(id), load, result);
    }
    result.alike[at(streams_[id])] += traffic_.alike[id];
  }
  return result;
}

// With the streams of its class on some link of each class that it crosses.
void Folding::add_stream(StreamId id, const Load& load, Traffic& result) const {
  const TrafficStream& stream = traffic_.streams[at(id)];
  const Colour own = streams_[at(id)];
  std::set<Colour> crossed;
  for (const Crossing& crossing : traffic_.crossings_of(stream)) {
    crossed.insert(links_[at(crossing.link)]);
  }
  std::set<std::pair<Colour, Until>> awaited;
  for (const Wait& wait : traffic_.waits_of(stream)) {
    const Colour colour = streams_[at(wait.stream)];
    if (colour != own)
      awaited.insert({colour, wait.until});  // its own step waits for the one before
  }
  result.streams.push_back(
      {stream.latency, stream.kind, static_cast<std::uint32_t>(result.crossings.size()),
       static_cast<std::uint32_t>(crossed.size()), static_cast<std::uint32_t>(result.waits.size()),
       static_cast<std::uint32_t>(awaited.size())});
  for (const Colour link : crossed) result.crossings.push_back({link, load.at({link, own})});
  for (const auto& [colour, until] : awaited) result.waits.push_back({colour, until});
}

Folding::Load Folding::load_of() const {
  std::vector<LinkId> some_link(link_colours_);
  for (std::size_t link = 0; link < links_.size(); ++link) {
    some_link[at(links_[link])] = static_cast<LinkId>(link);
  }
  Load load;
  for (std::size_t id = 0; id < streams_.size(); ++id) {
    for (const Crossing& crossing : traffic_.crossings_of(traffic_.streams[id])) {
      const Colour colour = links_[at(crossing.link)];
      if (some_link[at(colour)] == crossing.link) load[{colour, streams_[id]}] += crossing.flows;
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
