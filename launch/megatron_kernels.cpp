// What Megatron-LM's arguments say of kernels and of CUDA graphs, both ways.
#include <algorithm>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "launch/framework_files.hpp"
#include "launch/megatron_facts.hpp"

namespace shardsim {
namespace {

constexpr const char* whole_iteration = "full_iteration";

// --cuda-graph-scope attn,moe_router, or several words; "full" and none: a whole layer.
std::vector<std::string> graph_scopes(const Facts& facts) {
  std::vector<std::string> scopes;
  const Json given = facts.get("arg.graph_scope");
  for (const Json& one : given.is_array() ? given : Json::array({given})) {
    if (!one.is_string()) continue;
    const auto text = one.get<std::string>();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      if (end > at && text.substr(at, end - at) != "full") {
        scopes.push_back(text.substr(at, end - at));
      }
      at = end + 1;
    }
  }
  return scopes;
}

// transformer_config.py, __post_init__: "local" graphs are of layers unless they are of the whole
// iteration; Transformer Engine's are of modules.
Json graphs_of(const Facts& facts) {
  const std::vector<std::string> scopes = graph_scopes(facts);
  const bool whole = std::find(scopes.begin(), scopes.end(), whole_iteration) != scopes.end();
  if (facts.is("arg.graphs", "none")) return Json();
  if (facts.is("arg.graphs", "local")) return whole ? "full-iteration" : "layer";
  if (whole) {
    facts.fail("arg.graph_scope", "a graph of the whole iteration needs --cuda-graph-impl local");
  }
  return scopes.empty() ? Json("layer") : Json(scopes);
}

}  // namespace

void read_megatron_kernels(const Facts& facts, Json& experiment) {
  const Json& kernels = facts.at("arg.kernels");
  Json object = {{"base", kernels}};
  if (!facts.is("arg.attention", "auto")) object["attention"] = facts.at("arg.attention");
  if (facts.flag("arg.loss")) object["loss"] = "fused";
  if (const Json graphs = graphs_of(facts); !graphs.is_null()) object["graphs"] = graphs;
  experiment["strategy"]["kernels"] = object.size() == 1 ? kernels : object;
}

void add_megatron_kernel_facts(const Json& strategy, Facts& facts) {
  const Json kernels = json_at(strategy, "kernels");
  if (kernels.is_string()) facts.set("arg.kernels", kernels);
  if (!kernels.is_object()) return;
  if (kernels.contains("base")) facts.set("arg.kernels", kernels["base"]);
  if (kernels.contains("attention")) facts.set("arg.attention", kernels["attention"]);
  facts.set("arg.loss", json_at(kernels, "loss") == "fused");
  const Json graphs = json_at(kernels, "graphs");
  if (graphs.is_null() || graphs == "none") return;
  facts.set("arg.graphs", graphs == "full-iteration" ? "local" : "transformer-engine");
  if (graphs == "full-iteration") facts.set("arg.graph_scope", whole_iteration);
  if (graphs.is_array()) facts.set("arg.graph_scope", graphs);
}

}  // namespace shardsim
