#include "strategies/layout/check_context.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/index.hpp"
#include "strategies/key_place.hpp"
#include "strategies/layout/context_axes.hpp"

namespace shardsim {

namespace {

constexpr const char* ways_out =
    "leave the axis of the context out, or \"context\": {\"states\": \"all-gather\"} has "
    "every device work on the whole sequence there";

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

// A state, or the last tokens, go along the sequence.
bool hands_on_states(const Op& op) {
  return kind_of(op) == OpKind::scan || kind_of(op) == OpKind::chunked_scan ||
         op.function == Function::convolution;
}

bool splits_sequence(const Workload& workload, const Op& op) {
  const std::vector<LabelId> labels = factors(op);
  return std::any_of(labels.begin(), labels.end(), [&](LabelId label) {
    return workload.labels[at(label)].role == LabelRole::sequence;
  });
}

// Mamba 2's: of groups of heads, which the others in chunks do not have.
bool exchanges_heads(const Workload& workload, const Op& op) {
  if (op.function != Function::chunked_scan) return false;
  const std::vector<LabelId> labels = factors(op);
  return std::any_of(labels.begin(), labels.end(), [&](LabelId label) {
    return workload.labels[at(label)].role == LabelRole::mixer_groups;
  });
}

// Megatron-Core 0.16, ssm/mamba_context_parallel.py: every device of both has as many heads; groups
// go evenly over them, or they over groups.
void check_exchanged_heads(const Workload& workload, const Layout& layout, const Op& scan,
                           const Place& place) {
  std::int64_t groups = 1, heads = 1;
  for (const LabelId id : factors(scan)) {
    const Label& label = workload.labels[at(id)];
    if (label.role == LabelRole::mixer_groups) groups = label.size;
    if (label.role == LabelRole::mixer_groups || label.role == LabelRole::head_group) {
      heads *= label.size;
    }
  }
  const std::int64_t context = Mesh::size_of(layout.sequence_axes);
  const std::int64_t model = Mesh::size_of(layout.model_axes);
  if (heads % (context * model) != 0) {
    throw InputError(place,
                     fmt::format("{} heads of {} do not go evenly over {} devices, {} of the "
                                 "sequence and {} of the model, which exchange them",
                                 heads, scan.name, context * model, context, model));
  }
  const std::int64_t own = std::max<std::int64_t>(groups / model, 1);
  if (own % context != 0 && context % own != 0) {
    throw InputError(place, fmt::format("{} groups of {} on a device do not go evenly over {} "
                                        "devices of the sequence, nor these over them",
                                        own, scan.name, context));
  }
}

// Layers whose states go along the sequence.
void check_states(const Workload& workload, const Layout& layout, const Place& place) {
  const StateMethod method = layout.context.states;
  if (method == StateMethod::gather) return;
  for (const Block& block : workload.blocks) {
    const bool has_scan = std::any_of(block.forward.begin(), block.forward.end(),
                                      [&](const Op& op) { return exchanges_heads(workload, op); });
    for (const Op& op : block.forward) {
      if (!hands_on_states(op) || !splits_sequence(workload, op)) continue;
      if (method == StateMethod::refused) {
        throw InputError(place, fmt::format("{} hands a state along the sequence, for whose split "
                                            "the framework has nothing; {}",
                                            op.name, ways_out));
      }
      if (exchanges_heads(workload, op)) {
        check_exchanged_heads(workload, layout, op, place);
      } else if (!has_scan || op.function != Function::convolution) {
        throw InputError(place, fmt::format("{} hands a state along the sequence, of which heads "
                                            "are exchanged in Mamba 2 alone; {}",
                                            op.name, ways_out));
      }
    }
  }
}

}  // namespace

void check_context(const Workload& workload, const Layout& layout, const Place& strategy) {
  const std::int64_t devices = Mesh::size_of(layout.sequence_axes);
  if (devices > 1) check_experts_of_decoding(workload, layout, strategy);
  const Place place = place_of_key(strategy, "context");
  if (devices > 1) check_states(workload, layout, place);
  if (devices == 1 || layout.context.method == ContextMethod::gather) return;
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
