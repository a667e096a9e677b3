#include "workloads/networks/modulation.hpp"

#include <string>

#include "workloads/layers/activation.hpp"
#include "workloads/layers/mlp.hpp"
#include "workloads/layers/norm.hpp"

namespace shardsim::models {
namespace {

Value part_of(const Value& all, std::int64_t hidden) {
  return Eager::view(all, {all.shape[0], 1, hidden});
}

}  // namespace

Value modulation(Eager& e, const Value& condition, std::int64_t parts, std::int64_t hidden) {
  Value active;
  {
    const Scope at(e, "silu");
    active = activate(e, "silu", condition);
  }
  return run_linear(e, "linear", active, parts * hidden, /*bias=*/true);
}

Value modulate(Eager& e, const Value& normed, const Value& all) {
  const Value part = part_of(all, normed.last());
  return e.add(e.multiply(normed, e.scaled(part)), part);
}

Value gated_branch(Eager& e, const Value& out, const Value& all) {
  return e.multiply(part_of(all, out.last()), out);
}

Value fixed_norm(Eager& e, std::string_view name, const Value& x) {
  return run(e, Norm{NormKind::layer_fixed, std::string(name)}, x);
}

}  // namespace shardsim::models
