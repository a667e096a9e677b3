#include "workloads/networks/convolution.hpp"

#include "workloads/layers/mlp.hpp"

namespace shardsim::models {

Value run(Eager& e, const Convolution& c, const Value& x) {
  const Scope at(e, c.name);
  const Value weight = e.parameter("weight", {c.out, x.shape[1], c.kernel, c.kernel});
  if (c.bias) e.parameter("bias", {c.out});
  const auto places = [&](std::int64_t in) {
    return (in + 2 * c.padding - c.kernel) / c.stride + 1;
  };
  return e.convolution(x, weight, {places(x.shape[2]), places(x.shape[3])});
}

Value group_norm(Eager& e, std::string_view name, std::int64_t groups, const Value& x) {
  const Scope at(e, name);
  e.parameter("weight", {x.shape[1]});
  e.parameter("bias", {x.shape[1]});
  e.save(x);
  for (int i = 0; i < 2; ++i) e.save(e.constant(x.dtype, {x.shape[0], groups}));
  return e.make(x.shape, x.dtype, true);
}

Value batch_norm(Eager& e, std::string_view name, const Value& x) {
  const Scope at(e, name);
  const Shape channels{x.shape[1]};
  e.parameter("weight", channels);
  e.parameter("bias", channels);
  e.buffer("running_mean", channels, e.dtype());
  e.buffer("running_var", channels, e.dtype());
  e.buffer("num_batches_tracked", {}, DType::i64);
  e.save(x);
  for (int i = 0; i < 2; ++i) e.save(e.constant(DType::f32, channels));
  return e.make(x.shape, x.dtype, true);
}

Value rows_of(const Value& image) {
  return Eager::view(image, {image.shape[0], image.shape[2] * image.shape[3], image.shape[1]});
}

Value run_strided_linear(Eager& e, std::string_view name, const Value& rows, std::int64_t out,
                         bool bias) {
  const Value read = rows.shape[0] > 1 ? e.copy(rows) : rows;
  return run_linear(e, name, read, out, bias, /*bias_apart=*/true);
}

}  // namespace shardsim::models
