#include "strategies/shifting_stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

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

constexpr std::string_view of_all_microbatches = " of all microbatches";

// What is no layer works on all microbatches: its labels of examples become others.
class Ends {
 public:
  Ends(Workload& workload, std::int64_t microbatches, const Place& place)
      : workload_(workload), place_(place) {
    const std::size_t own = workload.labels.size();
    for (std::size_t i = 0; i < own; ++i) {
      if (workload.labels[i].role != LabelRole::batch) continue;
      joined_[static_cast<LabelId>(i)] = static_cast<LabelId>(workload.labels.size());
      Label all = workload.labels[i];
      all.name += of_all_microbatches;
      all.size *= microbatches;
      workload.labels.push_back(std::move(all));
    }
  }

  void join() {
    for (const Block& block : workload_.blocks) {
      if (block.is_layer) find_tensors(block, of_layers_);
    }
    for (Block& block : workload_.blocks) {
      if (block.is_layer) continue;
      std::set<TensorId> tensors(block.carries_in.begin(), block.carries_in.end());
      find_tensors(block, tensors);
      for (const TensorId id : tensors) join(id);
      for (std::vector<Op>* ops : {&block.forward, &block.backward, &block.optimizer}) {
        for (Op& op : *ops) join(op);
      }
    }
  }

 private:
  static void find_tensors(const Block& block, std::set<TensorId>& tensors) {
    for (const std::vector<Op>* ops : {&block.forward, &block.backward, &block.optimizer}) {
      for (const Op& op : *ops) {
        for (const Operand& operand : op.operands) tensors.insert(operand.tensor);
        for (const Operand& result : op.results) tensors.insert(result.tensor);
      }
    }
  }

  void join(TensorId id) {
    Tensor& tensor = workload_.tensors[at(id)];
    if (!joined_tensors_.insert(id).second) return;
    const bool is_common = of_layers_.count(id) > 0;
    const bool is_made = tensor.role == TensorRole::activation;
    if (is_common && (is_made || has_examples(tensor.dims))) {
      throw InputError(place_, fmt::format("layers read {}, and so does what is around them: "
                                           "stages that shift get what layers hand on alone",
                                           tensor.name));
    }
    join(tensor.dims);
  }

  void join(Op& op) {
    for (Operand& operand : op.operands) join(operand.dims);
    for (Operand& result : op.results) join(result.dims);
    join(op.whole);
    for (Statistic& statistic : op.statistics) {
      join(statistic.over);
      join(statistic.dims);
    }
    for (Operations& operations : op.work) join(operations.over);
  }

  void join(std::vector<Dim>& dims) {
    for (Dim& dim : dims) join(dim);
  }

  void join(std::vector<LabelId>& labels) {
    for (LabelId& label : labels) {
      const auto joined = joined_.find(label);
      if (joined != joined_.end()) label = joined->second;
    }
  }

  [[nodiscard]] bool has_examples(const std::vector<Dim>& dims) const {
    return std::any_of(dims.begin(), dims.end(), [&](const Dim& dim) {
      return std::any_of(dim.begin(), dim.end(),
                         [&](LabelId label) { return joined_.count(label) > 0; });
    });
  }

  Workload& workload_;
  const Place& place_;
  std::map<LabelId, LabelId> joined_;
  std::set<TensorId> of_layers_, joined_tensors_;
};

}  // namespace

bool is_of_all_microbatches(const Label& label) {
  return label.name.ends_with(of_all_microbatches);
}

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

Workload with_layers_of_a_stage(Workload workload, const ShiftingStages& shifting,
                                std::int64_t microbatches) {
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
  Ends(workload, microbatches, shifting.place).join();
  workload.notes.push_back(fmt::format(
      "stages shift in one program: the embedding and the head are computed {}, for all "
      "microbatches together; parameters of layers are named as those of the first of {} stages",
      shifting.stream_io ? "of examples that are dealt out over the stages"
                         : "on the devices of every stage",
      shifting.stages));
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

namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

// The messages of one row of devices, stage by stage.
enum class Route : std::uint8_t { to_next, to_previous, round, last_to_first, first_to_last };

Pairs pairs_of(Route route, const std::vector<std::vector<std::int64_t>>& rows) {
  Pairs pairs;
  for (const std::vector<std::int64_t>& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      if (route == Route::to_next || route == Route::round) pairs.emplace_back(row[i], row[i + 1]);
      if (route == Route::to_previous) pairs.emplace_back(row[i + 1], row[i]);
    }
    if (route == Route::round || route == Route::last_to_first) {
      pairs.emplace_back(row.back(), row.front());
    }
    if (route == Route::first_to_last) pairs.emplace_back(row.front(), row.back());
  }
  return pairs;
}

