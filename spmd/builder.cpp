#include "spmd/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "base/index.hpp"

namespace shardsim::spmd {

using stablehlo::Attribute;
using stablehlo::Function;
using stablehlo::Region;
using stablehlo::Value;

namespace {

// Elements of the first operand (of a select that masks padding: the second), in other places.
constexpr std::array<std::string_view, 10> movements = {"spmd.copy",
                                                        "stablehlo.reshape",
                                                        "stablehlo.transpose",
                                                        "stablehlo.slice",
                                                        "stablehlo.pad",
                                                        "stablehlo.dynamic_slice",
                                                        "stablehlo.select",
                                                        "stablehlo.all_gather",
                                                        "stablehlo.all_to_all",
                                                        "stablehlo.collective_permute"};

bool moves(const Op& op) {
  return std::find(movements.begin(), movements.end(), op.name) != movements.end();
}

TensorType with_shape(TensorType type, Shape shape) {
  type.dims = std::move(shape);
  return type;
}

}  // namespace

Attribute integer_attribute(std::int64_t value) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::integer;
  attribute.integer = value;
  attribute.text = fmt::format("{}", value);
  return attribute;
}

Attribute integers_attribute(const std::vector<std::int64_t>& values) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::list;
  for (const std::int64_t value : values) attribute.items.push_back(integer_attribute(value));
  return attribute;
}

Attribute text_attribute(std::string_view text) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::string;
  attribute.text = text;
  return attribute;
}

Builder::Builder(stablehlo::Module& module)
    : module_(module), function_(&module.functions.front()), open_{0} {}

TensorType Builder::type(ValueId value) const { return function_->type_of(value); }

const Op* Builder::definition(ValueId value) const { return function_->definition(value); }

void Builder::set_origin(int line, stablehlo::OpId source) {
  line_ = line;
  origin_ = source;
}

void Builder::holds(ValueId value, ValueId source) { sources_.try_emplace(value, source); }

ValueId Builder::held_by(ValueId value) const {
  for (;;) {
    if (const auto known = sources_.find(value); known != sources_.end()) return known->second;
    const Op* op = definition(value);
    if (op == nullptr || !moves(*op)) return -1;
    value = op->operands[op->name == "stablehlo.select" ? 1 : 0];
  }
}

ValueId Builder::add_argument(const TensorType& type, std::string name) {
  Value value;
  value.name = std::move(name);
  value.type = type;
  const auto id = static_cast<ValueId>(function_->values.size());
  Region& region = function_->regions[at(open_.back())];
  value.result = static_cast<int>(region.arguments.size());
  region.arguments.push_back(id);
  function_->values.push_back(std::move(value));
  return id;
}

ValueId Builder::add(std::string_view op, std::vector<ValueId> operands, TensorType type,
                     AttributeList attributes) {
  return add_many(op, std::move(operands), {std::move(type)}, std::move(attributes)).front();
}

std::vector<ValueId> Builder::add_many(std::string_view name, std::vector<ValueId> operands,
                                       const std::vector<TensorType>& types,
                                       AttributeList attributes, std::vector<RegionId> regions) {
  const auto id = static_cast<stablehlo::OpId>(function_->ops.size());
  Op op;
  op.name = name;
  op.operands = std::move(operands);
  op.attributes = std::move(attributes);
  op.regions = std::move(regions);
  op.parent = open_.back();
  op.line = line_;
  for (const RegionId region : op.regions) function_->regions[at(region)].owner = id;
  for (const TensorType& type : types) {
    Value value;
    value.type = type;
    value.defined_by = id;
    value.result = static_cast<int>(op.results.size());
    op.results.push_back(static_cast<ValueId>(function_->values.size()));
    function_->values.push_back(std::move(value));
  }
  std::vector<ValueId> results = op.results;
  function_->regions[at(open_.back())].ops.push_back(id);
  function_->ops.push_back(std::move(op));
  broadcast_dims_.note({module_, *function_, function_->ops.back()});
  return results;
}

RegionId Builder::begin_region(const std::vector<TensorType>& arguments) {
  const auto id = static_cast<RegionId>(function_->regions.size());
  function_->regions.emplace_back();
  open_.push_back(id);
  for (const TensorType& type : arguments) add_argument(type, "");
  return id;
}

void Builder::end_region(std::string_view terminator, const std::vector<ValueId>& returned) {
  add_many(terminator, returned, {});
  assert(open_.size() > 1);
  open_.pop_back();
}

const std::vector<ValueId>& Builder::arguments_of(RegionId region) const {
  return function_->regions[at(region)].arguments;
}

