#include "strategies/runtime/units.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <set>
#include <utility>

#include "base/index.hpp"
#include "strategies/layout/expert_layout.hpp"
#include "strategies/runtime/registration.hpp"

namespace shardsim {

Units::Units(const Workload& workload, const std::vector<StageRange>& stages, UnitsOf grain,
             bool experts_apart, bool deals_experts)
    : workload_(workload),
      has_stages_(stages.size() > 1),
      is_dealt_out_(workload.tensors.size(), false) {
  std::set<std::size_t> seen;
  std::vector<Unit> layers;
  for (const StageRange& stage : stages) {
    Ends ends;
    bool layer_is_seen = false;
    for (std::size_t i = 0; i < stage.count; ++i) {
      const auto block = at(workload.order[stage.first + i].block);
      const bool is_run = !workload.blocks[block].runs_module.empty();
      layer_is_seen |= workload.blocks[block].is_layer || is_run;
      if (!seen.insert(block).second) continue;
      if (workload.blocks[block].is_layer) {
        add_layer(block, experts_apart, layers);
      } else if (is_run) {
        add_run(block, layers);
      } else {
        ends.blocks.push_back(block);
        if (!layer_is_seen) ends.before = ends.blocks.size();
      }
    }
    if (!ends.blocks.empty()) add_ends(ends, grain);
  }
  if (grain == UnitsOf::model && !units_.empty()) {
    for (const Unit& layer : layers) {
      auto& all = units_.front().parameters;
      if (!layer.is_inner) {
        all.insert(all.end(), layer.parameters.begin(), layer.parameters.end());
      }
    }
    std::sort(units_.front().parameters.begin(), units_.front().parameters.end());
    std::erase_if(layers, [](const Unit& layer) { return !layer.is_inner; });
  }
  std::move(layers.begin(), layers.end(), std::back_inserter(units_));
  place_of_ = torch_places(workload, grain == UnitsOf::layers_and_ends);
  unit_of_.assign(workload.tensors.size(), units_.size());
  for (std::size_t u = 0; u < units_.size(); ++u) {
    for (const TensorId parameter : units_[u].parameters) {
      unit_of_[at(parameter)] = u;
      is_dealt_out_[at(parameter)] = deals_experts && is_of_routed_experts(workload, parameter);
    }
  }
}

void Units::add_layer(std::size_t block, bool experts_apart, std::vector<Unit>& layers) const {
  const std::string& name = workload_.blocks[block].name;
  Unit layer{.name = name, .first = block, .last = block, .is_layer = true};
  Unit experts{
      .name = name + ".experts", .first = block, .last = block, .is_layer = true, .is_inner = true};
  for (const TensorId parameter : parameters_of(block)) {
    const bool is_apart = experts_apart && is_of_routed_experts(workload_, parameter);
    (is_apart ? experts : layer).parameters.push_back(parameter);
  }
  layers.push_back(std::move(layer));
  if (!experts.parameters.empty()) layers.push_back(std::move(experts));
}

void Units::add_run(std::size_t block, std::vector<Unit>& layers) const {
  const std::string& module = workload_.blocks[block].runs_module;
  const auto known = std::find_if(layers.begin(), layers.end(),
                                  [&](const Unit& layer) { return layer.name == module; });
  if (known == layers.end()) {
    layers.push_back({.name = module,
                      .parameters = parameters_of(block),
                      .first = block,
                      .last = block,
                      .runs = {block}});
    return;
  }
  known->last = block;
  known->runs.push_back(block);
}

void Units::add_ends(const Ends& ends, UnitsOf grain) {
  Unit root{.name = "root",
            .first = ends.blocks.front(),
            .last = ends.blocks.back(),
            .kept_as_root = true};
  std::vector<Unit> apart;
  for (std::size_t i = 0; i < ends.blocks.size(); ++i) {
    const std::size_t block = ends.blocks[i];
    const bool is_behind = i >= ends.before;
    Unit own{.name = workload_.blocks[block].name,
             .first = block,
             .last = block,
             .kept_as_root = is_behind};
    for (const TensorId parameter : parameters_of(block)) {
      bool is_own = grain == UnitsOf::layers_and_ends || grain == UnitsOf::embedding_and_head;
      if (is_behind && grain == UnitsOf::embedding_and_head) {
        is_own = is_multiplied(parameter, block);
      }
      // One parameter cannot be in two units.
      if (!is_behind && is_own && is_read_behind(parameter, ends)) own.last = ends.blocks.back();
      (is_own ? own : root).parameters.push_back(parameter);
    }
    if (own.last != block) own.kept_as_root = true;
    const bool joins =
        !apart.empty() && apart.front().last == block && apart.front().first != block;
    if (joins && grain == UnitsOf::layers_and_ends) {
      auto& first = apart.front().parameters;
      first.insert(first.end(), own.parameters.begin(), own.parameters.end());
    } else if (!own.parameters.empty()) {
      apart.push_back(std::move(own));
    }
  }
  if (!root.parameters.empty()) units_.push_back(std::move(root));
  std::move(apart.begin(), apart.end(), std::back_inserter(units_));
}

bool Units::is_read_behind(TensorId parameter, const Ends& ends) const {
  return std::any_of(ends.blocks.begin() + static_cast<std::ptrdiff_t>(ends.before),
                     ends.blocks.end(), [&](std::size_t block) {
                       const std::vector<Op>& ops = workload_.blocks[block].forward;
                       return std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
                         return std::any_of(
                             op.operands.begin(), op.operands.end(),
                             [&](const Operand& o) { return o.tensor == parameter; });
                       });
                     });
}

bool Units::is_multiplied(TensorId parameter, std::size_t block) const {
  const std::vector<Op>& ops = workload_.blocks[block].forward;
  return std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
    return kind_of(op) == OpKind::einsum &&
           std::any_of(op.operands.begin(), op.operands.end(),
                       [&](const Operand& o) { return o.tensor == parameter; });
  });
}

std::vector<TensorId> Units::parameters_of(std::size_t block) const {
  std::vector<TensorId> parameters;
  for (std::size_t t = 0; t < workload_.tensors.size(); ++t) {
    const Tensor& tensor = workload_.tensors[t];
    if (tensor.role == TensorRole::parameter && at(tensor.block) == block) {
      parameters.push_back(static_cast<TensorId>(t));
    }
  }
  return parameters;
}

const Unit& Units::of(TensorId parameter) const {
  assert(unit_of_[at(parameter)] < units_.size());
  return units_[unit_of_[at(parameter)]];
}

std::string Units::name(std::size_t block) const {
  for (const Unit& unit : units_) {
    if (unit.first == block && !unit.parameters.empty() && unit.name != "root") return unit.name;
  }
  return workload_.blocks[block].is_layer ? workload_.blocks[block].name : "root";
}

}  // namespace shardsim
