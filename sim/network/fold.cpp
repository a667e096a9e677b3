// fold(): classes of streams and links by colour refinement. What is told apart from its class
// makes work for its neighbours only (Hopcroft, "An n log n algorithm for minimizing states in a
// finite automaton", 1971): the largest part of a class keeps its colour, and who has none but such
// neighbours is not looked at again.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/index.hpp"
#include "sim/network/traffic.hpp"

namespace shardsim::network {
namespace {

using Colour = std::int32_t;
using Element = std::int32_t;  // a stream or a link
using Signature = std::vector<std::int64_t>;

std::uint64_t hash_of(std::span<const std::int64_t> signature) {
  // Multiplier of Steele and Vigna's 64-bit congruential generators, "Computationally easy,
  // spectrally good multipliers", Software: Practice and Experience 52(2), 2022.
  constexpr std::uint64_t multiplier = 0xd1342543de82ef95;
  std::uint64_t hash = signature.size();
  for (const std::int64_t number : signature) {
    hash = (hash ^ static_cast<std::uint64_t>(number)) * multiplier;
    hash ^= hash >> 32;
  }
  return hash;
}

// Lists of elements, one after the other.
class Lists {
 public:
  // `add_all(add)` calls add(list, element) for every element of every list, the same each time.
  template <class AddAll>
  Lists(std::size_t lists, AddAll add_all) : first_(lists + 1, 0) {
    add_all([&](std::size_t list, Element) { ++first_[list + 1]; });
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    elements_.resize(first_.back());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    add_all([&](std::size_t list, Element element) { elements_[next[list]++] = element; });
  }
  [[nodiscard]] std::span<const Element> of(Element list) const {
    return std::span(elements_).subspan(first_[at(list)], first_[at(list) + 1] - first_[at(list)]);
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<Element> elements_;
};

// Elements in classes. Those of a class have the same signature, but for those that are marked.
class Partition {
 public:
  // All are marked.
  explicit Partition(std::vector<Colour> colours)
      : colours_(std::move(colours)), is_marked_(colours_.size(), false) {
    for (const Colour colour : colours_) {
      if (at(colour) >= sizes_.size()) sizes_.resize(at(colour) + 1, 0);
      ++sizes_[at(colour)];
    }
    for (std::size_t i = 0; i < colours_.size(); ++i) mark(static_cast<Element>(i));
  }

  [[nodiscard]] Colour operator[](Element element) const { return colours_[at(element)]; }
  [[nodiscard]] bool has_marked() const { return !marked_.empty(); }
  [[nodiscard]] std::size_t classes() const { return sizes_.size(); }
  [[nodiscard]] std::span<const Colour> colours() const { return colours_; }

  void mark(Element element) {
    if (is_marked_[at(element)]) return;
    is_marked_[at(element)] = true;
    marked_.push_back(element);
  }

  // Splits the classes of what is marked by signature, `sign(element, signature)`; what has a new
  // colour then.
  template <class Sign>
  std::vector<Element> split(Sign sign) {
    std::vector<Signed> all;
    all.reserve(marked_.size());
    Signature numbers;  // of all signatures
    Signature signature;
    for (const Element element : marked_) {
      is_marked_[at(element)] = false;
      signature.clear();
      sign(element, signature);
      all.push_back(
          {colours_[at(element)], element, hash_of(signature), numbers.size(), signature.size()});
      numbers.insert(numbers.end(), signature.begin(), signature.end());
    }
    marked_.clear();
    sort(all, numbers);
    std::vector<Element> changed;
    for (std::size_t begin = 0; begin < all.size();) {
      std::size_t end = begin;
      std::vector<std::size_t> groups = {begin};  // where they begin, then the end
      for (; end < all.size() && all[end].colour == all[begin].colour; ++end) {
        if (end > begin && !are_equal(all[end - 1], all[end], numbers)) groups.push_back(end);
      }
      groups.push_back(end);
      recolour(all, groups, changed);
      begin = end;
    }
    return changed;
  }

 private:
  struct Signed {
    Colour colour = 0;
    Element element = 0;
    std::uint64_t hash = 0;
    std::size_t first = 0;  // of its signature
    std::size_t size = 0;

