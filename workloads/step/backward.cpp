#include "workloads/step/backward.hpp"

#include <algorithm>

#include "workloads/step/gradient_tape.hpp"

namespace shardsim {

void add_backward(Workload& workload, const Rematerialization& rematerialization,
                  const std::vector<std::size_t>& chunks) {
  const std::vector<bool> kinds = rematerialized_kinds(workload, rematerialization, chunks);
  GradientTape tape(workload);
  for (std::size_t b = workload.blocks.size(); b-- > 0;) {
    tape.begin_block(b);
    const std::vector<Op>& forward = workload.blocks[b].forward;
    std::for_each(forward.rbegin(), forward.rend(), [&](const Op& op) { tape.differentiate(op); });
    tape.end_block();
  }
  rematerialize(workload, rematerialization, kinds);
}

}  // namespace shardsim
