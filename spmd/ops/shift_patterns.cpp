#include "spmd/ops/shift_patterns.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "base/index.hpp"
#include "spmd/builder.hpp"
#include "spmd/propagation/function_editor.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Function;
using stablehlo::Module;
using stablehlo::no_op;
using stablehlo::OpId;
using stablehlo::OpView;
using stablehlo::ValueSharding;

bool is_copy(const Op& op) {
  return op.name == "sdy.reshard" || op.name == "sdy.sharding_constraint";
}

class ShiftMerger {
 public:
  ShiftMerger(Module& module, Function& function) : module_(module), function_(function) {}

  void run() {
    count_readers();
    const std::vector<OpId> order = ops_in_order(function_);
    for (const OpId id : order) {
      const std::string& name = function_.op(id).name;
      if (name == "stablehlo.slice") merge_pad(id);
      if (name == "stablehlo.concatenate") merge_concatenation(id);
    }
  }

 private:
  struct Slice {
    ValueId of = -1;
    std::int64_t start = 0;
    std::int64_t limit = 0;
    std::vector<OpId> modifiers;  // elementwise ops between it and its reader, that one first
  };

  // Distinct ops that read a value.
  void count_readers() {
    readers_.assign(function_.values.size(), 0);
    for (const Op& op : function_.ops) {
      const std::set<ValueId> read(op.operands.begin(), op.operands.end());
      for (const ValueId value : read) ++readers_[at(value)];
    }
  }

  [[nodiscard]] OpView view(OpId id) const { return {module_, function_, function_.op(id)}; }

  [[nodiscard]] bool lie_alike(ValueId a, ValueId b) const {
    const auto axes = [&](ValueId value) {
      std::vector<std::vector<stablehlo::AxisPart>> result(function_.type_of(value).rank());
      const ValueSharding& sharding = function_.values[at(value)].sharding;
      if (!sharding.axes) return result;
      for (std::size_t i = 0; i < sharding.axes->dimensions.size(); ++i) {
        result[i] = sharding.axes->dimensions[i].axes;
      }
      return result;
    };
    return axes(a) == axes(b);
  }

  [[nodiscard]] bool is_split(ValueId value, std::int64_t dim) const {
    const ValueSharding& sharding = function_.values[at(value)].sharding;
    return sharding.axes && at(dim) < sharding.axes->dimensions.size() &&
           !sharding.axes->dimensions[at(dim)].axes.empty();
  }

  // What a value is a copy of, as long as nobody else reads the copies; nothing where somebody else
  // reads it.
  [[nodiscard]] std::optional<ValueId> behind_copies(ValueId value, bool only_reader = true) const {
    for (;;) {
      const Op* made = function_.definition(value);
      if (made == nullptr || !is_copy(*made) || readers_[at(value)] != 1) break;
      value = made->operands.front();
    }
    if (only_reader && readers_[at(value)] != 1) return {};
    return value;
  }

  [[nodiscard]] std::optional<Slice> slice_along(ValueId value, std::int64_t dim,
                                                 bool with_modifiers) const {
    const auto source = behind_copies(value);
    if (!source) return {};
    Slice slice;
    ValueId current = *source;
    for (;;) {
      const Op* made = function_.definition(current);
      const bool modifies = with_modifiers && made != nullptr && made->operands.size() == 1 &&
                            readers_[at(current)] == 1 && is_unary(made->name);
      if (!modifies) break;
      slice.modifiers.push_back(function_.values[at(current)].defined_by);
      current = made->operands.front();
    }
    const Op* made = function_.definition(current);
    if (made == nullptr || made->name != "stablehlo.slice") return {};
    const OpView op(module_, function_, *made);
    if (op.integers({"strides"})[at(dim)] != 1) return {};
    slice.of = made->operands.front();
    slice.start = op.integers({"start_indices"})[at(dim)];
    slice.limit = op.integers({"limit_indices"})[at(dim)];
    return slice;
  }

  [[nodiscard]] static bool is_unary(const std::string& name) {
    static const std::set<std::string> names = {
        "stablehlo.abs",  "stablehlo.convert", "stablehlo.cosine", "stablehlo.exponential",
        "stablehlo.log",  "stablehlo.negate",  "stablehlo.not",    "stablehlo.rsqrt",
        "stablehlo.sign", "stablehlo.sine",    "stablehlo.sqrt",   "stablehlo.tanh",
        "stablehlo.ceil", "stablehlo.floor"};
    return names.count(name) > 0;
  }

