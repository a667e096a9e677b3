#include "strategies/runtime/module_walk.hpp"

#include <algorithm>
#include <map>
#include <optional>
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
    for (const BlockProgram& block : step.blocks) own_.push_back(own_parameters(block.forward));
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

  // Of the modules that a block's forward pass runs.
  [[nodiscard]] OwnParameters own_parameters(const BlockPass& forward) const {
    OwnParameters own;
    for (const Item& item : forward.body) {
      if (item.kind != TaskKind::kernel) continue;
      if (item.kernel.kernel_class == KernelClass::attention) own.try_emplace(item.name);
      for (const ValueId operand : item.operands) {
        const TensorId tensor = step_.values[at(operand)].tensor;
        if (workload_.tensors[at(tensor)].role != TensorRole::parameter) continue;
        auto& parameters = own[item.name];
        if (std::count(parameters.begin(), parameters.end(), tensor) == 0) {
          parameters.push_back(tensor);
        }
      }
    }
    return own;
  }

  void pass(const BlockInstance& instance, Phase phase, std::size_t segment) {
    const BlockProgram& block = step_.blocks[at(instance.block)];
    const std::vector<Item>& body = (phase == Phase::forward ? block.forward : block.backward).body;
    phase_ = phase;
    segment_ = segment;
    for (item_ = 0; item_ < body.size(); ++item_) {
      const auto own = own_[at(instance.block)].find(body[item_].name);
      if (body[item_].kind != TaskKind::kernel || own == own_[at(instance.block)].end()) continue;
      visit(instance, own->first, own->second, body[item_].recompute);
    }
  }

  void visit(const BlockInstance& instance, const std::string& op,
             const std::vector<TensorId>& parameters, bool again) {
    const Block& block = workload_.blocks[at(instance.block)];
    std::vector<Entered> path;
    for (std::string& name : modules_of(op)) {
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
      const bool is_last = entered_.size() == path.size();
      own_of_.push_back(is_last ? numbers_of(parameters, instance) : std::vector<std::size_t>{});
      add(/*enters=*/true);
    }
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
  std::vector<OwnParameters> own_;  // by block
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
