#include <ranges>

#include "workloads/build.hpp"
#include "workloads/gradient_tape.hpp"
#include "workloads/rematerialization.hpp"

namespace shardsim {

void add_backward(Workload& workload, const Rematerialization& rematerialization) {
  GradientTape tape(workload);
  for (std::size_t b = workload.blocks.size(); b-- > 0;) {
    tape.begin_block(b);
    for (const Op& op : std::views::reverse(workload.blocks[b].forward)) tape.differentiate(op);
    tape.end_block();
  }
  rematerialize(workload, rematerialization);
}

}  // namespace shardsim
