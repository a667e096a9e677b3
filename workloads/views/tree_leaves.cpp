#include "workloads/views/tree_leaves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/index.hpp"
#include "workloads/views/view.hpp"

namespace shardsim {
namespace {

// Every choice of an index of each part, the first slowest.
std::vector<std::vector<std::size_t>> choices(const TreeView::Form& form) {
  std::vector<std::vector<std::size_t>> all = {{}};
  for (const std::vector<std::string>& names : form.parts) {
    std::vector<std::vector<std::size_t>> longer;
    for (const std::vector<std::size_t>& choice : all) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        longer.push_back(choice);
        longer.back().push_back(i);
      }
    }
    all = std::move(longer);
  }
  return all;
}

class LeafMaker {
 public:
  explicit LeafMaker(const Workload& workload) : workload_(workload) {}

  std::vector<TreeLeaf> run() {
    for (const ParameterView& parameter : parameters(workload_)) {
      const Tensor& tensor = workload_.tensors[at(parameter.tensor)];
      if (tensor.copy_of != no_tensor) continue;
      if (tensor.form < 0) {
        add_as_it_is(tensor, parameter);
      } else {
        add_in_form(tensor, parameter);
      }
    }
    return std::move(leaves_);
  }

 private:
  void add_as_it_is(const Tensor& tensor, const ParameterView& parameter) {
    for (const std::int32_t number : parameter.numbers) {
      TreeLeaf made;
      made.leaf.name = instance_name(tensor.name, number);
      made.leaf.shape = parameter.shape;
      for (std::size_t d = 0; d < parameter.shape.size(); ++d) made.dims.emplace_back(d);
      made.holds.push_back({parameter.tensor, number});
      leaves_.push_back(std::move(made));
    }
  }

  void add_in_form(const Tensor& tensor, const ParameterView& parameter) {
    const TreeView::Form& form = workload_.view->forms[at(tensor.form)];
    const std::string stack = stack_of(workload_, tensor);
    const bool in_layer = !stack.empty();
    const auto* layers = in_layer ? &workload_.view->layers.at(stack) : nullptr;
    const std::vector<std::vector<std::size_t>> parts = choices(form);
    for (const std::int32_t number : parameter.numbers) {
      const TreeView::Layer* layer = in_layer ? &layers->at(at(number)) : nullptr;
      for (const std::vector<std::size_t>& part : parts) {
        TreeLeaf& made = leaf_of(name_of(form, layer, part), form, layer, parameter.shape);
        const bool is_behind = form.joint && form.joint->count == 0;
        if (is_behind) append_behind(made, *form.joint, parameter);
        made.holds.push_back({parameter.tensor, number});
        if (layer == nullptr || !layer->stacked) continue;
        const auto held = static_cast<std::int64_t>(made.holds.size());
        const std::int64_t beside = is_behind    ? parameters_in(made)
                                    : form.joint ? form.joint->count
                                                 : 1;
        const std::int64_t each = layer->inner * beside;
        made.leaf.shape[form.stacked_at] = (held + each - 1) / each;
      }
    }
  }

  static std::string name_of(const TreeView::Form& form, const TreeView::Layer* layer,
                             const std::vector<std::size_t>& part) {
    std::string name;
    const std::string& text = form.name;
    if (layer != nullptr) {
      name.reserve(layer->path.size() + text.size() + 8);
      name = layer->path;
      name += '/';
    }
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t hole = std::min(text.find('{', i), text.size());
      name.append(text, i, hole - i);
      if (hole == text.size()) break;
      const std::size_t end = std::min(text.find('}', hole), text.size() - 1);
      const std::string_view inside(text.data() + hole + 1, end - hole - 1);
      std::size_t p = 0;
      const auto [last, error] = std::from_chars(inside.data(), inside.data() + inside.size(), p);
      const bool is_part = error == std::errc() && last == inside.data() + inside.size();
      if (is_part && p < part.size()) {
        name += form.parts[p][part[p]];
      } else if (inside == "mark" && layer != nullptr) {
        name += layer->mark;
      } else {
        name.append(text, hole, end + 1 - hole);
      }
      i = end + 1;
    }
    return name;
  }

  // The one of that name, or a new one that holds no layer yet.
  TreeLeaf& leaf_of(const std::string& name, const TreeView::Form& form,
                    const TreeView::Layer* layer, const std::vector<std::int64_t>& shape) {
    const auto [known, is_new] = by_name_.try_emplace(name, leaves_.size());
    if (!is_new) return leaves_[known->second];
    TreeLeaf made;
    made.leaf.name = name;
    if (form.has_axes) made.leaf.logical_axes = form.axes;
    for (std::size_t d = 0; d < form.axes.size(); ++d) {
      made.leaf.shape.push_back(shape[d]);
      made.dims.emplace_back(d);
    }
    if (form.joint && form.joint->count > 0) {
      const auto where = static_cast<std::ptrdiff_t>(form.joint->dimension);
      insert_dimension(made, where, form.joint->count, std::nullopt);
    }
    if (layer != nullptr && layer->stacked) {
      const auto where = static_cast<std::ptrdiff_t>(form.stacked_at);
      if (layer->inner > 1) insert_dimension(made, where, layer->inner, layer->inner_axis);
      insert_dimension(made, where, 0, layer->axis);
      made.layers_at = form.stacked_at;
    }
    leaves_.push_back(std::move(made));
    return leaves_.back();
  }

  // A leaf grows by a parameter that it does not hold yet.
  static void append_behind(TreeLeaf& made, const TreeView::Joint& joint,
                            const ParameterView& parameter) {
    const bool holds = made.holds.empty() ||
                       std::any_of(made.holds.begin(), made.holds.end(), [&](const auto& held) {
                         return held.tensor == parameter.tensor;
                       });
    if (holds) return;
    for (std::size_t d = 0; d < made.dims.size(); ++d) {
      if (made.dims[d] == joint.dimension) made.leaf.shape[d] += parameter.shape[joint.dimension];
    }
  }

  static std::int64_t parameters_in(const TreeLeaf& made) {
    std::set<TensorId> held;
    for (const TreeLeaf::Instance& one : made.holds) held.insert(one.tensor);
    return static_cast<std::int64_t>(held.size());
  }

  // Of layers or of parameters in one leaf, where the leaf names its dimensions with a name.
  static void insert_dimension(TreeLeaf& made, std::ptrdiff_t where, std::int64_t size,
                               const std::optional<std::string>& axis) {
    made.leaf.shape.insert(made.leaf.shape.begin() + where, size);
    made.dims.insert(made.dims.begin() + where, std::nullopt);
    auto& axes = made.leaf.logical_axes;
    if (axes) axes->insert(axes->begin() + where, axis);
  }

  const Workload& workload_;
  std::vector<TreeLeaf> leaves_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace

std::vector<TreeLeaf> tree_leaves(const Workload& workload) { return LeafMaker(workload).run(); }

ParameterTree parameter_tree(const Workload& workload, DType dtype, const Place& place) {
  ParameterTree tree{workload.model, {}};
  for (TreeLeaf& made : tree_leaves(workload)) {
    made.leaf.dtype = dtype;
    made.leaf.place = place;
    tree.leaves.push_back(std::move(made.leaf));
  }
  sort_leaves(tree.leaves);
  return tree;
}

}  // namespace shardsim
