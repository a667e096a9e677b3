#include "strategies/partition/held_rows.hpp"

#include <cmath>

#include "base/index.hpp"

namespace shardsim {

void hold_rows(const Workload& workload, SpmdStep& step) {
  for (Value& value : step.values) {
    if (value.tensor == no_tensor) continue;
    double held = 1;
    for (const Dim& dim : workload.tensors[at(value.tensor)].dims) {
      for (const LabelId label : dim) held *= workload.labels[at(label)].held;
    }
    if (held == 1) continue;
    const double bytes = std::ceil(held * static_cast<double>(value.bytes.count()));
    value.bytes = Bytes(static_cast<std::int64_t>(bytes));
  }
}

}  // namespace shardsim
