#include "strategies/layout/check_context.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/key_place.hpp"
#include "strategies/layout/context_axes.hpp"

namespace shardsim {

namespace {

// All devices of the context have a decoding step's tokens, each a part of what these look at.
void check_experts_of_decoding(const Workload& workload, const Layout& layout,
                               const Place& strategy) {
  const bool splits_tokens =
      std::any_of(workload.labels.begin(), workload.labels.end(),
                  [](const Label& label) { return label.role == LabelRole::sequence; });
  if (splits_tokens || !layout.experts) return;
  for (const AxisRef& axis : layout.experts->parallel) {
    if (!overlaps_any(axis, layout.sequence_axes)) continue;
    throw InputError(place_of_key(strategy, "experts"),
                     "devices that split a context all have a decoding step's tokens: experts are "
                     "dealt out over other axes");
  }
}

}  // namespace

void check_context(const Workload& workload, const Layout& layout, const Place& strategy) {
  const std::int64_t devices = Mesh::size_of(layout.sequence_axes);
  if (devices > 1) check_experts_of_decoding(workload, layout, strategy);
  if (devices == 1 || layout.context.method == ContextMethod::gather) return;
  const Place place = place_of_key(strategy, "context");
  const bool is_ring = !ring_axes(layout).empty();
  // Balanced parts are pairs from both ends.
  const std::int64_t parts = is_ring && layout.context.balanced ? 2 * devices : devices;
  const AxisList heads = head_axes(layout);
  const bool is_ring_too = layout.context.method == ContextMethod::ring_all_to_all;
  for (const Label& label : workload.labels) {
    if (label.role == LabelRole::sequence && label.size % parts != 0) {
      throw InputError(
          place, fmt::format("a sequence of {} does not divide into {} parts for {} "
                             "devices; one of {} does",
                             label.size, parts, devices, (label.size + parts - 1) / parts * parts));
    }
    const std::int64_t split = Mesh::size_of(heads) * Mesh::size_of(layout.model_axes);
    if (!heads.empty() && label.role == LabelRole::heads && label.size % split != 0) {
      throw InputError(place,
                       fmt::format("{} heads ({}) do not go evenly over {} devices, which "
                                   "\"{}\" splits them over; the method \"ring\" splits none",
                                   label.size, label.name, split,
                                   is_ring_too ? "ring+all-to-all" : "all-to-all"));
    }
  }
}

}  // namespace shardsim
