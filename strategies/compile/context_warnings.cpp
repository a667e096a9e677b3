#include "strategies/compile/context_warnings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "strategies/layout/context_axes.hpp"

namespace shardsim {
namespace {

// Does some op that is of this kind work along the sequence?
template <class Is>
bool any_along_sequence(const Workload& workload, Is is) {
  const auto along = [&](const Op& op) {
    if (!is(op)) return false;
    const std::vector<LabelId> labels = factors(op);
    return std::any_of(labels.begin(), labels.end(), [&](LabelId label) {
      return workload.labels[static_cast<std::size_t>(label)].role == LabelRole::sequence;
    });
  };
  return std::any_of(workload.blocks.begin(), workload.blocks.end(), [&](const Block& block) {
    return std::any_of(block.forward.begin(), block.forward.end(), along);
  });
}

bool is_scan(const Op& op) {
  return kind_of(op) == OpKind::scan || kind_of(op) == OpKind::chunked_scan;
}

}  // namespace

std::vector<std::string> context_warnings(const Workload& workload, const Layout& layout,
                                          const Mesh& mesh) {
  std::vector<std::string> warnings;
  if (Mesh::size_of(layout.sequence_axes) <= 1) return warnings;
  if (any_along_sequence(workload, is_scan)) {
    warnings.push_back(fmt::format(
        "the sequence is split over {}, and scans are planned of each device's part alone: what "
        "hands states on, or exchanges heads for the sequence (Megatron-Core), is left out",
        fmt::join(mesh.names_of(layout.sequence_axes), ", ")));
  }
  // A causal mask leaves a half of what all would look at, a window within it less.
  const bool has_window = any_along_sequence(workload, [](const Op& op) {
    return op.function == Function::attention && op.work_fraction < 0.5;
  });
  if (has_window && !ring_axes(layout).empty()) {
    warnings.emplace_back(
        "in a ring all keys go round, of windows too, which need a part of them; Transformer "
        "Engine refuses windows in a ring: \"all-gather\" and \"all-to-all\" have them");
  }
  return warnings;
}

}  // namespace shardsim
