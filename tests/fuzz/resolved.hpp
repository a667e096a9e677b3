// What the targets that read experiments share.
#pragma once

#include "experiments/experiment.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace shardsim {

inline void require_resolves_to_itself(const Json& resolved) {
  const Experiment again = read_experiments(as_written(resolved), "output.json").front();
  require_same(resolved, *again.resolved);
}

}  // namespace shardsim
