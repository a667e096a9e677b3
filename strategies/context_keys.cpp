#include "strategies/context_keys.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace shardsim {
namespace {

// In the order of the enum.
const std::vector<std::string> methods = {"all-gather", "ring", "all-to-all"};

void read_ring(const JsonReader& json, ContextLayout& context) {
  const auto rotation = json.find("rotation"), gradients = json.find("gradients");
  if (context.method != ContextMethod::ring) {
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
  json->only_keys({"method", "balanced", "keeps", "rotation", "gradients"});
  if (const auto method = json->find("method")) {
    std::vector<std::string> known = methods;
    known.emplace_back("ring+all-to-all");
    const std::string name = method->choice(known);
    const auto found = std::find(methods.begin(), methods.end(), name);
    if (found == methods.end()) {
      method->fail(
          "a ring of groups that exchange heads is not supported by this version: \"ring\" "
          "and \"all-to-all\" are");
    }
    context.method = static_cast<ContextMethod>(found - methods.begin());
    context.keeps_gathered &= context.method == ContextMethod::gather;
  }
  read_ring(*json, context);
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
               {"keeps", context.keeps_gathered ? "gathered" : "parts"}};
  if (context.method != ContextMethod::ring) return json;
  json["rotation"] = context.rotation == Rotation::gather ? "all-gather" : "messages";
  json["gradients"] = context.wide_gradients ? "fp32" : "compute";
  return json;
}

}  // namespace shardsim
