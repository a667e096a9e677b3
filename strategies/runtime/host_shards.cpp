#include "strategies/runtime/host_shards.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/index.hpp"

namespace shardsim {
namespace {

Item host_copy(const SpmdBuilder& builder, TaskKind kind, std::string name,
               const std::vector<ValueId>& from, const std::vector<ValueId>& to) {
  Item item;
  item.kind = kind;
  item.stream = kind == TaskKind::from_host ? Stream::gathers : Stream::reductions;
  item.name = std::move(name);
  item.kernel = {"copy", KernelClass::memory, DType::u8, Flops(0), Bytes(0)};
  for (const ValueId value : to) item.kernel.bytes += builder.value(value).bytes;
  item.operands = from;
  item.results = to;
  return item;
}

}  // namespace

void keep_parameters_on_host(SpmdBuilder& builder) {
  for (const auto& [parameter, values] : builder.step.parameters) {
    builder.value(values.stored).on_host = true;
  }
}

std::vector<ValueId> bring_from_host(SpmdBuilder& builder, const std::vector<ValueId>& values,
                                     const std::string& unit, std::vector<Item>& items) {
  std::vector<ValueId> from, to, here;
  for (const ValueId id : values) {
    here.push_back(id);
    if (!builder.value(id).on_host) continue;
    const Value there = builder.value(id);
    here.back() =
        builder.add_value(there.tensor, there.sharding, there.dtype, BufferCategory::communication);
    from.push_back(id);
    to.push_back(here.back());
  }
  if (!from.empty()) {
    items.push_back(
        host_copy(builder, TaskKind::from_host, fmt::format("{} from the host", unit), from, to));
  }
  return here;
}

std::vector<ValueId> send_to_host(SpmdBuilder& builder, const std::vector<ValueId>& gradients,
                                  const std::string& unit, std::vector<Item>& items) {
  std::vector<ValueId> to;
  for (const ValueId id : gradients) {
    builder.value(id).category = BufferCategory::communication;
    const Value here = builder.value(id);
    to.push_back(
        builder.add_value(here.tensor, here.sharding, here.dtype, BufferCategory::gradients));
    builder.value(to.back()).on_host = true;
  }
  if (!to.empty()) {
    items.push_back(host_copy(builder, TaskKind::to_host,
                              fmt::format("{} gradients to the host", unit), gradients, to));
  }
  return to;
}

}  // namespace shardsim
