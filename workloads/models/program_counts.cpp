#include "workloads/models/program_counts.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/index.hpp"
#include "workloads/step/backward.hpp"

namespace shardsim::models {
namespace {

// As torch's counter names what does the work; what else an op does is counted nowhere.
std::string_view operator_of(const Op& op) {
  if (op.function == Function::grouped_matmul) return "_grouped_mm";
  if (kind_of(op) == OpKind::einsum) return "mm";
  return kind_of(op) == OpKind::attention ? "_scaled_dot_product_flash_attention" : "";
}

// Of attention all pairs, whatever a mask leaves.
std::int64_t flops_of(const Workload& workload, const Op& op) {
  double flops = flops_per_point(workload, op);
  for (const LabelId label : factors(op)) {
    flops *= static_cast<double>(workload.labels[at(label)].size);
  }
  if (kind_of(op) != OpKind::attention) flops *= op.work_fraction;
  return std::llround(flops);
}

std::int64_t add_flops(const Workload& workload, const std::vector<Op>& ops, std::int64_t instances,
                       OperatorFlops& by_operator) {
  std::int64_t of_one = 0;
  for (const Op& op : ops) {
    const std::string_view name = operator_of(op);
    if (name.empty()) continue;
    const std::int64_t flops = flops_of(workload, op);
    of_one += flops;
    by_operator[std::string(name)] += flops * instances;
  }
  return of_one;
}

// Storages of forward activations that the block's backward pass reads.
std::set<TensorId> kept_of(const Workload& workload, const Block& block) {
  std::map<TensorId, TensorId> within;
  for (const Op& op : block.forward) {
    if (!op.view) continue;
    for (const Operand& part : op.results) within[part.tensor] = op.operands[0].tensor;
  }
  std::set<TensorId> kept;
  for (const Op& op : block.backward) {
    for (const Operand& operand : op.operands) {
      TensorId id = operand.tensor;
      while (within.contains(id)) id = within[id];
      const Tensor& tensor = workload.tensors[at(id)];
      if (tensor.role == TensorRole::activation && tensor.primal == no_tensor) kept.insert(id);
    }
  }
  return kept;
}

void add_block(const Workload& workload, const Block& block, ModelCounts& n) {
  LayerCounts one;
  one.kind = "layer";
  one.forward_flops = add_flops(workload, block.forward, block.instances(), n.forward);
  one.backward_flops = add_flops(workload, block.backward, block.instances(), n.backward);
  n.forward_flops += one.forward_flops * block.instances();
  n.backward_flops += one.backward_flops * block.instances();
  const std::set<TensorId> kept = kept_of(workload, block);
  for (const TensorId id : kept) one.saved_bytes += workload.bytes(id).count();
  n.saved_bytes += one.saved_bytes * block.instances();
  for (const std::int32_t number : block.numbers) {
    const int layer = block.is_layer ? static_cast<int>(n.layers.size()) : -1;
    for (const TensorId id : kept) {
      const Tensor& tensor = workload.tensors[at(id)];
      n.saved.push_back(
          {instance_name(tensor.name, number), tensor.dtype, workload.bytes(id).count(), layer});
    }
    if (!block.is_layer) continue;
    one.prefix = instance_name(block.name, number);
    n.layers.push_back(one);
  }
}

}  // namespace

ModelCounts count_program(const ModelConfig& config, std::int64_t batch) {
  Workload workload = build_workload(config, {.batch = batch, .sequence = {}});
  add_backward(workload, {});
  ModelCounts n;
  for (const Block& block : workload.blocks) add_block(workload, block, n);
  for (const ParameterView& view : parameters(workload)) {
    const Tensor& tensor = workload.tensors[at(view.tensor)];
    const std::int64_t elements = workload.elements(tensor.dims);
    for (const std::int32_t number : view.numbers) {
      Parameter parameter{instance_name(tensor.name, number), view.shape, tensor.dtype};
      const auto layer = std::find_if(n.layers.begin(), n.layers.end(), [&](const LayerCounts& l) {
        return l.prefix == instance_name(workload.blocks[at(tensor.block)].name, number);
      });
      if (layer != n.layers.end()) {
        parameter.layer = static_cast<int>(layer - n.layers.begin());
        layer->parameters += elements;
        layer->active_parameters += elements;
      }
      n.total_parameters += elements;
      n.parameters.push_back(std::move(parameter));
    }
  }
  n.active_parameters = n.total_parameters;
  return n;
}

}  // namespace shardsim::models
