#include "workloads/step/rematerialization.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/index.hpp"
#include "base/pattern.hpp"

namespace shardsim {
namespace {

using Policy = Rematerialization::Policy;

class Rematerializer {
 public:
  Rematerializer(Workload& workload, const Rematerialization& options)
      : workload_(workload),
        policy_(options.policy),
        kept_(workload.tensors.size(), policy_ == Policy::none) {
    if (policy_ == Policy::named) keep_named(options.save);
    for (const Block& block : workload_.blocks) keep_of(block);
    for (std::size_t t = 0; t < kept_.size(); ++t) {
      if (workload_.tensors[t].remade) kept_[t] = false;
    }
  }

  void run() {
    for (std::size_t b = 0; b < workload_.blocks.size(); ++b) {
      if (workload_.blocks[b].is_layer) rematerialize_block(b);
    }
  }

 private:
  void keep_of(const Block& block) {
    for (const TensorId carry : block.carries_in) kept_[at(carry)] = true;
    if (policy_ != Policy::selective) return;
    for (const Op& op : block.forward) {
      if (!is_expensive(kind_of(op))) continue;
      for (const Operand& result : op.results) kept_[at(result.tensor)] = true;
    }
  }

  static bool is_expensive(OpKind kind) {
    return kind == OpKind::einsum || kind == OpKind::attention || kind == OpKind::scan ||
           kind == OpKind::chunked_scan;
  }

  void keep_named(const std::vector<std::string>& expressions) {
    for (std::size_t i = 0; i < expressions.size(); ++i) {
      const Place place{"", fmt::format("/workload/rematerialization/save/{}", i)};
      const Pattern pattern(expressions[i], place);
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
        throw InputError(place,
                         fmt::format("pattern \"{}\" matches no activation of a repeated block",
                                     expressions[i]));
      }
    }
  }

  [[nodiscard]] bool matches(const Pattern& pattern, TensorId tensor,
                             const std::vector<std::int32_t>& numbers, const Place& place) const {
    const std::string& name = workload_.tensors[at(tensor)].name;
    const bool first = pattern.search(instance_name(name, numbers.front()));
    for (const std::int32_t number : numbers) {
      if (pattern.search(instance_name(name, number)) == first) continue;
      throw InputError(
          place, fmt::format("the pattern tells {} and {} apart, which is not supported",
                             instance_name(name, numbers.front()), instance_name(name, number)));
    }
    return first;
  }

  void rematerialize_block(std::size_t b) {
    std::map<TensorId, TensorId> repeated = needed_by_backward(workload_.blocks[b]);
    const std::vector<bool> live = live_ops(workload_.blocks[b], repeated);

    std::vector<Op> recomputed;
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (live[i]) recomputed.push_back(repeat(workload_.blocks[b].forward[i], repeated));
    }
    Block& block = workload_.blocks[b];
    for (Op& op : block.backward) read_repeated(op, repeated);
    if (policy_ == Policy::none) {
      insert_where_read(std::move(recomputed), block);
      return;
    }
    block.backward.insert(block.backward.begin(), std::make_move_iterator(recomputed.begin()),
                          std::make_move_iterator(recomputed.end()));
  }

  // What a fused kernel makes again it makes where it needs it: each op before the first that reads
  // it.
  static void insert_where_read(std::vector<Op> recomputed, Block& block) {
    for (auto op = recomputed.rbegin(); op != recomputed.rend(); ++op) {
      const auto reads = [&](const Op& reader) {
        return std::any_of(
            reader.operands.begin(), reader.operands.end(), [&](const Operand& operand) {
              return std::any_of(
                  op->results.begin(), op->results.end(),
                  [&](const Operand& result) { return result.tensor == operand.tensor; });
            });
      };
      auto first = std::find_if(block.backward.begin(), block.backward.end(), reads);
      while (first != block.backward.begin() && std::prev(first)->recompute) --first;
      block.backward.insert(first, std::move(*op));
    }
  }

  [[nodiscard]] bool is_discarded(TensorId tensor) const {
    return workload_.tensors[at(tensor)].role == TensorRole::activation && !kept_[at(tensor)];
  }

  // Keys: what is needed and not kept. The values are filled in when the ops are repeated.
  [[nodiscard]] std::map<TensorId, TensorId> needed_by_backward(const Block& block) const {
    std::map<TensorId, TensorId> needed;
    for (const Op& op : block.backward) {
      for (const Operand& operand : op.operands) {
        if (is_discarded(operand.tensor)) needed[operand.tensor] = no_tensor;
      }
    }
    return needed;
  }

  [[nodiscard]] std::vector<bool> live_ops(const Block& block,
                                           std::map<TensorId, TensorId>& needed) const {
    std::vector<bool> live(block.forward.size());
    for (std::size_t i = block.forward.size(); i-- > 0;) {
      const Op& op = block.forward[i];
      live[i] = std::any_of(op.results.begin(), op.results.end(),
                            [&](const Operand& result) { return needed.contains(result.tensor); });
      if (!live[i]) continue;
      for (const Operand& operand : op.operands) {
        if (is_discarded(operand.tensor)) needed[operand.tensor] = no_tensor;
      }
    }
    return live;
  }

  Op repeat(Op op, std::map<TensorId, TensorId>& repeated) {
    op.recompute = true;
    read_repeated(op, repeated);
    for (Operand& result : op.results) {
      Tensor fresh = workload_.tensors[at(result.tensor)];
      fresh.name += ".recomputed";
      fresh.primal = result.tensor;
      workload_.tensors.push_back(std::move(fresh));
      const auto id = static_cast<TensorId>(workload_.tensors.size() - 1);
      if (const auto known = repeated.find(result.tensor); known != repeated.end())
        known->second = id;
      result.tensor = id;
    }
    return op;
  }

  static void read_repeated(Op& op, const std::map<TensorId, TensorId>& repeated) {
    for (Operand& operand : op.operands) {
      const auto found = repeated.find(operand.tensor);
      if (found != repeated.end()) operand.tensor = found->second;
    }
  }

  Workload& workload_;
  Policy policy_;
  std::vector<bool> kept_;  // by forward tensor
};

}  // namespace

void rematerialize(Workload& workload, const Rematerialization& options) {
  const bool remakes = std::any_of(workload.tensors.begin(), workload.tensors.end(),
                                   [](const Tensor& tensor) { return tensor.remade; });
  if (options.policy == Policy::none && !remakes) return;
  Rematerializer(workload, options).run();
}

}  // namespace shardsim
