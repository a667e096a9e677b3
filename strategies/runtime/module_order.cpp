#include "strategies/runtime/module_order.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace shardsim {
namespace {

using Ops = std::vector<Op>;
struct Pair {  // names of ops
  std::string product;
  std::string norm;
};

bool is_norm(const Op& op) {
  return op.function == Function::rms_norm || op.function == Function::layer_norm;
}

// The product whose result a norm of queries, keys or values reads; end: none, or others than such
// products and norms are between them.
Ops::iterator product_of(Ops& ops, Ops::iterator norm) {
  if (!is_norm(*norm) || norm->module != OpModule::attention || norm->operands.empty()) {
    return ops.end();
  }
  for (auto op = norm; op != ops.begin();) {
    --op;
    const bool makes_it = std::any_of(
        op->results.begin(), op->results.end(),
        [&](const Operand& result) { return result.tensor == norm->operands.front().tensor; });
    const bool is_product =
        (op->function == Function::matmul || op->function == Function::linear) &&
        op->part == OpPart::input_projection;
    if (makes_it) return is_product ? op : ops.end();
    if ((!is_product && !is_norm(*op)) || op->recompute != norm->recompute) break;
  }
  return ops.end();
}

// Of ops that run forwards.
std::vector<Pair> move_norms_up(Ops& ops) {
  std::vector<Pair> moved;
  for (auto op = ops.begin(); op != ops.end(); ++op) {
    const auto product = product_of(ops, op);
    if (product == ops.end() || product + 1 == op) continue;
    moved.push_back({product->name, op->name});
    std::rotate(product + 1, op, op + 1);
  }
  return moved;
}

// Of the ops that make gradients, in the other direction.
void move_norm_down(Ops& ops, const Pair& pair) {
  const auto is_of = [](const std::string& name) {
    return [&name](const Op& op) { return !op.recompute && op.name == name; };
  };
  const auto first = std::find_if(ops.begin(), ops.end(), is_of(pair.norm));
  const auto end = std::find_if_not(first, ops.end(), is_of(pair.norm));
  const auto product = std::find_if(ops.begin(), ops.end(), is_of(pair.product));
  if (product - end > 0) std::rotate(first, end, product);
}

}  // namespace

bool follows_modules(const Runtime& runtime) {
  const auto& buffer = runtime.reductions.buffer;
  return runtime.flat_parameters || (buffer && buffer->order != BufferOrder::registered);
}

std::optional<Workload> with_norms_behind_products(const Workload& workload) {
  std::optional<Workload> changed;
  for (std::size_t b = 0; b < workload.blocks.size(); ++b) {
    Block block = workload.blocks[b];
    const std::vector<Pair> moved = move_norms_up(block.forward);
    if (moved.empty()) continue;
    move_norms_up(block.backward);
    for (const Pair& pair : moved) move_norm_down(block.backward, pair);
    if (!changed) changed = workload;
    changed->blocks[b] = std::move(block);
  }
  return changed;
}

}  // namespace shardsim
