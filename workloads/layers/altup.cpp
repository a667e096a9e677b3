#include "workloads/layers/altup.hpp"

#include <fmt/format.h>

#include "workloads/layers/mlp.hpp"

namespace shardsim::models {
namespace {

// mean(x^2), of each row: the square keeps x.
Value mean_square(Eager& e, const Value& x) { return e.reduce_last(e.apply(x, Keeps::input)); }

// A product of x, made as long as the first stream.
Value as_long(Eager& e, const std::string& name, const Value& x, const Value& length) {
  const Value y = run_linear(e, name, x, x.last(), /*bias=*/false);
  const Value least = e.apply(mean_square(e, y), Keeps::input);  // clamped
  return e.divide(e.multiply(y, length), e.apply(least, Keeps::result));
}

Value length_of(Eager& e, const Value& x) { return e.apply(mean_square(e, x), Keeps::input); }

// tanh of the router's logits, in fp32: [batch, sequence, inputs].
Value modalities(Eager& e, const AltUp& altup, const Value& x) {
  const Value read = e.scaled(run(e, altup.router_norm, x));
  const Value logits = run_linear(e, "modality_router", read, altup.inputs, /*bias=*/false);
  return e.cast(e.apply(e.cast(logits, DType::f32), Keeps::result), x.dtype);
}

Shape streams_shape(const AltUp& altup, const Value& x) {
  return {altup.inputs, x.shape[0], x.shape[1], x.last()};
}

}  // namespace

Value active(const Value& streams) {
  return Eager::view(streams, {streams.shape[1], streams.shape[2], streams.last()});
}

Value spread(Eager& e, const AltUpEnds& ends, const Value& x) {
  const Value length = length_of(e, x);
  for (std::int64_t i = 0; i + 1 < ends.inputs; ++i) {
    as_long(e, fmt::format("{}.{}", ends.project, i), x, length);
  }
  return e.copy(x, {ends.inputs, x.shape[0], x.shape[1], x.last()});
}

Value gather(Eager& e, const AltUpEnds& ends, const Value& streams) {
  const Value one = active(streams);
  const Value length = length_of(e, one);
  for (std::int64_t i = 0; i + 1 < ends.inputs; ++i) {
    as_long(e, fmt::format("{}.{}", ends.back, i), one, length);
  }
  return e.copy(one);
}

Value predict(Eager& e, const AltUp& altup, const Value& streams) {
  const Scope at(e, altup.name);
  const Value x = active(streams);
  const std::int64_t n = altup.inputs;
  const Value coefficients =
      run_linear(e, "prediction_coefs", modalities(e, altup, x), n * n, /*bias=*/false);
  const std::int64_t tokens = x.shape[0] * x.shape[1];
  const Value product =
      e.bmm(Eager::view(streams, {tokens, 1, x.last(), n}),
            Eager::view(coefficients, {tokens, 1, n, n}), x.last(), n, n, streams.shape);
  return e.copy(product);
}

Value correct(Eager& e, const AltUp& altup, const Value& predictions, const Value& activated) {
  const Scope at(e, altup.name);
  const Value routed = modalities(e, altup, activated);
  const Value difference = e.copy(activated, streams_shape(altup, activated));
  Value coefficients;
  {
    const Scope of(e, "correction_coefs");
    const Value weight = e.parameter("weight", {altup.inputs, altup.inputs});
    const Value used = altup.clips ? e.apply(weight, Keeps::input) : weight;
    coefficients = e.scaled(e.linear(routed, used));
  }
  const Value wide = Eager::view(
      coefficients, {altup.inputs, activated.shape[0], activated.shape[1], std::int64_t{1}});
  return Eager::view(e.multiply(difference, wide), predictions.shape);
}

Value first_scaled(Eager& e, const AltUp& altup, const Value& corrected) {
  const Scope at(e, altup.name);
  const Value scale = e.parameter("correct_output_scale", {corrected.last()});
  const Value first = e.copy(active(corrected));
  return altup.scales_first ? e.multiply(first, scale) : first;
}

Value run(Eager& e, const Laurel& laurel, const Value& x) {
  const Scope at(e, laurel.name);
  const Value left = run_linear(e, "linear_left", x, laurel.rank, /*bias=*/false);
  const Value right = run_linear(e, "linear_right", left, x.last(), /*bias=*/false);
  return e.add(x, run(e, laurel.norm, right));
}

}  // namespace shardsim::models
