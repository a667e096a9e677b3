#include "strategies/runtime/module_walk.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "base/index.hpp"
#include "workloads/step/gradient_tape.hpp"

namespace shardsim {
namespace {

// A module that has been entered: its name in the one that holds it, of a layer with its number.
struct Entered {
  std::string name;
  std::int32_t layer = -1;
  friend bool operator==(const Entered&, const Entered&) = default;
};

// "model.layers.{}.mlp": "", "model", "layers.{}", "mlp".
std::vector<std::string> modules_of(std::string_view op) {
  std::vector<std::string> modules = {""};
  while (!op.empty()) {
    const std::size_t end = std::min(op.find('.'), op.size());
    const std::string_view part = op.substr(0, end);
    if (part == "{}") {
      modules.back() += ".{}";
    } else {
      modules.emplace_back(part);
    }
    op.remove_prefix(std::min(end + 1, op.size()));
  }
  return modules;
}

class Walk {
 public:
  Walk(const Workload& workload, const SpmdStep& step)
      : workload_(workload), step_(step), differentiable_(differentiable_tensors(workload)) {
    for (std::size_t b = 0; b < step.blocks.size(); ++b) modules_.push_back(modules_of_block(b));
  }

  ModuleWalk run() {
    const auto& order = workload_.order;
    for (std::size_t k = 0; k < order.size(); ++k) pass(order[k], Phase::forward, k);
    leave_all();
    if (!has_backward(workload_)) return std::move(walk_);
    for (std::size_t k = 0; k < order.size(); ++k) {
      pass(order[order.size() - 1 - k], Phase::backward, k);
    }
    leave_all();
    for (auto left = leave_late_.rbegin(); left != leave_late_.rend(); ++left) {
      add(*left, /*enters=*/false);
    }
    return std::move(walk_);
  }

 private:
  using OwnParameters = std::map<std::string, std::vector<TensorId>>;  // by module

  // Of a block: which module runs an op, and what is a module's own.
  struct Modules {
    std::map<std::string, std::string> of_op;  // those that enter a module
    OwnParameters own;
    std::set<std::string> begin_gradients;  // that have parameters and an input without gradient
  };

  // A parameter is of the module that its name says, which runs the op that reads it; but of an op
  // that reads what is another's (a head with the embedding's weight) it is the op's.
  [[nodiscard]] static std::string module_of(const std::string& op, std::string_view parameter) {
    const std::string_view owner = parameter.substr(0, parameter.rfind('.'));
    const bool holds_op = op.size() > owner.size() && op.starts_with(owner) &&
                          op[owner.size()] == '.' && parameter.size() > owner.size();
    return holds_op ? std::string(owner) : op;
  }

  [[nodiscard]] Modules modules_of_block(std::size_t block) const {
    Modules modules;
    const auto add = [&](const std::string& module, TensorId tensor) {
      auto& parameters = modules.own[module];
      if (std::count(parameters.begin(), parameters.end(), tensor) == 0) {
        parameters.push_back(tensor);
      }
    };
    for (const Item& item : step_.blocks[block].forward.body) {
      if (item.kind != TaskKind::kernel) continue;
      if (item.kernel.kernel_class == KernelClass::attention) {
        modules.of_op.emplace(item.name, item.name);
      }
      for (const ValueId operand : item.operands) {
        const TensorId tensor = step_.values[at(operand)].tensor;
        const Tensor& read = workload_.tensors[at(tensor)];
        if (read.role != TensorRole::parameter) continue;
        const std::string module = module_of(item.name, read.name);
        modules.of_op[item.name] = module;
        add(module, tensor);
      }
    }
    add_unread(block, modules.own);
    find_begins(block, modules);
    return modules;
  }

  // What a module's kernels read is its input, but for what they have made themselves.
  void find_begins(std::size_t block, Modules& modules) const {
    std::map<std::string, std::set<TensorId>> made;
    std::set<std::string> with_gradient;
    for (const Item& item : step_.blocks[block].forward.body) {
      const auto module = modules.of_op.find(item.name);
      if (item.kind != TaskKind::kernel || module == modules.of_op.end()) continue;
      for (const ValueId operand : item.operands) {
        const TensorId tensor = step_.values[at(operand)].tensor;
        const bool is_input = workload_.tensors[at(tensor)].role != TensorRole::parameter &&
                              !made[module->second].contains(tensor);
        if (is_input && differentiable_[at(tensor)]) with_gradient.insert(module->second);
      }
      for (const ValueId result : item.results) {
        made[module->second].insert(step_.values[at(result)].tensor);
      }
    }
    for (const auto& [module, parameters] : modules.own) {
      if (!with_gradient.contains(module)) modules.begin_gradients.insert(module);
    }
  }

  // What no kernel reads (a token that is put before others).
  void add_unread(std::size_t block, OwnParameters& own) const {
    std::set<TensorId> known;
    for (const auto& [module, parameters] : own) known.insert(parameters.begin(), parameters.end());
    for (const Op& op : workload_.blocks[block].forward) {
      for (const Operand& operand : op.operands) {
        const Tensor& tensor = workload_.tensors[at(operand.tensor)];
        const bool is_new = tensor.role == TensorRole::parameter && at(tensor.block) == block &&
                            known.insert(operand.tensor).second;
        if (is_new) own[tensor.name.substr(0, tensor.name.rfind('.'))].push_back(operand.tensor);
      }
    }
  }

