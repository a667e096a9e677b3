#include "sharding/named_sharding.hpp"

#include "base/json.hpp"
#include "golden.hpp"
#include "sharding/partition_spec.hpp"
#include "sharding/shardy_sharding.hpp"

namespace shardsim::test {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 40;
// Cases on larger meshes state shapes only: null for the list of devices.
constexpr std::int64_t most_listed_devices = 64;

std::vector<std::int64_t> read_shape(const JsonReader& json) {
  std::vector<std::int64_t> shape;
  for (const JsonReader& size : json.elements()) shape.push_back(size.integer(0, most_elements));
  return shape;
}

Json index_of(const DeviceIndex& index, std::int64_t device) {
  Json json = Json::array();
  const std::vector<IndexRange> ranges = index.ranges(device);
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    json.push_back(index.is_cut(d) ? Json::array({ranges[d].begin, ranges[d].end}) : Json(nullptr));
  }
  return json;
}

Json named_sharding(const JsonReader& input) {
  const Mesh mesh = read_golden_mesh(input.at("mesh"));
  const std::vector<std::int64_t> shape = read_shape(input.at("global_shape"));
  const Sharding sharding =
      to_sharding(read_partition_spec(input.at("spec")), shape.size(), mesh, input.place());
  check_divides(shape, sharding, input.place());
  const DeviceIndex index(shape, sharding, mesh);
  Json json{{"shard_shape", shard_shape(shape, sharding)},
            {"is_fully_replicated", is_fully_replicated(sharding)},
            {"num_shards_per_dim", shards_per_dim(sharding)},
            {"replicas_per_shard", replicas_per_shard(sharding, mesh)},
            {"replica_id_by_device_id", index.replica_ids()}};
  json["index_by_device_id"] = Json::array();
  for (std::int64_t device = 0; device < mesh.devices(); ++device) {
    json["index_by_device_id"].push_back(index_of(index, device));
  }
  if (const auto tiles = tile_assignment(sharding, mesh)) {
    json["tile_assignment_dimensions"] = tiles->dims;
    json["tile_assignment_devices"] =
        mesh.devices() > most_listed_devices ? Json(nullptr) : Json(tiles->devices);
  }
  return json;
}

Json uneven(const JsonReader& input) {
  const std::int64_t size = input.at("dim").integer(0, most_elements);
  const std::vector<std::int64_t> sizes =
      chunk_sizes(size, input.at("partitions").integer(1, most_elements));
  return {{"per_shard_valid_sizes", sizes}, {"padded_shard_size", sizes.front()}};
}

Json local_shape(const JsonReader& input) {
  const Sharding sharding =
      read_shardy_sharding(input.at("dim_shardings"), read_golden_mesh(input.at("mesh")));
  return {{"local_shape", shard_shape(read_shape(input.at("global_shape")), sharding)}};
}

DeviceIndex read_device_index(const JsonReader& json, const JsonReader& shape) {
  const Mesh mesh = read_golden_mesh(json.at("mesh"));
  return {read_shape(shape), read_shardy_sharding(json.at("dims"), mesh), mesh};
}

Json equivalence(const JsonReader& input) {
  const JsonReader shape = input.at("global_shape");
  return {{"equivalent", hold_same_parts(read_device_index(input.at("a"), shape),
                                         read_device_index(input.at("b"), shape))}};
}

Json invariants(const JsonReader& input) {
  try {
    const Mesh mesh = read_golden_mesh(input.at("mesh"));
    const Sharding sharding = read_shardy_sharding(input.at("dim_shardings"), mesh);
    if (const auto axes = input.find("replicated_axes")) {
      check_replicated_axes(*axes, sharding, mesh);
    }
    return {{"valid", true}};
  } catch (const RuleError& error) {
    return {{"valid", false}, {"reason", error.what()}};
  }
}

Json equality(const JsonReader& input) {
  return {{"equal", read_partition_spec(input.at("a")) == read_partition_spec(input.at("b"))}};
}

}  // namespace

void add_named_sharding(GoldenFunctions& functions) {
  functions.add("NamedSharding", named_sharding);
  functions.add("uneven (GSPMD/XLA internal) shard sizes", uneven);
  functions.add("shardy local shape", local_shape);
  functions.add("shardy equivalence", equivalence);
  functions.add("shardy invariants", invariants, {"reason"});
  functions.add("PartitionSpec", [](const JsonReader& input) -> Json {
    return {{"spec", to_json(read_partition_spec(input.at("spec")))}};
  });
  functions.add("PartitionSpec equality", equality);
}

}  // namespace shardsim::test
