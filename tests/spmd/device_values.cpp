#include "device_values.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "base/index.hpp"
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
    if (op.name == "stablehlo.all_reduce") return reduce(view, /*rounds=*/2);
    if (op.name == "stablehlo.reduce_scatter") return reduce_scatter(view);
    if (op.name == "stablehlo.all_to_all") return exchange(view);
    if (op.name == "stablehlo.collective_permute") return permute(view);
    OnDevices results;
    for (int device = 0; device < devices_; ++device) {
      results.push_back(evaluate_local(
          view, [&](std::size_t index) -> const Array& { return operand(op, index, device); },
          device));
    }
    return results;
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

  [[nodiscard]] OnDevices reduce(const OpView& op, int rounds) {
    const std::string& reduction = op.attribute({"spmd.reduction"})->text;
    if (reduction != "add" && reduction != "stablehlo.add") op.fail("not evaluated");
    OnDevices results(at(devices_));
    for (const std::vector<int>& group : groups_of(op, "replica_groups")) {
      Array sum = operand(op.op(), 0, group.front());
      for (std::size_t i = 1; i < group.size(); ++i) {
        const Array& other = operand(op.op(), 0, group[i]);
        for (std::size_t k = 0; k < sum.elements.size(); ++k) {
          sum.elements[k] = sum_of(sum.elements[k], other.elements[k]);
        }
      }
      const auto size = static_cast<double>(group.size());
      count(group, rounds * (size - 1) / size * static_cast<double>(sum.elements.size()));
      for (const int device : group) results[at(device)] = sum;
    }
    return results;
  }

  // "spmd.starts" says, by dimension and device, where the part of the sum begins that it keeps.
  [[nodiscard]] OnDevices reduce_scatter(const OpView& op) {
    OnDevices results = reduce(op, /*rounds=*/1);
    for (std::size_t device = 0; device < results.size(); ++device) {
      Dims begin;
      for (const Attribute& starts : op.attribute({"spmd.starts"})->items) {
        begin.push_back(starts.items[device % starts.items.size()].integer);
      }
      const Array sum = std::move(results[device]);
      results[device] = made_of(op.result(0), [&](Dims index) {
        for (std::size_t i = 0; i < index.size(); ++i) index[i] += begin[i];
        return element_of(sum, index);
      });
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
      return static_cast<std::int64_t>(offset_of(shape, index)) + 1;
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
