#include <algorithm>

#include "spmd/reshard/reshard_search.hpp"
#include "spmd/reshard/reshard_steps.hpp"

namespace shardsim::spmd {
namespace {

// What one device sends in the collectives that lead from one value to another.
double wire_bytes_between(const Builder& builder, ValueId from, ValueId to) {
  double bytes = 0;
  std::vector<ValueId> open = {to};
  std::vector<ValueId> seen;
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    if (value == from || std::find(seen.begin(), seen.end(), value) != seen.end()) continue;
    seen.push_back(value);
    const Op* op = builder.definition(value);
    if (op == nullptr || value < from) continue;
    bytes += sent_bytes(builder, *op);
    open.insert(open.end(), op->operands.begin(), op->operands.end());
  }
  return bytes;
}

}  // namespace

// As XLA goes, unless a way that sends less is found.
Sharded reshard_cheaply(const Sharded& from, const Tiling& to) {
  const Sharded usual = reshard_like_xla(from, to, true);
  Context& context = *from.context;
  const Builder& builder = context.builder();
  if (context.digits.empty()) return usual;
  const double usual_bytes = wire_bytes_between(builder, from.value, usual.value);
  const double size = element_bytes(builder.type(from.value));
  if (usual_bytes <= least_bytes(from.shape, size, from.tiling, to)) return usual;
  const auto path = cheapest_path(from.shape, size, from.tiling, to, context.digits, usual_bytes);
  if (!path) return usual;
  // Steps that XLA's ways do at once, for no more, are taken at once.
  Sharded value = from;
  for (std::size_t i = 0; i < path->steps.size();) {
    Sharded next = reshard_like_xla(value, path->steps[i], true);
    std::size_t taken = i;
    double bytes = wire_bytes_between(builder, value.value, next.value);
    for (std::size_t j = i + 1; j < path->steps.size(); ++j) {
      const Sharded single = reshard_like_xla(next, path->steps[j], true);
      bytes += wire_bytes_between(builder, next.value, single.value);
      const Sharded direct = reshard_like_xla(value, path->steps[j], true);
      if (wire_bytes_between(builder, value.value, direct.value) > bytes) break;
      next = direct;
      taken = j;
    }
    value = next;
    i = taken + 1;
  }
  return wire_bytes_between(builder, from.value, value.value) < usual_bytes ? value : usual;
}

}  // namespace shardsim::spmd
