#include "experiments/read_rematerialization.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/json.hpp"
#include "workloads/step/saved_names.hpp"

namespace shardsim {
namespace {

using Policy = Rematerialization::Policy;
using Layers = Rematerialization::Layers;

constexpr std::int64_t most_layers = std::int64_t{1} << 31;

std::vector<std::string> read_strings(const JsonReader& json) {
  std::vector<std::string> strings;
  for (const JsonReader& one : json.elements()) strings.push_back(one.string());
  return strings;
}

Rematerialization read_policy(const JsonReader& json) {
  std::vector<std::string> known = saving_policies();
  const std::vector<std::string> offloading = offloading_policies();
  known.insert(known.end(), offloading.begin(), offloading.end());
  return {Policy::of_jax, {json.choice(known)}};
}

Rematerialization read_modules(const JsonReader& json) {
  Rematerialization read{Policy::modules};
  for (const JsonReader& one : json.elements()) {
    read.save.push_back(module_named(one.choice(module_names())));
  }
  if (read.save.empty()) json.fail("names no module; without any say \"none\"");
  return read;
}

Rematerialization read_method(const JsonReader& json) {
  json.only_keys({"layers", "method"});
  Rematerialization read{Policy::full};
  const JsonReader count = json.at("layers");
  read.count = count.integer(1, most_layers);
  const std::string method = json.at("method").choice({"uniform", "block"});
  read.layers = method == "block" ? Layers::block : Layers::uniform;
  if (read.layers == Layers::uniform && read.count > 1) {
    count.fail(
        fmt::format("groups of {} layers that are repeated together are not supported by this "
                    "version; \"layers\": 1 repeats each for itself",
                    read.count));
  }
  return read;
}

}  // namespace

Rematerialization read_rematerialization(const JsonReader& json) {
  if (json.is_string()) {
    const std::string policy = json.choice({"none", "full", "selective"});
    if (policy == "none") return {};
    return {policy == "full" ? Policy::full : Policy::selective};
  }
  if (json.find("layers") || json.find("method")) return read_method(json);
  json.only_keys({"save", "offload", "policy", "modules", "every", "layers", "method"});
  if (const auto policy = json.find("policy")) {
    json.only_keys({"policy"});
    return read_policy(*policy);
  }
  if (const auto modules = json.find("modules")) {
    json.only_keys({"modules"});
    return read_modules(*modules);
  }
  if (const auto every = json.find("every")) {
    json.only_keys({"every"});
    return {Policy::full, {}, Layers::every, every->integer(1, most_layers)};
  }
  Rematerialization read{Policy::named};
  const auto offload = json.find("offload");
  if (offload) read.offload = read_strings(*offload);
  if (!offload || json.find("save")) read.save = read_strings(json.at("save"));
  return read;
}

Json rematerialization_to_json(const Rematerialization& rematerialization) {
  const auto& [policy, save, layers, count, offload, to_end] = rematerialization;
  switch (layers) {
    case Layers::all:
      break;
    case Layers::every:
      return {{"every", count}};
    case Layers::uniform:
      return {{"layers", count}, {"method", "uniform"}};
    case Layers::block:
      return {{"layers", count}, {"method", "block"}};
  }
  switch (policy) {
    case Policy::none:
      return "none";
    case Policy::full:
      return "full";
    case Policy::selective:
      return "selective";
    case Policy::named:
      if (offload.empty()) return {{"save", save}};
      return {{"save", save}, {"offload", offload}};
    case Policy::modules:
      return {{"modules", save}};
    case Policy::of_jax:
      break;
  }
  return {{"policy", save.front()}};
}

}  // namespace shardsim
