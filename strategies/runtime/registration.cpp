#include "strategies/runtime/registration.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/index.hpp"

namespace shardsim {
namespace {

// Does a tensor seen so have a dimension with that role?
bool has(const Workload& workload, const Operand& operand, LabelRole role) {
  return std::any_of(operand.dims.begin(), operand.dims.end(), [&](const Dim& dim) {
    return std::any_of(dim.begin(), dim.end(),
                       [&](LabelId label) { return workload.labels[at(label)].role == role; });
  });
}

// Of what a product makes: the dimension that is split in tensor parallelism, if it has one.
LabelRole made_role(const Workload& workload, const Op& op) {
  if (kind_of(op) != OpKind::einsum || op.results.empty()) return LabelRole::none;
  for (const LabelRole role : {LabelRole::heads, LabelRole::width}) {
    if (has(workload, op.results.front(), role)) return role;
  }
  return LabelRole::none;
}

// Of torchtitan's blocks that register norms before their feed-forward layers.
bool has_latents_or_sinks(const Workload& workload, const Block& block) {
  return std::any_of(block.forward.begin(), block.forward.end(), [&](const Op& op) {
    const bool reads_parameter =
        std::any_of(op.operands.begin(), op.operands.end(), [&](const Operand& operand) {
          return workload.tensors[at(operand.tensor)].role == TensorRole::parameter;
        });
    return op.part == OpPart::key_latent || (kind_of(op) == OpKind::attention && reads_parameter);
  });
}

// Of the modules of a layer.
std::size_t module_place(const Op& op, bool norms_first) {
  const bool is_branch_norm = op.part == OpPart::input_norm || op.part == OpPart::feed_forward_norm;
  if (is_branch_norm || op.module == OpModule::none) return norms_first ? 1 : 2;
  return op.module == OpModule::attention || op.module == OpModule::mixer ? 0 : norms_first ? 2 : 1;
}

class Registration {
 public:
  Registration(const Workload& workload, std::size_t block, bool local)
      : workload_(workload), block_(block), local_(local) {}

  std::vector<RegisteredParameter> run() {
    // Modules of shared experts come behind the others of their branch, whenever they are run.
    std::vector<const Op*> shared;
    const auto visit_shared = [&] {
      for (const Op* op : shared) visit(*op);
      shared.clear();
    };
    for (const Op* op : in_order()) {
      if (op->module == OpModule::shared_experts) {
        shared.push_back(op);
      } else {
        if (opens_branch(*op)) visit_shared();
        visit(*op);
      }
    }
    visit_shared();
    order_head();
    return std::move(parameters_);
  }

 private:
  // The block's ops as modules are registered: what makes queries before what makes latents of
  // keys, which local modules run first.
  [[nodiscard]] std::vector<const Op*> in_order() const {
    std::vector<const Op*> ops;
    std::optional<std::size_t> latent;
    bool has_queries = false;
    for (const Op& op : workload_.blocks[block_].forward) {
      ops.push_back(&op);
      if (opens_branch(op)) has_queries = false;
      if (!local_ || kind_of(op) != OpKind::einsum) continue;
      const bool makes_heads = made_role(workload_, op) == LabelRole::heads;
      const bool waits = op.part == OpPart::key_latent && !makes_heads && !has_queries;
      if (waits) latent = ops.size() - 1;
      has_queries = has_queries || makes_heads;
      if (!makes_heads || !latent) continue;
      const auto place = ops.begin() + static_cast<std::ptrdiff_t>(*latent);
      std::rotate(place, place + 1, ops.end());
      latent.reset();
    }
    return ops;
  }

  // What products that are one have in common: what they read, what they make, and which of their
  // operands it is (weight or bias).
  using Product = std::tuple<TensorId, LabelRole, std::size_t>;

  [[nodiscard]] const Tensor& tensor(TensorId id) const { return workload_.tensors[at(id)]; }

  [[nodiscard]] bool is_output_of_attention(const Op& op) const {
    return kind_of(op) == OpKind::einsum && has(workload_, op.operands.front(), LabelRole::heads) &&
           !has(workload_, op.results.front(), LabelRole::heads);
  }

  [[nodiscard]] bool makes_logits(const Op& op) const {
    return kind_of(op) == OpKind::einsum && has(workload_, op.results.front(), LabelRole::vocab);
  }

