#include "launch/framework_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.hpp"

namespace shardsim {

const std::vector<FrameworkFile>& framework_files() {
  static const std::vector<FrameworkFile> files = {megatron_file(), torchtitan_file(),
                                                   deepspeed_file(), maxtext_file(), pax_file()};
  return files;
}

const FrameworkFile& framework_file(std::string_view name) {
  std::vector<std::string> known;
  for (const FrameworkFile& file : framework_files()) {
    if (file.name == name) return file;
    known.emplace_back(file.name);
  }
  throw InputError({"command line", ""},
                   fmt::format("no framework \"{}\"; known are {}", name, fmt::join(known, ", ")));
}

Json json_at(const Json& json, std::string_view path) {
  const Json* field = &json;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('.', at), path.size());
    const auto found =
        field->is_object() ? field->find(std::string(path.substr(at, end - at))) : field->end();
    if (!field->is_object() || found == field->end()) return Json();
    field = &*found;
    at = end + 1;
  }
  return *field;
}

std::int64_t integer_at(const Json& json, std::string_view path, std::int64_t otherwise) {
  const Json value = json_at(json, path);
  return value.is_number_integer() ? value.get<std::int64_t>() : otherwise;
}

void add_mesh_facts(const Json& mesh, const Json& roles, const std::vector<NamedRole>& names,
                    const Place& place, Facts& facts) {
  const AxisRoles by_name;
  for (const auto& [axis, size] : mesh.items()) {
    if (size == 1) continue;
    std::optional<AxisRole> role = by_name.of(axis);
    if (roles.is_object() && roles.contains(axis)) {
      for (const NamedRole& named : names) {
        if (name_of(named.role) == roles[axis].get<std::string>()) role = named.role;
      }
    }
    const NamedRole* found = nullptr;
    for (const NamedRole& named : names) {  // by its own name, else by its role
      const bool same = "mesh." + axis == named.name;
      if (role == named.role && (found == nullptr || same)) found = &named;
    }
    if (found == nullptr) {
      throw InputError(place, fmt::format("axis \"{}\" has no place in such a file", axis));
    }
    if (facts.has(found->name)) {
      throw InputError(place, fmt::format("two axes of more than one device are for \"{}\"",
                                          name_of(found->role)));
    }
    facts.set(found->name, size);
  }
}

void set_slices(const std::string& axis, std::int64_t slices, const LaunchOptions& options,
                Json& experiment) {
  if (slices == 1) return;
  if (!options.machine.empty() && !options.machine.starts_with("tpu")) return;
  experiment["slices"][axis] = slices;
}

BatchSize batch_size(const Facts& facts, std::int64_t microbatch, std::int64_t shares) {
  const std::int64_t at_once = microbatch * shares;
  BatchSize size{at_once, 1};
  if (!facts.has("workload.batch")) return size;
  size.batch = facts.integer("workload.batch");
  if (size.batch % at_once != 0) {
    facts.fail("workload.batch",
               fmt::format("a batch of {} is no multiple of the {} sequences that {} data-parallel "
                           "ranks of {} compute at once",
                           size.batch, at_once, shares, microbatch));
  }
  size.microbatches = size.batch / at_once;
  return size;
}

std::int64_t rest_of_devices(const Facts& facts, std::int64_t others, std::string_view others_text,
                             const std::vector<std::string_view>& facts_of_others) {
  const std::int64_t devices = facts.integer("devices");
  if (devices % others == 0) return devices / others;
  std::string_view where = "devices";
  for (const std::string_view fact : facts_of_others) {
    if (facts.given(fact) && where == "devices") where = fact;
  }
  facts.fail(where,
             fmt::format("{} devices are no multiple of {}, {}; --devices says another number",
                         devices, others_text, others));
}

}  // namespace shardsim
