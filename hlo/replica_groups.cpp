#include "hlo/replica_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/index.hpp"
#include "hlo/shape.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_listed_devices = std::int64_t{1} << 24;

std::int64_t checked_product(const std::vector<std::int64_t>& sizes, std::string_view text,
                             const HloSource& source) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) {
    if (size <= 0 || product > most_listed_devices / size) {
      source.fail(text, fmt::format("{} is no list of devices", text));
    }
    product *= size;
  }
  return product;
}

// 0, 1, .. as an array of `reshape`, its dimensions permuted, read in rows.
std::vector<std::int64_t> transposed_iota(const std::vector<std::int64_t>& reshape,
                                          const std::vector<std::int64_t>& order) {
  const std::size_t rank = reshape.size();
  std::vector<std::int64_t> strides(rank, 1);
  for (std::size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * reshape[i];
  const std::int64_t count = strides.empty() ? 1 : strides[0] * reshape[0];
  std::vector<std::int64_t> devices{0};
  devices.reserve(static_cast<std::size_t>(count));
  for (const std::int64_t dim : order) {
    const auto axis = static_cast<std::size_t>(dim);
    std::vector<std::int64_t> next;
    next.reserve(devices.size() * static_cast<std::size_t>(reshape[axis]));
    for (const std::int64_t device : devices) {
      for (std::int64_t i = 0; i < reshape[axis]; ++i) next.push_back(device + i * strides[axis]);
    }
    devices = std::move(next);
  }
  return devices;
}

// "[2,4]T(1,0)" or "[8]".
std::vector<std::int64_t> parse_iota(std::string_view text, const HloSource& source) {
  HloCursor cursor(text);
  cursor.skip_blanks();
  if (cursor.peek() != '[') source.fail(text, fmt::format("expected [sizes] in {}", text));
  const std::vector<std::int64_t> reshape = parse_integers(cursor.bracketed(), source);
  (void)checked_product(reshape, text, source);
  std::vector<std::int64_t> order(reshape.size());
  std::iota(order.begin(), order.end(), 0);
  if (cursor.accept('T')) {
    const std::vector<std::int64_t> identity = order;
    order = parse_integers(cursor.bracketed(), source);
    if (!std::is_permutation(order.begin(), order.end(), identity.begin(), identity.end())) {
      source.fail(text, fmt::format("{} does not permute its dimensions", text));
    }
  }
  return transposed_iota(reshape, order);
}

DeviceGroups in_rows(const std::vector<std::int64_t>& devices, std::int64_t rows,
                     std::int64_t columns) {
  DeviceGroups groups;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = devices.begin() + row * columns;
    groups.emplace_back(begin, begin + columns);
  }
  return groups;
}

std::string_view without_quotes(std::string_view text) {
  if (text.size() >= 2 && text.front() == '\'') {
    const std::size_t end = text.find('\'', 1);
    if (end != std::string_view::npos) return text.substr(1, end - 1);
  }
  return text;
}

Mesh parse_hlo_mesh(std::string_view list, const HloSource& source) {
  std::vector<MeshAxis> axes;
  std::vector<std::int64_t> sizes;
  for (const std::string_view part : split_list(list)) {
    const std::size_t equals = part.rfind('=');
    if (equals == std::string_view::npos) {
      source.fail(part, fmt::format("expected 'axis'=size, found {}", part));
    }
    axes.push_back({std::string(without_quotes(part.substr(0, equals))),
                    parse_integer(part.substr(equals + 1), source)});
    sizes.push_back(axes.back().size);
    for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
      if (axes[i].name == axes.back().name) source.fail(part, "an axis comes twice");
    }
  }
  (void)checked_product(sizes, list, source);
  return Mesh(std::move(axes));
}

// mesh['a'=2,'b'=4], device_ids=(..) {'b','a':(1)2}
DeviceGroups parse_mesh_groups(std::string_view text, const HloSource& source) {
  HloCursor cursor(text);
  cursor.advance(4);
  const Mesh mesh = parse_hlo_mesh(cursor.bracketed(), source);
  cursor.skip_blanks();
  std::vector<std::int64_t> device_ids;
  if (cursor.accept(',')) {
    cursor.skip_blanks();
    if (!cursor.accept("device_ids=")) source.fail(text, "expected device_ids");
    const std::string_view ids = without_brackets(cursor.bracketed());
    device_ids = ids.substr(0, 1) == "[" ? parse_iota(ids, source) : parse_integers(ids, source);
    if (static_cast<std::int64_t>(device_ids.size()) != mesh.devices()) {
      source.fail(text, "device_ids and the mesh differ in size");
    }
    cursor.skip_blanks();
  }
  if (cursor.peek() != '{') source.fail(text, "expected the axes of the groups");
  std::vector<AxisRef> parts;
  for (const std::string_view axis : split_list(cursor.bracketed())) {
    const std::size_t colon = axis.rfind(":(");
    const std::string_view name = without_quotes(axis.substr(0, colon));
    const std::string_view sub = colon == std::string_view::npos ? "" : axis.substr(colon);
    const auto part = mesh.parse(std::string(name) + std::string(sub));
    if (!part) source.fail(axis, fmt::format("{} is no axis of the mesh, or no part of one", axis));
    parts.push_back(*part);
  }
  if (parts_overlap(parts)) source.fail(text, "an axis comes twice in a group");
  DeviceGroups groups = mesh.groups(parts);
  if (device_ids.empty()) return groups;
  for (auto& group : groups) {
    for (std::int64_t& device : group) device = device_ids[at(device)];
  }
  return groups;
}

