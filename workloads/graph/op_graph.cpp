#include "workloads/graph/op_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace shardsim {
namespace {

// Of one point, see flops_per_point. `over_head`: operations of the products whose sum or result
// goes over a head of keys; `over_value` likewise.
double attention_flops(const Workload& workload, const Op& op, double over_head,
                       double over_value) {
  const std::size_t first = op.function == Function::attention_backward ? 1 : 0;
  const LabelId head_dim = op.operands[first].dims.back().front();
  const LabelId value_dim = op.operands[first + 2].dims.back().front();
  if (head_dim == value_dim) return over_head + over_value;
  const auto size = [&](LabelId label) {
    return static_cast<double>(workload.labels[static_cast<std::size_t>(label)].size);
  };
  return over_head / size(value_dim) + over_value / size(head_dim);
}

// FlashAttention's backward pass is five matmuls, the first of which computes the scores again.
// What the model asks for is the other four: gradients of queries and keys, of probabilities and
// values.
double needed_per_point(const Workload& workload, const Op& op) {
  if (op.function != Function::attention_backward) return flops_per_point(workload, op);
  return attention_flops(workload, op, 4, 4);
}

double model_flops_of(const Op& op, const Workload& workload) {
  if (op.recompute || (kind_of(op) != OpKind::einsum && kind_of(op) != OpKind::attention)) return 0;
  double points = 1;
  for (const LabelId label : factors(op)) {
    const Label& l = workload.labels[static_cast<std::size_t>(label)];
    points *= static_cast<double>(l.size) * l.needed;
  }
  return points * needed_per_point(workload, op);  // without its mask
}

}  // namespace

std::vector<std::int64_t> Workload::shape(const std::vector<Dim>& dims) const {
  std::vector<std::int64_t> sizes;
  sizes.reserve(dims.size());
  for (const Dim& dim : dims) sizes.push_back(elements({dim}));
  return sizes;
}

std::int64_t Workload::elements(const std::vector<Dim>& dims) const {
  std::int64_t count = 1;
  for (const Dim& dim : dims) {
    for (const LabelId label : dim) count *= labels[static_cast<std::size_t>(label)].size;
  }
  return count;
}

Bytes Workload::bytes(TensorId tensor) const {
  const Tensor& t = tensors[static_cast<std::size_t>(tensor)];
  return elements(t.dims) * size_of(t.dtype);
}

LabelId Workload::label(std::string_view name) const {
  const auto found =
      std::find_if(labels.begin(), labels.end(), [&](const Label& l) { return l.name == name; });
  assert(found != labels.end());
  return static_cast<LabelId>(found - labels.begin());
}

std::vector<ParameterView> parameters(const Workload& workload) {
  std::vector<ParameterView> views;
  std::vector<bool> seen(workload.tensors.size());
  for (const Block& block : workload.blocks) {
    for (const Op& op : block.forward) {
      for (const Operand& operand : op.operands) {
        const auto index = static_cast<std::size_t>(operand.tensor);
        const Tensor& tensor = workload.tensors[index];
        if (tensor.role != TensorRole::parameter || seen[index]) continue;
        seen[index] = true;
        views.push_back({operand.tensor, workload.shape(tensor.dims), block.numbers});
      }
    }
  }
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    const Tensor& tensor = workload.tensors[t];
    if (tensor.role != TensorRole::parameter || seen[t]) continue;
    views.push_back({static_cast<TensorId>(t), workload.shape(tensor.dims),
                     workload.blocks[static_cast<std::size_t>(tensor.block)].numbers});
  }
  return views;
}

std::int64_t parameter_count(const Workload& workload) {
  std::int64_t count = 0;
  for (const ParameterView& view : parameters(workload)) {
    const Tensor& tensor = workload.tensors[static_cast<std::size_t>(view.tensor)];
    if (tensor.copy_of == no_tensor) count += workload.elements(tensor.dims) * view.instances();
  }
  return count;
}

std::vector<Succession> successions(const Workload& workload) {
  std::vector<Succession> pairs;
  for (std::size_t i = 1; i < workload.order.size(); ++i) {
    const Succession pair{static_cast<std::size_t>(workload.order[i - 1].block),
                          static_cast<std::size_t>(workload.order[i].block)};
    if (std::find(pairs.begin(), pairs.end(), pair) == pairs.end()) pairs.push_back(pair);
  }
  return pairs;
}

bool has_backward(const Workload& workload) {
  return std::any_of(workload.blocks.begin(), workload.blocks.end(),
                     [](const Block& block) { return !block.backward.empty(); });
}

double flops_per_point(const Workload& workload, const Op& op) {
  if (op.function == Function::attention) return attention_flops(workload, op, 2, 2);
  if (op.function == Function::attention_backward) return attention_flops(workload, op, 6, 4);
  return traits(op.function).flops;
}

std::vector<LabelId> factors(const Op& op) {
  std::vector<LabelId> labels;
  const auto add = [&](const std::vector<Operand>& operands) {
    for (const Operand& operand : operands) {
      for (const Dim& dim : operand.dims) {
        for (const LabelId label : dim) {
          if (std::find(labels.begin(), labels.end(), label) == labels.end())
            labels.push_back(label);
        }
      }
    }
  };
  add(op.operands);
  add(op.results);
  return labels;
}

ModelFlops model_flops(const Workload& workload) {
  double needed = 0;
  double full = 0;
  for (const Block& block : workload.blocks) {
    for (const auto* ops : {&block.forward, &block.backward}) {
      for (const Op& op : *ops) {
        const double flops = model_flops_of(op, workload) * static_cast<double>(block.instances());
        needed += flops * op.work_fraction;
        full += kind_of(op) == OpKind::attention ? flops : flops * op.work_fraction;
      }
    }
  }
  return {Flops(needed), Flops(full)};
}

void pad_vocabulary(Workload& workload, std::int64_t multiple) {
  for (Label& label : workload.labels) {
    if (label.role != LabelRole::vocab || label.size % multiple == 0) continue;
    const std::int64_t padded = (label.size + multiple - 1) / multiple * multiple;
    workload.notes.push_back(fmt::format("{} of {} is padded to {}, a multiple of {}", label.name,
                                         label.size, padded, multiple));
    label.size = padded;
  }
}

std::string instance_name(std::string name, std::int64_t number) {
  if (const std::size_t at = name.find("{}"); at != std::string::npos) {
    name.replace(at, 2, std::to_string(number));
  }
  return name;
}

}  // namespace shardsim