RegionId Builder::copy_region(const Function& from, RegionId region) {
  const Region& source = from.regions[at(region)];
  std::vector<TensorType> types;
  for (const ValueId argument : source.arguments) types.push_back(from.type_of(argument));
  const RegionId copied = begin_region(types);
  std::vector<std::pair<ValueId, ValueId>> known;
  for (std::size_t i = 0; i < types.size(); ++i) {
    known.emplace_back(source.arguments[i], arguments_of(copied)[i]);
  }
  const auto find = [&](ValueId value) {
    for (const auto& [old_value, new_value] : known) {
      if (old_value == value) return new_value;
    }
    assert(false && "a reducer reads what it does not define");
    return value;
  };
  for (const stablehlo::OpId id : source.ops) {
    const Op& op = from.op(id);
    std::vector<ValueId> operands;
    for (const ValueId operand : op.operands) operands.push_back(find(operand));
    std::vector<TensorType> results;
    for (const ValueId result : op.results) results.push_back(from.type_of(result));
    const std::vector<ValueId> made =
        add_many(op.name, std::move(operands), results, op.attributes);
    for (std::size_t i = 0; i < made.size(); ++i) known.emplace_back(op.results[i], made[i]);
  }
  open_.pop_back();
  return copied;
}

ValueId Builder::constant(std::string_view literal, const TensorType& type) {
  Attribute value;
  value.kind = Attribute::Kind::elements;
  value.text = literal;
  value.type = text_of(type);
  return add("stablehlo.constant", {}, type, {{"value", value}});
}

ValueId Builder::zero(const TensorType& scalar_like) {
  return constant("0", with_shape(scalar_like, {}));
}

ValueId Builder::broadcast_scalar(ValueId scalar, const Shape& shape) {
  return add("stablehlo.broadcast_in_dim", {scalar}, with_shape(type(scalar), shape),
             {{"dims", integers_attribute({})}});
}

ValueId Builder::copy(ValueId value) { return add("spmd.copy", {value}, type(value)); }

ValueId Builder::reshape(ValueId value, const Shape& shape) {
  return add("stablehlo.reshape", {value}, with_shape(type(value), shape));
}

ValueId Builder::transpose(ValueId value, const Dims& permutation) {
  Shape shape;
  for (const std::int64_t dim : permutation) {
    shape.push_back(this->shape(value)[at(dim)]);
  }
  return add("stablehlo.transpose", {value}, with_shape(type(value), std::move(shape)),
             {{"dims", integers_attribute(permutation)}});
}

ValueId Builder::slice(ValueId value, const Shape& starts, const Shape& limits,
                       const Shape& strides) {
  Shape shape(starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    shape[i] = ceil_div(limits[i] - starts[i], strides[i]);
  }
  return add("stablehlo.slice", {value}, with_shape(type(value), std::move(shape)),
             {{"start_indices", integers_attribute(starts)},
              {"limit_indices", integers_attribute(limits)},
              {"strides", integers_attribute(strides)}});
}

ValueId Builder::pad(ValueId value, ValueId padding, const Shape& low, const Shape& high,
                     const Shape& interior) {
  Shape shape = this->shape(value);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    shape[i] += low[i] + high[i] + std::max<std::int64_t>(shape[i] - 1, 0) * interior[i];
  }
  return add("stablehlo.pad", {value, padding}, with_shape(type(value), std::move(shape)),
             {{"low", integers_attribute(low)},
              {"high", integers_attribute(high)},
              {"interior", integers_attribute(interior)}});
}

ValueId Builder::concatenate(const std::vector<ValueId>& values, std::int64_t dim) {
  Shape shape = this->shape(values.front());
  std::int64_t& size = shape[at(dim)];
  size = 0;
  for (const ValueId value : values) size += this->shape(value)[at(dim)];
  return add("stablehlo.concatenate", values, with_shape(type(values.front()), std::move(shape)),
             {{"dim", integer_attribute(dim)}});
}

ValueId Builder::dynamic_slice(ValueId value, const std::vector<ValueId>& starts,
                               const Shape& sizes) {
  std::vector<ValueId> operands = {value};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return add("stablehlo.dynamic_slice", std::move(operands), with_shape(type(value), sizes),
             {{"sizes", integers_attribute(sizes)}});
}

ValueId Builder::dynamic_update_slice(ValueId value, ValueId update,
                                      const std::vector<ValueId>& starts) {
  std::vector<ValueId> operands = {value, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return add("stablehlo.dynamic_update_slice", std::move(operands), type(value));
}

ValueId Builder::select(ValueId mask, ValueId on_true, ValueId on_false) {
  return add("stablehlo.select", {mask, on_true, on_false}, type(on_true));
}

ValueId Builder::binary(std::string_view op, ValueId lhs, ValueId rhs) {
  return add(op, {lhs, rhs}, type(lhs));
}

ValueId Builder::compare(std::string_view direction, ValueId lhs, ValueId rhs) {
  TensorType result = type(lhs);
  result.element = "i1";
  result.dtype = DType::boolean;
  return add("stablehlo.compare", {lhs, rhs}, std::move(result),
             {{"comparison_direction", text_attribute(direction)}});
}

ValueId Builder::iota(const TensorType& type, std::int64_t dim) {
  return add("stablehlo.iota", {}, type, {{"dim", integer_attribute(dim)}});
}

ValueId Builder::convert(ValueId value, const TensorType& type) {
  return add("stablehlo.convert", {value}, type);
}

}  // namespace shardsim::spmd
