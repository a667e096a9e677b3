#include "workloads/layers/short_convolution.hpp"

#include "workloads/layers/mlp.hpp"

namespace shardsim::models {

Value run(Eager& e, const ShortConvolution& c, const Value& x) {
  const Scope at(e, c.name);
  const std::int64_t hidden = x.last();
  const Value all = run_linear(e, "in_proj", x, 3 * hidden, c.bias);
  const Value part = Eager::view(all, x.shape);
  const Value gated = e.multiply(part, part);
  Value mixed;
  {
    const Scope of(e, "conv");
    const Value weight = e.parameter("weight", {hidden, 1, c.kernel});
    if (c.bias) e.parameter("bias", {hidden});
    if (c.padded) {
      const Value channels = Eager::view(gated, {x.shape[0], hidden, x.shape[1]});
      mixed = Eager::view(e.convolution(channels, weight, {x.shape[1] + c.kernel - 1}), x.shape);
    }
  }
  if (!c.padded) {
    e.save(gated);
    mixed = e.make(x.shape, e.dtype(), true);
  }
  e.cache(0, e.times(hidden * c.kernel, size_of(e.dtype()).count()));
  return run_linear(e, "out_proj", e.copy(e.multiply(part, mixed)), hidden, c.bias);
}

}  // namespace shardsim::models