    [[nodiscard]] std::span<const std::int64_t> signature(const Signature& numbers) const {
      return std::span(numbers).subspan(first, size);
    }
  };

  static bool are_equal(const Signed& a, const Signed& b, const Signature& numbers) {
    return a.hash == b.hash && std::ranges::equal(a.signature(numbers), b.signature(numbers));
  }

  // By colour, and signatures that are equal together. Most of a class are: they are compared once
  // each, and sorted only where equal hashes are not of equal signatures.
  static void sort(std::vector<Signed>& all, const Signature& numbers) {
    std::sort(all.begin(), all.end(), [](const Signed& a, const Signed& b) {
      return a.colour != b.colour ? a.colour < b.colour : a.hash < b.hash;
    });
    for (auto begin = all.begin(); begin != all.end();) {
      const auto differs = [&](const Signed& s) {
        return s.colour != begin->colour || s.hash != begin->hash;
      };
      const auto end = std::find_if(begin, all.end(), differs);
      const auto is_other = [&](const Signed& s) { return !are_equal(*begin, s, numbers); };
      if (std::any_of(begin, end, is_other)) {
        std::sort(begin, end, [&](const Signed& a, const Signed& b) {
          return std::ranges::lexicographical_compare(a.signature(numbers), b.signature(numbers));
        });
      }
      begin = end;
    }
  }

  // Those of a class that were marked, in groups. Where there are others these keep the colour: no
  // neighbour of theirs has changed, and one of each marked one has.
  void recolour(const std::vector<Signed>& all, const std::vector<std::size_t>& groups,
                std::vector<Element>& changed) {
    const Colour old = all[groups.front()].colour;
    const bool are_all =
        static_cast<std::int64_t>(groups.back() - groups.front()) == sizes_[at(old)];
    std::size_t keeps = groups.size();
    if (are_all) {
      keeps = 0;
      for (std::size_t i = 1; i + 1 < groups.size(); ++i) {
        if (groups[i + 1] - groups[i] > groups[keeps + 1] - groups[keeps]) keeps = i;
      }
    }
    for (std::size_t i = 0; i + 1 < groups.size(); ++i) {
      if (i == keeps) continue;
      const auto fresh = static_cast<Colour>(sizes_.size());
      sizes_.push_back(static_cast<std::int64_t>(groups[i + 1] - groups[i]));
      sizes_[at(old)] -= sizes_.back();
      for (std::size_t k = groups[i]; k < groups[i + 1]; ++k) {
        colours_[at(all[k].element)] = fresh;
        changed.push_back(all[k].element);
      }
    }
  }

  std::vector<Colour> colours_;
  std::vector<std::int64_t> sizes_;  // by colour
  std::vector<Element> marked_;
  std::vector<bool> is_marked_;
};

// Numbers keys in the order in which they are seen first.
template <class Key>
class Numbers {
 public:
  Colour of(const Key& key) {
    return numbers_.try_emplace(key, static_cast<Colour>(numbers_.size())).first->second;
  }

 private:
  std::map<Key, Colour> numbers_;
};

// Colours in the order in which they are seen first.
std::vector<Colour> renumbered(std::span<const Colour> colours, std::size_t classes) {
  std::vector<Colour> numbers(classes, -1);
  std::vector<Colour> result;
  result.reserve(colours.size());
  Colour next = 0;
  for (const Colour colour : colours) {
    if (numbers[at(colour)] < 0) numbers[at(colour)] = next++;
    result.push_back(numbers[at(colour)]);
  }
  return result;
}

void sort_from(Signature& signature, std::size_t first) {
  std::sort(signature.begin() + static_cast<std::ptrdiff_t>(first), signature.end());
}

// Tells streams and links apart until nothing is told apart any more.
class Refinement {
 public:
  explicit Refinement(const Traffic& traffic)
      : traffic_(traffic),
        carried_(traffic.capacities.size(),
                 [&](auto add) {
                   for_streams([&](Element id, const TrafficStream& stream) {
                     for (const Crossing& crossing : traffic_.crossings_of(stream)) {
                       add(at(crossing.link), id);
                     }
                   });
                 }),
        waiting_(traffic.streams.size(),
                 [&](auto add) {
                   for_streams([&](Element id, const TrafficStream& stream) {
                     for (const Wait& wait : traffic_.waits_of(stream)) add(at(wait.stream), id);
                   });
                 }),
        links_(first_links()),
        streams_(first_streams()) {}

