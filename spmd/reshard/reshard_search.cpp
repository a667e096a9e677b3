#include "spmd/reshard/reshard_search.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

// More states than this are not looked at: the path that is there stays.
constexpr int most_states = 4'000;

// For every dimension the digits that split it, major to minor.
using State = std::vector<std::vector<int>>;

struct Radices {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::int64_t devices = 1;

  explicit Radices(const std::vector<std::int64_t>& digits) : sizes(digits), strides(digits) {
    for (std::size_t i = digits.size(); i-- > 0;) {
      strides[i] = devices;
      devices *= digits[i];
    }
  }
  [[nodiscard]] std::int64_t digit(std::int64_t device, std::size_t i) const {
    return device / strides[i] % sizes[i];
  }
};

// The digits of every dimension; nothing when a tile's number is no mixed-radix number of them.
std::optional<State> state_of(const Tiling& tiling, std::size_t rank, const Radices& radices) {
  State state(rank);
  if (tiling.is_replicated()) return state;
  if (static_cast<std::int64_t>(tiling.devices().size()) != radices.devices) return {};
  std::vector<Dims> places(tiling.devices().size());
  tiling.each([&](const Dims& index, int device) { places[at(device)] = index; });
  for (std::size_t dim = 0; dim < rank; ++dim) {
    std::vector<std::pair<std::int64_t, int>> steps;
    for (std::size_t i = 0; i < radices.sizes.size(); ++i) {
      const std::int64_t step = places[at(radices.strides[i])][dim] - places[0][dim];
      if (step < 0) return {};
      if (step > 0) steps.emplace_back(step, static_cast<int>(i));
    }
    std::sort(steps.rbegin(), steps.rend());
    for (const auto& [step, digit] : steps) state[dim].push_back(digit);
  }
  for (std::int64_t device = 0; device < radices.devices; ++device) {
    for (std::size_t dim = 0; dim < rank; ++dim) {
      std::int64_t tile = 0;
      for (const int digit : state[dim]) {
        tile = tile * radices.sizes[at(digit)] + radices.digit(device, at(digit));
      }
      if (tile != places[at(device)][dim]) return {};
    }
  }
  return state;
}

Tiling tiling_of_state(const State& state, const Radices& radices) {
  Shape tiles(state.size(), 1);
  Dims order;
  for (std::size_t dim = 0; dim < state.size(); ++dim) {
    for (const int digit : state[dim]) {
      tiles[dim] *= radices.sizes[at(digit)];
      order.push_back(digit);
    }
  }
  for (std::size_t i = 0; i < radices.sizes.size(); ++i) {
    if (!holds(order, static_cast<std::int64_t>(i))) order.push_back(static_cast<std::int64_t>(i));
  }
  std::vector<int> devices(at(radices.devices));
  std::iota(devices.begin(), devices.end(), 0);
  const Tiling apart = Tiling::tiled(radices.sizes, devices);
  return Tiling::tiled(std::move(tiles), transpose(apart, order).devices());
}

class Search {
 public:
  Search(const Shape& shape, double element_bytes, const Radices& radices, const State& target)
      : shape_(shape), element_bytes_(element_bytes), radices_(radices), target_(target) {}

  std::optional<ReshardPath> run(const State& from, double limit) {
    offer(from, from, 0, limit);
    int seen = 0;
    while (!open_.empty()) {
      const auto [cost, steps, state] = open_.top();
      open_.pop();
      if (cost > best_.at(state).cost || steps > best_.at(state).steps) continue;
      if (state == target_) return path_to(from);
      if (++seen > most_states) return {};
      expand(state, limit);
    }
    return {};
  }

 private:
  struct Best {
    double cost = 0;
    int steps = 0;
    State before;
  };
  // Equal costs: the fewer steps, then a fixed order of states.
  using Entry = std::tuple<double, int, State>;

  [[nodiscard]] std::int64_t size(int digit) const { return radices_.sizes[at(digit)]; }

  [[nodiscard]] double tile_bytes(const State& state) const {
    std::int64_t elements = 1;
    for (std::size_t dim = 0; dim < shape_.size(); ++dim) {
      elements *= shape_[dim] / tiles(state, dim);
    }
    return static_cast<double>(elements) * element_bytes_;
  }

  [[nodiscard]] std::int64_t tiles(const State& state, std::size_t dim) const {
    std::int64_t count = 1;
    for (const int digit : state[dim]) count *= size(digit);
    return count;
  }

  void offer(const State& state, const State& before, double cost, double limit) {
    if (cost >= limit) return;
    const auto found = best_.find(before);
    const int steps = found == best_.end() ? 0 : found->second.steps + 1;
    const auto [entry, is_new] = best_.try_emplace(state, Best{cost, steps, before});
    if (!is_new) {
      if (std::tie(entry->second.cost, entry->second.steps) <= std::tie(cost, steps)) return;
      entry->second = {cost, steps, before};
    }
    open_.emplace(cost, steps, state);
  }

