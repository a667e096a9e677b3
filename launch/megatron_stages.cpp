// What Megatron-LM's arguments say of stages, both ways: virtual ones, layouts, uneven ends, and
// the bars of a pattern of layers, M-M*|M-M-.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "launch/framework_files.hpp"
#include "launch/megatron_facts.hpp"
#include "strategies/layout/layout_string.hpp"

namespace shardsim {
namespace {

void read_pattern_stages(Facts& facts, std::int64_t ranks, Json& experiment) {
  const Json counts = facts.get("arg.pattern_stages");
  const auto parts = static_cast<std::int64_t>(counts.size());
  if (parts % ranks != 0) {
    facts.fail("arg.pattern_stages",
               fmt::format("{} parts of the pattern do not divide by {} ranks", parts, ranks));
  }
  experiment["strategy"]["pipeline"]["layers"] = counts;
  facts.set("strategy.pipeline.virtual_stages", parts / ranks);
  experiment["strategy"]["pipeline"]["virtual_stages"] = parts / ranks;
}

// --num-layers-per-virtual-pipeline-stage (arguments.py): the embedding and the loss may count as
// layers, and ends of their own need a number of stages.
void read_layers_of_stage(Facts& facts, std::int64_t ranks, Json& experiment) {
  for (const char* end : {"strategy.pipeline.ends.first", "strategy.pipeline.ends.last"}) {
    if (!facts.has(end)) continue;
    facts.fail("arg.layers_of_stage",
               "with ends of their own say how many stages a rank has: "
               "--num-virtual-stages-per-pipeline-rank");
  }
  const std::int64_t layers = facts.integer("model.layers") +
                              (facts.flag("strategy.pipeline.embedding_counts") ? 1 : 0) +
                              (facts.flag("strategy.pipeline.loss_counts") ? 1 : 0);
  const std::int64_t each = facts.integer("arg.layers_of_stage");
  if (layers % (ranks * each) != 0) {
    facts.fail("arg.layers_of_stage",
               fmt::format("{} layers are no multiple of {} stages of {}", layers, ranks, each));
  }
  facts.set("strategy.pipeline.virtual_stages", layers / ranks / each);
  experiment["strategy"]["pipeline"]["virtual_stages"] = layers / ranks / each;
}

// A bar behind the layers of each stage.
std::string with_stages(const std::string& pattern, const Json& counts) {
  std::string text;
  std::size_t at = 0;
  for (const Json& count : counts) {
    const auto layers = count.get<std::size_t>();
    if (!text.empty()) text += "|";
    text += pattern.substr(std::min(at, pattern.size()), layers);
    at += layers;
  }
  return text;
}

}  // namespace

// hybrid_layer_allocation.py: "|" ends a stage, "/" begins multi-token prediction.
void divide_megatron_pattern(Facts& facts) {
  if (!facts.has("model.pattern")) return;
  const Place place = facts.place("model.pattern");
  const std::string text = facts.text("model.pattern");
  if (text.find('/') != std::string::npos) {
    facts.fail("model.pattern", "layers of multi-token prediction behind \"/\" are not simulated");
  }
  if (text.find('|') == std::string::npos) return;
  Json counts = Json::array();
  std::string layers;
  std::int64_t count = 0;
  for (const char c : text) {
    if (c == '|') counts.push_back(count);
    if (c == '|') count = 0;
    if (c == '|' || c == ' ' || c == '"') continue;
    layers += c;
    ++count;
  }
  counts.push_back(count);
  facts.set("model.pattern", layers, place, /*given=*/true);
  facts.set("arg.pattern_stages", counts, place, /*given=*/true);
}

void read_megatron_stages(Facts& facts, Json& experiment) {
  const std::int64_t stages = facts.integer("mesh.pp");
  if (facts.has("arg.layers_of_stage")) read_layers_of_stage(facts, stages, experiment);
  if (stages == 1) {
    experiment["strategy"].erase("pipeline");
    return;
  }
  if (facts.has("strategy.pipeline.layers")) {  // which says how many stages there are
    const Place place = facts.place("strategy.pipeline.layers");
    const auto listed = static_cast<std::int64_t>(
        expand_layout(facts.text("strategy.pipeline.layers"), place).size());
    if (listed % stages != 0) {
      facts.fail("strategy.pipeline.layers",
                 fmt::format("{} stages do not divide by {} ranks", listed, stages));
    }
    facts.set("strategy.pipeline.virtual_stages", listed / stages);
    experiment["strategy"]["pipeline"]["virtual_stages"] = listed / stages;
  }
  if (facts.has("arg.pattern_stages")) read_pattern_stages(facts, stages, experiment);
  const bool interleaved = facts.integer_or("strategy.pipeline.virtual_stages", 1) > 1;
  Json& pipeline = experiment["strategy"]["pipeline"];
  if (!interleaved && pipeline.is_object()) pipeline.erase("virtual_stages");
  pipeline["schedule"] = interleaved ? "interleaved-1f1b" : "1f1b";
}

// Its keys are the file's, but for the schedule, which follows, and layers of each stage, which no
// key says but a pattern of layers.
void add_megatron_stage_facts(const Json& strategy, Facts& facts) {
  const Json pipeline = json_at(strategy, "pipeline");
  if (!pipeline.is_object()) return;
  const bool in_pattern = json_at(pipeline, "layers").is_array() && facts.has("model.pattern");
  if (in_pattern) {
    facts.set("model.pattern", with_stages(facts.text("model.pattern"), pipeline["layers"]));
  }
  for (const auto& [key, value] : pipeline.items()) {
    const bool follows = key == "schedule" || key == "receives" || key == "sends" ||
                         (key == "virtual_stages" && (value == 1 || in_pattern));
    if (follows || value.is_array()) continue;
    const std::string fact = fmt::format("strategy.pipeline.{}", key);
    if (!value.is_object()) facts.set(fact, value);
    if (!value.is_object()) continue;
    for (const auto& [inner, one] : value.items())
      facts.set(fmt::format("{}.{}", fact, inner), one);
  }
}

}  // namespace shardsim
