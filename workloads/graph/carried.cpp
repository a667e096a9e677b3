#include "workloads/graph/carried.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace shardsim {
namespace {

bool is_read(const Block& block, TensorId value) {
  return std::any_of(block.forward.begin(), block.forward.end(), [&](const Op& op) {
    return std::any_of(op.operands.begin(), op.operands.end(),
                       [&](const Operand& operand) { return operand.tensor == value; });
  });
}

// Of each tensor whether a parameter has a part in it.
std::vector<bool> learning_tensors(const Workload& workload) {
  std::vector<bool> learns;
  for (const Tensor& tensor : workload.tensors) {
    learns.push_back(tensor.role == TensorRole::parameter);
  }
  const auto at = [&](TensorId id) { return learns[static_cast<std::size_t>(id)]; };
  const Block* before = nullptr;
  for (const Block& block : workload.blocks) {
    for (std::size_t i = 0; i < block.carries_in.size() && before != nullptr; ++i) {
      if (i >= before->carries_out.size() || !at(before->carries_out[i])) continue;
      learns[static_cast<std::size_t>(block.carries_in[i])] = true;
    }
    for (const Op& op : block.forward) {
      const bool any = std::any_of(op.operands.begin(), op.operands.end(),
                                   [&](const Operand& operand) { return at(operand.tensor); });
      for (const Operand& result : op.results) {
        if (any) learns[static_cast<std::size_t>(result.tensor)] = true;
      }
    }
    before = &block;
  }
  return learns;
}

}  // namespace

void check_carried(const Workload& workload) {
  const std::vector<bool> learns = learning_tensors(workload);
  for (const Block& block : workload.blocks) {
    for (const TensorId value : block.carries_in) {
      const auto& out = block.carries_out;
      if (!learns[static_cast<std::size_t>(value)]) continue;
      if (std::find(out.begin(), out.end(), value) != out.end() || is_read(block, value)) continue;
      throw std::logic_error(fmt::format(
          "{} is handed \"{}\", which nothing in it reads and which it does not hand on",
          block.name, workload.tensors[static_cast<std::size_t>(value)].name));
    }
  }
}

}  // namespace shardsim
