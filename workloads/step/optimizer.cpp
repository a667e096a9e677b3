#include "workloads/step/optimizer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/error.hpp"

namespace shardsim {
namespace {

struct OptimizerKind {
  std::string name;
  std::vector<std::string> moments;  // as PyTorch names them in its state
  Function function = Function::adamw;
};

const std::vector<OptimizerKind> kinds = {
    {"adamw", {"exp_avg", "exp_avg_sq"}, Function::adamw},
    {"adam", {"exp_avg", "exp_avg_sq"}, Function::adam},
    {"lion", {"exp_avg"}, Function::lion},
    {"sgd", {"momentum_buffer"}, Function::sgd},
};

}  // namespace

std::vector<std::string> known_optimizers() {
  std::vector<std::string> names;
  for (const OptimizerKind& kind : kinds) names.push_back(kind.name);
  return names;
}

namespace {

const OptimizerKind& kind_of(const std::string& name) {
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const OptimizerKind& kind) { return kind.name == name; });
  if (found != kinds.end()) return *found;
  throw InputError({"", "/workload/optimizer"},
                   fmt::format("unknown optimizer \"{}\"; known are {}", name,
                               fmt::join(known_optimizers(), ", ")));
}

// The gradient that is complete: the last one made for the parameter.
TensorId gradient_of(const Workload& workload, TensorId parameter) {
  TensorId gradient = no_tensor;
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    const Tensor& tensor = workload.tensors[t];
    if (tensor.role == TensorRole::parameter_gradient && tensor.primal == parameter) {
      gradient = static_cast<TensorId>(t);
    }
  }
  return gradient;
}

Operand add_state(Workload& workload, TensorId parameter, const std::string& name, DType dtype) {
  const Tensor& of = workload.tensors[static_cast<std::size_t>(parameter)];
  Tensor state{
      of.name + "." + name, TensorRole::optimizer_state, dtype, of.dims, of.block, parameter};
  workload.tensors.push_back(std::move(state));
  const auto id = static_cast<TensorId>(workload.tensors.size() - 1);
  return {id, workload.tensors.back().dims};
}

}  // namespace

void add_optimizer(Workload& workload, const OptimizerOptions& options) {
  const OptimizerKind& kind = kind_of(options.kind);
  for (const ParameterView& view : parameters(workload)) {
    if (!workload.tensors[static_cast<std::size_t>(view.tensor)].trained) continue;
    const TensorId gradient = gradient_of(workload, view.tensor);
    assert(gradient != no_tensor);  // add_backward comes first
    const Tensor parameter = workload.tensors[static_cast<std::size_t>(view.tensor)];
    Op op;
    op.function = kind.function;
    op.name = parameter.name;
    op.results.push_back({view.tensor, parameter.dims});
    if (options.master) {
      op.results.push_back(add_state(workload, view.tensor, "master", *options.master));
    }
    const bool has_moments = options.momentum || kind.function != Function::sgd;
    if (!has_moments) op.work_fraction = 0.5;  // w -= rate * g, of v = m * v + g; w -= rate * v
    for (const std::string& moment : has_moments ? kind.moments : std::vector<std::string>{}) {
      op.results.push_back(add_state(workload, view.tensor, moment, options.moments));
    }
    op.operands = op.results;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      op.in_place.push_back({static_cast<std::int8_t>(i), static_cast<std::int8_t>(i)});
    }
    op.operands.push_back({gradient, parameter.dims});
    workload.blocks[static_cast<std::size_t>(parameter.block)].optimizer.push_back(std::move(op));
  }
}

}  // namespace shardsim
