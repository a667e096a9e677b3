#include "workloads/views/mechanical.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/index.hpp"
#include "workloads/models/hub_names.hpp"
#include "workloads/views/dimension_names.hpp"
#include "workloads/views/form_text.hpp"

namespace shardsim {
namespace {

bool is_our_own(const std::string& name) { return name.find('/') != std::string::npos; }

std::string with_slashes(std::string name) {
  std::replace(name.begin(), name.end(), '.', '/');
  return name;
}

// What reads a parameter, the first that does but for look-ups, which go before; nothing where it
// does not run and keeps its name.
struct Use {
  const Op* op = nullptr;
  std::size_t operand = 0;
};

Use use_of(const Workload& workload, TensorId parameter) {
  Use first;
  for (const Block& block : workload.blocks) {
    for (const Op& op : block.forward) {
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (op.operands[i].tensor != parameter) continue;
        if (kind_of(op) == OpKind::lookup) return {&op, i};
        if (first.op == nullptr) first = {&op, i};
      }
    }
  }
  return first;
}

bool is_weight_of_product(const Use& use) {
  return use.operand == 1 && kind_of(*use.op) == OpKind::einsum;
}

// The dimensions of a product's weight, label by label: of experts, of what it sums, of what it
// makes.
struct KernelLabels {
  Dim experts, in, out;
};

KernelLabels kernel_labels(const Workload& workload, const Tensor& weight, const Op& product) {
  const auto has = [](const std::vector<Dim>& dims, LabelId label) {
    return std::any_of(dims.begin(), dims.end(), [&](const Dim& dim) {
      return std::find(dim.begin(), dim.end(), label) != dim.end();
    });
  };
  KernelLabels labels;
  for (const Dim& dim : weight.dims) {
    for (const LabelId label : dim) {
      const bool grouped = product.function == Function::grouped_matmul &&
                           workload.labels[at(label)].role == LabelRole::experts;
      Dim& of = grouped                                    ? labels.experts
                : has(product.results.front().dims, label) ? labels.out
                                                           : labels.in;
      of.push_back(label);
    }
  }
  return labels;
}

// Of a convolution [out, in, taps...], or [in, out, taps...] of one that makes pictures larger, as
// flax has it: [taps..., in, out]. Nothing: it is none.
std::vector<Dim> convolution_dims(const Workload& workload, const Tensor& weight, const Use& use) {
  const bool is_weight = weight.name.ends_with(".weight") && weight.dims.size() > 2;
  if (!is_weight || use.op == nullptr || use.operand != 1) return {};
  const auto is_of_experts = [&](const Dim& dim) {
    return std::any_of(dim.begin(), dim.end(), [&](LabelId label) {
      return workload.labels[at(label)].role == LabelRole::experts;
    });
  };
  if (std::any_of(weight.dims.begin(), weight.dims.end(), is_of_experts)) return {};
  std::vector<Dim> dims(weight.dims.begin() + 2, weight.dims.end());
  const bool widens = is_weight_of_product(use) &&
                      kernel_labels(workload, weight, *use.op).in == weight.dims.front();
  dims.push_back(weight.dims[widens ? 0 : 1]);
  dims.push_back(weight.dims[widens ? 1 : 0]);
  return dims;
}

// Of what is there and not run (the images' part beside text alone) no op tells what it is: its
// shape and its module's name do.
struct IdleLeaf {
  std::string name;
  std::vector<Dim> dims;
};
std::optional<IdleLeaf> idle_leaf(const Workload& workload, const Tensor& weight, const Use& use,
                                  const std::string& name, std::string_view rms_scale) {
  constexpr std::string_view ending = ".weight";
  if (use.op != nullptr || !name.ends_with(ending)) return std::nullopt;
  const std::string module = name.substr(0, name.size() - ending.size());
  std::string_view as = "kernel";
  std::vector<Dim> dims(weight.dims.rbegin(), weight.dims.rend());
  if (dims.size() > 2) {  // [out, in, taps...]
    dims.assign(weight.dims.begin() + 2, weight.dims.end());
    dims.push_back(weight.dims[1]);
    dims.push_back(weight.dims[0]);
  } else if (dims.size() == 1) {
    const std::string bias = weight.name.substr(0, weight.name.size() - ending.size()) + ".bias";
    const bool has_bias = std::any_of(workload.tensors.begin(), workload.tensors.end(),
                                      [&](const Tensor& tensor) { return tensor.name == bias; });
    as = has_bias ? "scale" : rms_scale;
  } else if (module.find("embed", module.rfind('.') + 1) != std::string::npos) {
    as = "embedding";
    dims = weight.dims;
  }
  return IdleLeaf{fmt::format("{}/{}", with_slashes(module), as), std::move(dims)};
}

// The last part of a parameter's name.
std::string leaf_name(const std::string& name, const Use& use, std::string_view weight,
                      std::string_view rms_scale) {
  const std::size_t dot = name.rfind('.');
  const std::string last = name.substr(dot + 1);
  if (last == "bias" || use.op == nullptr) return with_slashes(name);
  std::string_view as;
  if (kind_of(*use.op) == OpKind::lookup) {
    as = weight == "kernel" ? "embedding" : weight;
  } else if (use.op->function == Function::rms_norm) {
    as = rms_scale;
  } else if (use.op->function == Function::layer_norm) {
    as = weight == "kernel" ? "scale" : weight;
  } else if (is_weight_of_product(use)) {
    as = weight;
  }
  if (as.empty()) return with_slashes(name);
  const std::string module = last == "weight" ? name.substr(0, dot) : name;
  return fmt::format("{}/{}", with_slashes(module), as);
}

ViewedLayers each_layer(const Workload& workload) {
  ViewedLayers layers;
  for (const auto& [stack, count] : layer_counts(workload)) {
    const std::string path = is_our_own(stack) ? stack : with_slashes(stack);
    for (std::size_t i = 0; i < count; ++i) {
      layers[stack].push_back({.path = fmt::format("{}{}", path, i)});
    }
  }
  return layers;
}

// Of several kinds each is scanned by itself, under a number of its own.
ViewedLayers stacked_layers(const Workload& workload, std::string_view suffix) {
  std::map<std::string, std::vector<const Block*>> kinds;  // of each stack
  for (const ParameterView& parameter : parameters(workload)) {
    const Tensor& tensor = workload.tensors[at(parameter.tensor)];
    const Block& block = workload.blocks[at(tensor.block)];
    if (!block.is_layer) continue;
    auto& of_stack = kinds[stack_of(workload, tensor)];
    if (std::find(of_stack.begin(), of_stack.end(), &block) == of_stack.end()) {
      of_stack.push_back(&block);
    }
  }
  ViewedLayers layers;
  for (const auto& [stack, count] : layer_counts(workload)) {
    layers[stack].resize(count);
    std::size_t kind = 0;
    for (const Block* block : kinds[stack]) {
      std::string path = stack.substr(0, stack.size() - 1);  // without the separator
      path = (is_our_own(path) ? path : with_slashes(path)) + std::string(suffix);
      if (kinds[stack].size() > 1) path += fmt::format("_{}", kind);
      for (const std::int32_t number : block->numbers) {
        layers[stack][at(number)] = {.path = path, .mark = "", .stacked = true, .axis = "layers"};
      }
      ++kind;
    }
  }
  return layers;
}

// As it is, with a name for each dimension.
template <class Axis>
ViewedParameter as_it_is(const Workload& workload, TensorId parameter, const Axis& axis) {
  ViewedParameter viewed;
  viewed.form.name = name_in_layer(workload, parameter);
  viewed.dims = workload.tensors[at(parameter)].dims;
  for (const Dim& dim : viewed.dims) viewed.form.axes.push_back(axis(dim));
  return viewed;
}

// Dimensions of one label each; heads and their groups, a mixer's, too, together, unless they are
// to be apart.
std::vector<Dim> by_label(const Workload& workload, const Dim& labels, bool groups_apart = false) {
  std::vector<Dim> dims;
  const auto role_of = [&](LabelId label) { return workload.labels[at(label)].role; };
  for (const LabelId label : labels) {
    const LabelRole before = dims.empty() ? LabelRole::none : role_of(dims.back().back());
    const bool joins = !groups_apart && role_of(label) == LabelRole::head_group &&
                       (before == LabelRole::heads || before == LabelRole::mixer_groups);
    if (joins) {
      dims.back().push_back(label);
    } else {
      dims.push_back({label});
    }
  }
  return dims;
}

void append_to(std::vector<Dim>& dims, std::vector<Dim> more) {
  dims.insert(dims.end(), more.begin(), more.end());
}

Dim all_labels(const std::vector<Dim>& dims) {
  Dim labels;
  for (const Dim& dim : dims) labels.insert(labels.end(), dim.begin(), dim.end());
  return labels;
}

// Experts one by one where files on the hub have them so, gate and up apart; else stacked.
ViewedParameter experts_of(const ViewInput& input, const KernelLabels& labels, std::string name) {
  const models::ExpertFiles files = models::expert_files(input.family);
  const Workload& workload = input.workload;
  ViewedParameter viewed;
  if (files.down.empty()) {
    viewed.form.name = with_slashes(name) + "/kernel";
    viewed.dims = {labels.experts, labels.in, labels.out};
    viewed.form.axes.resize(3);
    return viewed;
  }
  const std::size_t dot = name.rfind('.');
  const bool is_last = name.substr(dot + 1) == "down_proj";
  name = with_slashes(name.substr(0, dot));
  Dim out = labels.out;
  const auto parts = std::find_if(out.begin(), out.end(), [&](LabelId label) {
    return base_name(workload.labels[at(label)]) == "gate_up";
  });
  const std::string_view alone = is_last ? files.down : files.up;
  const bool is_fused = parts != out.end();
  const std::string what = is_fused ? "{1}" : std::string(alone);
  viewed.form.name = fmt::format("{}/{{0}}/{}/kernel", name, what);
  const LabelId two = is_fused ? *parts : 0;
  if (is_fused) out.erase(parts);
  viewed.dims = {labels.in, out, labels.experts};
  viewed.form.axes.resize(2);
  std::vector<std::string> numbers;
  for (std::int64_t i = 0; i < workload.labels[at(labels.experts.front())].size; ++i) {
    numbers.push_back(std::to_string(i));
  }
  viewed.form.parts.push_back(std::move(numbers));
  if (is_fused) {
    viewed.dims.push_back({two});
    viewed.form.parts.push_back({std::string(files.gate), std::string(files.up)});
  }
  return viewed;
}

}  // namespace

