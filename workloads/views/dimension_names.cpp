#include "workloads/views/dimension_names.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "workloads/views/form_text.hpp"

namespace shardsim {

std::optional<std::string> flax_axis(const Workload& workload, const Dim& dim) {
  const Label& label = workload.labels[at(dim.front())];
  switch (label.role) {
    case LabelRole::hidden:
      return "embed";
    case LabelRole::mixer_groups:
      if (dim.size() == 1 && label.size == 1) return std::nullopt;  // of rows side by side
      [[fallthrough]];
    case LabelRole::heads:
    case LabelRole::head_group:
      return "heads";
    case LabelRole::width:
      return "mlp";
    case LabelRole::vocab:
      return "vocab";
    case LabelRole::experts:
      return "expert";
    default:
      break;
  }
  const std::string name = base_name(label);
  const bool of_a_head =
      name == "head_dim" || name == "qk_dim" || name == "value_dim" || name == "kv_b";
  return of_a_head ? std::optional<std::string>("kv") : std::nullopt;
}

std::optional<std::string> haliax_axis(const Workload& workload, const Dim& dim, bool in_of_heads) {
  const Label& label = workload.labels[at(dim.front())];
  const bool has_groups = dim.size() > 1;
  switch (label.role) {
    case LabelRole::heads:
      return in_of_heads || has_groups || base_name(label) == "heads" ? "heads" : "kv_heads";
    case LabelRole::head_group:
      return "q_heads_per_group";
    case LabelRole::experts:
      return "experts";
    default:
      break;
  }
  const std::optional<std::string> axis = flax_axis(workload, dim);
  return axis == "kv" ? std::optional<std::string>("head_size") : axis;
}

void name_once(std::vector<std::optional<std::string>>& axes) {
  for (auto axis = axes.begin(); axis != axes.end(); ++axis) {
    if (std::find(axes.begin(), axis, *axis) != axis) axis->reset();
  }
}

}  // namespace shardsim
