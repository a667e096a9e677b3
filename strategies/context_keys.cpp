#include "strategies/context_keys.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace shardsim {
namespace {

// In the order of the enum.
const std::vector<std::string> methods = {"all-gather", "ring", "all-to-all", "ring+all-to-all"};
const std::vector<std::string> states = {"refused", "all-gather", "heads"};
constexpr std::int64_t most_devices = std::int64_t{1} << 20;

bool has_ring(const ContextLayout& context) {
  return context.method == ContextMethod::ring || context.method == ContextMethod::ring_all_to_all;
}

void read_ring(const JsonReader& json, ContextLayout& context) {
  const auto rotation = json.find("rotation"), gradients = json.find("gradients");
  const auto heads = json.find("head_devices");
  if (heads && context.method != ContextMethod::ring_all_to_all) {
    heads->fail("is of the method \"ring+all-to-all\"");
  }
  if (heads) context.head_devices = heads->integer(1, most_devices);
  if (!has_ring(context)) {
    for (const auto& given : {rotation, gradients}) {
      if (given) given->fail("is of the method \"ring\"");
    }
    return;
  }
  if (rotation) {
    const bool gathers = rotation->choice({"messages", "all-gather"}) == "all-gather";
    context.rotation = gathers ? Rotation::gather : Rotation::messages;
  }
  if (gradients) context.wide_gradients = gradients->choice({"compute", "fp32"}) == "fp32";
}

}  // namespace

void read_context(const JsonReader& strategy, ContextLayout& context) {
  const auto json = strategy.find("context");
  if (!json) return;
  json->only_keys(
      {"method", "balanced", "keeps", "rotation", "gradients", "head_devices", "states"});
  if (const auto method = json->find("method")) {
    const auto found = std::find(methods.begin(), methods.end(), method->choice(methods));
    context.method = static_cast<ContextMethod>(found - methods.begin());
    context.keeps_gathered &= context.method == ContextMethod::gather;
  }
  read_ring(*json, context);
  if (const auto of_states = json->find("states")) {
    const auto found = std::find(states.begin(), states.end(), of_states->choice(states));
    context.states = static_cast<StateMethod>(found - states.begin());
  }
  if (const auto balanced = json->find("balanced")) context.balanced = balanced->boolean();
  if (const auto keeps = json->find("keeps")) {
    context.keeps_gathered = keeps->choice({"parts", "gathered"}) == "gathered";
    if (context.keeps_gathered && context.method != ContextMethod::gather) {
      keeps->fail("\"gathered\" is of the method \"all-gather\"");
    }
  }
}

Json context_to_json(const ContextLayout& context) {
  Json json = {{"method", methods[static_cast<std::size_t>(context.method)]},
               {"balanced", context.balanced},
               {"keeps", context.keeps_gathered ? "gathered" : "parts"},
               {"states", states[static_cast<std::size_t>(context.states)]}};
  if (!has_ring(context)) return json;
  if (context.head_devices > 0) json["head_devices"] = context.head_devices;
  json["rotation"] = context.rotation == Rotation::gather ? "all-gather" : "messages";
  json["gradients"] = context.wide_gradients ? "fp32" : "compute";
  return json;
}

}  // namespace shardsim