ViewedLayers easydel_layers(const ViewInput& input) { return each_layer(input.workload); }

std::optional<ViewedParameter> easydel_parameter(const ViewInput& input, TensorId parameter) {
  const Workload& workload = input.workload;
  const Tensor& tensor = workload.tensors[at(parameter)];
  const std::string own = name_in_layer(workload, parameter);
  ViewedParameter viewed;
  if (is_our_own(tensor.name)) {
    viewed = as_it_is(workload, parameter, [](const Dim&) { return std::optional<std::string>(); });
    viewed.form.has_axes = false;
    return viewed;
  }
  const bool in_layer = workload.blocks[at(tensor.block)].is_layer;
  // The hub's names are of full paths.
  std::string name = models::hub_module(input.family, in_layer ? "." + own : own);
  if (in_layer) name.erase(0, 1);
  const Use use = use_of(workload, parameter);
  if (auto idle = idle_leaf(workload, tensor, use, name, "kernel")) {
    viewed.form.name = std::move(idle->name);
    viewed.dims = std::move(idle->dims);
    viewed.form.axes.resize(viewed.dims.size());
  } else if (auto dims = convolution_dims(workload, tensor, use); !dims.empty()) {
    viewed.form.name = with_slashes(name.substr(0, name.rfind('.'))) + "/kernel";
    viewed.dims = std::move(dims);
    viewed.form.axes.resize(viewed.dims.size());
  } else if (is_weight_of_product(use)) {
    const KernelLabels labels = kernel_labels(workload, tensor, *use.op);
    if (!labels.experts.empty()) {
      viewed = experts_of(input, labels, name);
    } else {
      viewed.form.name = leaf_name(name, use, "kernel", "kernel");
      for (const Dim& part : {labels.in, labels.out}) {
        if (!part.empty()) viewed.dims.push_back(part);  // a number for each column sums nothing
      }
      viewed.form.axes.resize(viewed.dims.size());
    }
  } else {
    viewed.form.name = leaf_name(name, use, "kernel", "kernel");
    viewed.dims = tensor.dims;
    viewed.form.axes.resize(tensor.dims.size());
  }
  viewed.form.has_axes = false;
  return viewed;
}

