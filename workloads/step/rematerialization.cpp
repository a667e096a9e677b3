#include "workloads/step/rematerialization.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>
#include <utility>

#include "base/index.hpp"
#include "workloads/graph/split_kinds.hpp"
#include "workloads/step/kept_activations.hpp"
#include "workloads/step/saved_names.hpp"

namespace shardsim {
namespace {

using Policy = Rematerialization::Policy;
using Layers = Rematerialization::Layers;

bool reads(const Op& op, TensorId tensor) {
  return std::any_of(op.operands.begin(), op.operands.end(),
                     [&](const Operand& operand) { return operand.tensor == tensor; });
}

bool reads_of(const Op& reader, const Op& maker) {
  return std::any_of(maker.results.begin(), maker.results.end(),
                     [&](const Operand& result) { return reads(reader, result.tensor); });
}

// Ops of the forward pass that are repeated together: a module, as often as it is in the layer.
struct Run {
  std::size_t first = 0;
  std::size_t count = 0;
  std::string_view module;
};

class Rematerializer {
 public:
  Rematerializer(Workload& workload, const Rematerialization& options,
                 const std::vector<bool>& kinds)
      : workload_(workload),
        options_(options),
        kinds_(kinds),
        kept_(kept_activations(workload, options, kinds)) {}

  void run() {
    const std::vector<bool> offloaded = offloaded_activations(workload_, options_);
    for (std::size_t t = 0; t < offloaded.size(); ++t) workload_.tensors[t].on_host = offloaded[t];
    for (std::size_t b = 0; b < workload_.blocks.size(); ++b) {
      if (workload_.blocks[b].is_layer) rematerialize_block(b);
    }
  }

 private:
  void rematerialize_block(std::size_t b) {
    std::map<TensorId, TensorId> repeated = needed_by_backward(workload_.blocks[b]);
    std::vector<bool> live = live_ops(workload_.blocks[b], repeated);
    const std::vector<Run> runs = runs_of(workload_.blocks[b], b);
    for (const Run& run : runs) extend_to_end(run, live, workload_.blocks[b], repeated);

    std::vector<std::pair<Op, std::size_t>> recomputed;  // and its number in the forward pass
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (live[i]) recomputed.emplace_back(repeat(workload_.blocks[b].forward[i], repeated), i);
    }
    Block& block = workload_.blocks[b];
    for (Op& op : block.backward) read_repeated(op, repeated);
    if (kinds_[b] && options_.policy != Policy::none && options_.policy != Policy::modules) {
      for (auto op = recomputed.rbegin(); op != recomputed.rend(); ++op) {
        block.backward.insert(block.backward.begin(), std::move(op->first));
      }
      return;
    }
    insert_where_read(std::move(recomputed), runs, block);
  }

  // Neighbours of one module; under Megatron's methods the layer is one.
  [[nodiscard]] std::vector<Run> runs_of(const Block& block, std::size_t b) const {
    if (!kinds_[b]) return {};
    const bool is_whole = options_.to_end && options_.policy == Policy::full;
    if (is_whole || options_.layers == Layers::uniform || options_.layers == Layers::block) {
      return {{0, block.forward.size(), "layer"}};
    }
    if (options_.policy != Policy::modules) return {};
    std::vector<Run> runs;
    for (std::size_t i = 0; i < block.forward.size(); ++i) {
      const std::string_view module = module_of(block.forward[i]);
      if (module.empty()) continue;
      const bool goes_on = !runs.empty() && runs.back().module == module &&
                           runs.back().first + runs.back().count == i;
      if (goes_on) {
        ++runs.back().count;
      } else {
        runs.push_back({i, 1, module});
      }
    }
    return runs;
  }

  // Of those that are asked for: one that is repeated whole holds what is within it.
  [[nodiscard]] std::string_view module_of(const Op& op) const {
    std::string_view found;
    for (const std::string& word : options_.save) {
      if (is_of(op, word) && (found.empty() || !discards_results(word))) found = word;
      if (found == "moe") break;  // shared experts are within it
    }
    return found;
  }

