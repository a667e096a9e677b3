#include "base/json.hpp"
#include "golden.hpp"
#include "sharding/pathways.hpp"

#include <limits>
#include <numeric>

namespace shardsim::test {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

PathwaysSharding read_sharding(const JsonReader& json, const std::string& other_class,
                               const std::string& own) {
  return {read_golden_mesh(json.at("mesh")), read_partition_spec(json.at("spec")),
          other_class.find(own) == std::string::npos};
}

Json find_intermediate(const JsonReader& input) {
  // "src_single", "dst_single": that one is a SingleDeviceSharding.
  const auto kind = input.find("kind");
  const std::string other = kind ? kind->string() : "";
  const PathwaysSharding source = read_sharding(input.at("src"), other, "src");
  const PathwaysSharding target = read_sharding(input.at("dst"), other, "dst");
  const IntermediateSharding found = find_intermediate_sharding(source, target, input.place());
  Json json;
  json["mesh"] = Json::array();
  for (const MeshAxis& axis : found.mesh.axes()) {
    json["mesh"].push_back(Json::array({axis.name, axis.size}));
  }
  json["spec"] = to_json(found.spec);
  json["replicated_axes"] = found.replica_axes;
  std::vector<std::int64_t> devices(static_cast<std::size_t>(found.mesh.devices()));
  std::iota(devices.begin(), devices.end(), 0);
  json["device_ids_row_major"] = devices;
  json["src_dims"] = found.source_shards;
  json["dst_dims"] = found.target_shards;
  json["devices_kept_after_split_by_mesh_axis"] = first_replica(found);
  return json;
}

std::vector<std::int64_t> boundaries(std::int64_t size, const JsonReader& sections) {
  if (sections.is_number()) {
    return section_ends(size, sections.integer(-most, most), sections.place());
  }
  std::vector<std::int64_t> inner;
  for (const JsonReader& one : sections.elements()) inner.push_back(one.integer(-most, most));
  return section_ends(size, inner, sections.place());
}

Json split_by_mesh_axis(const JsonReader& input) {
  const std::int64_t size = input.at("mesh_axis_size").integer(1, most);
  // None is one section for every device of the axis.
  const auto sections = input.find("mesh_axis_indices_or_sections");
  const auto ends =
      sections ? boundaries(size, *sections) : section_ends(size, size, input.place());
  return {{"boundaries", ends}};
}

}  // namespace

void add_pathways(GoldenFunctions& functions) {
  functions.add("find_intermediate_sharding", find_intermediate);
  functions.add("split_by_mesh_axis (sections)", split_by_mesh_axis);
}

}  // namespace shardsim::test
