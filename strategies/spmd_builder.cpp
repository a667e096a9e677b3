#include "strategies/spmd_builder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "strategies/named_sharding.hpp"

namespace shardsim {

ValueId SpmdBuilder::add_value(TensorId id, const Sharding& sharding, DType dtype,
                               BufferCategory category) {
  const Tensor& t = tensor(id);
  const std::int64_t elements = shard_elements(shape(id), sharding);
  const bool of_the_step = t.role == TensorRole::input || t.role == TensorRole::constant;
  const bool shared = of_the_step || workload_.blocks[static_cast<std::size_t>(t.block)].count == 1;
  step.values.push_back({id, t.name, sharding, dtype, elements * size_of(dtype), category, t.block,
                         shared,
                         /*persistent=*/false, no_value});
  return static_cast<ValueId>(step.values.size()) - 1;
}

ValueId SpmdBuilder::add_view(ValueId of, const Sharding& sharding) {
  const Value source = value(of);
  const ValueId view = add_value(source.tensor, sharding, source.dtype, source.category);
  value(view).storage = of;
  return view;
}

ValueId SpmdBuilder::bring(ValueId from, const Sharding& to, Stream stream, const WordsOf& words,
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
    const Bytes payload = hop.elements * size_of(source.dtype);
    Item item;
    item.kind = TaskKind::collective;
    item.stream = stream;
    item.name = source.name;
    Words said = words(hop);
    item.collective = {hop.kind,
                       hop.axes,
                       {},
                       {},
                       source.dtype,
                       payload,
                       {{source.name, payload}},
                       std::move(said.reason),
                       std::move(said.remedy)};
    item.operands = {now};
    item.results = {next};
    items.push_back(std::move(item));
    now = next;
  }
  return value(now).sharding == to ? now : add_view(now, to);
}

ValueId SpmdBuilder::permute(ValueId from, const Sharding& to, Stream stream, Words words,
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
  item.collective.reason = std::move(words.reason);
  item.collective.remedy = std::move(words.remedy);
  item.operands = {from};
  item.results = {next};
  items.push_back(std::move(item));
  return next;
}

Item SpmdBuilder::cast(std::string name, const std::vector<ValueId>& from,
                       const std::vector<ValueId>& to, Stream stream) {
  Item item;
  item.stream = stream;
  item.name = std::move(name);
  item.operands = from;
  item.results = to;
  Bytes bytes{0};
  for (const ValueId v : from) bytes += value(v).bytes;
  for (const ValueId v : to) bytes += value(v).bytes;
  item.kernel = {"cast", KernelClass::memory, value(to.front()).dtype, Flops(0), bytes};
  return item;
}

Item SpmdBuilder::slice(std::string name, const std::vector<ValueId>& from,
                        const std::vector<ValueId>& to, Stream stream) {
  Item item;
  item.stream = stream;
  item.name = std::move(name);
  item.operands = from;
  item.results = to;
  Bytes bytes{0};
  for (const ValueId v : to) bytes += 2 * value(v).bytes;  // read and written
  item.kernel = {"copy", KernelClass::memory, value(to.front()).dtype, Flops(0), bytes};
  return item;
}

std::string SpmdBuilder::names(const AxisList& axes) const {
  return fmt::format("{}", fmt::join(mesh_.names_of(axes), " and "));
}

}  // namespace shardsim
