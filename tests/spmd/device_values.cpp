#include "device_values.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "stablehlo/op_view.hpp"

namespace shardsim::test {
namespace {

using spmd::Dims;
using spmd::Shape;
using stablehlo::Attribute;
using stablehlo::Function;
using stablehlo::Module;
using stablehlo::Op;
using stablehlo::OpView;
using stablehlo::ValueId;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

void each_index(const Shape& shape, const std::function<void(const Dims&)>& visit) {
  if (spmd::product(shape) == 0) return;
  Dims index(shape.size(), 0);
  for (;;) {
    visit(index);
    std::size_t dim = shape.size();
    while (dim-- > 0) {
      if (++index[dim] < shape[dim]) break;
      index[dim] = 0;
    }
    if (dim == static_cast<std::size_t>(-1)) return;
  }
}

std::size_t offset(const Shape& shape, const Dims& index) {
  std::int64_t result = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) result = result * shape[i] + index[i];
  return at(result);
}

// An array of which every element is asked for by its index.
Array made_of(const Shape& shape, const std::function<std::int64_t(const Dims&)>& element) {
  Array array{shape, {}};
  array.elements.reserve(at(spmd::product(shape)));
  each_index(shape, [&](const Dims& index) { array.elements.push_back(element(index)); });
  return array;
}

std::int64_t element_of(const Array& array, const Dims& index) {
  return array.elements[offset(array.shape, index)];
}

std::int64_t scalar_of(const Array& array) { return array.elements.front(); }

using Groups = std::vector<std::vector<int>>;

Groups groups_of(const OpView& op, std::string_view name) {
  Groups groups;
  for (const Attribute& row : op.attribute({name})->items) {
    std::vector<int>& group = groups.emplace_back();
    for (const Attribute& device : row.items) group.push_back(static_cast<int>(device.integer));
  }
  return groups;
}

class Evaluator {
 public:
  Evaluator(const Module& program, int devices)
      : program_(program), function_(program.functions.front()), devices_(devices) {
    result_.sent.assign(at(devices), 0);
  }

  Evaluation run(const std::vector<OnDevices>& arguments, ValueId result) {
    const stablehlo::Region& body = function_.body();
    need(result);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      result_.values[body.arguments[i]] = arguments[i];
    }
    for (const stablehlo::OpId id : body.ops) {
      const Op& op = function_.op(id);
      if (op.results.size() != 1 || needed_.count(op.results.front()) == 0) continue;
      result_.values[op.results.front()] = evaluate(op);
    }
    return std::move(result_);
  }

 private:
  void need(ValueId value) {
    const Op* op = function_.definition(value);
    if (!needed_.insert(value).second || op == nullptr) return;
    for (const ValueId operand : op->operands) need(operand);
  }

  [[nodiscard]] const Array& operand(const Op& op, std::size_t index, int device) const {
    return result_.values.at(op.operands[index])[at(device)];
  }

  [[nodiscard]] OnDevices evaluate(const Op& op) {
    const OpView view(program_, function_, op);
    if (op.name == "stablehlo.all_gather") return gather(view);
    if (op.name == "stablehlo.all_reduce") return reduce(view);
    if (op.name == "stablehlo.all_to_all") return exchange(view);
    if (op.name == "stablehlo.collective_permute") return permute(view);
    OnDevices results;
    for (int device = 0; device < devices_; ++device) results.push_back(local(view, device));
    return results;
  }

  [[nodiscard]] Array local(const OpView& view, int device) {
    const Op& op = view.op();
    const Shape& shape = function_.type_of(op.results.front()).dims;
    const auto value = [&](std::size_t index) -> const Array& {
      return operand(op, index, device);
    };
    if (op.name == "stablehlo.constant") {
      const std::int64_t literal = std::stoll(view.attribute({"value"})->text);
      return made_of(shape, [&](const Dims&) { return literal; });
    }
    if (op.name == "spmd.offset") {
      return {shape, {view.attribute({"by_device"})->items.at(at(device)).integer}};
    }
    if (op.name == "stablehlo.iota") {
      const std::int64_t dim = view.integer({"dim"}, 0);
      return made_of(shape, [&](const Dims& index) { return index[at(dim)]; });
    }
    if (op.name == "stablehlo.reshape" || op.name == "spmd.copy" ||
        op.name == "stablehlo.convert") {
      return {shape, value(0).elements};
    }
    if (op.name == "stablehlo.select") {
      return made_of(shape, [&](const Dims& index) {
        return element_of(value(0), index) != 0 ? element_of(value(1), index)
                                                : element_of(value(2), index);
      });
    }
    if (op.operands.size() == 2 && view.operand(0) == view.operand(1) &&
        op.name != "stablehlo.concatenate" && op.name != "stablehlo.pad") {
      return made_of(shape, [&](const Dims& index) {
        return combine(view, element_of(value(0), index), element_of(value(1), index));
      });
    }
    return moved(view, shape, value);
  }

