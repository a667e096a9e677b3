#include "workloads/layers/shared_block.hpp"

namespace shardsim::models {

Value run(Eager& e, const SharedBlock& block, const Value& x, const Value& embedded,
          Context& context) {
  Value out;
  {
    const Scope at(e, block.name);
    if (!block.first.empty()) e.tie_module(block.first, e.path());
    Shape wide = x.shape;
    wide.back() = x.last() + embedded.last();
    const Value both = run(e, block.before, e.copy(x, wide));
    out = run(e, block.attention, both, context);
    out = run(e, block.mlp, run(e, block.between, out));
  }
  return run_linear(e, block.linear, out, x.last(), /*bias=*/false);
}

}  // namespace shardsim::models
