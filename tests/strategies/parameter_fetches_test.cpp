// What is fetched and given back where, by hand from DeepSpeed 0.19.8's
// runtime/zero/partitioned_param_coordinator.py.
#include "strategies/runtime/parameter_fetches.hpp"

#include <catch2/catch.hpp>

#include <cstddef>
#include <vector>

namespace shardsim {
namespace {

using Numbers = std::vector<std::size_t>;

constexpr std::size_t no_module = 0, first = 1, middle = 2, last = 3;

ModuleStep step_of(std::size_t module, bool enters, Phase phase) {
  ModuleStep step;
  step.enters = enters;
  step.phase = phase;
  step.module = module;
  if (module != no_module) step.parameters = {module - 1};
  return step;
}

// Three modules in a root, with a parameter each.
ModuleWalk walk_of_three() {
  ModuleWalk walk;
  walk.parameters = {{0, 0}, {1, 0}, {2, 0}};
  walk.frozen = {false, false, false};
  walk.steps.push_back(step_of(no_module, true, Phase::forward));
  for (const std::size_t module : {first, middle, last}) {
    walk.steps.push_back(step_of(module, true, Phase::forward));
    walk.steps.push_back(step_of(module, false, Phase::forward));
  }
  for (const std::size_t module : {last, middle, first}) {
    walk.steps.push_back(step_of(module, true, Phase::backward));
    walk.steps.push_back(step_of(module, false, Phase::backward));
  }
  return walk;
}

constexpr std::size_t middle_left = 4, middle_again = 9, middle_left_again = 10;

}  // namespace

// The middle one has 100 elements, the others 10 and stay whole; calls ahead end with the first
// parameter that is not there.
TEST_CASE("What is given back is as in the first microbatch whose order is known", "[strategies]") {
  const ModuleWalk walk = walk_of_three();
  const std::vector<std::int64_t> elements = {10, 100, 10};
  FlatParameters rule;
  rule.prefetch_elements = 5;
  rule.whole_elements = 10;
  rule.live_elements = 1000;  // all are there at once
  SECTION("One in a step: on entering the first, a call ahead passes over backward's use") {
    const std::vector<Fetch> fetches = plan_fetches(walk, elements, rule, 1);
    CHECK(fetches[middle_left].released.empty());
    CHECK(fetches[middle_again].now.empty());
    CHECK(fetches[middle_left_again].released == Numbers{1});
  }
  SECTION("Two: once, it stopped at the last, which was not there, and so it does not count") {
    const std::vector<Fetch> fetches = plan_fetches(walk, elements, rule, 2);
    CHECK(fetches[middle_left].released == Numbers{1});
    CHECK(fetches[middle_again].now == Numbers{1});
  }
}

// Read again by what the last one's backward needs, it goes with that one; trained, it goes itself.
TEST_CASE("A frozen parameter that is read again goes with the module at work", "[strategies]") {
  ModuleWalk walk = walk_of_three();
  ModuleStep enter = step_of(middle, true, Phase::backward);
  ModuleStep leave = step_of(middle, false, Phase::backward);
  enter.again = leave.again = true;
  constexpr std::size_t last_at_work = 7;
  walk.steps.insert(walk.steps.begin() + last_at_work + 1, {enter, leave});
  FlatParameters rule;
  rule.live_elements = 1000;  // all are there at once
  const bool frozen = GENERATE(false, true);
  walk.frozen[1] = frozen;
  const std::vector<Fetch> fetches = plan_fetches(walk, {10, 100, 10}, rule, 1);
  CHECK(fetches[last_at_work + 1].now == Numbers{1});
  CHECK(fetches[last_at_work + 2].released == (frozen ? Numbers{} : Numbers{1}));
  CHECK(fetches[last_at_work + 3].released == (frozen ? Numbers{1, 2} : Numbers{2}));
}

// mark_persistent_parameters: one after the other, what would be too much in all is passed over.
TEST_CASE("small parameters stay whole while they are not too many in all") {
  FlatParameters rule;
  rule.whole_elements = 10;
  CHECK(stay_whole({10, 100, 8, 3, 2}, rule) == std::vector<bool>{true, false, true, true, true});
  rule.whole_in_all = 14;
  CHECK(stay_whole({10, 100, 8, 3, 2}, rule) == std::vector<bool>{true, false, false, true, false});
}

}  // namespace shardsim
