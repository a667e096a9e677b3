#include "workloads/step/kept_activations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/pattern.hpp"
#include "workloads/graph/instance_pattern.hpp"
#include "workloads/step/saved_names.hpp"

namespace shardsim {
namespace {

bool is_read_by(const Op& op, TensorId tensor) {
  return std::any_of(op.operands.begin(), op.operands.end(),
                     [&](const Operand& operand) { return operand.tensor == tensor; });
}

class Keeper {
 public:
  Keeper(const Workload& workload, const Rematerialization& options, const std::vector<bool>& kinds)
      : workload_(workload), options_(options), kinds_(kinds), kept_(workload.tensors.size()) {
    if (options_.policy == Rematerialization::Policy::named) {
      keep_named(options_.save, "save");
      keep_named(options_.offload, "offload");
    }
    if (options_.policy == Rematerialization::Policy::modules) require_modules();
    for (std::size_t b = 0; b < workload.blocks.size(); ++b) keep_of(b);
    for (std::size_t t = 0; t < kept_.size(); ++t) {
      if (workload.tensors[t].remade) kept_[t] = false;
    }
  }

  // Nothing but what `offload` says, or a policy that moves what it keeps.
  Keeper(const Workload& workload, const Rematerialization& options)
      : workload_(workload), options_(options), kinds_(no_kinds_), kept_(workload.tensors.size()) {
    using Policy = Rematerialization::Policy;
    if (options_.policy == Policy::named) keep_named(options_.offload, "offload");
    if (options_.policy != Policy::of_jax || !is_offloading(options_.save.front())) return;
    for (const Block& block : workload.blocks) {
      if (block.is_layer) keep(saved_by_policy(block, on_device(options_.save.front())));
    }
  }

  [[nodiscard]] std::vector<bool> kept() && { return std::move(kept_); }

 private:
  void keep_of(std::size_t b) {
    const Block& block = workload_.blocks[b];
    for (const TensorId carry : block.carries_in) kept_[at(carry)] = true;
    if (!kinds_[b] || options_.policy == Rematerialization::Policy::none) return keep_all(block);
    switch (options_.policy) {
      case Rematerialization::Policy::none:
      case Rematerialization::Policy::full:
      case Rematerialization::Policy::named:
        return;
      case Rematerialization::Policy::selective:
        for (const Op& op : block.forward) {
          if (is_expensive(kind_of(op))) keep_results(op);
        }
        return;
      case Rematerialization::Policy::of_jax:
        return keep(saved_by_policy(block, on_device(options_.save.front())));
      case Rematerialization::Policy::modules:
        keep_all(block);
        return discard_modules(block);
    }
  }

  void keep(const std::vector<TensorId>& tensors) {
    for (const TensorId tensor : tensors) kept_[at(tensor)] = true;
  }
  void keep_results(const Op& op) {
    for (const Operand& result : op.results) kept_[at(result.tensor)] = true;
  }
  void keep_all(const Block& block) {
    for (const Op& op : block.forward) keep_results(op);
  }

  static bool is_expensive(OpKind kind) {
    return kind == OpKind::einsum || kind == OpKind::attention || kind == OpKind::scan ||
           kind == OpKind::chunked_scan || kind == OpKind::exchange;
  }

  // What leaves a module that is repeated from its input stays; a view of what goes, goes.
  void discard_modules(const Block& block) {
    for (const Op& op : block.forward) {
      for (const std::string& word : options_.save) {
        if (!is_of(op, word)) continue;
        for (const Operand& result : op.results) {
          if (discards_results(word) || !leaves(block, result.tensor, word)) {
            kept_[at(result.tensor)] = false;
          }
        }
      }
      if (!op.view || kept_[at(op.operands.front().tensor)]) continue;
      if (workload_.tensors[at(op.operands.front().tensor)].role != TensorRole::activation)
        continue;
      for (const Operand& result : op.results) kept_[at(result.tensor)] = false;
    }
  }

  static bool leaves(const Block& block, TensorId tensor, std::string_view module) {
    const bool carried = std::count(block.carries_out.begin(), block.carries_out.end(), tensor) > 0;
    return carried || std::any_of(block.forward.begin(), block.forward.end(), [&](const Op& op) {
             return is_read_by(op, tensor) && !is_of(op, module);
           });
  }

  void require_modules() const {
    for (std::size_t i = 0; i < options_.save.size(); ++i) {
      const bool found =
          std::any_of(workload_.blocks.begin(), workload_.blocks.end(), [&](const Block& block) {
            return block.is_layer &&
                   std::any_of(block.forward.begin(), block.forward.end(),
                               [&](const Op& op) { return is_of(op, options_.save[i]); });
          });
      if (found) continue;
      throw InputError(
          {"", fmt::format("/workload/rematerialization/modules/{}", i)},
          fmt::format("no layer of {} has a module \"{}\"", workload_.model, options_.save[i]));
    }
  }

  void keep_named(const std::vector<std::string>& names, std::string_view key) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Place place{"", fmt::format("/workload/rematerialization/{}/{}", key, i)};
      if (keep_by_name(names[i], place)) continue;
      keep_by_pattern(names[i], place);
    }
  }

  // Whether it is one of MaxText's names.
  bool keep_by_name(const std::string& name, const Place& place) {
    bool found = false;
    for (const Block& block : workload_.blocks) {
      if (!block.is_layer) continue;
      const auto tensors = saved_by_name(block, name);
      if (!tensors) return false;
      found = found || !tensors->empty();
      keep(*tensors);
    }
    if (found) return true;
    throw InputError(place, fmt::format("no layer of {} has a \"{}\"", workload_.model, name));
  }

  void keep_by_pattern(const std::string& expression, const Place& place) {
    const Pattern pattern(expression, place);
    bool matched = false;
    for (const Block& block : workload_.blocks) {
      if (!block.is_layer) continue;
      for (const Op& op : block.forward) {
        for (const Operand& result : op.results) {
          if (!matches(pattern, result.tensor, block.numbers, place)) continue;
          kept_[at(result.tensor)] = true;
          matched = true;
        }
      }
    }
    if (!matched) {
      throw InputError(
          place,
          fmt::format("pattern \"{}\" matches no activation of a repeated block", expression));
    }
  }

  [[nodiscard]] bool matches(const Pattern& pattern, TensorId tensor,
                             const std::vector<std::int32_t>& numbers, const Place& place) const {
    const std::string& name = workload_.tensors[at(tensor)].name;
    return found_in_all(pattern, name, numbers, place);
  }

  const Workload& workload_;
  const Rematerialization& options_;
  const std::vector<bool> no_kinds_ = {};
  const std::vector<bool>& kinds_;
  std::vector<bool> kept_;  // by forward tensor
};

}  // namespace

std::vector<bool> kept_activations(const Workload& workload, const Rematerialization& options,
                                   const std::vector<bool>& kinds) {
  return Keeper(workload, options, kinds).kept();
}

std::vector<bool> offloaded_activations(const Workload& workload,
                                        const Rematerialization& options) {
  return Keeper(workload, options).kept();
}

}  // namespace shardsim