  void merge_concatenation(OpId id) {
    const Op op = function_.op(id);
    const std::int64_t dim = view(id).integer({"dim", "dimension"}, 0);
    if (!is_split(op.results.front(), dim)) return;
    if (op.operands.size() == 2) merge_rotation(id, dim);
    if (op.operands.size() == 3) merge_wrapped_pad(id, dim);
  }

  void merge_rotation(OpId id, std::int64_t dim) {
    const Op op = function_.op(id);
    const auto first = slice_along(op.operands[0], dim, /*with_modifiers=*/false);
    const auto second = slice_along(op.operands[1], dim, /*with_modifiers=*/false);
    if (!first || !second || first->of != second->of || first->start != second->limit) return;
    const ValueId result = op.results.front();
    if (function_.type_of(first->of).dims != function_.type_of(result).dims ||
        !lie_alike(first->of, result)) {
      return;
    }
    replace(id, "spmd.rotate", {first->of},
            {{"dim", integer_attribute(dim)},
             {"amount", integer_attribute(first->limit - first->start)}});
  }

  // The pad holds the middle; its two rotations bring the wrapped parts to the ends.
  void merge_wrapped_pad(OpId id, std::int64_t dim) {
    const Op op = function_.op(id);
    const auto first = slice_along(op.operands[0], dim, /*with_modifiers=*/true);
    const auto middle = behind_copies(op.operands[1], /*only_reader=*/false);
    const auto last = slice_along(op.operands[2], dim, /*with_modifiers=*/true);
    if (!first || !last || first->of != *middle || last->of != *middle) return;
    const ValueId result = op.results.front();
    const TensorType type = function_.type_of(result);
    const std::int64_t size = type.dims[at(dim)];
    const std::int64_t low = function_.type_of(op.operands[0]).dims[at(dim)];
    const std::int64_t high = function_.type_of(op.operands[2]).dims[at(dim)];
    FunctionEditor editor(function_);
    editor_ = &editor;
    near_ = id;
    sharding_ = function_.values[at(result)].sharding;
    Shape lows(type.dims.size(), 0);
    Shape highs(type.dims.size(), 0);
    lows[at(dim)] = low;
    highs[at(dim)] = high;
    TensorType scalar = type;
    scalar.dims.clear();
    const ValueId pad = create("stablehlo.pad", {*middle, constant("0", scalar)}, type,
                               {{"low", integers_attribute(lows)},
                                {"high", integers_attribute(highs)},
                                {"interior", integers_attribute(Shape(lows.size(), 0))}});
    const auto rotated = [&](const Slice& slice, std::int64_t amount) {
      ValueId value =
          create("spmd.rotate", {pad}, function_.type_of(pad),
                 {{"dim", integer_attribute(dim)}, {"amount", integer_attribute(amount)}});
      for (auto modifier = slice.modifiers.rbegin(); modifier != slice.modifiers.rend();
           ++modifier) {
        const Op modify = function_.op(*modifier);
        TensorType modified = function_.type_of(modify.results.front());
        modified.dims = type.dims;
        value = create(modify.name, {value}, modified, {});
      }
      return value;
    };
    const ValueId front = rotated(*first, size - (first->start + low));
    const ValueId back = rotated(*last, size - (last->start + low + high));
    TensorType index = type;
    index.element = "ui32";
    index.dtype = DType::u32;
    const ValueId place = create("stablehlo.iota", {}, index, {{"dim", integer_attribute(dim)}});
    const ValueId with_front = choose(place, "LT", low, front, pad);
    const ValueId both = choose(place, "GE", size - high, back, with_front);
    editor.commit();
    // The concatenation becomes the last select.
    const Op select = *function_.definition(both);
    replace(id, select.name, select.operands, {});
    sharding_ = {};
  }

  [[nodiscard]] ValueId choose(ValueId place, std::string_view direction, std::int64_t limit,
                               ValueId chosen, ValueId otherwise) {
    TensorType scalar = function_.type_of(place);
    const Shape shape = scalar.dims;
    scalar.dims.clear();
    const ValueId bound =
        create("stablehlo.broadcast_in_dim", {constant(std::to_string(limit), scalar)},
               function_.type_of(place), {{"dims", integers_attribute({})}});
    TensorType mask = function_.type_of(place);
    mask.element = "i1";
    mask.dtype = DType::boolean;
    const ValueId is_there = create("stablehlo.compare", {place, bound}, mask,
                                    {{"comparison_direction", text_attribute(direction)}});
    return create("stablehlo.select", {is_there, chosen, otherwise}, function_.type_of(otherwise),
                  {});
  }

