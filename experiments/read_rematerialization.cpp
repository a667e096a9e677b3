#include "experiments/read_rematerialization.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "workloads/step/saved_names.hpp"

namespace shardsim {
namespace {

using Policy = Rematerialization::Policy;
using Layers = Rematerialization::Layers;

constexpr std::int64_t most_layers = std::int64_t{1} << 31;

[[noreturn]] void refuse_offload(const JsonReader& json) {
  json.fail(
      "keeping activations on the host is not supported by this version; \"save\" keeps them on "
      "the "
      "device");
}

std::vector<std::string> read_strings(const JsonReader& json) {
  std::vector<std::string> strings;
  for (const JsonReader& one : json.elements()) strings.push_back(one.string());
  return strings;
}

Rematerialization read_policy(const JsonReader& json) {
  std::vector<std::string> known = saving_policies();
  const std::vector<std::string> offloading = offloading_policies();
  known.insert(known.end(), offloading.begin(), offloading.end());
  const std::string policy = json.choice(known);
  if (std::find(offloading.begin(), offloading.end(), policy) != offloading.end()) {
    refuse_offload(json);
  }
  return {Policy::of_jax, {policy}};
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
  if (const auto offload = json.find("offload")) {
    if (!offload->elements().empty()) refuse_offload(*offload);
    if (!json.find("save")) return {Policy::named};
  }
  return {Policy::named, read_strings(json.at("save"))};
}

Json rematerialization_to_json(const Rematerialization& rematerialization) {
  const auto& [policy, save, layers, count] = rematerialization;
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
      return {{"save", save}};
    case Policy::modules:
      return {{"modules", save}};
    case Policy::of_jax:
      break;
  }
  return {{"policy", save.front()}};
}

}  // namespace shardsim