  void pass(const BlockInstance& instance, Phase phase, std::size_t segment) {
    const BlockProgram& block = step_.blocks[at(instance.block)];
    const std::vector<Item>& body = (phase == Phase::forward ? block.forward : block.backward).body;
    const Modules& modules = modules_[at(instance.block)];
    phase_ = phase;
    segment_ = segment;
    const auto module_of_item = [&](const Item& item) -> const std::string* {
      const auto module = modules.of_op.find(item.name);
      const bool is_in_one = item.kind == TaskKind::kernel && module != modules.of_op.end();
      return is_in_one ? &module->second : nullptr;
    };
    for (item_ = 0; item_ < body.size(); ++item_) {
      const std::string* module = module_of_item(body[item_]);
      if (module == nullptr) continue;
      const bool again = body[item_].recompute;
      if (again && needing_.empty()) {
        const auto first =
            std::find_if(body.begin() + static_cast<std::ptrdiff_t>(item_), body.end(),
                         [&](const Item& item) { return !item.recompute && module_of_item(item); });
        needing_ = first != body.end() ? *module_of_item(*first) : *module;
        visit(instance, needing_, modules);
        again_from_ = entered_.size();
      }
      if (!again && !needing_.empty()) {
        visit(instance, std::exchange(needing_, {}), modules);
        entered_.resize(again_from_);
        steps_of_entered_.resize(again_from_);
        again_from_ = 0;
      }
      visit(instance, *module, modules);
    }
  }

  void visit(const BlockInstance& instance, const std::string& module, const Modules& modules) {
    const Block& block = workload_.blocks[at(instance.block)];
    std::vector<Entered> path;
    for (std::string& name : modules_of(module)) {
      const bool in_layer = name.ends_with(".{}") || (!path.empty() && path.back().layer >= 0);
      path.push_back({std::move(name), in_layer ? block.numbers[at(instance.ordinal)] : -1});
    }
    // Again from the layer on.
    std::size_t outer = 0;
    while (again_from_ > 0 && outer < path.size() && path[outer].layer < 0) ++outer;
    const auto is_within = [&] {
      const std::size_t depth = entered_.size() - again_from_;
      return outer + depth <= path.size() &&
             std::equal(entered_.begin() + static_cast<std::ptrdiff_t>(again_from_), entered_.end(),
                        path.begin() + static_cast<std::ptrdiff_t>(outer));
    };
    while (!is_within()) leave();
    for (std::size_t p = outer + entered_.size() - again_from_; p < path.size(); ++p) {
      entered_.push_back(path[p]);
      steps_of_entered_.push_back(step_of(name_of(path, p + 1), instance, modules));
      add(steps_of_entered_.back(), /*enters=*/true);
    }
  }

  ModuleStep step_of(const std::string& module, const BlockInstance& instance,
                     const Modules& modules) {
    ModuleStep step;
    step.again = again_from_ > 0;
    step.at_the_end =
        phase_ == Phase::backward && !step.again && modules.begin_gradients.contains(module);
    const bool in_layer = module.find("{}") != std::string::npos;
    const BlockInstance of = in_layer ? instance : BlockInstance{};
    step.module = known_.try_emplace({module, of.block, of.ordinal}, known_.size()).first->second;
    const auto parameters = modules.own.find(module);
    if (parameters != modules.own.end()) {
      step.parameters = numbers_of(parameters->second, instance);
    }
    return step;
  }

  // "model.layers.{}.mlp", as ops have it.
  [[nodiscard]] static std::string name_of(const std::vector<Entered>& path, std::size_t depth) {
    std::string name;
    for (std::size_t i = 0; i < depth; ++i) name += (name.empty() ? "" : ".") + path[i].name;
    return name;
  }

  std::vector<std::size_t> numbers_of(const std::vector<TensorId>& parameters,
                                      const BlockInstance& instance) {
    std::vector<std::size_t> numbers;
    for (const TensorId parameter : parameters) {
      const bool is_of_block = workload_.tensors[at(parameter)].block == instance.block;
      const ParameterInstance one{parameter, is_of_block ? instance.ordinal : 0};
      const auto [number, is_new] = numbers_.try_emplace(one, walk_.parameters.size());
      if (is_new) {
        walk_.parameters.push_back(one);
        walk_.frozen.push_back(!workload_.tensors[at(parameter)].trained);
      }
      numbers.push_back(number->second);
    }
    return numbers;
  }

  void add(ModuleStep step, bool enters) {
    step.enters = enters;
    step.phase = phase_;
    step.segment = segment_;
    step.item = item_;
    walk_.steps.push_back(std::move(step));
  }

  void leave() {
    const ModuleStep& step = steps_of_entered_.back();
    if (step.at_the_end) {
      leave_late_.push_back(step);
    } else {
      add(step, /*enters=*/false);
    }
    entered_.pop_back();
    steps_of_entered_.pop_back();
  }

  void leave_all() {
    while (!entered_.empty()) leave();
  }

  const Workload& workload_;
  const SpmdStep& step_;
  std::vector<Modules> modules_;  // by block
  ModuleWalk walk_;
  std::map<ParameterInstance, std::size_t> numbers_;
  std::vector<bool> differentiable_;                                                  // by tensor
  std::map<std::tuple<std::string, std::int32_t, std::int32_t>, std::size_t> known_;  // modules
  std::vector<Entered> entered_;              // the outermost first
  std::vector<ModuleStep> steps_of_entered_;  // of each of them
  std::vector<ModuleStep> leave_late_;
  std::string needing_;  // the module in whose backward others are computed again; empty: none
  std::size_t again_from_ = 0;  // so many were entered before these
  Phase phase_ = Phase::forward;
  std::size_t segment_ = 0;
  std::size_t item_ = 0;
};

}  // namespace

ModuleWalk walk_modules(const Workload& workload, const SpmdStep& step) {
  return Walk(workload, step).run();
}

}  // namespace shardsim
