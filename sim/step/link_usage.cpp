#include "sim/step/link_usage.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "sim/network/spread.hpp"

namespace shardsim {
namespace {

// Directions that are taken alike at all times are shown as one. A share is a whole number of 2^30
// parts: what differs by less is rounding.
constexpr double as_much = 1e-8;

class Usage {
 public:
  Usage(const Lowered& lowered, SimTime step, std::size_t bins)
      : lowered_(lowered),
        width_(static_cast<double>(step.count()) / static_cast<double>(bins)),
        bins_(bins) {
    for (const std::vector<LevelUse>& uses : lowered.link_uses.by_work) {
      std::vector<std::vector<double>*>& of_work = taken_by_work_.emplace_back();
      for (const LevelUse& use : uses) {
        std::vector<double>& taken = taken_[key_of(use)];
        taken.resize(bins, 0);
        of_work.push_back(&taken);
      }
    }
  }

  void take(std::int32_t task, SimTime begin, SimTime end, double pace) {
    if (pace == 0 || begin == end) return;
    const std::size_t work = at(lowered_.graph.tasks[at(task)].work);
    const std::vector<LevelUse>& uses = lowered_.link_uses.by_work[work];
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const LevelUse& use = uses[i];
      std::vector<double>& taken = *taken_by_work_[work][i];
      spread(static_cast<double>(begin.count()), static_cast<double>(end.count()), width_, bins_,
             [&](std::size_t bin, double length) {
               taken[bin] += use.share * pace * length / width_;
             });
    }
  }

  void publish(Result& result) && {
    for (auto& [key, taken] : taken_) {
      const auto& [program, level, direction, number] = key;
      std::vector<LinkUsage>& links = result.programs[at(program)].links;
      const bool has_other =
          direction == LinkDirection::in && !links.empty() && links.back().level == level;
      if (number >= 0) {
        const LinksAlike& alike = lowered_.link_uses.alike[at(number)];
        links.push_back({level, direction, std::move(taken), alike.first, alike.links});
      } else if (has_other && are_alike(links.back().taken, taken)) {
        links.back().direction = LinkDirection::both;
      } else {
        links.push_back({level, direction, std::move(taken)});
      }
    }
    for (ProgramResult& program : result.programs) keep_busiest(program.links);
  }

 private:
  using Key = std::tuple<std::int32_t, LinkLevel, LinkDirection, std::int32_t>;

  static Key key_of(const LevelUse& use) {
    return {use.program, use.level, use.direction, use.links};
  }

  // Of a network: the others are few, and stay in the order of their levels.
  static void keep_busiest(std::vector<LinkUsage>& links) {
    const auto network = std::stable_partition(
        links.begin(), links.end(), [](const LinkUsage& usage) { return usage.link.empty(); });
    const auto sum = [](const LinkUsage& usage) {
      return std::accumulate(usage.taken.begin(), usage.taken.end(), 0.0);
    };
    std::stable_sort(network, links.end(),
                     [&](const LinkUsage& a, const LinkUsage& b) { return sum(a) > sum(b); });
    const auto kept = std::min(links.end() - network, std::ptrdiff_t{busiest_links});
    links.erase(network + kept, links.end());
  }

  static bool are_alike(const std::vector<double>& a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::abs(a[i] - b[i]) > as_much) return false;
    }
    return true;
  }

  const Lowered& lowered_;
  double width_;  // of a bin, in picoseconds
  std::size_t bins_;
  std::map<Key, std::vector<double>> taken_;
  std::vector<std::vector<std::vector<double>*>> taken_by_work_;  // for each of its uses
};

}  // namespace

void add_link_usage(const Lowered& lowered, const Trace& trace, std::size_t bins, Result& result) {
  if (result.step_time == SimTime(0)) return;
  Usage usage(lowered, result.step_time, bins);
  std::vector<const PaceChange*> under_way(lowered.graph.tasks.size(), nullptr);
  const auto end = [&](const PaceChange* before, SimTime now) {
    if (before != nullptr) usage.take(before->task, before->time, now, before->pace);
  };
  for (const PaceChange& change : trace.paces) {
    end(std::exchange(under_way[at(change.task)], &change), change.time);
  }
  for (std::size_t task = 0; task < under_way.size(); ++task) {
    end(under_way[task], trace.end[task]);
  }
  std::move(usage).publish(result);
}

}  // namespace shardsim
