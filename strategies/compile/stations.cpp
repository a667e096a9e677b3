#include "strategies/compile/stations.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/json.hpp"
#include "plan/plan_io.hpp"
#include "strategies/layout/layout_json.hpp"
#include "strategies/schedule/schedule_text.hpp"

namespace shardsim {
namespace {

std::string value_text(const SpmdStep& step, ValueId id, const Mesh& mesh) {
  const Value& value = step.values[static_cast<std::size_t>(id)];
  return fmt::format("{} {}", value.name, to_string(value.sharding, mesh));
}

Json values_json(const SpmdStep& step, const std::vector<ValueId>& ids, const Mesh& mesh) {
  Json list = Json::array();
  for (const ValueId id : ids) list.push_back(value_text(step, id, mesh));
  return list;
}

Json item_json(const Compilation& c, const Item& item) {
  Json json;
  json["name"] = item.name;
  if (item.kind == TaskKind::collective) {
    const Collective& call = item.collective;
    json["collective"] = name_of(call.kind);
    json["axes"] = c.mesh.names_of(call.axes);
    json["payload_bytes"] = call.payload.count();
    if (!call.reason.empty()) json["reason"] = call.reason;
    if (!call.remedy.empty()) json["remedy"] = call.remedy;
  } else {
    json["kernel"] = item.kernel.op;
    json["flops"] = item.kernel.flops.count();
    json["bytes"] = item.kernel.bytes.count();
    if (item.recompute) json["recompute"] = true;
  }
  json["reads"] = values_json(c.spmd, item.operands, c.mesh);
  json["makes"] = values_json(c.spmd, item.results, c.mesh);
  return json;
}

Json pass_json(const Compilation& c, const BlockPass& pass) {
  Json json = Json::object();
  const auto name = [&](TensorId id) -> const std::string& {
    return c.workload.tensors[static_cast<std::size_t>(id)].name;
  };
  for (const TensorId parameter : pass.reads) json["needs"].push_back(name(parameter));
  for (const Write& write : pass.writes) json["leaves"].push_back(name(write.parameter));
  const auto add = [&](const char* key, const std::vector<Item>& items) {
    for (const Item& item : items) json[key].push_back(item_json(c, item));
  };
  add("gathers", pass.gathers);
  add("body", pass.body);
  add("reductions", pass.reductions);
  add("additions", pass.additions);
  add("last_reductions", pass.last_reductions);
  return json;
}

}  // namespace

Json layout_station(const Compilation& c) { return layout_to_json(c.layout, c.workload, c.mesh); }

Json shardings_station(const Compilation& c) {
  Json blocks = Json::array();
  for (const Block& block : c.workload.blocks) {
    blocks.push_back({{"block", block.name}, {"tensors", Json::array()}});
  }
  for (std::size_t t = 0; t < c.workload.tensors.size(); ++t) {
    const Tensor& tensor = c.workload.tensors[t];
    if (tensor.role == TensorRole::optimizer_state) continue;
    blocks[static_cast<std::size_t>(tensor.block)]["tensors"].push_back(fmt::format(
        "{} {}", tensor.name, to_string(c.shardings.of(static_cast<TensorId>(t)), c.mesh)));
  }
  return {{"blocks", std::move(blocks)}};
}

Json step_station(const Compilation& c) {
  Json blocks = Json::array();
  for (std::size_t b = 0; b < c.workload.blocks.size(); ++b) {
    const BlockProgram& program = c.spmd.blocks[b];
    Json block = {{"block", c.workload.blocks[b].name}};
    const auto add = [&](const char* key, const BlockPass& pass) {
      Json json = pass_json(c, pass);
      if (!json.empty()) block[key] = std::move(json);
    };
    add("forward", program.forward);
    add("backward", program.backward);
    add("optimizer", program.optimizer);
    blocks.push_back(std::move(block));
  }
  return {{"blocks", std::move(blocks)}};
}

Json schedule_station(const Compilation& c) {
  Json ranks = Json::array();
  for (const std::vector<Action>& actions : c.schedule.of_rank) ranks.push_back(cells_of(actions));
  return {{"ranks", std::move(ranks)}};
}

}  // namespace shardsim