ViewedLayers flax_layers(const ViewInput& input) { return each_layer(input.workload); }

ViewedLayers flax_scanned_layers(const ViewInput& input) {
  return stacked_layers(input.workload, "");
}

std::optional<ViewedParameter> flax_parameter(const ViewInput& input, TensorId parameter) {
  const Workload& workload = input.workload;
  const Tensor& tensor = workload.tensors[at(parameter)];
  const auto axis = [&](const Dim& dim) { return flax_axis(workload, dim); };
  if (is_our_own(tensor.name)) return as_it_is(workload, parameter, axis);
  const Use use = use_of(workload, parameter);
  ViewedParameter viewed;
  const std::string own = name_in_layer(workload, parameter);
  viewed.form.name = leaf_name(own, use, "kernel", "scale");
  if (auto idle = idle_leaf(workload, tensor, use, own, "scale")) {
    viewed.form.name = std::move(idle->name);
    viewed.dims = std::move(idle->dims);
  } else if (auto dims = convolution_dims(workload, tensor, use); !dims.empty()) {
    viewed.form.name = with_slashes(own.substr(0, own.rfind('.'))) + "/kernel";
    viewed.dims = std::move(dims);
  } else if (is_weight_of_product(use)) {
    const KernelLabels labels = kernel_labels(workload, tensor, *use.op);
    for (const Dim& part : {labels.experts, labels.in, labels.out}) {
      append_to(viewed.dims, by_label(workload, part));
    }
  } else {
    viewed.dims = by_label(workload, all_labels(tensor.dims));
  }
  for (const Dim& dim : viewed.dims) viewed.form.axes.push_back(axis(dim));
  name_once(viewed.form.axes);
  return viewed;
}

