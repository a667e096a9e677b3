#include "workloads/step/shared_parameters.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/index.hpp"

namespace shardsim {

void copy_shared_parameters(Workload& workload) {
  for (std::size_t b = 0; b < workload.blocks.size(); ++b) {
    if (workload.blocks[b].is_layer) continue;
    std::map<TensorId, TensorId> copies;
    for (Op& op : workload.blocks[b].forward) {
      for (Operand& operand : op.operands) {
        const Tensor& shared = workload.tensors[at(operand.tensor)];
        const bool is_other = shared.block != static_cast<int>(b);
        if (shared.role != TensorRole::parameter || !is_other) continue;
        if (workload.blocks[at(shared.block)].is_layer) continue;
        const auto [copy, is_new] =
            copies.try_emplace(operand.tensor, static_cast<TensorId>(workload.tensors.size()));
        if (is_new) {
          Tensor tensor = shared;
          tensor.name = fmt::format("{} ({})", shared.name, workload.blocks[b].name);
          tensor.block = static_cast<int>(b);
          tensor.copy_of = operand.tensor;
          workload.tensors.push_back(std::move(tensor));
        }
        operand.tensor = copy->second;
      }
    }
    for (const auto& [original, copy] : copies) {
      workload.notes.push_back(fmt::format(
          "{}: the first and the last stage have a copy each and add up their gradients",
          workload.tensors[at(original)].name));
    }
  }
}

}  // namespace shardsim
