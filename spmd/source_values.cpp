#include "spmd/source_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/dtype.hpp"
#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Op;
using stablehlo::Region;
using stablehlo::RegionId;
using stablehlo::ValueId;

constexpr std::array<std::string_view, 9> movements = {
    "stablehlo.convert", "stablehlo.reshape",       "stablehlo.transpose",
    "stablehlo.slice",   "stablehlo.dynamic_slice", "stablehlo.optimization_barrier",
    "sdy.reshard",       "sdy.sharding_constraint", "stablehlo.reverse"};

std::int64_t end_of(const AxisRef& axis) { return axis.pre_size * axis.size; }

// Axes of `list` with `axis` taken off, if it is all of an entry or its minor end.
bool take_off(std::vector<AxisRef>& list, const AxisRef& axis) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    AxisRef& part = list[i];
    if (part.axis != axis.axis || axis.pre_size < part.pre_size || end_of(part) != end_of(axis)) {
      continue;
    }
    part.size /= axis.size;
    if (part.size == 1) list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  return false;
}

}  // namespace

bool Layout::uses(const AxisRef& axis) const {
  for (const auto& dimension : axes) {
    for (const AxisRef& part : dimension) {
      const bool apart = end_of(part) <= axis.pre_size || end_of(axis) <= part.pre_size;
      if (part.axis == axis.axis && !apart) return true;
    }
  }
  return false;
}

bool Layout::uses_all(const std::vector<AxisRef>& parts) const {
  return std::all_of(parts.begin(), parts.end(), [&](const AxisRef& axis) { return uses(axis); });
}

Bytes Layout::shard_bytes() const {
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    elements *= ceil_div(shape[d], Mesh::size_of(axes[d]));
  }
  return Bytes(ceil_div(elements * element_bits, 8));
}

std::optional<Layout> without(const Layout& layout, const std::vector<AxisRef>& axes) {
  Layout result = layout;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const bool taken = std::any_of(result.axes.begin(), result.axes.end(),
                                   [&](auto& dimension) { return take_off(dimension, *axis); });
    if (!taken) return {};
  }
  return result;
}

std::optional<Layout> with(const Layout& layout, const std::vector<AxisRef>& axes) {
  for (const AxisRef& axis : axes) {
    if (layout.uses(axis)) return {};
  }
  // A dimension that is whole before one that is split already.
  for (const bool whole : {true, false}) {
    for (std::size_t d = 0; d < layout.shape.size(); ++d) {
      const std::int64_t shards = Mesh::size_of(layout.axes[d]) * Mesh::size_of(axes);
      if (layout.axes[d].empty() != whole || layout.shape[d] % shards != 0) continue;
      Layout result = layout;
      result.axes[d].insert(result.axes[d].end(), axes.begin(), axes.end());
      return result;
    }
  }
  return {};
}

std::string text_of(const Layout& layout, const Mesh& mesh) {
  std::vector<std::string> dimensions;
  for (const auto& axes : layout.axes) {
    dimensions.push_back(fmt::format("{{{}}}", fmt::join(mesh.names_of(axes), ", ")));
  }
  return fmt::format("[{}]", fmt::join(dimensions, ", "));
}

std::string SourceValues::name(ValueId value) const {
  const stablehlo::Value& described = function_.values[at(value)];
  if (const Op* op = function_.definition(value)) {
    const std::string what = op->name.substr(op->name.find('.') + 1);
    if (op->results.size() == 1) return fmt::format("the result of {}, line {}", what, op->line);
    return fmt::format("result {} of {}, line {}", described.result, what, op->line);
  }
  if (is_argument(value)) return fmt::format("argument {}", described.result);
  const Op& owner = function_.op(function_.regions[at(region_of(value))].owner);
  return fmt::format("value {} of {}, line {}", described.result,
                     owner.name.substr(owner.name.find('.') + 1), owner.line);
}

std::optional<Layout> SourceValues::layout(ValueId value) const {
  const stablehlo::Value& described = function_.values[at(value)];
  return layout(described.type, described.sharding);
}

std::optional<Layout> SourceValues::layout(const stablehlo::FunctionResult& result) const {
  return layout(result.type, result.sharding);
}

std::optional<Layout> SourceValues::layout(const stablehlo::TensorType& type,
                                           const stablehlo::ValueSharding& sharding) const {
  if (!type.is_tensor) return {};
  Layout result;
  result.shape = type.dims;
  result.axes.resize(type.dims.size());
  result.element_bits = type.dtype ? bits_of(*type.dtype) : 32;
  if (!sharding.axes) return result;
  for (std::size_t d = 0; d < sharding.axes->dimensions.size() && d < result.axes.size(); ++d) {
    for (const stablehlo::AxisPart& part : sharding.axes->dimensions[d].axes) {
      const std::optional<int> axis = mesh_.find(part.axis);
      if (!axis) return {};
      AxisRef found = mesh_.whole(*axis);
      if (part.size != 0) found = {*axis, part.pre_size, part.size};
      if (found.size > 1) result.axes[d].push_back(found);
    }
  }
  return result;
}

stablehlo::AxisSharding SourceValues::written(const Layout& layout) const {
  stablehlo::AxisSharding sharding;
  sharding.mesh = mesh_name_;
  for (const auto& axes : layout.axes) {
    stablehlo::DimensionSharding& dimension = sharding.dimensions.emplace_back();
    for (const AxisRef& axis : axes) {
      const std::string& name = mesh_.axes()[at(axis.axis)].name;
      const bool whole = mesh_.is_whole(axis);
      dimension.axes.push_back({name, whole ? 1 : axis.pre_size, whole ? 0 : axis.size});
    }
  }
  return sharding;
}

ValueId SourceValues::root(ValueId value) const {
  for (ValueId next = comes_from(value); next >= 0; next = comes_from(value)) value = next;
  return value;
}

bool SourceValues::is_argument(ValueId value) const {
  return function_.definition(value) == nullptr && region_of(value) == 0;
}

ValueId SourceValues::comes_from(ValueId value) const {
  const stablehlo::Value& described = function_.values[at(value)];
  if (const Op* op = function_.definition(value)) {
    const bool moves = std::find(movements.begin(), movements.end(), op->name) != movements.end();
    if (!moves) return -1;
    return op->operands[op->name == "stablehlo.optimization_barrier" ? at(described.result) : 0];
  }
  const RegionId region = region_of(value);
  if (region == 0) return -1;
  const Op& owner = function_.op(function_.regions[at(region)].owner);
  if (at(described.result) >= owner.operands.size()) return -1;
  if (owner.name == "sdy.manual_computation") return owner.operands[at(described.result)];
  if (owner.name != "stablehlo.while" || owner.regions.size() != 2) return -1;
  const Region& body = function_.regions[at(owner.regions[1])];
  const Op& end = function_.op(body.ops.back());
  const bool stays = end.operands[at(described.result)] == body.arguments[at(described.result)];
  return stays ? owner.operands[at(described.result)] : -1;
}

RegionId SourceValues::region_of(ValueId argument) const {
  const int place = function_.values[at(argument)].result;
  for (std::size_t r = 0; r < function_.regions.size(); ++r) {
    const auto& arguments = function_.regions[r].arguments;
    if (at(place) < arguments.size() && arguments[at(place)] == argument) {
      return static_cast<RegionId>(r);
    }
  }
  return 0;
}

}  // namespace shardsim::spmd
