#include "strategies/runtime/joint_products.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "base/index.hpp"
#include "strategies/runtime/registration.hpp"

namespace shardsim {
namespace {

constexpr std::size_t attention_weights = 3;  // of queries, keys and values; else two halves

// Items of one pass that are one kernel.
using Parts = std::vector<Item*>;

bool contains(const std::vector<ValueId>& values, ValueId value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

class JointProducts {
 public:
  JointProducts(SpmdStep& step, bool copies) : step_(step), copies_(copies) {}

  void run(BlockProgram& block, const std::vector<TensorId>& weights) {
    join_forward(parts_of(block.forward.body, weights, /*recompute=*/false));
    join_forward(parts_of(block.backward.body, weights, /*recompute=*/true));
    join_inputs(parts_of(block.backward.body, weights, /*recompute=*/false), block.backward.body);
    join_weights(gradients_of(block.backward, weights));
  }

 private:
  // None where they are not one by one, or read or make other shapes.
  static Parts checked(Parts parts, std::size_t count) {
    const auto is_alike = [&](const Item* item) {
      const Kernel& one = item->kernel;
      const Kernel& first = parts.front()->kernel;
      return one.product && one.op == first.op && one.dtype == first.dtype &&
             one.product->batch == first.product->batch;
    };
    const bool are_one = parts.size() == count && std::all_of(parts.begin(), parts.end(), is_alike);
    return are_one ? parts : Parts{};
  }

  // Products that read the weights.
  Parts parts_of(std::vector<Item>& body, const std::vector<TensorId>& weights, bool recompute) {
    Parts parts;
    for (Item& item : body) {
      const bool is_product = item.kernel.kernel_class == KernelClass::matmul &&
                              item.kind == TaskKind::kernel && item.recompute == recompute;
      if (!is_product) continue;
      const bool reads_one = std::any_of(weights.begin(), weights.end(), [&](TensorId weight) {
        const auto found = step_.parameters.find(weight);
        return found != step_.parameters.end() && contains(item.operands, found->second.computed);
      });
      if (reads_one) parts.push_back(&item);
    }
    return checked(std::move(parts), weights.size());
  }

  // Products that make the weights' gradients; a sum into a buffer may stand behind one.
  static Parts gradients_of(BlockPass& backward, const std::vector<TensorId>& weights) {
    Parts parts;
    for (const Write& write : backward.writes) {
      if (std::find(weights.begin(), weights.end(), write.parameter) == weights.end()) continue;
      for (std::size_t i = write.after; i > 0 && i + 2 > write.after; --i) {
        Item& item = backward.body[i - 1];
        if (item.kernel.kernel_class != KernelClass::matmul) continue;
        parts.push_back(&item);
        break;
      }
    }
    std::sort(parts.begin(), parts.end());
    return checked(std::move(parts), weights.size());
  }

  [[nodiscard]] Bytes bytes_of(ValueId value) const { return step_.values[at(value)].bytes; }

  // What all of them read.
  [[nodiscard]] static ValueId shared_operand(const Parts& parts) {
    for (const ValueId operand : parts.front()->operands) {
      const auto reads = [&](const Item* item) { return contains(item->operands, operand); };
      if (std::all_of(parts.begin(), parts.end(), reads)) return operand;
    }
    return no_value;
  }

  // `side`: of the product, which the others add to. `once`: bytes that each of them has counted.
  static void move_work(const Parts& parts, Item& into, std::int64_t Product::*side, Bytes once) {
    Kernel& kernel = into.kernel;
    for (Item* part : parts) {
      if (part == &into) continue;
      kernel.flops = Flops(kernel.flops.count() + part->kernel.flops.count());
      kernel.bytes += part->kernel.bytes - once;
      kernel.added += part->kernel.added;
      *kernel.product.*side += *part->kernel.product.*side;
      kernel.product->aligned = kernel.product->aligned && part->kernel.product->aligned;
      leave(*part);
    }
  }

  static void leave(Item& item) {
    item.kernel.launches = 0;
    item.kernel.flops = Flops(0);
    item.kernel.bytes = item.kernel.added = Bytes(0);
    item.kernel.product.reset();
  }

  void join_forward(const Parts& parts) {
    if (parts.empty()) return;
    const ValueId read = shared_operand(parts);
    if (read == no_value) return;
    const Bytes queries = made_by(*parts.front());
    const Bytes values = made_by(*parts.back());
    move_work(parts, *parts.front(), &Product::n, bytes_of(read));
    if (!copies_ || parts.size() != attention_weights) return;
    // Queries, keys and values are views of what the product makes. Attention wants values in a
    // row, and queries that share a key are put together
    // (megatron/core/transformer/attention.py, get_query_key_value_tensors).
    become("copy", *parts.back(), 2 * ((queries == values ? Bytes(0) : queries) + values));
  }

  [[nodiscard]] Bytes made_by(const Item& item) const {
    const Product& product = *item.kernel.product;
    return product.batch * product.m * product.n *
           size_of(step_.values[at(item.results.front())].dtype);
  }

  // The gradients of all three are put side by side for the product that makes the input's.
  void concatenate_gradients(const Parts& parts) const {
    Bytes gradients{0};
    for (const Item* part : parts) {
      for (const ValueId operand : part->operands) {
        if (!is_parameter(operand)) gradients += bytes_of(operand);
      }
    }
    become("concatenate", *parts[parts.size() - 2], 2 * gradients);
  }

  [[nodiscard]] bool is_parameter(ValueId value) const {
    return std::any_of(step_.parameters.begin(), step_.parameters.end(),
                       [&](const auto& one) { return one.second.computed == value; });
  }

  static void become(const char* op, Item& item, Bytes moved) {
    item.kernel.op = op;
    item.kernel.kernel_class = KernelClass::memory;
    item.kernel.launches = 1;
    item.kernel.bytes = moved;
  }

  void join_inputs(const Parts& parts, std::vector<Item>& body) {
    if (parts.empty()) return;
    std::set<ValueId> made;
    for (const Item* part : parts) made.insert(part->results.begin(), part->results.end());
    move_work(parts, *parts.back(), &Product::k, bytes_of(parts.front()->results.front()));
    if (copies_ && parts.size() == attention_weights) concatenate_gradients(parts);
    for (Item& item : body) {
      if (item.kernel.op != "add" || item.results.size() != 1) continue;
      const auto is_made = [&](ValueId operand) { return made.contains(operand); };
      if (!std::all_of(item.operands.begin(), item.operands.end(), is_made)) continue;
      leave(item);
      made.insert(item.results.front());
    }
  }

  void join_weights(const Parts& parts) {
    if (parts.empty()) return;
    const ValueId read = shared_operand(parts);
    if (read == no_value) return;
    // [out, tokens] x [tokens, in] or the other way round: `in` is what is read in common.
    const Value& input = step_.values[at(read)];
    const Product& product = *parts.front()->kernel.product;
    const std::int64_t numbers =
        input.bytes.count() / std::max<std::int64_t>(size_of(input.dtype).count(), 1);
    const bool has_inputs_first = numbers == product.batch * product.m * product.k;
    move_work(parts, *parts.back(), has_inputs_first ? &Product::n : &Product::m, input.bytes);
  }

  SpmdStep& step_;
  bool copies_ = false;
};

}  // namespace

void join_products(SpmdStep& step, const Workload& workload, bool copies) {
  JointProducts joint(step, copies);
  for (std::size_t b = 0; b < step.blocks.size(); ++b) {
    for (const std::vector<TensorId>& weights : joint_weights(workload, b)) {
      joint.run(step.blocks[b], weights);
    }
  }
}

}  // namespace shardsim
