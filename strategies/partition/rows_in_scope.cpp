#include "strategies/partition/rows_in_scope.hpp"

#include <algorithm>
#include <cstddef>
#include <variant>
#include <vector>

namespace shardsim {
namespace {

const Op* exchange_of(const Item& item) {
  const auto* reason = std::get_if<RowsExchanged>(&item.reason);
  const bool is_call = item.kind == TaskKind::collective &&
                       item.collective.kind == CollectiveKind::all_to_all && reason != nullptr;
  return is_call ? reason->op : nullptr;
}

bool reads(const Item& item, ValueId value) {
  return std::find(item.operands.begin(), item.operands.end(), value) != item.operands.end();
}

// The first item behind the `k`-th that reads what it has made.
std::size_t reader_of(const std::vector<Item>& body, std::size_t k) {
  std::size_t i = k + 1;
  while (i < body.size() && !reads(body[i], body[k].results.front())) ++i;
  return i;
}

void hold_rows(std::vector<Item>& body, bool is_forward) {
  for (std::size_t k = 0; k < body.size(); ++k) {
    const Op* there = exchange_of(body[k]);
    if (there == nullptr || there->results.size() < 2) continue;
    if (!is_forward && !body[k].recompute) continue;
    std::size_t back = k + 1;
    while (back < body.size() &&
           (exchange_of(body[back]) == nullptr || exchange_of(body[back])->results.size() > 1)) {
      ++back;
    }
    if (back == body.size()) continue;
    const std::size_t combine = reader_of(body, back);
    if (combine == body.size()) continue;
    for (const ValueId rows : {body[k].operands.front(), body[k].results.front()}) {
      if (!reads(body[combine], rows)) body[combine].operands.push_back(rows);
    }
  }
}

}  // namespace

void hold_rows_in_scope(SpmdStep& step) {
  for (BlockProgram& block : step.blocks) {
    hold_rows(block.forward.body, /*is_forward=*/true);
    hold_rows(block.backward.body, /*is_forward=*/false);
  }
}

}  // namespace shardsim
