// Views: the names, shapes and names of dimensions under which another framework holds the
// parameters of the same model (graph/tree_view.hpp). A row each in the table.
//
//   apply_view(workload, "maxtext", "mixtral", place);   // before the backward pass is added
//
// Which layers are stacked and where each layer's leaves are is a function of the view, and how a
// parameter becomes leaves another. What is computed of parameters does not change: ops go by
// labels, and a parameter's dims hold the same labels in another order.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// A parameter as the view has it: dims of its leaves, then those of Form::parts.
struct ViewedParameter {
  TreeView::Form form;
  std::vector<Dim> dims;
};

// Of stacks by what their parameters' names begin with, of layers by number.
using ViewedLayers = std::map<std::string, std::vector<TreeView::Layer>>;

struct ViewInput {
  const Workload& workload;
  std::string family;  // of transformers, "mixtral"; the model_type of our own descriptions
  Place place;         // where the view is asked for
};

struct View {
  std::string_view name;
  std::string_view summary;
  // Throws InputError for a family that the view has not.
  ViewedLayers (*layers)(const ViewInput& input);
  // Nothing: the view has no such parameter.
  std::optional<ViewedParameter> (*parameter)(const ViewInput& input, TensorId parameter);
};

[[nodiscard]] const std::vector<View>& views();
[[nodiscard]] std::vector<std::string> view_names();

// Throws InputError: a view that has not this family, or not this parameter.
void apply_view(Workload& workload, std::string_view view, const std::string& family,
                const Place& place);

// For views: the stacks and how many layers each has, numbers up to the highest; the stack of a
// parameter, "encoder.block.", empty outside of layers; and its name within its layer,
// "mlp.down_proj.weight", a full name outside.
[[nodiscard]] std::map<std::string, std::size_t> layer_counts(const Workload& workload);
[[nodiscard]] std::string stack_of(const Workload& workload, const Tensor& parameter);
[[nodiscard]] std::string name_in_layer(const Workload& workload, TensorId parameter);
[[noreturn]] void fail_without_family(const ViewInput& input, std::string_view view,
                                      const std::vector<std::string>& known);

}  // namespace shardsim