  [[nodiscard]] static std::int64_t combine(const OpView& op, std::int64_t a, std::int64_t b) {
    const std::string& name = op.op().name;
    if (name == "stablehlo.add") return a == unknown || b == unknown ? unknown : a + b;
    if (name == "stablehlo.subtract") return a - b;
    if (name == "stablehlo.and") return a & b;
    if (name == "stablehlo.compare") {
      const std::string& direction = op.attribute({"comparison_direction"})->text;
      if (direction == "LT") return a < b ? 1 : 0;
      if (direction == "GE") return a >= b ? 1 : 0;
      if (direction == "EQ") return a == b ? 1 : 0;
      if (direction == "NE") return a != b ? 1 : 0;
    }
    op.fail("computes: not evaluated");
  }

  using Operand = std::function<const Array&(std::size_t)>;

  [[nodiscard]] static Array moved(const OpView& op, const Shape& shape, const Operand& value) {
    const std::string& name = op.op().name;
    if (name == "stablehlo.broadcast_in_dim") {
      const Dims dims = op.integers({"dims"});
      return made_of(shape, [&](const Dims& index) {
        Dims source;
        for (std::size_t i = 0; i < dims.size(); ++i) {
          source.push_back(value(0).shape[i] == 1 ? 0 : index[at(dims[i])]);
        }
        return element_of(value(0), source);
      });
    }
    if (name == "stablehlo.transpose") {
      const Dims dims = op.integers({"dims"});
      return made_of(shape, [&](const Dims& index) {
        Dims source(index.size());
        for (std::size_t i = 0; i < dims.size(); ++i) source[at(dims[i])] = index[i];
        return element_of(value(0), source);
      });
    }
    if (name == "stablehlo.slice") {
      const Dims starts = op.integers({"start_indices"});
      const Dims strides = op.integers({"strides"});
      return made_of(shape, [&](Dims index) {
        for (std::size_t i = 0; i < index.size(); ++i) {
          index[i] = starts[i] + index[i] * strides[i];
        }
        return element_of(value(0), index);
      });
    }
    if (name == "stablehlo.pad") return padded(op, shape, value);
    if (name == "stablehlo.concatenate") return joined(op, shape, value);
    if (name == "stablehlo.dynamic_slice" || name == "stablehlo.dynamic_update_slice") {
      return at_dynamic_place(op, shape, value);
    }
    op.fail("computes: not evaluated");
  }

  [[nodiscard]] static Array padded(const OpView& op, const Shape& shape, const Operand& value) {
    const Dims low = op.integers({"low"});
    const Dims interior = op.integers({"interior"});
    return made_of(shape, [&](Dims index) {
      for (std::size_t i = 0; i < index.size(); ++i) {
        index[i] -= low[i];
        const bool is_padding = index[i] < 0 || index[i] % (interior[i] + 1) != 0 ||
                                index[i] / (interior[i] + 1) >= value(0).shape[i];
        if (is_padding) return scalar_of(value(1));
        index[i] /= interior[i] + 1;
      }
      return element_of(value(0), index);
    });
  }

  [[nodiscard]] static Array joined(const OpView& op, const Shape& shape, const Operand& value) {
    const std::int64_t dim = op.integer({"dim"}, 0);
    return made_of(shape, [&](Dims index) {
      std::size_t piece = 0;
      while (index[at(dim)] >= value(piece).shape[at(dim)]) {
        index[at(dim)] -= value(piece).shape[at(dim)];
        ++piece;
      }
      return element_of(value(piece), index);
    });
  }

