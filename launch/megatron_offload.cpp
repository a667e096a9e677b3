// What Megatron-LM's arguments say of the host's memory, both ways: an optimizer a part of which is
// there, and activations.
#include <fmt/format.h>

#include "base/json.hpp"
#include "launch/framework_files.hpp"
#include "launch/megatron_facts.hpp"

namespace shardsim {

void read_megatron_offload(const Facts& facts, Json& experiment) {
  if (!facts.flag("arg.optimizer_on_host")) return;
  if (!facts.flag("arg.precision_aware")) {
    facts.fail("arg.optimizer_on_host", "needs --use-precision-aware-optimizer");
  }
  const double share = facts.number("arg.share_on_host");
  if (share == 0) return;
  Json& optimizer = experiment["strategy"]["offload"]["optimizer"];
  const bool overlaps = facts.flag("arg.copies_beside_host");
  if (share == 1 && !overlaps) {
    optimizer = "cpu";
    return;
  }
  optimizer = {{"fraction", share}};
  if (overlaps) optimizer["overlap"] = true;
}

void add_megatron_offload_facts(const Json& strategy, Facts& facts) {
  for (const char* key : {"layers", "modules"}) {
    const std::string path = fmt::format("offload.activations.{}", key);
    facts.set("strategy." + path, json_at(strategy, path));
  }
  const Json optimizer = json_at(strategy, "offload.optimizer");
  if (optimizer.is_null()) return;
  facts.set("arg.optimizer_on_host", true);
  facts.set("arg.precision_aware", true);
  if (!optimizer.is_object()) return;
  facts.set("arg.share_on_host", optimizer.value("fraction", 1.0));
  if (optimizer.value("overlap", false)) facts.set("arg.copies_beside_host", true);
}

}  // namespace shardsim
