#include "strategies/pipeline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/file.hpp"
#include "base/json.hpp"
#include "strategies/key_place.hpp"
#include "strategies/schedule/schedule_text.hpp"
#include "strategies/schedule/verify.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most = 1 << 20;
constexpr std::string_view one_less_at_ends = "one-less-at-ends";
constexpr std::string_view by_cost = "by-cost";
// As enum Receives has them.
const std::vector<std::string> words_of_receives = {"with_sends", "when_needed", "one_ahead",
                                                    "exchanged"};
// As enum Sends has them.
const std::vector<std::string> words_of_sends = {"unawaited", "next_kernel", "next_send",
                                                 "own_backward"};

std::optional<std::int32_t> number(const JsonReader& json, std::string_view key,
                                   std::int64_t least) {
  const auto found = json.find(key);
  if (!found) return std::nullopt;
  return static_cast<std::int32_t>(found->integer(least, most));
}

std::ptrdiff_t chosen(const JsonReader& json, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), json.choice(words)) - words.begin();
}

void read_layers(const JsonReader& layers, StagesRequest& stages) {
  if (layers.is_string()) {
    if (layers.string() == one_less_at_ends) {
      set_one_less_at_ends(stages);
    } else if (layers.string() == by_cost) {
      stages.by_cost = true;
    } else {
      stages.layout = layers.string();
    }
    return;
  }
  if (!layers.is_array()) {
    layers.fail(
        "expected the layers of each stage, [20, 21, 21, 18], Megatron's layout string, "
        "\"one-less-at-ends\" or \"by-cost\"");
  }
  for (const JsonReader& count : layers.elements()) {
    stages.counts.push_back(static_cast<std::int32_t>(count.integer(0, most)));
  }
}

void read_stages(const JsonReader& json, StagesRequest& stages) {
  if (const auto layers = json.find("layers")) read_layers(*layers, stages);
  if (const auto ends = json.find("ends")) {
    ends->only_keys({"first", "last"});
    stages.first = number(*ends, "first", 1);
    stages.last = number(*ends, "last", 1);
  }
  const auto counts = [&](std::string_view key, std::int32_t& counted) {
    if (const auto flag = json.find(key)) counted = flag->boolean() ? 1 : 0;
  };
  counts("embedding_counts", stages.embedding_counts);
  counts("loss_counts", stages.loss_counts);
}

// "0F0,0B0\n1F0,1B0\n" of [["0F0", "0B0"], ["1F0", "1B0"]].
std::string csv_of(const JsonReader& ranks) {
  std::string text;
  for (const JsonReader& rank : ranks.elements()) {
    std::vector<std::string> cells;
    for (const JsonReader& cell : rank.elements()) cells.push_back(cell.string());
    text += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return text;
}

// A name; or the actions, in a file beside the one that names it or written out.
void read_schedule(const JsonReader& schedule, Pipeline& pipeline) {
  if (schedule.is_string()) {
    pipeline.schedule.name = schedule.string();
    return;
  }
  if (!schedule.is_object()) {
    schedule.fail(R"(expected the name of a schedule or {"actions": "file.csv"})");
  }
  schedule.only_keys({"actions", "ranks"});
  Place place = schedule.place();
  if (const auto ranks = schedule.find("ranks")) {
    place = ranks->place();
    pipeline.written = read_schedule_csv(csv_of(*ranks), place.file + place.pointer);
  } else {
    const std::filesystem::path file = schedule.at("actions").string();
    const std::filesystem::path folder = std::filesystem::path(place.file).parent_path();
    place = {file.is_absolute() ? file.string() : (folder / file).string(), ""};
    pipeline.written = read_schedule_csv(read_file(place.file), place.file);
  }
  verify(*pipeline.written, place);
  pipeline.schedule.name = "";
}

// Is it what the mesh has?
void check_written(const Pipeline& pipeline) {
  const PipelineShape& shape = pipeline.written->shape;
  const auto stages = static_cast<std::size_t>(pipeline.schedule.ranks) *
                      static_cast<std::size_t>(pipeline.schedule.virtual_stages);
  if (shape.ranks == pipeline.schedule.ranks && shape.stages() == stages) return;
  throw InputError(
      place_of_key(pipeline.place, "schedule"),
      fmt::format("actions of {} stages on {} ranks, for a mesh of {} ranks of {} stages each",
                  shape.stages(), shape.ranks, pipeline.schedule.ranks,
                  pipeline.schedule.virtual_stages));
}

// The stages' axis of more than one device.
std::optional<AxisRef> stages_axis(const Mesh& mesh, const AxisRoles& roles, const Place& place) {
  std::optional<AxisRef> found;
  for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
    const MeshAxis& axis = mesh.axes()[i];
    if (axis.size == 1 || roles.of(axis.name) != AxisRole::stages) continue;
    if (found) {
      throw InputError(place, fmt::format("axes \"{}\" and \"{}\" are both for pipeline stages",
                                          mesh.name_of(*found), axis.name));
    }
    found = mesh.whole(static_cast<int>(i));
  }
  return found;
}

bool has_stages_axis(const Mesh& mesh, const AxisRoles& roles) {
  for (const MeshAxis& axis : mesh.axes()) {
    if (roles.of(axis.name) == AxisRole::stages) return true;
  }
  return false;
}

}  // namespace

