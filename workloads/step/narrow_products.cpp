#include "workloads/step/narrow_products.hpp"

#include <algorithm>
#include <vector>

#include "base/index.hpp"
#include "workloads/graph/split_kinds.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {
namespace {

// 1 for each layer in the order that has narrow products.
std::vector<int> narrow_layers(const Workload& workload, const NarrowProducts& products) {
  const auto is_layer = [&](const BlockInstance& instance) {
    return workload.blocks[at(instance.block)].is_layer;
  };
  const auto layers = static_cast<std::int64_t>(
      std::count_if(workload.order.begin(), workload.order.end(), is_layer));
  std::vector<int> narrow;
  std::int64_t number = 0;
  for (const BlockInstance& instance : workload.order) {
    if (!is_layer(instance)) {
      narrow.push_back(0);
      continue;
    }
    const bool wide = number < products.first_wide || number >= layers - products.last_wide;
    narrow.push_back(wide ? 0 : 1);
    ++number;
  }
  return narrow;
}

// A linear layer's, not a router's or an adapter's.
bool is_narrowed(const Op& op) {
  return kind_of(op) == OpKind::einsum && (op.part != OpPart::none || op.module == OpModule::mixer);
}

}  // namespace

void narrow_products(Workload& workload, const NarrowProducts& products) {
  const std::optional<DType> dtype = dtype_of(products.format);
  if (!dtype && !products.attention) return;
  const std::vector<int> narrow = split_kinds(workload, narrow_layers(workload, products));
  for (std::size_t b = 0; b < workload.blocks.size(); ++b) {
    if (narrow[b] == 0) continue;
    for (Op& op : workload.blocks[b].forward) {
      if (products.attention && kind_of(op) == OpKind::attention) op.multiplied_in = DType::f8;
      if (!dtype || !is_narrowed(op)) continue;
      op.multiplied_in = dtype;
      if (products.gathered) workload.tensors[at(op.operands[1].tensor)].dtype = DType::f8;
    }
  }
}

}  // namespace shardsim
