#include "strategies/compile/padded_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "base/index.hpp"

namespace shardsim {
namespace {

bool is_expert_product(const Item& item) {
  return item.kind == TaskKind::kernel && item.kernel.kernel_class == KernelClass::matmul &&
         item.kernel.op.starts_with("grouped") && bits_of(item.kernel.dtype) <= 8;
}

bool exchanges_rows(const Item& item) {
  return item.kind == TaskKind::collective && item.collective.kind == CollectiveKind::all_to_all;
}

bool pads_itself(const Item& item) {
  return exchanges_rows(item) && item.collective.visits &&
         item.collective.visits->kernels == RowKernels::hybridep;
}

// Products of one layer's experts in one direction: `first` reads the rows that have come, the
// last that reads a weight makes those that go.
struct Chain {
  std::size_t first = 0;
  std::size_t last = 0;
};

class PaddedRows {
 public:
  PaddedRows(BlockPass& pass, std::vector<Value>& values) : pass_(pass), values_(values) {}

  void run() {
    if (std::any_of(pass_.body.begin(), pass_.body.end(), pads_itself)) return;
    find_chains();
    if (chains_.empty()) return;
    std::vector<Item> listed;
    std::vector<std::size_t> place;  // in the new body, of every item of the old one
    for (std::size_t i = 0; i < pass_.body.size(); ++i) {
      for (const Chain& chain : chains_) {
        if (first_reader(chain) == i) listed.push_back(copy_of(rows_of(chain), chain.first));
      }
      place.push_back(listed.size());
      listed.push_back(pass_.body[i]);
      for (const Chain& chain : chains_) {
        if (chain.last == i) listed.push_back(copy_of(pass_.body[i].results.front(), i));
      }
    }
    for (Write& write : pass_.writes) {
      write.after = write.after == 0 ? 0 : place[write.after - 1] + 1;
    }
    pass_.body = std::move(listed);
  }

 private:
  [[nodiscard]] bool is_weight(ValueId id) const {
    const BufferCategory category = values_[at(id)].category;
    return category == BufferCategory::parameters ||
           category == BufferCategory::gathered_parameters;
  }

  void find_chains() {
    std::optional<Chain> chain;
    bool recompute = false;
    for (std::size_t i = 0; i < pass_.body.size(); ++i) {
      const Item& item = pass_.body[i];
      const bool is_product = is_expert_product(item);
      if (chain && (exchanges_rows(item) || (is_product && item.recompute != recompute))) {
        chains_.push_back(*std::exchange(chain, std::nullopt));
      }
      if (!is_product) continue;
      const bool reads_weight = std::any_of(item.operands.begin(), item.operands.end(),
                                            [&](ValueId operand) { return is_weight(operand); });
      if (!reads_weight) continue;
      if (!chain) chain = Chain{i, i};
      chain->last = i;
      recompute = item.recompute;
    }
    if (chain) chains_.push_back(*chain);
  }

  [[nodiscard]] ValueId rows_of(const Chain& chain) const {
    const std::vector<ValueId>& operands = pass_.body[chain.first].operands;
    return *std::find_if(operands.begin(), operands.end(),
                         [&](ValueId operand) { return !is_weight(operand); });
  }

  // Of the product or the cast before it.
  [[nodiscard]] std::size_t first_reader(const Chain& chain) const {
    const ValueId rows = rows_of(chain);
    std::size_t first = chain.first;
    while (first > 0) {
      const std::vector<ValueId>& operands = pass_.body[first - 1].operands;
      const bool is_cast = pass_.body[first - 1].kernel.op == "cast" &&
                           std::find(operands.begin(), operands.end(), rows) != operands.end();
      if (!is_cast) break;
      --first;
    }
    return first;
  }

  [[nodiscard]] Item copy_of(ValueId rows, std::size_t product) const {
    const Value& value = values_[at(rows)];
    Item copy;
    copy.name = pass_.body[product].name + " padding";
    copy.recompute = pass_.body[product].recompute;
    copy.kernel = {"copy", KernelClass::memory, value.dtype, Flops(0), 2 * value.bytes};
    copy.kernel.implementation = "transformer-engine";
    copy.operands = {rows};
    return copy;
  }

  BlockPass& pass_;
  std::vector<Value>& values_;
  std::vector<Chain> chains_;
};

}  // namespace

void pad_rows(BlockPass& pass, std::vector<Value>& values) { PaddedRows(pass, values).run(); }

}  // namespace shardsim
