#include <algorithm>

#include "base/index.hpp"
#include "spmd/manual.hpp"
#include "spmd/propagation/function_editor.hpp"
#include "spmd/propagation/import_passes.hpp"
#include "spmd/propagation/op_kinds.hpp"

namespace shardsim::spmd {

using stablehlo::AxisSharding;
using stablehlo::Function;
using stablehlo::no_op;
using stablehlo::Op;
using stablehlo::OpId;
using stablehlo::Value;
using stablehlo::ValueId;

namespace {

class ConstraintApplier {
 public:
  ConstraintApplier(const stablehlo::Module& module, Function& function)
      : module_(module),
        function_(function),
        editor_(function),
        order_(ops_in_order(function)),
        position_(function.ops.size()),
        uses_(uses_of(function)),
        owners_(function.values.size(), no_op) {
    for (std::size_t i = 0; i < order_.size(); ++i) position_[at(order_[i])] = i;
    for (const stablehlo::Region& region : function.regions) {
      for (const ValueId argument : region.arguments) owners_[at(argument)] = region.owner;
    }
  }

  void run() {
    for (const OpId id : order_) {
      if (is_constraint(function_.op(id))) {
        apply_chain(id);
        const Op op = function_.op(id);
        apply(op.operands.front(), *value(op.results.front()).sharding.axes, id);
      } else if (is_manual(function_.op(id))) {
        const std::vector<AxisSharding> in =
            manual_computation(function_.op(id), module_.place_of(function_.op(id))).in;
        for (std::size_t i = 0; i < in.size(); ++i) {
          apply(function_.op(id).operands[i], in[i], no_op);
        }
      }
    }
    editor_.commit();
  }

 private:
  Value& value(ValueId id) { return function_.values[at(id)]; }

  // The op whose data flow the value is part of: the owner of a loop's arguments and results, say.
  [[nodiscard]] OpId flow_of(ValueId id) {
    const OpId op = value(id).defined_by != no_op ? value(id).defined_by : owners_[at(id)];
    if (op == no_op) return no_op;
    return is_data_flow(function_.op(op)) || is_manual(function_.op(op)) ? op : no_op;
  }

  [[nodiscard]] bool has_sharding(ValueId id) {
    if (const OpId flow = flow_of(id); flow != no_op) {
      if (is_manual(function_.op(flow))) return true;
      const Value& result = value(function_.op(flow).results[at(value(id).result)]);
      return result.sharding.axes.has_value();
    }
    return value(id).sharding.axes.has_value();
  }

  // Arguments of reducers and the like cannot have one.
  [[nodiscard]] bool can_have_sharding(ValueId id) {
    return value(id).type.is_tensor &&
           (value(id).defined_by != no_op || owners_[at(id)] == no_op || flow_of(id) != no_op);
  }

  [[nodiscard]] bool constrained_otherwise(ValueId id, const AxisSharding& sharding) {
    return std::any_of(uses_[at(id)].begin(), uses_[at(id)].end(), [&](const Use& use) {
      const Op& user = function_.op(use.op);
      if (is_constraint(user)) return *value(user.results.front()).sharding.axes != sharding;
      if (!is_manual(user)) return false;
      return manual_computation(user, module_.place_of(user)).in[use.operand] != sharding;
    });
  }

  void apply(ValueId input, const AxisSharding& sharding, OpId constraint) {
    const bool closed = std::none_of(sharding.dimensions.begin(), sharding.dimensions.end(),
                                     [](const auto& dimension) { return dimension.open; });
    if (!closed || !can_have_sharding(input) || has_sharding(input) ||
        constrained_otherwise(input, sharding)) {
      return;
    }
    if (flow_of(input) == no_op) {
      value(input).sharding.axes = sharding;
    } else {
      constrain_readers(input, sharding, constraint);
    }
  }

  // All other readers of a value in a data flow read the constraint, which moves up to the value.
  void constrain_readers(ValueId input, const AxisSharding& sharding, OpId constraint) {
    if (constraint == no_op) {
      Op op;
      op.name = "sdy.sharding_constraint";
      op.operands = {input};
      constraint = editor_.create(std::move(op), value(input).type, uses_[at(input)].front().op);
      const ValueId made = function_.op(constraint).results.front();
      value(made).sharding.axes = sharding;
      uses_.resize(function_.values.size());
      owners_.resize(function_.values.size(), no_op);
      position_.resize(function_.ops.size());
      uses_[at(input)].push_back({constraint, 0});
    } else {
      editor_.take_out(constraint);
    }
    if (const OpId definition = value(input).defined_by; definition != no_op) {
      editor_.place_after(constraint, definition);
    } else {
      editor_.place_first(constraint, region_of(input));
    }
    replace(input, function_.op(constraint).results.front(),
            [&](const Use& use) { return use.op != constraint; });
  }

  [[nodiscard]] stablehlo::RegionId region_of(ValueId argument) {
    for (const stablehlo::RegionId region : function_.op(owners_[at(argument)]).regions) {
      const std::vector<ValueId>& arguments = function_.regions[at(region)].arguments;
      if (std::find(arguments.begin(), arguments.end(), argument) != arguments.end()) return region;
    }
    return 0;
  }

  template <typename Where>
  void replace(ValueId old, ValueId by, Where where) {
    std::vector<Use> kept;
    for (const Use& use : uses_[at(old)]) {
      if (!where(use)) {
        kept.push_back(use);
        continue;
      }
      function_.ops[at(use.op)].operands[use.operand] = by;
      uses_[at(by)].push_back(use);
    }
    uses_[at(old)] = std::move(kept);
  }

  [[nodiscard]] bool read_by_constraint(ValueId id, OpId except) {
    return std::any_of(uses_[at(id)].begin(), uses_[at(id)].end(), [&](const Use& use) {
      const Op& user = function_.op(use.op);
      return use.op != except && (is_constraint(user) || is_manual(user));
    });
  }

  // The end of a chain of constraints of which only the last has several readers, or `head`.
  [[nodiscard]] OpId tail_of(OpId head) {
    const ValueId input = function_.op(head).operands.front();
    const Op* definition = function_.definition(input);
    if ((definition != nullptr && is_constraint(*definition)) || has_sharding(input) ||
        read_by_constraint(input, head)) {
      return head;
    }
    OpId tail = head;
    const auto readers = [&]() -> const std::vector<Use>& {
      return uses_[at(function_.op(tail).results.front())];
    };
    while (readers().size() == 1 && is_constraint(function_.op(readers().front().op))) {
      tail = readers().front().op;
    }
    return read_by_constraint(function_.op(tail).results.front(), no_op) ? head : tail;
  }

  // What comes after a chain of constraints reads its end.
  void apply_chain(OpId head) {
    const OpId tail = tail_of(head);
    if (tail == head) return;
    replace(function_.op(head).operands.front(), function_.op(tail).results.front(),
            [&](const Use& use) {
              const Op& user = function_.op(use.op);
              return use.op != head && user.name != "func.return" &&
                     user.parent == function_.op(tail).parent &&
                     position_[at(tail)] < position_[at(use.op)];
            });
  }

  const stablehlo::Module& module_;
  Function& function_;
  FunctionEditor editor_;
  std::vector<OpId> order_;
  std::vector<std::size_t> position_;   // in the order, by op
  std::vector<std::vector<Use>> uses_;  // by value
  std::vector<OpId> owners_;            // of region arguments
};

}  // namespace

void apply_constraints(const stablehlo::Module& module, Function& function) {
  ConstraintApplier(module, function).run();
  compact(function);
}

}  // namespace shardsim::spmd
