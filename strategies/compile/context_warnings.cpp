#include "strategies/compile/context_warnings.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "strategies/layout/context_axes.hpp"

namespace shardsim {
namespace {

// Does the op attend along the sequence, within a window? A causal mask leaves a half of what all
// would look at, a window within it less.
bool has_window(const Workload& workload, const Op& op) {
  if (op.function != Function::attention || op.work_fraction >= 0.5) return false;
  const std::vector<LabelId> labels = factors(op);
  return std::any_of(labels.begin(), labels.end(), [&](LabelId label) {
    return workload.labels[at(label)].role == LabelRole::sequence;
  });
}

}  // namespace

bool has_windows(const Workload& workload) {
  return std::any_of(workload.blocks.begin(), workload.blocks.end(), [&](const Block& block) {
    return std::any_of(block.forward.begin(), block.forward.end(),
                       [&](const Op& op) { return has_window(workload, op); });
  });
}

std::vector<std::string> context_warnings(const Workload& workload, const Layout& layout) {
  if (Mesh::size_of(ring_axes(layout)) <= 1 || !has_windows(workload)) return {};
  return {
      "in a ring all keys go round, of windows too, which need a part of them: \"all-gather\" and "
      "\"all-to-all\" have no more than these in a kernel"};
}

}  // namespace shardsim