  void expand(const State& state, double limit) {
    const double cost = best_.at(state).cost;
    const double bytes = tile_bytes(state);
    std::vector<bool> used(radices_.sizes.size(), false);
    for (const auto& digits : state) {
      for (const int digit : digits) used[at(digit)] = true;
    }
    for (std::size_t dim = 0; dim < state.size(); ++dim) {
      for (std::size_t i = 0; i < used.size(); ++i) {
        const std::int64_t local = shape_[dim] / tiles(state, dim);
        if (used[i] || local % radices_.sizes[i] != 0) continue;
        State next = state;
        next[dim].push_back(static_cast<int>(i));
        offer(next, state, cost, limit);
      }
      if (state[dim].empty()) continue;
      State next = state;
      next[dim].pop_back();
      offer(next, state, cost + static_cast<double>(size(state[dim].back()) - 1) * bytes, limit);
      exchange(state, dim, limit);
    }
    permute(state, used, cost + bytes, limit);
  }

  // The minor digits of `dim`, one or several, move to the end of another dimension.
  void exchange(const State& state, std::size_t dim, double limit) {
    const double cost = best_.at(state).cost;
    const double bytes = tile_bytes(state);
    State next = state;
    std::vector<int> moving;
    std::int64_t group = 1;
    while (!next[dim].empty()) {
      moving.insert(moving.begin(), next[dim].back());
      next[dim].pop_back();
      group *= size(moving.front());
      const auto p = static_cast<double>(group);
      for (std::size_t other = 0; other < state.size(); ++other) {
        const std::int64_t local = shape_[other] / tiles(state, other);
        if (other == dim || local % group != 0) continue;
        State moved = next;
        moved[other].insert(moved[other].end(), moving.begin(), moving.end());
        offer(moved, state, cost + (p - 1) / p * bytes, limit);
      }
    }
  }

  // Two digits of one size change places, or dimension by dimension the digits of the target are
  // taken where the numbers of tiles agree.
  void permute(const State& state, const std::vector<bool>& used, double cost, double limit) {
    bool same_tiles = true;
    for (std::size_t dim = 0; dim < state.size(); ++dim) {
      same_tiles = same_tiles && tiles(state, dim) == tiles(target_, dim);
    }
    if (same_tiles) offer(target_, state, cost, limit);
    for (std::size_t dim = 0; dim < state.size(); ++dim) {
      for (std::size_t i = 0; i < state[dim].size(); ++i) {
        for (std::size_t j = 0; j < state[dim].size(); ++j) {
          if (i >= j) continue;
          State next = state;
          std::swap(next[dim][i], next[dim][j]);
          offer(next, state, cost, limit);
        }
        for (std::size_t digit = 0; digit < used.size(); ++digit) {
          if (used[digit] || radices_.sizes[digit] != size(state[dim][i])) continue;
          State next = state;
          next[dim][i] = static_cast<int>(digit);
          offer(next, state, cost, limit);
        }
      }
    }
  }

  [[nodiscard]] ReshardPath path_to(const State& from) const {
    ReshardPath path;
    path.wire_bytes = best_.at(target_).cost;
    for (State state = target_; state != from; state = best_.at(state).before) {
      path.steps.push_back(tiling_of_state(state, radices_));
    }
    std::reverse(path.steps.begin(), path.steps.end());
    return path;
  }

  const Shape& shape_;
  double element_bytes_;
  const Radices& radices_;
  const State& target_;
  std::map<State, Best> best_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open_;
};

}  // namespace

std::optional<std::vector<std::vector<int>>> digits_of(const Tiling& tiling, std::size_t rank,
                                                       const std::vector<std::int64_t>& digits) {
  return state_of(tiling, rank, Radices(digits));
}

double least_bytes(const Shape& shape, double element_bytes, const Tiling& from, const Tiling& to) {
  const std::size_t devices = std::max(from.devices().size(), to.devices().size());
  const auto places_of = [&](const Tiling& tiling) {
    std::vector<Dims> places(devices, Dims(shape.size() + 1, 0));
    tiling.each([&](const Dims& index, int device) {
      std::copy(index.begin(), index.end(), places[at(device)].begin());
    });
    return places;
  };
  const std::vector<Dims> old_places = places_of(from);
  const std::vector<Dims> new_places = places_of(to);
  double received = 0;
  for (std::size_t device = 0; device < devices; ++device) {
    double tile = 1;
    double held = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const auto dim = static_cast<std::int64_t>(i);
      const auto range = [&](const Tiling& tiling, std::int64_t place) {
        const std::int64_t size = ceil_div(shape[i], tiling.tiles(dim));
        return std::pair{std::min(place * size, shape[i]), std::min((place + 1) * size, shape[i])};
      };
      const auto [old_begin, old_end] = range(from, old_places[device][i]);
      const auto [new_begin, new_end] = range(to, new_places[device][i]);
      tile *= static_cast<double>(new_end - new_begin);
      held *= static_cast<double>(
          std::max<std::int64_t>(std::min(old_end, new_end) - std::max(old_begin, new_begin), 0));
    }
    received += tile - held;
  }
  return received * element_bytes / static_cast<double>(std::max<std::size_t>(devices, 1));
}

std::optional<ReshardPath> cheapest_path(const Shape& shape, double element_bytes,
                                         const Tiling& from, const Tiling& to,
                                         const std::vector<std::int64_t>& digits, double limit) {
  if (!divides_evenly(shape, from) || !divides_evenly(shape, to)) return {};
  const Radices radices(digits);
  const auto start = state_of(from, shape.size(), radices);
  const auto target = state_of(to, shape.size(), radices);
  if (!start || !target) return {};
  return Search(shape, element_bytes, radices, *target).run(*start, limit);
}

}  // namespace shardsim::spmd
