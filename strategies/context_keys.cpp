#include "strategies/context_keys.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace shardsim {
namespace {

// In the order of the enum.
const std::vector<std::string> methods = {"all-gather", "ring", "all-to-all"};

}  // namespace

void read_context(const JsonReader& strategy, ContextLayout& context) {
  const auto json = strategy.find("context");
  if (!json) return;
  json->only_keys({"method", "balanced", "keeps"});
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
  if (const auto balanced = json->find("balanced")) context.balanced = balanced->boolean();
  if (const auto keeps = json->find("keeps")) {
    context.keeps_gathered = keeps->choice({"parts", "gathered"}) == "gathered";
    if (context.keeps_gathered && context.method != ContextMethod::gather) {
      keeps->fail("\"gathered\" is of the method \"all-gather\"");
    }
  }
}

Json context_to_json(const ContextLayout& context) {
  return {{"method", methods[static_cast<std::size_t>(context.method)]},
          {"balanced", context.balanced},
          {"keeps", context.keeps_gathered ? "gathered" : "parts"}};
}

}  // namespace shardsim