  // The norm before the last product that makes logits, all else, and that product.
  void order_head() {
    const std::vector<Op>& ops = workload_.blocks[block_].forward;
    const auto head =
        std::find_if(ops.rbegin(), ops.rend(), [&](const Op& op) { return makes_logits(op); });
    if (head == ops.rend()) return;
    const auto norm = std::find_if(head, ops.rend(), [&](const Op& op) {
      return kind_of(op) == OpKind::norm &&
             op.results.front().tensor == head->operands.front().tensor;
    });
    const auto reads = [](const Op& op, const RegisteredParameter& parameter) {
      return std::any_of(op.operands.begin(), op.operands.end(), [&](const Operand& operand) {
        return operand.tensor == parameter.front();
      });
    };
    std::stable_partition(parameters_.begin(), parameters_.end(),
                          [&](const auto& parameter) { return !reads(*head, parameter); });
    if (norm == ops.rend()) return;
    std::stable_partition(parameters_.begin(), parameters_.end(),
                          [&](const auto& parameter) { return reads(*norm, parameter); });
  }

  [[nodiscard]] bool opens_branch(const Op& op) const {
    return kind_of(op) == OpKind::norm &&
           (tensor(op.results.front().tensor).mark == StreamMark::branch ||
            op.part == OpPart::input_norm || op.part == OpPart::feed_forward_norm);
  }

  // Of latents, between two products.
  [[nodiscard]] bool is_norm_within_attention(const Op& op) const {
    return kind_of(op) == OpKind::norm && op.module == OpModule::attention && !opens_branch(op);
  }

  void visit(const Op& op) {
    const bool goes_first = is_output_of_attention(op);
    const LabelRole role = made_role(workload_, op);
    std::size_t added = 0;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const TensorId id = op.operands[i].tensor;
      const Tensor& parameter = tensor(id);
      const bool is_new = parameter.role == TensorRole::parameter && parameter.trained &&
                          at(parameter.block) == block_ && !is_registered(id);
      if (!is_new) continue;
      if (role != LabelRole::none) {
        const Product product{op.operands.front().tensor, role, i};
        const auto known = products_.find(product);
        if (known != products_.end()) {
          find(known->second).push_back(id);
          continue;
        }
        products_[product] = id;
      }
      if (local_ && is_norm_within_attention(op)) {
        late_.push_back({id});
        continue;
      }
      const std::size_t place = goes_first ? branch_begins_ + added++ : parameters_.size();
      parameters_.insert(parameters_.begin() + static_cast<std::ptrdiff_t>(place), {id});
    }
    if (goes_first) parameters_.insert(parameters_.end(), late_.begin(), late_.end());
    if (goes_first) late_.clear();
    if (opens_branch(op) || goes_first) branch_begins_ = parameters_.size();
  }

  [[nodiscard]] bool is_registered(TensorId id) const {
    const auto has_it = [&](const RegisteredParameter& parameter) {
      return std::count(parameter.begin(), parameter.end(), id) > 0;
    };
    return std::any_of(parameters_.begin(), parameters_.end(), has_it) ||
           std::any_of(late_.begin(), late_.end(), has_it);
  }

  RegisteredParameter& find(TensorId first) {
    return *std::find_if(parameters_.begin(), parameters_.end(),
                         [&](const auto& parameter) { return parameter.front() == first; });
  }

  const Workload& workload_;
  std::size_t block_;
  bool local_;
  std::vector<RegisteredParameter> parameters_;
  std::vector<RegisteredParameter> late_;  // norms that wait for the attention's end
  std::map<Product, TensorId> products_;   // the first of each
  std::size_t branch_begins_ = 0;          // place in parameters_
};

// Parameters of a module and of those within it: its own first, then module by module.
class ListedModule {
 public:
  ListedModule(const Workload& workload, const std::vector<TensorId>& used)
      : workload_(workload), used_(used) {}

  std::vector<RegisteredParameter> list() {
    add("", used_);
    return std::move(listed_);
  }

 private:
  void add(const std::string& module, const std::vector<TensorId>& parameters) {
    std::vector<std::pair<std::string, std::vector<TensorId>>> within;
    for (const TensorId parameter : parameters) {
      const std::string& name = workload_.tensors[at(parameter)].name;
      const std::size_t dot = name.find('.', module.size());
      if (dot == std::string::npos) {
        listed_.push_back({parameter});
        continue;
      }
      const std::string next = name.substr(0, dot + 1);
      auto found = std::find_if(within.begin(), within.end(),
                                [&](const auto& known) { return known.first == next; });
      if (found == within.end()) found = within.insert(within.end(), {next, {}});
      found->second.push_back(parameter);
    }
    for (const auto& [next, of_next] : within) add(next, of_next);
  }

