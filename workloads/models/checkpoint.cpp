#include "workloads/models/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.hpp"
#include "base/text.hpp"
#include "workloads/models/config_keys.hpp"
#include "workloads/models/hub_names.hpp"

namespace shardsim {
namespace {

using Shapes = std::map<std::string, models::Shape>;

// What differs: tensors of one that the other lacks or has in another shape.
struct Gap {
  std::vector<const ParameterLeaf*> unknown, reshaped;
  std::vector<std::string> missing;

  [[nodiscard]] std::size_t size() const {
    return unknown.size() + reshaped.size() + missing.size();
  }
};

Gap compare(const ParameterTree& tree, const Shapes& needed, const Shapes& allowed) {
  Gap gap;
  Shapes open = needed;
  for (const ParameterLeaf& leaf : tree.leaves) {
    open.erase(leaf.name);
    const auto known = needed.find(leaf.name);
    const auto other = allowed.find(leaf.name);
    if (known == needed.end() && other == allowed.end()) {
      gap.unknown.push_back(&leaf);
    } else if (leaf.shape != (known != needed.end() ? known->second : other->second)) {
      gap.reshaped.push_back(&leaf);
    }
  }
  for (const auto& [name, shape] : open) gap.missing.push_back(name);
  return gap;
}

[[noreturn]] void fail(const Gap& gap, const ParameterTree& tree, const Shapes& needed,
                       const std::string& model) {
  const std::string more = gap.size() > 1 ? fmt::format(" ({} tensors differ)", gap.size()) : "";
  if (!gap.reshaped.empty()) {
    const ParameterLeaf& leaf = *gap.reshaped.front();
    const auto known = needed.find(leaf.name);
    throw InputError(
        leaf.place,
        fmt::format("has shape {}, in {} {}{}", dims_text(leaf.shape), model,
                    known == needed.end() ? "another" : dims_text(known->second), more));
  }
  if (!gap.missing.empty()) {
    const Place place = tree.leaves.empty() ? Place{} : Place{tree.leaves.front().place.file, ""};
    throw InputError(
        place, fmt::format("has no \"{}\", which {} has{}", gap.missing.front(), model, more));
  }
  throw InputError(gap.unknown.front()->place, fmt::format("is no tensor of {}{}", model, more));
}

}  // namespace

void require_checkpoint_of(const ParameterTree& tree, const ModelConfig& config) {
  const JsonReader json(*config.json, {config.path, ""});
  const models::ModelSpec spec = read_known_model(json, config.name);
  const models::ModelCounts counts = models::count(spec, {}, json.place());
  Shapes files;
  Shapes modules;
  for (const models::HubTensor& tensor : models::hub_tensors(spec.family, counts)) {
    files[tensor.name] = tensor.shape;
  }
  for (const models::HubTensor& tensor : models::hub_tensors("", counts)) {
    modules[tensor.name] = tensor.shape;
  }
  Shapes tied;
  for (const auto& group : counts.tied) {
    const auto first = modules.find(group.front());
    if (first == modules.end()) continue;
    for (const std::string& name : group) tied.emplace(name, first->second);
  }
  const Gap of_files = compare(tree, files, tied);
  if (of_files.size() == 0) return;
  const Gap of_modules = compare(tree, modules, tied);
  if (of_modules.size() == 0) return;
  const bool nearer = of_files.size() <= of_modules.size();
  fail(nearer ? of_files : of_modules, tree, nearer ? files : modules, config.name);
}

}  // namespace shardsim