  // Starts are clamped so that the slice fits, as StableHLO says.
  [[nodiscard]] static Array at_dynamic_place(const OpView& op, const Shape& shape,
                                              const Operand& value) {
    const bool updates = op.op().name == "stablehlo.dynamic_update_slice";
    const Shape& slice = updates ? value(1).shape : shape;
    Dims starts;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t start = scalar_of(value(i + (updates ? 2 : 1)));
      starts.push_back(std::clamp<std::int64_t>(start, 0, value(0).shape[i] - slice[i]));
    }
    return made_of(shape, [&](const Dims& index) {
      Dims source = index;
      bool inside = true;
      for (std::size_t i = 0; i < index.size(); ++i) {
        source[i] += updates ? -starts[i] : starts[i];
        inside = inside && (!updates || (source[i] >= 0 && source[i] < slice[i]));
      }
      return element_of(value(updates && inside ? 1 : 0), updates && !inside ? index : source);
    });
  }

  void count(const std::vector<int>& group, double elements) {
    for (const int device : group) result_.sent[at(device)] += elements;
  }

  [[nodiscard]] OnDevices gather(const OpView& op) {
    const std::int64_t dim = op.integer({"all_gather_dim"}, 0);
    OnDevices results(at(devices_));
    for (const std::vector<int>& group : groups_of(op, "replica_groups")) {
      const Shape part = operand(op.op(), 0, group.front()).shape;
      Shape whole = part;
      whole[at(dim)] *= static_cast<std::int64_t>(group.size());
      const Array gathered = made_of(whole, [&](Dims index) {
        const int from = group[at(index[at(dim)] / part[at(dim)])];
        index[at(dim)] %= part[at(dim)];
        return element_of(operand(op.op(), 0, from), index);
      });
      for (const int device : group) results[at(device)] = gathered;
      count(group,
            static_cast<double>(spmd::product(part)) * (static_cast<double>(group.size()) - 1));
    }
    return results;
  }

  [[nodiscard]] OnDevices reduce(const OpView& op) {
    if (op.attribute({"spmd.reduction"})->text != "add") op.fail("computes: not evaluated");
    OnDevices results(at(devices_));
    for (const std::vector<int>& group : groups_of(op, "replica_groups")) {
      Array sum = operand(op.op(), 0, group.front());
      for (std::size_t i = 1; i < group.size(); ++i) {
        const Array& other = operand(op.op(), 0, group[i]);
        for (std::size_t k = 0; k < sum.elements.size(); ++k) {
          const bool known = sum.elements[k] != unknown && other.elements[k] != unknown;
          sum.elements[k] = known ? sum.elements[k] + other.elements[k] : unknown;
        }
      }
      const auto size = static_cast<double>(group.size());
      count(group, 2 * (size - 1) / size * static_cast<double>(sum.elements.size()));
      for (const int device : group) results[at(device)] = sum;
    }
    return results;
  }

  [[nodiscard]] OnDevices exchange(const OpView& op) {
    const std::int64_t dim = op.integer({"split_dimension"}, 0);
    OnDevices results(at(devices_));
    for (const std::vector<int>& group : groups_of(op, "replica_groups")) {
      const auto size = static_cast<std::int64_t>(group.size());
      for (std::int64_t place = 0; place < size; ++place) {
        const Shape& shape = operand(op.op(), 0, group.front()).shape;
        const std::int64_t part = shape[at(dim)] / size;
        results[at(group[at(place)])] = made_of(shape, [&](Dims index) {
          const int from = group[at(index[at(dim)] / part)];
          index[at(dim)] = place * part + index[at(dim)] % part;
          return element_of(operand(op.op(), 0, from), index);
        });
      }
      const double elements = static_cast<double>(results[at(group.front())].elements.size());
      count(group, elements * static_cast<double>(size - 1) / static_cast<double>(size));
    }
    return results;
  }

  // Who gets nothing has zeros.
  [[nodiscard]] OnDevices permute(const OpView& op) {
    OnDevices results;
    for (int device = 0; device < devices_; ++device) {
      results.push_back(
          made_of(operand(op.op(), 0, device).shape, [](const Dims&) { return std::int64_t{0}; }));
    }
    for (const std::vector<int>& pair : groups_of(op, "source_target_pairs")) {
      results[at(pair[1])] = operand(op.op(), 0, pair[0]);
      if (pair[0] == pair[1]) continue;
      count({pair[0]}, static_cast<double>(results[at(pair[1])].elements.size()));
    }
    return results;
  }

  const Module& program_;
  const Function& function_;
  int devices_;
  std::set<ValueId> needed_;
  Evaluation result_;
};

}  // namespace

OnDevices numbered_tiles(const Shape& shape, const spmd::Tiling& tiling, int devices) {
  const Shape local = spmd::shard_shape(shape, tiling);
  const auto tile = [&](const Dims& place) {
    return made_of(local, [&](Dims index) {
      for (std::size_t i = 0; i < index.size(); ++i) {
        index[i] += place[i] * local[i];
        if (index[i] >= shape[i]) return unknown;
      }
      return static_cast<std::int64_t>(offset(shape, index)) + 1;
    });
  };
  OnDevices result(at(devices), tile(Dims(shape.size(), 0)));
  if (tiling.is_replicated()) return result;
  tiling.each([&](const Dims& index, int device) { result[at(device)] = tile(index); });
  return result;
}

Evaluation evaluate(const Module& program, const std::vector<OnDevices>& arguments, int devices,
                    ValueId result) {
  return Evaluator(program, devices).run(arguments, result);
}

}  // namespace shardsim::test