void check_distinct(const DeviceGroups& groups, std::int64_t limit, std::string_view text,
                    const HloSource& source) {
  std::vector<bool> seen(static_cast<std::size_t>(limit));
  for (const auto& group : groups) {
    if (group.size() != groups.front().size()) source.fail(text, "groups of unequal size");
    for (const std::int64_t id : group) {
      if (id < 0 || id >= limit) {
        source.fail(text,
                    fmt::format("device {} in a group, but the module runs on {}", id, limit));
      }
      if (seen[at(id)]) {
        source.fail(text, fmt::format("device {} is in two groups", id));
      }
      seen[at(id)] = true;
    }
  }
}

DeviceGroups one_of_all(std::int64_t size) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

}  // namespace

DeviceGroups parse_replica_groups(std::string_view text, const HloSource& source) {
  text = trim_blanks(text);
  if (text.empty()) return {};
  if (text.substr(0, 5) == "mesh[") return parse_mesh_groups(text, source);
  if (text.front() == '[') {
    HloCursor cursor(text);
    const std::vector<std::int64_t> shape = parse_integers(cursor.bracketed(), source);
    if (!cursor.accept("<=")) source.fail(text, fmt::format("expected <= in {}", text));
    const std::vector<std::int64_t> devices = parse_iota(cursor.rest(), source);
    if (shape.size() != 2 ||
        checked_product(shape, text, source) != static_cast<std::int64_t>(devices.size())) {
      source.fail(text, fmt::format("{}: the sizes on both sides differ", text));
    }
    return in_rows(devices, shape[0], shape[1]);
  }
  if (text.front() != '{') source.fail(text, fmt::format("{} is no list of groups", text));
  DeviceGroups groups;
  for (const std::string_view group : split_list(text)) {
    groups.push_back(parse_integers(group, source));
    if (groups.back().empty()) source.fail(text, "an empty group");
  }
  return groups;
}

DeviceGroups device_groups(std::string_view text, GroupMode mode, const HloDevices& devices,
                           const HloSource& source) {
  DeviceGroups ids = parse_replica_groups(text, source);
  const std::int64_t limit = mode == GroupMode::flattened         ? devices.count()
                             : mode == GroupMode::cross_partition ? devices.partitions
                                                                  : devices.replicas;
  if (ids.empty()) ids = one_of_all(limit);
  check_distinct(ids, limit, text, source);
  const std::int64_t partitions = devices.partitions;
  DeviceGroups groups;
  switch (mode) {
    case GroupMode::flattened:
      return ids;
    case GroupMode::cross_replica:
      for (const auto& group : ids) {
        for (std::int64_t p = 0; p < partitions; ++p) {
          auto& out = groups.emplace_back();
          for (const std::int64_t replica : group) out.push_back(replica * partitions + p);
        }
      }
      return groups;
    case GroupMode::cross_partition:
      for (const auto& group : ids) {
        for (std::int64_t replica = 0; replica < devices.replicas; ++replica) {
          auto& out = groups.emplace_back();
          for (const std::int64_t p : group) out.push_back(replica * partitions + p);
        }
      }
      return groups;
    case GroupMode::cross_replica_and_partition:
      for (const auto& group : ids) {
        auto& out = groups.emplace_back();
        for (const std::int64_t replica : group) {
          for (std::int64_t p = 0; p < partitions; ++p) out.push_back(replica * partitions + p);
        }
      }
      return groups;
  }
  return groups;
}

DevicePairs device_pairs(std::string_view text, GroupMode mode, const HloDevices& devices,
                         const HloSource& source) {
  if (text.empty()) source.fail(text, "a permute without source_target_pairs");
  DevicePairs pairs;
  for (const std::string_view part : split_list(text)) {
    const std::vector<std::int64_t> pair = parse_integers(part, source);
    const std::int64_t limit =
        mode == GroupMode::cross_partition ? devices.partitions : devices.replicas;
    if (pair.size() != 2 || std::min(pair[0], pair[1]) < 0 || std::max(pair[0], pair[1]) >= limit) {
      source.fail(part, fmt::format("{} is no pair of the module's {} devices", part, limit));
    }
    if (mode == GroupMode::cross_partition) {
      for (std::int64_t replica = 0; replica < devices.replicas; ++replica) {
        const std::int64_t first = replica * devices.partitions;
        pairs.emplace_back(first + pair[0], first + pair[1]);
      }
    } else {
      for (std::int64_t p = 0; p < devices.partitions; ++p) {
        pairs.emplace_back(pair[0] * devices.partitions + p, pair[1] * devices.partitions + p);
      }
    }
  }
  return pairs;
}

}  // namespace shardsim