  ValueId create(std::string_view name, std::vector<ValueId> operands, TensorType type,
                 AttributeList attributes) {
    Op op;
    op.name = name;
    op.operands = std::move(operands);
    op.attributes = std::move(attributes);
    op.line = function_.op(near_).line;
    const bool is_scalar = type.dims.empty();
    const OpId made = editor_->create(std::move(op), std::move(type), near_);
    editor_->place_before(made, near_);
    const ValueId value = function_.op(made).results.front();
    if (!is_scalar) function_.values[at(value)].sharding = sharding_;
    return value;
  }

  ValueId constant(std::string_view literal, const TensorType& scalar) {
    stablehlo::Attribute value;
    value.kind = stablehlo::Attribute::Kind::elements;
    value.text = literal;
    value.type = text_of(scalar);
    return create("stablehlo.constant", {}, scalar, {{"value", value}});
  }

  // Pad and slice of a dimension that is split would exchange edges twice.
  void merge_pad(OpId id) {
    const Op op = function_.op(id);
    const ValueId result = op.results.front();
    const auto padded = behind_copies(op.operands.front());
    const Op* pad = padded ? function_.definition(*padded) : nullptr;
    if (pad == nullptr || pad->name != "stablehlo.pad" || !lie_alike(*padded, result) ||
        !lie_alike(pad->operands.front(), result)) {
      return;
    }
    const OpView padding(module_, function_, *pad);
    Shape low = padding.integers({"low", "edge_padding_low"});
    Shape high = padding.integers({"high", "edge_padding_high"});
    const Shape interior = padding.integers({"interior", "interior_padding"});
    const OpView slice = view(id);
    const Shape starts = slice.integers({"start_indices"});
    const Shape limits = slice.integers({"limit_indices"});
    const Shape strides = slice.integers({"strides"});
    bool twice = false;
    for (std::size_t i = 0; i < low.size(); ++i) {
      if (interior[i] != 0 || strides[i] != 1) return;
      const std::int64_t size = function_.type_of(*padded).dims[i];
      twice = twice || (is_split(result, static_cast<std::int64_t>(i)) &&
                        (low[i] != 0 || high[i] != 0) && function_.type_of(result).dims[i] != size);
      low[i] -= starts[i];
      high[i] = limits[i] - (size - high[i]);
      // A slice of nothing but padding is no smaller pad of the operand.
      const std::int64_t whole = function_.type_of(pad->operands.front()).dims[i];
      if (low[i] <= -whole || high[i] <= -whole) return;
    }
    if (!twice) return;
    replace(id, "stablehlo.pad", pad->operands,
            {{"low", integers_attribute(low)},
             {"high", integers_attribute(high)},
             {"interior", integers_attribute(interior)}});
  }

  // The op in place, and what only it read taken out.
  void replace(OpId id, std::string_view name, std::vector<ValueId> operands,
               AttributeList attributes) {
    Op& op = function_.ops[at(id)];
    const std::vector<ValueId> before = op.operands;
    op.name = name;
    op.operands = std::move(operands);
    op.attributes = std::move(attributes);
    count_readers();
    for (const ValueId value : before) take_out_unread(value);
    count_readers();
  }

  void take_out_unread(ValueId value) {
    const OpId id = function_.values[at(value)].defined_by;
    if (id == no_op || readers_[at(value)] != 0) return;
    Op& op = function_.ops[at(id)];
    if (op.results.size() != 1 || !op.regions.empty()) return;
    auto& ops = function_.regions[at(op.parent)].ops;
    const auto found = std::find(ops.begin(), ops.end(), id);
    if (found == ops.end()) return;
    ops.erase(found);
    const std::set<ValueId> read(op.operands.begin(), op.operands.end());
    op.operands.clear();
    for (const ValueId operand : read) {
      --readers_[at(operand)];
      take_out_unread(operand);
    }
  }

  Module& module_;
  Function& function_;
  std::vector<int> readers_;
  FunctionEditor* editor_ = nullptr;
  OpId near_ = no_op;
  ValueSharding sharding_;
};

}  // namespace

void merge_shifts(Module& program) {
  for (Function& function : program.functions) ShiftMerger(program, function).run();
}

}  // namespace shardsim::spmd
