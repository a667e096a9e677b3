#include "workloads/step/outputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "base/index.hpp"

namespace shardsim {
namespace {

// The operations of the loss are the last of the forward pass (GraphBuilder::cross_entropy).
TensorId add_output(Workload& workload, std::string_view name) {
  std::vector<Op>& ops = workload.blocks.back().forward;
  Op& loss = ops.back();
  const Op& log_softmax = ops[ops.size() - 2];
  assert(kind_of(loss) == OpKind::softmax_loss && kind_of(log_softmax) == OpKind::softmax_loss);
  if (name == "logits") return log_softmax.operands.front().tensor;
  if (name == "labels") return loss.operands.back().tensor;
  Tensor losses;
  losses.name = "losses";
  losses.dtype = DType::f32;
  losses.dims = loss.operands.back().dims;
  losses.block = static_cast<int>(workload.blocks.size()) - 1;
  workload.tensors.push_back(losses);
  const auto id = static_cast<TensorId>(workload.tensors.size()) - 1;
  loss.results.push_back({id, losses.dims});
  return id;
}

}  // namespace

std::vector<std::string> output_names() { return {"logits", "labels", "losses"}; }

void add_outputs(Workload& workload, const std::vector<std::string>& outputs, const Place& place) {
  const std::vector<std::string> names = output_names();
  for (const std::string& output : outputs) {
    if (std::find(names.begin(), names.end(), output) == names.end()) {
      throw InputError(place, fmt::format("unknown output \"{}\"", output), closest(output, names));
    }
    if (std::count(outputs.begin(), outputs.end(), output) > 1) {
      throw InputError(place, fmt::format("\"{}\" is there twice", output));
    }
    workload.outputs.push_back(add_output(workload, output));
  }
}

std::vector<TensorId> outputs_of(const Workload& workload) {
  std::vector<TensorId> outputs = workload.outputs;
  const bool is_loss = workload.loss == no_tensor || has_backward(workload) ||
                       workload.tensors[at(workload.loss)].dims.empty();
  if (!is_loss) outputs.push_back(workload.loss);
  return outputs;
}

}  // namespace shardsim
