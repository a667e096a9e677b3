#include "workloads/views/view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/index.hpp"
#include "workloads/views/big_vision.hpp"
#include "workloads/views/maxtext.hpp"
#include "workloads/views/mechanical.hpp"
#include "workloads/views/praxis.hpp"
#include "workloads/views/t5x.hpp"

namespace shardsim {
namespace {

const std::vector<View> view_table = {
    {"maxtext", "MaxText's decoders, layers scanned, with its logical axes", maxtext_layers,
     maxtext_parameter},
    {"maxtext-0.2.5", "the same with the logical axes of maxtext 0.2.5 (embed_attn)",
     maxtext_layers, maxtext_025_parameter},
    {"easydel", "EasyDeL's modules: kernels [in, out], layer by layer, expert by expert",
     easydel_layers, easydel_parameter},
    {"flax", "flax.linen: kernels [in, heads, head], layer by layer, with t5x's logical axes",
     flax_layers, flax_parameter},
    {"flax-scanned", "the same, layers stacked in front", flax_scanned_layers, flax_parameter},
    {"levanter", "levanter's modules over haliax: layers stacked in front, its names of axes",
     levanter_layers, levanter_parameter},
    {"praxis", "praxis' transformers: weights of repeated layers", praxis_layers, praxis_parameter},
    {"t5x", "t5x' T5: kernels [embed, joined_kv], layer by layer", t5x_layers, t5x_parameter},
    {"big_vision", "big_vision's SigLIP: two towers, layers scanned in front", big_vision_layers,
     big_vision_parameter}};

[[noreturn]] void fail_without_name(const ViewInput& input, std::string_view view,
                                    TensorId parameter) {
  throw InputError(input.place,
                   fmt::format("view \"{}\" has no name for {} of {}", view,
                               input.workload.tensors[at(parameter)].name, input.workload.model));
}

void rewrite(Workload& workload, TensorId parameter, const std::vector<Dim>& dims) {
  Tensor& tensor = workload.tensors[at(parameter)];
  assert(workload.elements(dims) == workload.elements(tensor.dims));
  for (Block& block : workload.blocks) {
    for (Op& op : block.forward) {
      for (Operand& operand : op.operands) {
        if (operand.tensor != parameter) continue;
        assert(operand.dims == tensor.dims);
        operand.dims = dims;
      }
    }
  }
  tensor.dims = dims;
}

}  // namespace

const std::vector<View>& views() { return view_table; }

std::vector<std::string> view_names() {
  std::vector<std::string> names;
  for (const View& view : view_table) names.emplace_back(view.name);
  return names;
}

void apply_view(Workload& workload, std::string_view view, const std::string& family,
                const Place& place) {
  const auto found = std::find_if(view_table.begin(), view_table.end(),
                                  [&](const View& known) { return known.name == view; });
  assert(found != view_table.end());
  const ViewInput input{workload, family, place};
  TreeView tree{std::string(view), found->layers(input), {}};
  std::vector<std::pair<TensorId, ViewedParameter>> viewed;
  for (const ParameterView& parameter : parameters(workload)) {
    auto as = found->parameter(input, parameter.tensor);
    if (!as) fail_without_name(input, view, parameter.tensor);
    viewed.emplace_back(parameter.tensor, std::move(*as));
  }
  for (auto& [parameter, as] : viewed) {
    rewrite(workload, parameter, as.dims);
    workload.tensors[at(parameter)].form = static_cast<std::int32_t>(tree.forms.size());
    tree.forms.push_back(std::move(as.form));
  }
  workload.view = std::move(tree);
}

std::map<std::string, std::size_t> layer_counts(const Workload& workload) {
  std::map<std::string, std::size_t> counts;
  for (const ParameterView& parameter : parameters(workload)) {
    const std::string stack = stack_of(workload, workload.tensors[at(parameter.tensor)]);
    if (stack.empty()) continue;
    for (const std::int32_t number : parameter.numbers) {
      counts[stack] = std::max(counts[stack], at(number) + 1);
    }
  }
  return counts;
}

std::string stack_of(const Workload& workload, const Tensor& parameter) {
  if (!workload.blocks[at(parameter.block)].is_layer) return "";
  const std::size_t number = parameter.name.find("{}");
  assert(number != std::string::npos);
  return parameter.name.substr(0, number);
}

std::string name_in_layer(const Workload& workload, TensorId parameter) {
  const Tensor& tensor = workload.tensors[at(parameter)];
  const Block& block = workload.blocks[at(tensor.block)];
  if (!block.is_layer) return tensor.name;
  const std::size_t number = tensor.name.find("{}");
  assert(number != std::string::npos);
  return tensor.name.substr(number + 3);
}

void fail_without_family(const ViewInput& input, std::string_view view,
                         const std::vector<std::string>& known) {
  throw InputError(input.place,
                   fmt::format("view \"{}\" has no {} ({}); it has {}", view, input.family,
                               input.workload.model, fmt::join(known, ", ")));
}

}  // namespace shardsim
