#include "strategies/shifting_stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/index.hpp"
#include "base/json.hpp"
#include "strategies/key_place.hpp"

namespace shardsim {
namespace {

constexpr std::string_view schedule_name = "shifting";
constexpr std::int64_t most_repeats = 1 << 16;

// Where the layers of a model begin and end in its order.
struct Layers {
  std::size_t first = 0;
  std::size_t count = 0;
};

Layers layers_of(const Workload& workload, const ShiftingStages& shifting) {
  const auto is_layer = [&](const BlockInstance& instance) {
    return workload.blocks[at(instance.block)].is_layer;
  };
  const std::vector<BlockInstance>& order = workload.order;
  const auto first = std::find_if(order.begin(), order.end(), is_layer);
  const auto behind = std::find_if(order.rbegin(), order.rend(), is_layer).base();
  if (first == order.end()) {
    throw InputError(shifting.place, "the model has no layers to deal out to stages");
  }
  if (!std::all_of(first, behind, is_layer)) {
    throw InputError(shifting.place,
                     "the model has something between its layers: stages cut one row of layers");
  }
  return {static_cast<std::size_t>(first - order.begin()),
          static_cast<std::size_t>(behind - first)};
}

}  // namespace

std::optional<ShiftingStages> read_shifting_stages(const JsonReader& strategy, const Mesh& mesh,
                                                   const AxisRoles& roles) {
  const auto json = strategy.is_object() ? strategy.find("pipeline") : std::nullopt;
  if (!json || !json->is_object()) return std::nullopt;
  const auto schedule = json->find("schedule");
  const bool shifts = schedule && schedule->is_string() && schedule->string() == schedule_name;
  if (!shifts) return std::nullopt;
  json->only_keys({"schedule", "repeats", "stream_io"});
  ShiftingStages shifting;
  shifting.place = json->place();
  for (const MeshAxis& axis : mesh.axes()) {
    if (roles.of(axis.name) != AxisRole::stages) continue;
    if (!shifting.axis.empty()) {
      json->fail(fmt::format("axes \"{}\" and \"{}\" are both for pipeline stages", shifting.axis,
                             axis.name));
    }
    shifting.axis = axis.name;
    shifting.stages = axis.size;
  }
  if (shifting.axis.empty()) {
    json->fail(
        "the mesh has no axis for stages: name one \"pp\", \"stage\" or \"pipeline\", or give it "
        "the role \"stages\"");
  }
  if (const auto repeats = json->find("repeats")) {
    shifting.repeats = repeats->integer(1, most_repeats);
  }
  if (const auto streams = json->find("stream_io")) shifting.stream_io = streams->boolean();
  return shifting;
}

Json shifting_stages_to_json(const ShiftingStages& shifting) {
  return {{"schedule", schedule_name},
          {"repeats", shifting.repeats},
          {"stream_io", shifting.stream_io}};
}

ShiftingPipeline pipeline_of(const ShiftingStages& shifting, std::int64_t microbatches) {
  const ShiftingPipeline pipeline{shifting.stages, microbatches, shifting.repeats};
  if (pipeline.repeats > 1) (void)sends_late(pipeline, shifting.place);
  if (shifting.stream_io) (void)stream_offset(pipeline, shifting.place);
  return pipeline;
}

Workload with_layers_of_a_stage(Workload workload, const ShiftingStages& shifting) {
  const Layers layers = layers_of(workload, shifting);
  const auto parts = static_cast<std::size_t>(shifting.stages * shifting.repeats);
  if (layers.count % parts != 0) {
    throw InputError(shifting.place,
                     fmt::format("{} layers do not divide into {} stages of {} repeats",
                                 layers.count, shifting.stages, shifting.repeats));
  }
  const std::size_t each = layers.count / parts;
  std::vector<BlockInstance> order(
      workload.order.begin(), workload.order.begin() + static_cast<std::ptrdiff_t>(layers.first));
  std::map<std::int32_t, std::int32_t> instances;
  for (std::size_t i = 0; i < layers.count; ++i) {
    const std::int32_t block = workload.order[layers.first + i].block;
    if (block != workload.order[layers.first + i % each].block) {
      throw InputError(shifting.place,
                       fmt::format("layers {} and {} are not alike, and all stages run the same "
                                   "program",
                                   i % each, i));
    }
    if (i < each * static_cast<std::size_t>(shifting.repeats)) {
      order.push_back({block, instances[block]++});
    }
  }
  order.insert(order.end(),
               workload.order.begin() + static_cast<std::ptrdiff_t>(layers.first + layers.count),
               workload.order.end());
  for (const auto& [block, count] : instances) {
    workload.blocks[at(block)].numbers.resize(at(count));
  }
  workload.order = std::move(order);
  workload.notes.push_back(fmt::format(
      "stages shift in one program: the embedding and the head are computed on the devices of "
      "every stage; parameters of layers are named as those of the first of {} stages",
      shifting.stages));
  if (shifting.repeats > 1) {
    workload.notes.emplace_back(
        "what goes from the last stage to the first is in the permute of the others, whose end the "
        "next iteration awaits; praxis delays it where there are more microbatches than stages");
  }
  return workload;
}

std::vector<StageRange> shifting_ranges(const Workload& workload, const ShiftingStages& shifting) {
  const Layers layers = layers_of(workload, shifting);
  const auto repeats = static_cast<std::size_t>(shifting.repeats);
  std::vector<StageRange> ranges = {{0, layers.first}};
  for (std::size_t r = 0; r < repeats; ++r) {
    const std::size_t each = layers.count / repeats;
    ranges.push_back({layers.first + r * each, each});
  }
  const std::size_t behind = layers.first + layers.count;
  ranges.push_back({behind, workload.order.size() - behind});
  return ranges;
}

Shifts shifts_of(const ShiftingStages& shifting, const Workload& workload, const Mesh& mesh) {
  const Block& layer =
      workload.blocks[at(workload.order[layers_of(workload, shifting).first].block)];
  const AxisRef axis = mesh.whole(*mesh.find(shifting.axis));
  const auto shift = [&](bool to_next, const char* what) {
    Collective permute;
    permute.kind = CollectiveKind::collective_permute;
    permute.dtype = workload.tensors[at(layer.carries_in.front())].dtype;
    permute.parallelism = Parallelism::pipeline;
    permute.reason = fmt::format("between two iterations each stage of {} hands {} to the one {}",
                                 shifting.axis, what, to_next ? "behind it" : "before it");
    for (const std::vector<std::int64_t>& group : mesh.groups({axis})) {
      // Where microbatches go round again, the last stage hands on to the first.
      const std::size_t pairs = group.size() - (shifting.repeats > 1 ? 0 : 1);
      for (std::size_t i = 0; i < pairs; ++i) {
        const std::int64_t behind = group[(i + 1) % group.size()];
        permute.source_targets.emplace_back(to_next ? group[i] : behind,
                                            to_next ? behind : group[i]);
      }
    }
    return permute;
  };
  Shifts shifts{{shift(true, "what it has made")}, {shift(false, "its gradient")}};
  if (shifting.stream_io) {
    shifts.forward.push_back(shift(false, "a microbatch of the stream"));
    shifts.backward.push_back(shift(true, "a microbatch of the stream's gradient"));
  }
  return shifts;
}

}  // namespace shardsim
