#include "strategies/partition/shared_beside.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/index.hpp"

namespace shardsim {
namespace {

class Order {
 public:
  Order(const Workload& workload, const SpmdStep& step, const std::set<TensorId>& inputs,
        const Block& block, BlockPass& pass)
      : workload_(workload), step_(step), inputs_(inputs), pass_(pass), places_(pass.body.size()) {
    std::iota(places_.begin(), places_.end(), std::size_t{0});
    for (const Op& op : block.backward) {
      if (op.module != OpModule::shared_experts) continue;
      for (const Operand& result : op.results) of_shared_.insert(result.tensor);
    }
  }

  // Behind the counts, before the rows: gathers of this pass, and of what it computes again.
  void gather_first(bool is_forward) {
    for (std::size_t k = 0; k < places_.size(); ++k) {
      const Item& gather = item(k);
      const bool is_one = gather.kind == TaskKind::collective && (is_forward || gather.recompute) &&
                          makes_input(gather);
      if (!is_one) continue;
      std::optional<std::size_t> first;
      for (std::size_t i = k; i-- > 0;) {
        if (!is_exchange(item(i)) || (first && op_of(item(i)) != op_of(item(*first)))) continue;
        first = i;
      }
      if (first) std::rotate(place(*first), place(k), place(k + 1));
    }
  }

  // Rows' gradients before the first product's, weights' behind.
  void return_rows_first() {
    for (std::size_t k = 0; k < places_.size(); ++k) {
      if (!is_exchange(item(k)) || item(k).recompute) continue;
      const Op* op = op_of(item(k));
      std::size_t other = k + 1;
      while (other < places_.size() && !(is_exchange(item(other)) && op_of(item(other)) == op)) {
        ++other;
      }
      if (other == places_.size()) continue;  // it goes back, which rows do alone
      return_rows_first(k, other);
      k = other;
    }
  }

  void apply() {
    std::vector<std::size_t> behind(places_.size() + 1, 0);  // of each item, once it is moved
    std::vector<Item> body;
    for (const std::size_t from : places_) {
      body.push_back(std::move(pass_.body[from]));
      behind[from + 1] = body.size();
    }
    pass_.body = std::move(body);
    for (Write& write : pass_.writes) write.after = behind[write.after];
    std::stable_sort(pass_.writes.begin(), pass_.writes.end(),
                     [](const Write& one, const Write& other) { return one.after < other.after; });
  }

 private:
  [[nodiscard]] const Item& item(std::size_t place) const { return pass_.body[places_[place]]; }
  [[nodiscard]] std::vector<std::size_t>::iterator place(std::size_t index) {
    return places_.begin() + static_cast<std::ptrdiff_t>(index);
  }
  [[nodiscard]] const Tensor* tensor_of(ValueId value) const {
    const TensorId tensor = step_.values[at(value)].tensor;
    return tensor == no_tensor ? nullptr : &workload_.tensors[at(tensor)];
  }
  [[nodiscard]] bool makes_input(const Item& item) const {
    return std::any_of(item.results.begin(), item.results.end(), [&](ValueId value) {
      const Tensor* tensor = tensor_of(value);
      return tensor != nullptr && tensor->role == TensorRole::activation &&
             (inputs_.contains(step_.values[at(value)].tensor) || inputs_.contains(tensor->primal));
    });
  }
  [[nodiscard]] bool is_of_shared(const Item& item) const {
    return std::any_of(item.results.begin(), item.results.end(), [&](ValueId value) {
      return of_shared_.contains(step_.values[at(value)].tensor);
    });
  }
  [[nodiscard]] static bool is_exchange(const Item& item) {
    return item.kind == TaskKind::collective &&
           item.collective.kind == CollectiveKind::all_to_all && op_of(item) != nullptr;
  }
  [[nodiscard]] static const Op* op_of(const Item& item) {
    const auto* reason = std::get_if<RowsExchanged>(&item.reason);
    return reason != nullptr ? reason->op : nullptr;
  }

  // `first` and `last`: of the exchange, the calls between devices with other experts.
  void return_rows_first(std::size_t first, std::size_t last) {
    const bool weights_first = item(first).collective.payload < item(last).collective.payload;
    std::size_t begin = first;
    while (begin > 0 && !is_of_shared(item(begin - 1))) --begin;
    std::size_t shared = begin;
    while (shared > 0 && is_of_shared(item(shared - 1))) --shared;
    if (begin == 0 || shared == begin) return;
    // Nothing of the exchange itself is behind it: it is last in backward.
    if (weights_first) std::rotate(place(first), place(first + 1), place(last + 1));
    std::rotate(place(shared), place(begin), place(last));
  }

  const Workload& workload_;
  const SpmdStep& step_;
  const std::set<TensorId>& inputs_;
  BlockPass& pass_;
  std::vector<std::size_t> places_;
  std::set<TensorId> of_shared_;
};

}  // namespace

std::set<TensorId> inputs_beside(const Workload& workload, const Layout& layout) {
  std::set<TensorId> inputs;
  if (!layout.experts || !layout.experts->exchange.shared_beside) return inputs;
  for (const Block& block : workload.blocks) {
    for (const Op& op : block.forward) {
      const bool is_input =
          op.module == OpModule::shared_experts && op.view &&
          workload.tensors[at(op.results.front().tensor)].mark == StreamMark::branch;
      if (is_input) inputs.insert(op.results.front().tensor);
    }
  }
  return inputs;
}

void order_beside(const Workload& workload, const Layout& layout, SpmdStep& step) {
  const std::set<TensorId> inputs = inputs_beside(workload, layout);
  if (inputs.empty()) return;
  for (std::size_t b = 0; b < step.blocks.size(); ++b) {
    for (const bool is_forward : {true, false}) {
      BlockPass& pass = is_forward ? step.blocks[b].forward : step.blocks[b].backward;
      Order order(workload, step, inputs, workload.blocks[b], pass);
      order.gather_first(is_forward);
      if (!is_forward) order.return_rows_first();
      order.apply();
    }
  }
}

}  // namespace shardsim