// Collectives along the axis of stages, sizes left open.
class AlongStages {
 public:
  AlongStages(const ShiftingStages& shifting, const Mesh& mesh, DType dtype)
      : name_(shifting.axis),
        axis_(mesh.whole(*mesh.find(shifting.axis))),
        rows_(mesh.groups({axis_})),
        dtype_(dtype) {}

  [[nodiscard]] Collective permute(Route route, const char* reason) const {
    Collective made = collective(CollectiveKind::collective_permute, reason);
    made.source_targets = pairs_of(route, rows_);
    return made;
  }

  [[nodiscard]] Collective to_all(const char* reason) const {
    Collective made = collective(CollectiveKind::all_reduce, reason);
    made.axes = {axis_};
    return made;
  }

 private:
  // `reason`: "{}" is the axis.
  [[nodiscard]] Collective collective(CollectiveKind kind, const char* reason) const {
    Collective made;
    made.kind = kind;
    made.dtype = dtype_;
    made.parallelism = Parallelism::pipeline;
    made.reason = fmt::format(fmt::runtime(reason), name_);
    return made;
  }

  std::string name_;
  AxisRef axis_;
  std::vector<std::vector<std::int64_t>> rows_;
  DType dtype_;
};

// Of states, and of what goes round again.
void add_shifts(const AlongStages& stages, bool goes_round, bool is_late, Shifts& shifts) {
  const Collective round =
      stages.permute(Route::round,
                     "each stage of {} hands what it has made on, the last to the first, where "
                     "microbatches go round again");
  const Collective to_last = stages.permute(
      Route::first_to_last,
      "the first stage of {} hands its gradient to the last, where microbatches went round");
  const Collective back = stages.permute(
      Route::to_previous,
      "between two iterations each stage of {} hands its gradient to the one before it");
  const bool is_joined = goes_round && !is_late;
  shifts.forward = {is_joined ? round
                              : stages.permute(Route::to_next,
                                               "between two iterations each stage of {} hands what "
                                               "it has made to the one behind it")};
  shifts.backward = {back};
  if (is_joined) shifts.backward.push_back(to_last);
  if (is_late) {
    shifts.late = {round};
    shifts.late_backward = {to_last, back};
  }
}

void add_stream(const AlongStages& stages, Shifts& shifts) {
  shifts.forward.push_back(stages.permute(Route::to_previous,
                                          "between two iterations each stage of {} hands a "
                                          "microbatch of the stream to the one before it"));
  shifts.backward.push_back(stages.permute(Route::to_next,
                                           "between two iterations each stage of {} hands a "
                                           "microbatch of the stream's gradient to the one behind "
                                           "it"));
}

void add_exchanges_behind(const AlongStages& stages, Shifts& shifts) {
  shifts.results = {
      stages.permute(Route::last_to_first,
                     "the last stage of {} has the results, of which a slice lies with the first"),
      stages.to_all("all stages of {} get the results, for the head")};
  shifts.gradients_of_results = {
      stages.permute(Route::first_to_last,
                     "the first stage of {} has a slice of the results' gradient, which goes to "
                     "where the results came from")};
  shifts.gradients_of_inputs = {
      stages.to_all("all stages of {} get the gradient of the inputs, for the embedding")};
}

}  // namespace

Shifts shifts_of(const ShiftingStages& shifting, std::int64_t microbatches,
                 const Workload& workload, const Mesh& mesh) {
  const Block& layer =
      workload.blocks[at(workload.order[layers_of(workload, shifting).first].block)];
  const DType dtype = workload.tensors[at(layer.carries_in.front())].dtype;
  const AlongStages stages(shifting, mesh, dtype);
  const bool goes_round = shifting.repeats > 1;
  const bool is_late =
      goes_round && sends_late(pipeline_of(shifting, microbatches), shifting.place);
  Shifts shifts;
  add_shifts(stages, goes_round, is_late, shifts);
  shifting.stream_io ? add_stream(stages, shifts) : add_exchanges_behind(stages, shifts);
  return shifts;
}

}  // namespace shardsim
