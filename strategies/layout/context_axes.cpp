#include "strategies/layout/context_axes.hpp"

#include <fmt/format.h>

#include <numeric>

#include "strategies/key_place.hpp"

namespace shardsim {
namespace {

// What the heads of queries and of keys have in common, on each part of the model axes.
std::int64_t divisor_of_heads(const Workload& workload, const Layout& layout) {
  std::int64_t heads = 0;
  for (const Label& label : workload.labels) {
    if (label.role == LabelRole::heads) heads = std::gcd(heads, label.size);
  }
  return heads / std::gcd(heads, Mesh::size_of(layout.model_axes));
}

}  // namespace

AxisList ring_axes(const Layout& layout) {
  switch (layout.context.method) {
    case ContextMethod::ring:
      return layout.sequence_axes;
    case ContextMethod::ring_all_to_all:
      return cut_minor(layout.sequence_axes, layout.context.head_devices)->rest;
    default:
      return {};
  }
}

AxisList head_axes(const Layout& layout) {
  switch (layout.context.method) {
    case ContextMethod::all_to_all:
      return layout.sequence_axes;
    case ContextMethod::ring_all_to_all:
      return cut_minor(layout.sequence_axes, layout.context.head_devices)->minor;
    default:
      return {};
  }
}

Sharding with_sequence_cut(Sharding sharding, const Layout& layout) {
  if (layout.context.method != ContextMethod::ring_all_to_all) return sharding;
  for (DimSharding& dim : sharding.dims) {
    if (dim.axes != layout.sequence_axes) continue;
    dim.axes = ring_axes(layout);
    const AxisList heads = head_axes(layout);
    dim.axes.insert(dim.axes.end(), heads.begin(), heads.end());
  }
  return sharding;
}

void set_head_devices(const Workload& workload, const Place& strategy, Layout& layout) {
  ContextLayout& context = layout.context;
  if (context.method != ContextMethod::ring_all_to_all) return;
  const std::int64_t devices = Mesh::size_of(layout.sequence_axes);
  if (context.head_devices == 0) {
    context.head_devices = std::gcd(divisor_of_heads(workload, layout), devices);
  }
  if (cut_minor(layout.sequence_axes, context.head_devices)) return;
  throw InputError(
      place_of_key(place_of_key(strategy, "context"), "head_devices"),
      fmt::format("heads cannot be split over {} neighbours of the {} that split the sequence",
                  context.head_devices, devices));
}

}  // namespace shardsim