  const Workload& workload_;
  const std::vector<TensorId>& used_;
  std::vector<RegisteredParameter> listed_;
};

// Of a product with a bias: does autograd hand that over before the weight's gradient?
bool bias_comes_first(const Workload& workload, std::size_t block, TensorId weight, TensorId bias,
                      bool linear_functions) {
  for (const Op& op : workload.blocks[block].forward) {
    if (kind_of(op) != OpKind::einsum) continue;
    const Operand* of_weight = nullptr;
    bool reads_bias = false;
    for (const Operand& operand : op.operands) {
      if (operand.tensor == weight) of_weight = &operand;
      reads_bias |= operand.tensor == bias;
    }
    if (of_weight == nullptr || !reads_bias) continue;
    if (of_weight->dims.size() > 2) return false;  // a convolution
    const std::vector<Dim>& made = op.results.front().dims;
    const LabelId first = of_weight->dims.front().front();
    const bool is_linear = std::any_of(made.begin(), made.end(), [&](const Dim& dim) {
      return std::count(dim.begin(), dim.end(), first) > 0;
    });
    return !(is_linear && linear_functions);
  }
  return false;
}

}  // namespace

std::vector<RegisteredParameter> used_parameters(const Workload& workload, std::size_t block) {
  std::vector<TensorId> used;
  for (const Op& op : workload.blocks[block].forward) {
    for (const Operand& operand : op.operands) {
      const Tensor& tensor = workload.tensors[at(operand.tensor)];
      const bool is_of_block =
          tensor.role == TensorRole::parameter && tensor.trained && at(tensor.block) == block;
      if (is_of_block && std::find(used.begin(), used.end(), operand.tensor) == used.end()) {
        used.push_back(operand.tensor);
      }
    }
  }
  return ListedModule(workload, used).list();
}

std::vector<RegisteredParameter> made_parameters(const Workload& workload,
                                                 const BlockPass& backward, std::size_t block,
                                                 bool linear_functions) {
  std::vector<RegisteredParameter> parameters;
  for (const Write& write : backward.writes) {
    const bool goes_first =
        !parameters.empty() && bias_comes_first(workload, block, parameters.back().front(),
                                                write.parameter, linear_functions);
    parameters.insert(parameters.end() - (goes_first ? 1 : 0), {write.parameter});
  }
  return parameters;
}

std::vector<std::vector<TensorId>> joint_weights(const Workload& workload, std::size_t block) {
  std::map<std::tuple<TensorId, LabelRole, OpModule>, std::vector<TensorId>> groups;
  for (const Op& op : workload.blocks[block].forward) {
    const LabelRole role = made_role(workload, op);
    if (role == LabelRole::none || op.operands.size() < 2) continue;
    const TensorId weight = op.operands[1].tensor;
    if (workload.tensors[at(weight)].role != TensorRole::parameter) continue;
    groups[{op.operands.front().tensor, role, op.module}].push_back(weight);
  }
  std::vector<std::vector<TensorId>> joint;
  for (auto& [read, weights] : groups) {
    if (weights.size() > 1) joint.push_back(std::move(weights));
  }
  return joint;
}

std::vector<RegisteredParameter> registered_parameters(const Workload& workload, std::size_t block,
                                                       bool local) {
  return Registration(workload, block, local).run();
}

bool is_copied_table(const Workload& workload, std::size_t block, TensorId parameter) {
  if (workload.tensors[at(parameter)].copy_of == no_tensor) return false;
  const std::vector<Op>& ops = workload.blocks[block].forward;
  return std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
    return kind_of(op) == OpKind::lookup &&
           std::any_of(op.operands.begin(), op.operands.end(),
                       [&](const Operand& operand) { return operand.tensor == parameter; });
  });
}

std::vector<std::size_t> torch_places(const Workload& workload, bool titan) {
  std::vector<std::size_t> places(workload.tensors.size(), 0);
  for (std::size_t b = 0; b < workload.blocks.size(); ++b) {
    const Block& block = workload.blocks[b];
    const bool norms_first = titan && has_latents_or_sinks(workload, block);
    std::size_t used = 0;
    for (const Op& op : block.forward) {
      for (const Operand& operand : op.operands) {
        const Tensor& tensor = workload.tensors[at(operand.tensor)];
        std::size_t& place = places[at(operand.tensor)];
        if (tensor.role != TensorRole::parameter || at(tensor.block) != b || place != 0) continue;
        place = ++used + module_place(op, norms_first) * workload.tensors.size();
      }
    }
  }
  return places;
}

}  // namespace shardsim
