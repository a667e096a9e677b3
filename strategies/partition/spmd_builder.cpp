#include "strategies/partition/spmd_builder.hpp"

#include <fmt/format.h>

#include <fmt/ranges.h>
#include <algorithm>
#include <iterator>

#include <map>

#include "sharding/named_sharding.hpp"

namespace shardsim {

Sharding with_axes_that_stay_first(const Sharding& from, const Sharding& to) {
  Sharding result = from;
  for (std::size_t d = 0; d < from.dims.size(); ++d) {
    const AxisList& stay = to.dims[d].axes;
    const AxisList& had = from.dims[d].axes;
    const bool all_stay = std::all_of(stay.begin(), stay.end(),
                                      [&](const AxisRef& axis) { return contains(had, axis); });
    if (!all_stay || is_prefix(stay, had)) continue;
    AxisList axes = stay;
    for (const AxisRef& axis : had) {
      if (!contains(stay, axis)) axes.push_back(axis);
    }
    result.dims[d].axes = std::move(axes);
  }
  return result;
}

ValueId SpmdBuilder::add_value(TensorId id, const Sharding& sharding, DType dtype,
                               BufferCategory category) {
  const Tensor& t = tensor(id);
  const std::int64_t elements = shard_elements(shape(id), sharding);
  const bool of_the_step = t.role == TensorRole::input || t.role == TensorRole::constant;
  const bool shared = of_the_step || !workload_.blocks[static_cast<std::size_t>(t.block)].is_layer;
  step.values.push_back({.tensor = id,
                         .name = t.name,
                         .sharding = sharding,
                         .dtype = dtype,
                         .bytes = storage_bytes(elements, dtype),
                         .category = category,
                         .block = t.block,
                         .shared = shared});
  return static_cast<ValueId>(step.values.size()) - 1;
}

ValueId SpmdBuilder::add_view(ValueId of, const Sharding& sharding) {
  const Value source = value(of);
  const ValueId view = add_value(source.tensor, sharding, source.dtype, source.category);
  value(view).storage = of;
  return view;
}

ValueId SpmdBuilder::bring(ValueId from, const Sharding& to, Stream stream, const Reason& reason,
                           std::vector<Item>& items) {
  const Value source = value(from);
  ValueId now = from;
  for (const ReshardStep& hop : reshard(shape(source.tensor), source.sharding, to)) {
    ValueId next = no_value;
    if (hop.kind == CollectiveKind::all_reduce) {
      next = add_view(now, hop.after);
    } else {
      const bool parameter = tensor(source.tensor).role == TensorRole::parameter;
      next = add_value(source.tensor, hop.after, source.dtype,
                       parameter ? BufferCategory::gathered_parameters : source.category);
    }
    const Bytes payload = storage_bytes(hop.elements, source.dtype);
    Item item;
    item.kind = TaskKind::collective;
    item.stream = stream;
    item.name = source.name;
    item.collective = {hop.kind, hop.axes, {}, {}, source.dtype, payload, {{source.name, payload}},
                       {},       {}};
    item.reason = reason;
    item.operands = {now};
    item.results = {next};
    items.push_back(std::move(item));
    now = next;
  }
  return value(now).sharding == to ? now : add_view(now, to);
}

std::vector<ValueId> SpmdBuilder::bring_together(const std::vector<ValueId>& from,
                                                 const std::vector<Sharding>& to, Stream stream,
                                                 std::string_view name, const Reason& reason,
                                                 std::vector<Item>& items, const Joins& joins) {
  const auto tensor_of = [&](const Item& item) { return value(item.operands.front()).tensor; };
  std::vector<ValueId> arrived;
  std::vector<std::vector<Item>> rounds;  // the k-th step of every value
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::vector<Item> own;
    arrived.push_back(bring(from[i], to[i], stream, reason, own));
    if (rounds.size() < own.size()) rounds.resize(own.size());
    for (std::size_t k = 0; k < own.size(); ++k) rounds[k].push_back(std::move(own[k]));
  }
  for (std::vector<Item>& round : rounds) {
    std::vector<Item> calls;
    for (Item& item : round) {
      const auto same = std::find_if(calls.begin(), calls.end(), [&](const Item& call) {
        return call.collective.kind == item.collective.kind &&
               call.collective.axes == item.collective.axes &&
               call.collective.dtype == item.collective.dtype &&
               (!joins || joins(tensor_of(call), tensor_of(item)));
      });
      if (same == calls.end()) {
        calls.push_back(std::move(item));
        calls.back().name = name;
        continue;
      }
      same->collective.payload += item.collective.payload;
      same->collective.parts.push_back(item.collective.parts.front());
      same->operands.push_back(item.operands.front());
      same->results.push_back(item.results.front());
    }
    std::move(calls.begin(), calls.end(), std::back_inserter(items));
  }
  return arrived;
}