ViewedLayers levanter_layers(const ViewInput& input) {
  return stacked_layers(input.workload, "/stacked");
}

std::optional<ViewedParameter> levanter_parameter(const ViewInput& input, TensorId parameter) {
  const Workload& workload = input.workload;
  const Tensor& tensor = workload.tensors[at(parameter)];
  const auto axis = [&](const Dim& dim) { return haliax_axis(workload, dim, false); };
  if (is_our_own(tensor.name)) return as_it_is(workload, parameter, axis);
  const Use use = use_of(workload, parameter);
  ViewedParameter viewed;
  viewed.form.name = leaf_name(name_in_layer(workload, parameter), use, "weight", "weight");
  const auto add = [&](const std::vector<Dim>& dims, bool in_of_heads) {
    for (const Dim& dim : dims) viewed.form.axes.push_back(haliax_axis(workload, dim, in_of_heads));
    append_to(viewed.dims, dims);
  };
  if (is_weight_of_product(use)) {
    const KernelLabels labels = kernel_labels(workload, tensor, *use.op);
    add(by_label(workload, labels.experts), false);
    add(by_label(workload, labels.out, /*groups_apart=*/true), false);
    add(by_label(workload, labels.in), true);
  } else {
    add(by_label(workload, all_labels(tensor.dims), /*groups_apart=*/true), false);
  }
  name_once(viewed.form.axes);
  return viewed;
}

}  // namespace shardsim
