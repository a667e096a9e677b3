// Writes the per-device program: ops of StableHLO over local types, appended to the region that is
// open.
//
//   Builder b(module);
//   ValueId half = b.slice(whole, {0, 0}, {4, 16}, {1, 1});
//
// Nothing is merged here: an op that is asked for twice is there twice, until clean_up(). Ops that
// only say where a device's tile begins are of the dialect "spmd" and cost nothing:
//   spmd.offset {by_device = [0, 0, 4, 4]}   a scalar that differs by device of the program
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "spmd/broadcast_dims.hpp"
#include "spmd/tiling/tiling.hpp"
#include "stablehlo/module.hpp"

namespace shardsim::spmd {

using stablehlo::AttributeList;
using stablehlo::Op;
using stablehlo::RegionId;
using stablehlo::TensorType;
using stablehlo::ValueId;

[[nodiscard]] stablehlo::Attribute integer_attribute(std::int64_t value);
[[nodiscard]] stablehlo::Attribute integers_attribute(const std::vector<std::int64_t>& values);
[[nodiscard]] stablehlo::Attribute text_attribute(std::string_view text);

class Builder {
 public:
  // Fills functions[0] of a module, which has its body region and no ops yet.
  explicit Builder(stablehlo::Module& module);

  [[nodiscard]] stablehlo::Function& function() { return *function_; }
  // Copies: values move when others are made.
  [[nodiscard]] TensorType type(ValueId value) const;
  [[nodiscard]] Shape shape(ValueId value) const { return function_->type_of(value).dims; }
  // The op that made a value, or null for arguments.
  [[nodiscard]] const Op* definition(ValueId value) const;
  [[nodiscard]] const Dims& broadcast_dims(ValueId value) const {
    return broadcast_dims_.of(value);
  }
  void forget_broadcasts() { broadcast_dims_ = {}; }

  // Ops from here on are there for op `source` of the source, on `line`.
  void set_origin(int line, stablehlo::OpId source);
  [[nodiscard]] stablehlo::OpId origin() const { return origin_; }
  // `value` is what a device has of value `source` of the source. What is said first stays.
  void holds(ValueId value, ValueId source);
  // The value of the source whose elements `value` has, as they were or moved; -1 when they are
  // computed, or nobody said.
  [[nodiscard]] ValueId held_by(ValueId value) const;

  ValueId add_argument(const TensorType& type, std::string name);
  ValueId add(std::string_view op, std::vector<ValueId> operands, TensorType type,
              AttributeList attributes = {});
  // For several results; `regions` were made by begin_region/end_region.
  std::vector<ValueId> add_many(std::string_view name, std::vector<ValueId> operands,
                                const std::vector<TensorType>& types, AttributeList attributes = {},
                                std::vector<RegionId> regions = {});
  // Ops are appended to the new region until it ends; `returned` are its results.
  RegionId begin_region(const std::vector<TensorType>& arguments);
  void end_region(std::string_view terminator, const std::vector<ValueId>& returned);
  [[nodiscard]] const std::vector<ValueId>& arguments_of(RegionId region) const;
  // A copy of a region of another function that reads only what it defines (reducers, comparators).
  RegionId copy_region(const stablehlo::Function& from, RegionId region);

  ValueId constant(std::string_view literal, const TensorType& type);  // a splat: "0.0", "1"
  ValueId zero(const TensorType& scalar_like);  // a scalar of its element type
  ValueId broadcast_scalar(ValueId scalar, const Shape& shape);
  ValueId copy(ValueId value);
  ValueId reshape(ValueId value, const Shape& shape);
  ValueId transpose(ValueId value, const Dims& permutation);
  ValueId slice(ValueId value, const Shape& starts, const Shape& limits, const Shape& strides);
  ValueId pad(ValueId value, ValueId padding, const Shape& low, const Shape& high,
              const Shape& interior);
  ValueId concatenate(const std::vector<ValueId>& values, std::int64_t dim);
  ValueId dynamic_slice(ValueId value, const std::vector<ValueId>& starts, const Shape& sizes);
  ValueId dynamic_update_slice(ValueId value, ValueId update, const std::vector<ValueId>& starts);
  ValueId select(ValueId mask, ValueId on_true, ValueId on_false);
  ValueId binary(std::string_view op, ValueId lhs, ValueId rhs);  // "stablehlo.add"
  ValueId compare(std::string_view direction, ValueId lhs, ValueId rhs);
  ValueId iota(const TensorType& type, std::int64_t dim);
  ValueId convert(ValueId value, const TensorType& type);

 private:
  stablehlo::Module& module_;
  stablehlo::Function* function_;
  std::vector<RegionId> open_;
  int line_ = 0;
  stablehlo::OpId origin_ = stablehlo::no_op;
  std::map<ValueId, ValueId> sources_;
  BroadcastDims broadcast_dims_;
};

}  // namespace shardsim::spmd