ValueId SpmdBuilder::permute(ValueId from, const Sharding& to, Stream stream, Reason reason,
                             std::vector<Item>& items) {
  const Value source = value(from);
  const ValueId next = add_value(source.tensor, to, source.dtype, source.category);
  const DeviceIndex before(shape(source.tensor), source.sharding, mesh_);
  const DeviceIndex after(shape(source.tensor), to, mesh_);
  const auto by_part = [&](const DeviceIndex& index) {
    std::map<std::vector<std::int64_t>, std::vector<std::int64_t>> devices;
    for (std::int64_t device = 0; device < index.devices(); ++device) {
      std::vector<std::int64_t> part;
      for (std::size_t d = 0; d < source.sharding.dims.size(); ++d) {
        part.push_back(index.chunk(device, d));
      }
      devices[part].push_back(device);
    }
    return devices;
  };
  Item item;
  item.kind = TaskKind::collective;
  item.stream = stream;
  item.name = source.name;
  item.collective.kind = CollectiveKind::collective_permute;
  const auto targets = by_part(after);
  for (const auto& [part, holders] : by_part(before)) {
    for (std::size_t i = 0; i < holders.size(); ++i) {
      item.collective.source_targets.emplace_back(holders[i], targets.at(part)[i]);
    }
  }
  item.collective.dtype = source.dtype;
  item.collective.payload = source.bytes;
  item.collective.parts = {{source.name, source.bytes}};
  item.reason = std::move(reason);
  item.operands = {from};
  item.results = {next};
  items.push_back(std::move(item));
  return next;
}

void SpmdBuilder::count_instances(Item& item, std::size_t block) const {
  const auto others = [&](ValueId id) -> std::int64_t {
    const Value& v = value(id);
    if (v.shared || static_cast<std::size_t>(v.block) == block) return 0;
    return workload_.blocks[static_cast<std::size_t>(v.block)].instances() - 1;
  };
  if (item.kind == TaskKind::collective) {
    for (std::size_t i = 0; i < item.operands.size(); ++i) {
      CollectivePart& part = item.collective.parts[i];
      const Bytes more = others(item.operands[i]) * part.payload;
      part.payload += more;
      item.collective.payload += more;
    }
    return;
  }
  if (is_host_copy(item.kind)) {
    for (const ValueId id : item.results) item.kernel.bytes += others(id) * value(id).bytes;
    return;
  }
  for (const std::vector<ValueId>* values : {&item.operands, &item.results}) {
    for (const ValueId id : *values) item.kernel.bytes += others(id) * value(id).bytes;
  }
  if (item.kernel.flops == Flops(0)) return;
  for (const ValueId id : item.results) {  // one operation per element
    const std::int64_t elements = value(id).bytes.count() / size_of(value(id).dtype).count();
    item.kernel.flops += Flops(static_cast<double>(others(id) * elements));
  }
}

void SpmdBuilder::hold_padding(const Item& item) {
  if (item.kind != TaskKind::collective) return;
  const bool gathers = item.collective.kind == CollectiveKind::all_gather;
  if (!gathers && !is_scatter(item)) return;
  const std::vector<ValueId>& whole = gathers ? item.results : item.operands;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    Value& padded = value(whole[i]);
    padded.bytes = std::max(padded.bytes, item.collective.parts[i].payload);
  }
}

Bytes SpmdBuilder::bytes_of(const std::vector<ValueId>& values) const {
  Bytes bytes{0};
  for (const ValueId v : values) bytes += value(v).bytes;
  return bytes;
}

Item SpmdBuilder::cast(std::string name, const std::vector<ValueId>& from,
                       const std::vector<ValueId>& to, Stream stream) const {
  return moved("cast", std::move(name), from, to, stream, bytes_of(from) + bytes_of(to));
}

Item SpmdBuilder::copy(std::string name, const std::vector<ValueId>& values, Stream stream) const {
  return moved("copy", std::move(name), values, {}, stream, 2 * bytes_of(values));
}

Item SpmdBuilder::slice(std::string name, const std::vector<ValueId>& from,
                        const std::vector<ValueId>& to, Stream stream) const {
  return moved("copy", std::move(name), from, to, stream, 2 * bytes_of(to));
}

Item SpmdBuilder::moved(std::string op, std::string name, const std::vector<ValueId>& from,
                        const std::vector<ValueId>& to, Stream stream, Bytes bytes) const {
  Item item;
  item.stream = stream;
  item.name = std::move(name);
  item.operands = from;
  item.results = to;
  const DType dtype = value((to.empty() ? from : to).front()).dtype;
  item.kernel = {std::move(op), KernelClass::memory, dtype, Flops(0), bytes};
  return item;
}

std::string SpmdBuilder::names(const AxisList& axes) const {
  return fmt::format("{}", fmt::join(mesh_.names_of(axes), " and "));
}

}  // namespace shardsim
