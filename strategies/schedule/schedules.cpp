#include "strategies/schedule/schedules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "strategies/key_place.hpp"
#include "strategies/schedule/dualpipev.hpp"
#include "strategies/schedule/gpipe.hpp"
#include "strategies/schedule/interleaved_1f1b.hpp"
#include "strategies/schedule/looped_bfs.hpp"
#include "strategies/schedule/one_forward_one_backward.hpp"
#include "strategies/schedule/zbv.hpp"
#include "strategies/schedule/zero_bubble.hpp"

namespace shardsim {
namespace {

constexpr auto looped = StagePlacement::loop;
constexpr auto as_v = StagePlacement::v;
constexpr auto listed = Receives::with_sends;
constexpr auto looping = Receives::when_needed;

bool same_in_any_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

void check_stages(const ScheduleRequest& request, const ScheduleKind& kind, const Place& place) {
  const std::int32_t stages = request.virtual_stages;
  const Place at = place_of_key(place, "virtual_stages");
  if (stages >= kind.fewest_stages && stages <= kind.most_stages) {
    if (std::int64_t{stages} * request.ranks <= max_stages) return;
    throw InputError(at, fmt::format("{} ranks of {} stages each are more than {} stages",
                                     request.ranks, stages, max_stages));
  }
  if (kind.most_stages == 1) {
    throw InputError(at,
                     fmt::format("{} runs 1 stage per rank, not {}; interleaved-1f1b, looped-bfs "
                                 "and interleaved-zero-bubble run several",
                                 kind.name, stages));
  }
  throw InputError(at, fmt::format("{} runs exactly {} stages per rank, not {}", kind.name,
                                   kind.fewest_stages, stages));
}

}  // namespace

const std::vector<ScheduleKind>& schedule_kinds() {
  static const std::vector<ScheduleKind> kinds{
      {"gpipe", "GPipe", "all forwards, then all backwards", looped, looping, 1, 1, gpipe},
      {"1f1b", "1F1B", "a backward after each forward as soon as there is one", looped, looping, 1,
       1, one_forward_one_backward},
      {"interleaved-1f1b", "Interleaved1F1B", "1F1B over several stages per rank", looped, listed,
       1, max_stages, interleaved_1f1b},
      {"looped-bfs", "LoopedBFS", "stage by stage, all microbatches each", looped, listed, 1,
       max_stages, looped_bfs},
      {"zero-bubble", "", "1F1B whose weight gradients fill the bubble, in 1F1B's memory", looped,
       listed, 1, 1, zero_bubble_h1},
      {"zero-bubble-2p", "", "no bubble at all, in up to twice the memory", looped, listed, 1, 1,
       zero_bubble_h2},
      {"interleaved-zero-bubble", "InterleavedZeroBubble",
       "zero-bubble over several stages per rank", looped, listed, 1, max_stages,
       interleaved_zero_bubble},
      {"zbv", "ZBVZeroBubble", "zero bubble over two stages per rank, down and up again", as_v,
       listed, 2, 2, zbv},
      {"dualpipev", "DualPipeV", "as zbv, a forward and a backward overlapped", as_v, listed, 2, 2,
       dualpipev},
  };
  return kinds;
}

const ScheduleKind& schedule_kind(std::string_view name, const Place& place) {
  std::vector<std::string> names;
  for (const ScheduleKind& kind : schedule_kinds()) {
    if (name == kind.name || same_in_any_case(name, kind.pytorch_name)) return kind;
    names.emplace_back(kind.name);
  }
  throw InputError(place_of_key(place, "schedule"), fmt::format("unknown schedule \"{}\"", name),
                   closest(name, names));
}

PipelineSchedule make_schedule(const ScheduleRequest& request, const Place& place) {
  const ScheduleKind& kind = schedule_kind(request.name, place);
  const auto at_least_one = [&](std::int32_t number, std::string_view key, std::string_view what) {
    if (number >= 1 && number <= (1 << 24)) return;
    throw InputError(place_of_key(place, key),
                     fmt::format("{} {}: expected 1 to {}", number, what, 1 << 24));
  };
  at_least_one(request.ranks, "ranks", "ranks");
  at_least_one(request.microbatches, "microbatches", "microbatches");
  check_stages(request, kind, place);
  return kind.make(request, place);
}

}  // namespace shardsim
