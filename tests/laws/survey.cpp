// How often laws are broken, over many trials: laws_survey [TRIALS [SEED [LAW]]].
// A line for each law: trials, how many broke it, by how much at most, and that trial.
#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "base/error.hpp"
#include "laws.hpp"

namespace {

using namespace shardsim;
using namespace shardsim::laws;

struct Tally {
  int broken = 0;
  Violation worst;
  std::string trial;
};

void count(const Trial& trial, const Law& law, Tally& tally) {
  const auto broken = law.broken_by(trial);
  if (!broken) return;
  ++tally.broken;
  if (tally.broken > 1 && broken->by <= tally.worst.by) return;
  std::ostringstream text;
  text << trial;
  tally.worst = *broken;
  tally.trial = text.str();
}

}  // namespace

int main(int argc, char** argv) try {
  constexpr int default_trials = 200;
  const int trials = argc > 1 ? std::atoi(argv[1]) : default_trials;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::string only = argc > 3 ? argv[3] : "";
  struct Group {
    const char* title;
    std::vector<Law> laws;
  };
  const std::vector<Group> groups = {{"", layout_laws()},
                                     {"", machine_laws()},
                                     {"as it is: ", anomalies()},
                                     {"by choice: ", choices()}};
  rc::Random random(seed);
  std::vector<Trial> all;
  for (int i = 0; i < trials; ++i) {
    constexpr int size = 100;
    all.push_back(arbitrary_trial()(random.split(), size).value());
  }
  for (const Group& group : groups) {
    for (const Law& law : group.laws) {
      const std::string name = group.title + law.name;
      if (!only.empty() && name != only) continue;
      Tally tally;
      for (const Trial& trial : all) count(trial, law, tally);
      std::cout << fmt::format("{}: {} of {}", name, tally.broken, trials);
      if (tally.broken > 0) {
        std::cout << fmt::format(", most by {:.3g} %: {}\n    {}", 100 * tally.worst.by,
                                 tally.worst.what, tally.trial);
      }
      std::cout << std::endl;
    }
  }
  return EXIT_SUCCESS;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return EXIT_FAILURE;
}
