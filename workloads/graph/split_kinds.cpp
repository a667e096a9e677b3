#include "workloads/graph/split_kinds.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "base/index.hpp"

namespace shardsim {
namespace {

// Instances of a block that stay together.
struct Part {
  std::size_t of = 0;  // the block as it was
  int choice = 0;
  std::vector<std::int32_t> ordinals;  // of its instances, ascending
};

class KindSplitter {
 public:
  KindSplitter(Workload& workload, const std::vector<int>& choices) : workload_(workload) {
    assert(choices.size() == workload.order.size());
    for (std::size_t i = 0; i < choices.size(); ++i) add(workload.order[i], choices[i]);
  }

  std::vector<int> run() {
    std::vector<Block> blocks;
    std::vector<int> answered;
    std::map<std::pair<std::size_t, std::int32_t>, BlockInstance> moved;
    std::vector<bool> used(workload_.blocks.size());
    std::vector<std::int32_t> home(workload_.blocks.size());  // of the tensors of each old block
    for (const Part& part : parts_) {
      const auto number = static_cast<std::int32_t>(blocks.size());
      if (!used[part.of]) home[part.of] = number;
      Block block = used[part.of] ? copy(part.of, number) : workload_.blocks[part.of];
      used[part.of] = true;
      block.numbers.clear();
      for (const std::int32_t ordinal : part.ordinals) {
        moved[{part.of, ordinal}] = {number, static_cast<std::int32_t>(block.numbers.size())};
        block.numbers.push_back(workload_.blocks[part.of].numbers[at(ordinal)]);
      }
      blocks.push_back(std::move(block));
      answered.push_back(part.choice);
    }
    for (std::size_t t = 0; t < copies_from_; ++t) {
      Tensor& tensor = workload_.tensors[t];
      tensor.block = home[at(tensor.block)];
    }
    for (BlockInstance& instance : workload_.order) {
      instance = moved.at({at(instance.block), instance.ordinal});
    }
    workload_.blocks = std::move(blocks);
    return answered;
  }

 private:
  void add(const BlockInstance& instance, int choice) {
    const std::size_t block = at(instance.block);
    auto part = std::find_if(parts_.begin(), parts_.end(), [&](const Part& known) {
      return known.of == block && known.choice == choice;
    });
    if (part == parts_.end()) part = parts_.insert(parts_.end(), {block, choice, {}});
    part->ordinals.push_back(instance.ordinal);
  }

  // Buffers and caches are a layer's own, as parameters are.
  static bool is_of_step(TensorRole role) {
    return role == TensorRole::input || role == TensorRole::constant;
  }

  // The block with tensors of its own.
  Block copy(std::size_t of, std::int32_t number) {
    Block block = workload_.blocks[of];
    std::map<TensorId, TensorId> copies;
    for (std::size_t t = 0; t < copies_from_; ++t) {
      if (at(workload_.tensors[t].block) != of || is_of_step(workload_.tensors[t].role)) continue;
      Tensor tensor = workload_.tensors[t];
      tensor.block = number;
      copies[static_cast<TensorId>(t)] = static_cast<TensorId>(workload_.tensors.size());
      workload_.tensors.push_back(std::move(tensor));
    }
    const auto rename = [&](TensorId& tensor) {
      if (const auto found = copies.find(tensor); found != copies.end()) tensor = found->second;
    };
    for (TensorId& carry : block.carries_in) rename(carry);
    for (TensorId& carry : block.carries_out) rename(carry);
    for (Op& op : block.forward) {
      for (Operand& operand : op.operands) rename(operand.tensor);
      for (Operand& result : op.results) rename(result.tensor);
    }
    return block;
  }

  Workload& workload_;
  std::size_t copies_from_ = workload_.tensors.size();
  std::vector<Part> parts_;  // in the order in which they first come
};

}  // namespace

std::vector<int> split_kinds(Workload& workload, const std::vector<int>& choices) {
  return KindSplitter(workload, choices).run();
}

}  // namespace shardsim
