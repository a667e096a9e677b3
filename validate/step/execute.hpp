// A plan, run on a backend until its step time is known well enough.
//
// After some steps to warm up, the step is repeated until the 95 % interval of its median is
// narrow, or time or repeats are up. The interval is that of order statistics, free of assumptions
// about the distribution: of n repeats the number below the median is binomial with p = 1/2
// (Conover, Practical Nonparametric Statistics, 3rd ed., sec. 3.2). Of 20 it is from the 6th
// to the 15th.
//
// A process that comes early to a collective waits there for the others, which is not what the
// collective takes. Its time is, in each group, from when the last member comes to when the last
// leaves; over groups the largest, as simulated. A kernel's time is the median over the devices of
// its program. Of all the median over repeats is told. The step's time is from when its first task
// begins on any process to when the last ends.
//
// Without a clock that all share, who waits least in a collective came last: its time is the least
// of a group. The step's is then the longest of any process, all of which begin together.
//
// Example: ranks 0 and 1 come to an all-reduce at 1 and 4 ms and leave it at 6: it takes 2 ms.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "plan/plan.hpp"
#include "validate/backends/backend.hpp"

namespace shardsim {

inline constexpr int least_repeats = 6;  // for an interval: it is that of the extremes

struct Repeats {
  int warm_ups = 3;
  int least = 10;
  int most = 200;
  double precision = 0.02;  // half of the interval over the median, from which on it is enough
  Seconds longest{30};      // after which no step is begun once there are enough for a median
};

// Over repeats.
struct Spread {
  Seconds low{0};  // 10th percentile
  Seconds median{0};
  Seconds high{0};  // 90th percentile
};

struct MeasuredStep {
  std::vector<std::vector<Spread>> tasks;  // by program and task
  Spread step;
  int repeats = 0;
  double precision = 0;  // that was reached
  bool settled = false;  // it is what was asked for
};

// `begun` is called before every step, with its number. All processes call it with the same plan
// and get the same.
[[nodiscard]] MeasuredStep execute(const Plan& plan, Backend& backend, const Repeats& repeats,
                                   const std::function<void(int)>& begun = {});

// What one step took by the rules above. `spans`: of every rank, of the tasks of its program.
[[nodiscard]] std::vector<std::vector<Seconds>> task_times(
    const Plan& plan, const std::vector<std::vector<TaskSpan>>& spans, bool on_one_clock);

// Half the width of the 95 % interval of the median, over the median; least_repeats values or more.
[[nodiscard]] double precision_of_median(std::vector<double> values);

}  // namespace shardsim
