#include "workloads/graph/graph_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"

namespace shardsim {
namespace {

std::string_view name_of(LabelRole role) {
  switch (role) {
    case LabelRole::none:
      return "none";
    case LabelRole::batch:
      return "batch";
    case LabelRole::sequence:
      return "sequence";
    case LabelRole::key_sequence:
      return "key sequence";
    case LabelRole::hidden:
      return "hidden";
    case LabelRole::heads:
      return "heads";
    case LabelRole::head_group:
      return "head group";
    case LabelRole::mixer_groups:
      return "groups of a mixer";
    case LabelRole::width:
      return "width";
    case LabelRole::vocab:
      return "vocabulary";
    case LabelRole::experts:
      return "experts";
    case LabelRole::expert_tokens:
      return "copies for experts";
  }
  return "";
}

// "[batch, heads*head_dim]"
std::string dims_of(const Workload& workload, const std::vector<Dim>& dims) {
  std::vector<std::string> words;
  for (const Dim& dim : dims) {
    std::vector<std::string> labels;
    for (const LabelId id : dim) {
      labels.push_back(workload.labels[static_cast<std::size_t>(id)].name);
    }
    words.push_back(fmt::format("{}", fmt::join(labels, "*")));
  }
  return fmt::format("[{}]", fmt::join(words, ", "));
}

Json operands_json(const Workload& workload, const std::vector<Operand>& operands) {
  Json list = Json::array();
  for (const Operand& operand : operands) {
    list.push_back(fmt::format("{} {}",
                               workload.tensors[static_cast<std::size_t>(operand.tensor)].name,
                               dims_of(workload, operand.dims)));
  }
  return list;
}

Json ops_json(const Workload& workload, const std::vector<Op>& ops) {
  Json list = Json::array();
  for (const Op& op : ops) {
    Json json = {{"name", op.name}, {"op", shardsim::name_of(op.function)}};
    if (op.recompute) json["recompute"] = true;
    json["reads"] = operands_json(workload, op.operands);
    json["makes"] = operands_json(workload, op.results);
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

Json graph_to_json(const Workload& workload) {
  Json labels = Json::array();
  for (const Label& label : workload.labels) {
    labels.push_back({{"name", label.name}, {"size", label.size}, {"role", name_of(label.role)}});
  }
  Json blocks = Json::array();
  for (const Block& block : workload.blocks) {
    Json json = {{"block", block.name}};
    if (block.is_layer)
      json["layers"] = number_ranges({block.numbers.begin(), block.numbers.end()});
    if (!block.runs_module.empty()) json["runs"] = block.runs_module;
    json["forward"] = ops_json(workload, block.forward);
    if (!block.backward.empty()) json["backward"] = ops_json(workload, block.backward);
    if (!block.optimizer.empty()) json["optimizer"] = ops_json(workload, block.optimizer);
    blocks.push_back(std::move(json));
  }
  return {{"model", workload.model}, {"labels", std::move(labels)}, {"blocks", std::move(blocks)}};
}

}  // namespace shardsim
