#include "spmd/manual.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardsim::spmd {

using stablehlo::Attribute;
using stablehlo::AxisPart;
using stablehlo::AxisSharding;

namespace {

bool uses(const AxisSharding& sharding, const std::string& axis) {
  const auto among = [&](const std::vector<AxisPart>& parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const AxisPart& part) { return part.axis == axis; });
  };
  return among(sharding.replicated) || among(sharding.unreduced) ||
         std::any_of(sharding.dimensions.begin(), sharding.dimensions.end(),
                     [&](const auto& dimension) { return among(dimension.axes); });
}

std::vector<AxisSharding> shardings_of(const stablehlo::Op& op, std::string_view name,
                                       std::size_t count, const Place& place) {
  std::vector<AxisSharding> shardings;
  if (const Attribute* list = find(op.attributes, name)) {
    for (const Attribute& item : list->items) {
      stablehlo::Scanner body(item.text, place.file, op.line);
      shardings.push_back(stablehlo::parse_axis_sharding(body));
    }
  }
  if (shardings.size() != count) {
    throw InputError(place, fmt::format("{} of {}: {} shardings for {} values", name, op.name,
                                        shardings.size(), count));
  }
  return shardings;
}

Attribute attribute_of(const std::vector<AxisSharding>& shardings) {
  Attribute list;
  list.kind = Attribute::Kind::list;
  for (const AxisSharding& sharding : shardings) {
    Attribute item;
    item.kind = Attribute::Kind::dialect;
    const std::string text = text_of(sharding);
    item.text = text.substr(1, text.size() - 2);  // without < and >
    list.items.push_back(std::move(item));
  }
  return list;
}

}  // namespace

ManualComputation manual_computation(const stablehlo::Op& op, const Place& place) {
  ManualComputation manual;
  manual.in = shardings_of(op, "in_shardings", op.operands.size(), place);
  manual.out = shardings_of(op, "out_shardings", op.results.size(), place);
  if (const Attribute* axes = find(op.attributes, "manual_axes")) {
    for (const stablehlo::NamedAttribute& axis : axes->entries) manual.axes.push_back(axis.name);
  }
  for (std::vector<AxisSharding>* shardings : {&manual.in, &manual.out}) {
    for (AxisSharding& sharding : *shardings) {
      for (const std::string& axis : manual.axes) {
        if (!uses(sharding, axis)) sharding.replicated.push_back({axis, 1, 0});
      }
    }
  }
  return manual;
}

void set_manual_shardings(stablehlo::Op& op, const std::vector<AxisSharding>& in,
                          const std::vector<AxisSharding>& out) {
  for (stablehlo::NamedAttribute& attribute : op.attributes) {
    if (attribute.name == "in_shardings") attribute.value = attribute_of(in);
    if (attribute.name == "out_shardings") attribute.value = attribute_of(out);
  }
}

}  // namespace shardsim::spmd