std::optional<Pipeline> read_pipeline(const JsonReader& strategy, const Mesh& mesh,
                                      const AxisRoles& roles) {
  const auto json = strategy.is_object() ? strategy.find("pipeline") : std::nullopt;
  const std::optional<AxisRef> axis = stages_axis(mesh, roles, strategy.place());
  if (!json && !axis) return std::nullopt;
  Pipeline pipeline;
  pipeline.place = json ? json->place() : place_of_key(strategy.place(), "pipeline");
  pipeline.schedule.name = "1f1b";
  if (json) {
    json->only_keys({"schedule", "virtual_stages", "microbatch_group", "layers", "ends",
                     "embedding_counts", "loss_counts", "receives", "sends"});
    if (const auto receives = json->find("receives")) {
      pipeline.receives = static_cast<Receives>(chosen(*receives, words_of_receives));
    }
    if (const auto sends = json->find("sends")) {
      pipeline.sends = static_cast<Sends>(chosen(*sends, words_of_sends));
    }
    if (const auto schedule = json->find("schedule")) read_schedule(*schedule, pipeline);
    read_stages(*json, pipeline.stages);
    const auto layers = json->find("layers");
    if (layers && layers->is_string() && layers->string() == one_less_at_ends) {
      pipeline.remainder = Remainder::to_first_stages;
    }
    pipeline.schedule.microbatch_group = number(*json, "microbatch_group", 1);
  }
  const auto stages = json ? number(*json, "virtual_stages", 1) : std::nullopt;
  if (pipeline.written) {
    const PipelineShape& shape = pipeline.written->shape;
    const auto written = static_cast<std::int32_t>(shape.stages()) / std::max(1, shape.ranks);
    pipeline.schedule.virtual_stages = stages.value_or(written);
  } else {
    const ScheduleKind& kind = schedule_kind(pipeline.schedule.name, pipeline.place);
    pipeline.schedule.virtual_stages = stages.value_or(kind.usual_stages());
  }
  if (!axis) {
    if (has_stages_axis(mesh, roles)) return std::nullopt;  // of one device
    json->fail(
        "the mesh has no axis for stages: name one \"pp\", \"stage\" or \"pipeline\", or give it "
        "the role \"stages\"");
  }
  pipeline.axis = mesh.name_of(*axis);
  pipeline.schedule.ranks = static_cast<std::int32_t>(axis->size);
  pipeline.stages.ranks = pipeline.schedule.ranks;
  pipeline.stages.virtual_stages = pipeline.schedule.virtual_stages;
  if (pipeline.written) check_written(pipeline);
  return pipeline;
}

Json pipeline_to_json(const Pipeline& pipeline) {
  Json json;
  if (pipeline.written) {
    Json& ranks = json["schedule"]["ranks"] = Json::array();
    for (const auto& actions : pipeline.written->of_rank) ranks.push_back(cells_of(actions));
  } else {
    json["schedule"] = pipeline.schedule.name;
  }
  json["virtual_stages"] = pipeline.schedule.virtual_stages;
  if (pipeline.schedule.microbatch_group) {
    json["microbatch_group"] = *pipeline.schedule.microbatch_group;
  }
  const StagesRequest& stages = pipeline.stages;
  if (stages.layout) json["layers"] = *stages.layout;
  if (stages.by_cost) json["layers"] = by_cost;
  if (!stages.counts.empty()) json["layers"] = stages.counts;
  if (stages.first) json["ends"]["first"] = *stages.first;
  if (stages.last) json["ends"]["last"] = *stages.last;
  const bool both_count = stages.embedding_counts != 0 && stages.loss_counts != 0;
  if (both_count && pipeline.remainder == Remainder::to_first_stages) {
    json["layers"] = one_less_at_ends;
  } else {
    if (stages.embedding_counts != 0) json["embedding_counts"] = true;
    if (stages.loss_counts != 0) json["loss_counts"] = true;
  }
  if (pipeline.receives) {
    json["receives"] = words_of_receives[static_cast<std::size_t>(*pipeline.receives)];
  }
  if (pipeline.sends) json["sends"] = words_of_sends[static_cast<std::size_t>(*pipeline.sends)];
  return json;
}

PipelineSchedule schedule_of(const Pipeline& pipeline, std::int32_t microbatches) {
  if (!pipeline.written) {
    ScheduleRequest request = pipeline.schedule;
    request.microbatches = microbatches;
    return make_schedule(request, pipeline.place);
  }
  if (pipeline.written->shape.microbatches != microbatches) {
    throw InputError(place_of_key(pipeline.place, "schedule"),
                     fmt::format("actions of {} microbatches, for a step of {}",
                                 pipeline.written->shape.microbatches, microbatches));
  }
  return *pipeline.written;
}

Receives receives_of(const Pipeline& pipeline) {
  if (pipeline.receives) return *pipeline.receives;
  return pipeline.written ? Receives::with_sends
                          : schedule_kind(pipeline.schedule.name, pipeline.place).receives;
}

std::vector<StageLayers> stages_of(const Pipeline& pipeline, std::int32_t layers,
                                   std::int32_t mtp_layers) {
  StagesRequest request = pipeline.stages;
  request.remainder = pipeline.remainder.value_or(Remainder::to_first_stages);
  request.layers = layers;
  request.mtp_layers = mtp_layers;
  const bool as_v =
      !pipeline.written &&
      schedule_kind(pipeline.schedule.name, pipeline.place).placement == StagePlacement::v;
  const bool by_rank = request.counts.size() == static_cast<std::size_t>(request.ranks);
  if (as_v && (by_rank || request.first || request.last)) {
    throw InputError(place_of_key(pipeline.place, by_rank ? "layers" : "ends"),
                     fmt::format("{} lays the stages out as a V: say the layers of each of the {} "
                                 "stages",
                                 pipeline.schedule.name, 2 * request.ranks));
  }
  return assign_stages(request, pipeline.place);
}

}  // namespace shardsim