  void refine() {
    while (links_.has_marked() || streams_.has_marked()) {
      const auto sign_link = [&](Element link, Signature& s) { sign(link, s); };
      for (const Element link : links_.split(sign_link)) {
        for (const Element stream : carried_.of(link)) streams_.mark(stream);
      }
      const auto sign_one = [&](Element stream, Signature& s) { sign_stream(stream, s); };
      for (const Element stream : streams_.split(sign_one)) {
        const TrafficStream& each = traffic_.streams[at(stream)];
        for (const Crossing& crossing : traffic_.crossings_of(each)) links_.mark(crossing.link);
        for (const Element waiting : waiting_.of(stream)) streams_.mark(waiting);
      }
    }
  }

  [[nodiscard]] const Partition& links() const { return links_; }
  [[nodiscard]] const Partition& streams() const { return streams_; }

 private:
  template <class Take>
  void for_streams(Take take) const {
    for (std::size_t id = 0; id < traffic_.streams.size(); ++id) {
      take(static_cast<Element>(id), traffic_.streams[id]);
    }
  }

  [[nodiscard]] std::vector<Colour> first_links() const {
    Numbers<Bandwidth> numbers;
    std::vector<Colour> colours;
    for (const Bandwidth capacity : traffic_.capacities) colours.push_back(numbers.of(capacity));
    return colours;
  }

  // By their messages and how far they go.
  [[nodiscard]] std::vector<Colour> first_streams() const {
    Numbers<std::tuple<std::uint32_t, std::int64_t, std::uint32_t>> numbers;
    std::vector<Colour> colours;
    for (const TrafficStream& stream : traffic_.streams) {
      colours.push_back(numbers.of({stream.kind, stream.latency.count(), stream.crossings}));
    }
    return colours;
  }

  // A link by the streams that it carries.
  void sign(Element link, Signature& signature) const {
    for (const Element stream : carried_.of(link)) signature.push_back(streams_[stream]);
    sort_from(signature, 0);
  }

  // A stream by the links that it crosses and what it waits for.
  void sign_stream(Element id, Signature& signature) const {
    const TrafficStream& stream = traffic_.streams[at(id)];
    for (const Crossing& crossing : traffic_.crossings_of(stream)) {
      signature.push_back(links_[crossing.link]);
    }
    sort_from(signature, 0);
    const std::size_t first = signature.size();
    for (const Wait& wait : traffic_.waits_of(stream)) {
      signature.push_back((std::int64_t{streams_[wait.stream]} << 2) |
                          static_cast<std::int64_t>(wait.until));
    }
    sort_from(signature, first);
    const auto waits = signature.begin() + static_cast<std::ptrdiff_t>(first);
    signature.erase(std::unique(waits, signature.end()), signature.end());
  }

  const Traffic& traffic_;
  Lists carried_;  // by link: streams
  Lists waiting_;  // by stream: those that wait for it
  Partition links_;
  Partition streams_;
};

class Folding {
 public:
  Folding(const Traffic& traffic, const Refinement& refined)
      : traffic_(traffic),
        streams_(renumbered(refined.streams().colours(), refined.streams().classes())),
        links_(renumbered(refined.links().colours(), refined.links().classes())),
        stream_colours_(refined.streams().classes()),
        link_colours_(refined.links().classes()) {}

  [[nodiscard]] Folded folded() const;

 private:
  // How many streams of each class a link of each class carries.
  using Load = std::map<std::pair<Colour, Colour>, std::int32_t>;

  void add_stream(StreamId id, const Load& load, Traffic& result) const;
  [[nodiscard]] Load load_of() const;

  const Traffic& traffic_;
  std::vector<Colour> streams_;
  std::vector<Colour> links_;
  std::size_t stream_colours_;
  std::size_t link_colours_;
};

Folded Folding::folded() const {
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
  return {std::move(result), links_};
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

Folded fold_links(const Traffic& traffic) {
  Refinement refinement(traffic);
  refinement.refine();
  return Folding(traffic, refinement).folded();
}

Traffic fold(const Traffic& traffic) { return fold_links(traffic).traffic; }

}  // namespace shardsim::network
