// Laws of whole experiments: laws.hpp says which and why. laws_survey counts instead of stopping.
#include <catch2/catch.hpp>

#include "laws.hpp"

namespace shardsim::laws {
namespace {

void hold(const std::vector<Law>& laws) {
  for (const Law& law : laws) {
    const bool holds = rc::check(law.name, [&] {
      const Trial trial = *arbitrary_trial();
      if (const auto broken = law.broken_by(trial)) RC_FAIL(broken->what);
    });
    CHECK(holds);
  }
}

TEST_CASE("answers grow with what is asked for, and depend on nothing else") {
  hold(layout_laws());
}

TEST_CASE("no step is longer on a quicker machine, but by what sharing adds to it") {
  hold(machine_laws());
}

}  // namespace
}  // namespace shardsim::laws
