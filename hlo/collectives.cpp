#include "hlo/collectives.hpp"

#include <fmt/format.h>

#include <array>
#include <numeric>

namespace shardsim {
namespace {

struct KindRow {
  std::string_view opcode;
  CollectiveKind kind;
  std::string_view note;
};

constexpr std::array kind_rows{
    KindRow{"all-gather", CollectiveKind::all_gather, ""},
    KindRow{"all-reduce", CollectiveKind::all_reduce, ""},
    KindRow{"reduce-scatter", CollectiveKind::reduce_scatter, ""},
    KindRow{"all-to-all", CollectiveKind::all_to_all, ""},
    KindRow{"collective-permute", CollectiveKind::collective_permute, ""},
    KindRow{"ragged-all-to-all", CollectiveKind::all_to_all,
            "ragged-all-to-all: counted as if every row were sent; real sizes are data"},
    KindRow{"collective-broadcast", CollectiveKind::collective_permute,
            "collective-broadcast: read as messages from the first device of a group to the "
            "others"}};

constexpr Bytes most_payload(std::int64_t{1} << 45);

const KindRow& row_of(std::string_view opcode) {
  for (const KindRow& row : kind_rows) {
    if (row.opcode == opcode) return row;
  }
  return kind_rows[0];  // not reached: collective_opcode has checked
}

// Kinds whose instruction can say use_global_device_ids; the others count partitions as soon as
// they have a channel.
bool has_global_ids(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::all_reduce ||
         kind == CollectiveKind::reduce_scatter;
}

GroupMode mode_of(const HloModule& module, HloId id, CollectiveKind kind) {
  if (channel_of(module, id) < 0) return GroupMode::cross_replica;
  if (!has_global_ids(kind)) return GroupMode::cross_partition;
  return module.attribute(id, "use_global_device_ids") == "true"
             ? GroupMode::flattened
             : GroupMode::cross_replica_and_partition;
}

// The value of replica_groups; in the third spelling device_ids belongs to it, behind a comma.
std::string_view groups_text(const HloModule& module, HloId id) {
  const std::string_view groups = module.attribute(id, "replica_groups");
  if (groups.substr(0, 5) != "mesh[" || groups.back() == '}') return groups;
  const std::string_view ids = module.attribute(id, "device_ids");
  if (ids.empty()) return groups;
  return {groups.data(), static_cast<std::size_t>(ids.data() + ids.size() - groups.data())};
}

// Operands that are sent: of a ragged-all-to-all, and of a permute in place, only the first.
std::size_t sent_operands(const HloModule& module, HloId id, std::string_view opcode) {
  const std::size_t all = module.operands(id).size();
  if (opcode == "ragged-all-to-all") return std::min<std::size_t>(all, 1);
  if (opcode == "collective-permute" && !module.attribute(id, "slice_sizes").empty()) {
    return std::min<std::size_t>(all, 1);
  }
  return all;
}

// slice_sizes={{1,2,3},{..}} of a permute in place: the elements that move.
std::int64_t sliced_elements(const HloModule& module, HloId id) {
  std::int64_t total = 0;
  for (const std::string_view slice : split_list(module.attribute(id, "slice_sizes"))) {
    std::int64_t elements = 1;
    for (const std::int64_t size : parse_integers(slice, module.source())) elements *= size;
    total += elements;
  }
  return total;
}

void read_payload(const HloModule& module, HloId id, std::string_view opcode,
                  HloCollective& collective) {
  const std::int64_t factor = collective.kind == CollectiveKind::all_gather
                                  ? static_cast<std::int64_t>(collective.groups.front().size())
                                  : 1;
  const std::size_t sent = sent_operands(module, id, opcode);
  bool first = true;
  for (const HloId operand : module.operands(id).first(sent)) {
    const HloShape shape = module.shape(operand);
    for (const HloShape* array : arrays_of(shape)) {
      if (!array->dtype) continue;
      if (first) collective.dtype = *array->dtype;
      first = false;
      const std::string_view slices = module.attribute(id, "slice_sizes");
      const Bytes bytes = slices.empty()
                              ? array->logical_bytes()
                              : storage_bytes(sliced_elements(module, id), *array->dtype);
      if (bytes > most_payload / factor - collective.payload / factor) {
        module.source().fail(module.instruction(id).name, "a collective of more than 32 TiB");
      }
      collective.payload += bytes * factor;
      collective.parts.push_back({std::string(module.instruction(operand).name), bytes * factor});
    }
  }
  if (first) module.source().fail(module.instruction(id).name, "a collective without operands");
  // A single part says nothing that the collective does not say.
  if (collective.parts.size() == 1) collective.parts.clear();
}

}  // namespace

std::optional<std::string_view> collective_opcode(std::string_view opcode) {
  constexpr std::string_view start = "-start";
  if (opcode.size() > start.size() && opcode.substr(opcode.size() - start.size()) == start) {
    opcode.remove_suffix(start.size());
  }
  for (const KindRow& row : kind_rows) {
    if (row.opcode == opcode) return opcode;
  }
  return std::nullopt;
}

HloDevices devices_of(const HloModule& module) {
  HloDevices devices{module.header_integer("replica_count", 1),
                     module.header_integer("num_partitions", 1)};
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (devices.replicas < 1 || devices.partitions < 1 || devices.replicas > most ||
      devices.partitions > most / devices.replicas) {
    module.source().fail(module.source().text, "replica_count and num_partitions out of range");
  }
  return devices;
}

std::int64_t channel_of(const HloModule& module, HloId id) {
  const std::string_view channel = module.attribute(id, "channel_id");
  return channel.empty() ? -1 : parse_integer(channel, module.source());
}

HloCollective read_collective(const HloModule& module, HloId id, const HloDevices& devices) {
  const std::string_view opcode = *collective_opcode(module.instruction(id).opcode);
  const KindRow& row = row_of(opcode);
  HloCollective collective;
  collective.kind = row.kind;
  collective.note = row.note;
  const GroupMode mode = mode_of(module, id, row.kind);
  if (opcode == "collective-permute") {
    collective.pairs =
        device_pairs(module.attribute(id, "source_target_pairs"), mode, devices, module.source());
  } else {
    collective.groups = device_groups(groups_text(module, id), mode, devices, module.source());
  }
  if (opcode == "collective-broadcast") {
    for (const auto& group : collective.groups) {
      for (std::size_t i = 1; i < group.size(); ++i)
        collective.pairs.emplace_back(group[0], group[i]);
    }
    collective.groups.clear();
  }
  read_payload(module, id, opcode, collective);
  collective.reason = module.op_name(id);
  if (collective.reason.empty()) collective.reason = module.instruction(id).name;
  return collective;
}

}  // namespace shardsim