  // Repeats all of a run of which anything is repeated.
  void extend_to_end(const Run& run, std::vector<bool>& live, const Block& block,
                     std::map<TensorId, TensorId>& needed) const {
    const auto begin = live.begin() + static_cast<std::ptrdiff_t>(run.first);
    const auto end = begin + static_cast<std::ptrdiff_t>(run.count);
    if (std::find(begin, end, true) == end) return;
    std::fill(begin, end, true);
    for (std::size_t i = run.first; i < run.first + run.count; ++i) {
      for (const Operand& operand : block.forward[i].operands) {
        if (is_discarded(operand.tensor)) needed.try_emplace(operand.tensor, no_tensor);
      }
    }
  }

  // Each op before the first that reads what it makes: what a fused kernel makes again it makes
  // where it needs it. Ops of a run stay together, before the first gradient of their module, too.
  static void insert_where_read(std::vector<std::pair<Op, std::size_t>> recomputed,
                                const std::vector<Run>& runs, Block& block) {
    const auto run_of = [&](std::size_t number) {
      return std::find_if(runs.begin(), runs.end(), [&](const Run& run) {
        return number >= run.first && number < run.first + run.count;
      });
    };
    while (!recomputed.empty()) {
      const auto run = run_of(recomputed.back().second);
      auto first_of_group = std::prev(recomputed.end());
      while (run != runs.end() && first_of_group != recomputed.begin() &&
             run_of(std::prev(first_of_group)->second) == run) {
        --first_of_group;
      }
      const auto is_for = [&](const Op& op) {
        return std::any_of(first_of_group, recomputed.end(), [&](const auto& repeated) {
          const bool gradient =
              run != runs.end() && !op.recompute && op.name == repeated.first.name;
          return gradient || reads_of(op, repeated.first);
        });
      };
      auto place = std::find_if(block.backward.begin(), block.backward.end(), is_for);
      if (run == runs.end()) {
        while (place != block.backward.begin() && std::prev(place)->recompute) --place;
      }
      std::vector<Op> group;
      for (auto op = first_of_group; op != recomputed.end(); ++op) {
        group.push_back(std::move(op->first));
      }
      block.backward.insert(place, std::make_move_iterator(group.begin()),
                            std::make_move_iterator(group.end()));
      recomputed.erase(first_of_group, recomputed.end());
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
  const Rematerialization& options_;
  const std::vector<bool>& kinds_;
  std::vector<bool> kept_;  // by forward tensor
};

// Whether the policy is for the `number`-th layer of its chunk.
bool is_chosen(const Rematerialization& options, std::int64_t number) {
  switch (options.layers) {
    case Layers::all:
    case Layers::uniform:
      return true;
    case Layers::every:
      return number % options.count == options.count - 1;
    case Layers::block:
      return number < options.count;
  }
  return true;
}

}  // namespace

std::vector<bool> rematerialized_kinds(Workload& workload, const Rematerialization& options,
                                       const std::vector<std::size_t>& chunks) {
  if (options.layers == Layers::all || options.layers == Layers::uniform) {
    return std::vector<bool>(workload.blocks.size(), true);
  }
  std::vector<int> choices;
  std::int64_t number = 0;
  for (std::size_t i = 0; i < workload.order.size(); ++i) {
    if (std::count(chunks.begin(), chunks.end(), i) > 0) number = 0;
    const bool is_layer = workload.blocks[at(workload.order[i].block)].is_layer;
    choices.push_back(is_layer && is_chosen(options, number) ? 1 : 0);
    if (is_layer) ++number;
  }
  const std::vector<int> of_kinds = split_kinds(workload, choices);
  std::vector<bool> chosen;
  for (const int choice : of_kinds) chosen.push_back(choice == 1);
  return chosen;
}

void rematerialize(Workload& workload, const Rematerialization& options,
                   const std::vector<bool>& kinds) {
  assert(kinds.size() == workload.blocks.size());
  const bool remakes = std::any_of(workload.tensors.begin(), workload.tensors.end(),
                                   [](const Tensor& tensor) { return tensor.remade; });
  if (options.policy == Policy::none && !remakes) return;
  Rematerializer(workload, options, kinds).run();
}

}  // namespace shardsim
