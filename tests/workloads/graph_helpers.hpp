// Builds the graphs that the tests look at, and reads what they ask for out of them.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "workloads/models/build.hpp"
#include "workloads/step/backward.hpp"
#include "workloads/step/optimizer.hpp"

namespace shardsim::test {

inline const Tensor& at(const Workload& w, TensorId id) {
  return w.tensors[static_cast<std::size_t>(id)];
}

inline Workload forward_graph(const std::string& model, std::int64_t batch,
                              std::optional<std::int64_t> sequence, DType dtype = DType::bf16) {
  return build_workload(load_model_config(model, "", {}), {batch, sequence, dtype});
}

inline Workload training_graph(const std::string& model, std::int64_t batch,
                               std::optional<std::int64_t> sequence,
                               const Rematerialization& rematerialization = {}) {
  Workload w = forward_graph(model, batch, sequence);
  add_backward(w, rematerialization);
  return w;
}

inline const Block& block_of(const Workload& w, const std::string& name) {
  return *std::find_if(w.blocks.begin(), w.blocks.end(),
                       [&](const Block& b) { return b.name == name; });
}

// Forward activations that the block's backward pass reads: what must be kept.
inline std::set<TensorId> kept(const Workload& w, const Block& block) {
  std::set<TensorId> tensors;
  for (const Op& op : block.backward) {
    for (const Operand& operand : op.operands) {
      const Tensor& tensor = at(w, operand.tensor);
      if (tensor.role == TensorRole::activation && tensor.primal == no_tensor) {
        tensors.insert(operand.tensor);
      }
    }
  }
  return tensors;
}

inline std::int64_t kept_bytes(const Workload& w, const Block& block) {
  std::int64_t bytes = 0;
  for (const TensorId tensor : kept(w, block)) bytes += w.bytes(tensor).count();
  return bytes;
}

inline std::int64_t kept_bytes(const Workload& w) {
  std::int64_t bytes = 0;
  for (const Block& block : w.blocks) bytes += block.instances() * kept_bytes(w, block);
  return bytes;
}

inline std::set<std::string> names(const Workload& w, const std::set<TensorId>& tensors) {
  std::set<std::string> result;
  for (const TensorId tensor : tensors) result.insert(at(w, tensor).name);
  return result;
}

// Ops of a list with the given function.
inline std::vector<const Op*> with_function(const std::vector<Op>& ops,
                                            const std::string& function) {
  std::vector<const Op*> found;
  for (const Op& op : ops) {
    if (name_of(op.function) == function) found.push_back(&op);
  }
  return found;
}

}  // namespace shardsim::test
