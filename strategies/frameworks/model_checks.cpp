#include "strategies/frameworks/model_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "base/index.hpp"
#include "strategies/compile/context_warnings.hpp"
#include "strategies/key_place.hpp"
#include "strategies/layout/context_axes.hpp"

namespace shardsim {
namespace {

struct Heads {
  std::int64_t of_queries = 1;
  std::int64_t of_keys = 1;
};

Heads heads_of(const Workload& workload, const Op& attention) {
  Heads heads;
  for (const LabelId id : factors(attention)) {
    const Label& label = workload.labels[at(id)];
    const bool is_shared = label.role == LabelRole::heads;
    if (is_shared || label.role == LabelRole::head_group) heads.of_queries *= label.size;
    if (is_shared) heads.of_keys *= label.size;
  }
  return heads;
}

template <class Fits>
void check_heads(const Workload& workload, const Mesh& mesh, const Layout& layout,
                 const Place& strategy, std::string_view framework, const Fits& fits) {
  const std::int64_t devices = Mesh::size_of(layout.model_axes);
  if (devices == 1) return;
  std::set<std::int64_t> sizes, unfit;
  std::optional<Heads> first;
  for (const Block& block : workload.blocks) {
    for (const Op& op : block.forward) {
      if (op.function != Function::attention) continue;
      const Heads heads = heads_of(workload, op);
      sizes.insert(heads.of_queries);
      if (fits(heads, devices)) continue;
      unfit.insert(heads.of_queries);
      if (!first) first = heads;
    }
  }
  if (!first) return;
  const Place place{strategy.file, "/mesh/" + mesh.names_of(layout.model_axes).front()};
  if (sizes.size() > 1) {  // stages
    throw InputError(
        place, fmt::format("{} does not split stages of {} heads over {} devices; the strategy "
                           "\"tp\" leaves what does not divide whole on every device",
                           framework, fmt::join(unfit, ", "), devices));
  }
  std::int64_t fewer = devices - 1;
  while (!fits(*first, fewer)) --fewer;
  throw InputError(
      place,
      fmt::format("{} does not split {} heads, {} of keys and values, over {} devices; {} do",
                  framework, first->of_queries, first->of_keys, devices, fewer));
}

// The tokens of a sequence go evenly into so many parts.
void check_tokens(const Workload& workload, std::int64_t parts, const Place& strategy,
                  std::string_view framework) {
  for (const Label& label : workload.labels) {
    if (label.role != LabelRole::sequence || label.size % parts == 0) continue;
    throw InputError(
        {strategy.file, "/workload/sequence"},
        fmt::format("{} needs a sequence of {} to divide into {} parts; {} does", framework,
                    label.size, parts, (label.size + parts - 1) / parts * parts));
  }
}

void check_stages(const Workload& workload, const Step& step, const Place& strategy) {
  if (step.mtp_layers > 0) {
    throw InputError(
        {strategy.file, "/workload/mtp_layers"},
        "torchtitan has no multi-token prediction over stages; leave it or the axis of "
        "stages out");
  }
  // A parameter that two stages need is one in each.
  for (const Tensor& tensor : workload.tensors) {
    if (tensor.copy_of == no_tensor) continue;
    throw InputError(
        {strategy.file, "/workload/model"},
        fmt::format("torchtitan does not tie parameters ({}) over the stages of a "
                    "pipeline; \"tie_word_embeddings\": false in the model unties them",
                    workload.tensors[at(tensor.copy_of)].name));
  }
}

}  // namespace

void check_as_torchtitan(const Workload& workload, const Step& step, const Mesh& mesh,
                         const Strategy& options, const Layout& layout) {
  const Place& strategy = options.place;
  if (options.pipeline) check_stages(workload, step, strategy);
  check_heads(workload, mesh, layout, strategy, "torchtitan",
              [](const Heads& heads, std::int64_t devices) {
                return heads.of_queries % devices == 0 && heads.of_keys % devices == 0;
              });
  const std::int64_t context = Mesh::size_of(layout.sequence_axes);
  const std::int64_t split = layout.sequence_parallel ? Mesh::size_of(layout.model_axes) : 1;
  check_tokens(workload, split * (context > 1 ? 2 * context : 1), strategy, "torchtitan");
}

void check_as_megatron(const Workload& workload, const Step& /*step*/, const Mesh& mesh,
                       const Strategy& options, const Layout& layout) {
  const Place& strategy = options.place;
  check_heads(workload, mesh, layout, strategy, "Megatron-Core",
              [](const Heads& heads, std::int64_t devices) {
                return heads.of_queries % devices == 0 &&
                       (heads.of_keys % devices == 0 || devices % heads.of_keys == 0);
              });
  const std::int64_t split = layout.sequence_parallel ? Mesh::size_of(layout.model_axes) : 1;
  if (split > 1) {
    check_tokens(workload, split * Mesh::size_of(layout.sequence_axes), strategy,
                 "Megatron-Core's sequence parallelism");
  }
  if (Mesh::size_of(ring_axes(layout)) > 1 && has_windows(workload)) {
    throw InputError(place_of_key(strategy, "context"),
                     "Megatron-Core's attention (Transformer Engine) has no windows in a ring; "
                     "\"method\": \"all-gather\" or \"all-to-all\" has them");
  }
}

}  // namespace shardsim
