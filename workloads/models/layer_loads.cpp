#include "workloads/models/layer_loads.hpp"

#include <algorithm>
#include <utility>

namespace shardsim::models {
namespace {

bool has_experts(const LayerKind& kind) {
  return std::any_of(kind.branches.begin(), kind.branches.end(), [](const Branch& branch) {
    return std::holds_alternative<Experts>(branch.body);
  });
}

LayerKind loaded(LayerKind kind, const ExpertRows& rows) {
  for (Branch& branch : kind.branches) {
    auto* experts = std::get_if<Experts>(&branch.body);
    if (experts == nullptr) continue;
    experts->load = rows.most;
    experts->held = rows.held;
  }
  return kind;
}

}  // namespace

void set_layer_loads(ModelSpec& spec, const ExpertExchange& exchange) {
  for (Stack& stack : spec.stacks) {
    if (stack.role != StackRole::main || !stack.modules.empty()) continue;
    const std::vector<int> order = std::exchange(stack.order, {});
    const std::vector<LayerKind> kinds = std::exchange(stack.kinds, {});
    for (std::size_t i = 0; i < order.size(); ++i) {
      LayerKind kind = kinds[static_cast<std::size_t>(order[i])];
      const auto load = exchange.rows_of_layer.find(static_cast<std::int32_t>(i));
      if (load != exchange.rows_of_layer.end() && has_experts(kind)) {
        kind = loaded(std::move(kind), load->second);
      }
      const auto known = std::find(stack.kinds.begin(), stack.kinds.end(), kind);
      stack.order.push_back(static_cast<int>(known - stack.kinds.begin()));
      if (known == stack.kinds.end()) stack.kinds.push_back(std::move(kind));
    }
  }
}

}  // namespace shardsim::models
