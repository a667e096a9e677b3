// How much of each level of links the devices of a program take over time, as the engine shares it:
// a collective or message takes its share of the level (CostBreakdown::links) times the pace that
// others leave it (work_sharing.hpp), after its launch and latency. Of bins, equally long parts of
// the step, it is the mean.
//
// Example: from 1 ms on an all-gather takes all of NVLink, for 2.5 ms if it is alone; at 2 ms a
// smaller one begins, of 0.5 ms. To 3 ms both are at half pace, the first ends at 4 ms with the
// step. In four bins: 0, 1, 1, 1.
//
// Networks written in place have no levels. Of these each program has the links that are busiest
// over the step, busiest_links at most, those together that every collective loads alike; nothing
// where links are too many to be followed.
#pragma once

#include <cstddef>

#include "sim/step/engine.hpp"
#include "sim/step/lowering.hpp"
#include "sim/step/simulate.hpp"

namespace shardsim {

inline constexpr std::size_t busiest_links = 8;

// ProgramResult::links, of a trace that has paces. `bins` is above zero.
void add_link_usage(const Lowered& lowered, const Trace& trace, std::size_t bins, Result& result);

}  // namespace shardsim
