#include "strategies/runtime/module_walk.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/index.hpp"

namespace shardsim {
namespace {

// A module that has been entered: its name in the one that holds it, of a layer with its number.
struct Entered {
  std::string name;
  std::int32_t layer = -1;
  bool again = false;  // by what backward computes again
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
  Walk(const Workload& workload, const SpmdStep& step) : workload_(workload), step_(step) {
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
    return std::move(walk_);
  }

 private:
  using OwnParameters = std::map<std::string, std::vector<TensorId>>;  // by module

  // Of a block: which module runs an op, and what is a module's own.
  struct Modules {
    std::map<std::string, std::string> of_op;  // those that enter a module
    OwnParameters own;
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
    return modules;
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
    for (item_ = 0; item_ < body.size(); ++item_) {
      const auto module = modules.of_op.find(body[item_].name);
      if (body[item_].kind != TaskKind::kernel || module == modules.of_op.end()) continue;
      visit(instance, module->second, modules.own, body[item_].recompute);
    }
  }

  void visit(const BlockInstance& instance, const std::string& module, const OwnParameters& own,
             bool again) {
    const Block& block = workload_.blocks[at(instance.block)];
    std::vector<Entered> path;
    for (std::string& name : modules_of(module)) {
      const bool in_layer = name.ends_with(".{}") || (!path.empty() && path.back().layer >= 0);
      path.push_back({std::move(name), in_layer ? block.numbers[at(instance.ordinal)] : -1,
                      in_layer && again});
    }
    while (entered_.size() > path.size() ||
           !std::equal(entered_.begin(), entered_.end(), path.begin())) {
      leave();
    }
    while (entered_.size() < path.size()) {
      entered_.push_back(path[entered_.size()]);
      const auto parameters = own.find(name_of_entered());
      own_of_.push_back(parameters != own.end() ? numbers_of(parameters->second, instance)
                                                : std::vector<std::size_t>{});
      add(/*enters=*/true);
    }
  }

  // "model.layers.{}.mlp", as ops have it.
  [[nodiscard]] std::string name_of_entered() const {
    std::string name;
    for (const Entered& module : entered_) {
      name += (name.empty() ? "" : ".") + module.name;
    }
    return name;
  }

  std::vector<std::size_t> numbers_of(const std::vector<TensorId>& parameters,
                                      const BlockInstance& instance) {
    std::vector<std::size_t> numbers;
    for (const TensorId parameter : parameters) {
      const bool is_of_block = workload_.tensors[at(parameter)].block == instance.block;
      const ParameterInstance one{parameter, is_of_block ? instance.ordinal : 0};
      const auto [number, is_new] = numbers_.try_emplace(one, walk_.parameters.size());
      if (is_new) walk_.parameters.push_back(one);
      numbers.push_back(number->second);
    }
    return numbers;
  }

  void add(bool enters) {
    walk_.steps.push_back({enters, phase_, segment_, item_, own_of_.back()});
  }

  void leave() {
    add(/*enters=*/false);
    entered_.pop_back();
    own_of_.pop_back();
  }

  void leave_all() {
    while (!entered_.empty()) leave();
  }

  const Workload& workload_;
  const SpmdStep& step_;
  std::vector<Modules> modules_;  // by block
  ModuleWalk walk_;
  std::map<ParameterInstance, std::size_t> numbers_;
  std::vector<Entered> entered_;                  // the outermost first
  std::vector<std::vector<std::size_t>> own_of_;  // of each of them
  Phase phase_ = Phase::forward;
  std::size_t segment_ = 0;
  std::size_t item_ = 0;
};

}  // namespace

ModuleWalk walk_modules(const Workload& workload, const SpmdStep& step) {
  return Walk(workload, step).run();
}

}  // namespace shardsim
