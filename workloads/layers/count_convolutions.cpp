// Convolutions along a sketch's tokens, as eager PyTorch runs them.
#include "workloads/layers/count_sketch.hpp"

namespace shardsim::models {
namespace {

Shape sizes_of(const Axes& axes) {
  Shape sizes;
  for (const Axis& axis : axes) sizes.push_back(axis.size);
  return sizes;
}

}  // namespace

Node CountSketch::convolve_each(const std::string& name, Node x, std::int64_t taps) {
  const Scope at(e_, name);
  const Axes& axes = axes_of(x);
  const std::int64_t channels = axes.back().size;
  const Value weight = e_.parameter("weight", {channels, 1, taps});
  const Value rows = Eager::view(value(x), {batch().size, channels, sequence().size});
  return made(Eager::view(e_.convolution(rows, weight, {sequence().size}), sizes_of(axes)), axes);
}

Node CountSketch::convolve_heads(const std::string& name, Node x, std::int64_t taps) {
  const Scope at(e_, name);
  const Axes& axes = axes_of(x);
  const std::int64_t heads = axes[2].size;
  const std::int64_t width = axes.back().size;
  const std::int64_t tokens = sequence().size;
  const Value weight = e_.parameter("weight", {heads, 1, taps, 1});
  const Value pictures = Eager::view(value(x), {batch().size, heads, tokens, width});
  return made(Eager::view(e_.convolution(pictures, weight, {tokens, width}), sizes_of(axes)), axes);
}

Node CountSketch::convolve_causal(const std::string& name, Node x, std::int64_t taps, bool bias) {
  const Scope at(e_, name);
  const Axes& axes = axes_of(x);
  const std::int64_t channels = axes.back().size;
  const std::int64_t tokens = sequence().size;
  const Value weight = e_.parameter("weight", {channels, 1, taps});
  if (bias) e_.parameter("bias", {channels});
  const Value y = e_.convolution(Eager::view(value(x), {batch().size, channels, tokens}), weight,
                                 {tokens + taps - 1});
  return made(Eager::view(y, sizes_of(axes)), axes);
}

}  // namespace shardsim::models
