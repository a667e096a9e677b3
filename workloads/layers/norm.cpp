#include "workloads/layers/norm.hpp"

namespace shardsim::models {
namespace {

// x32 / sqrt(mean(x32^2) + eps), of `factor`, which is x32 or what it was cast from.
Value scaled_by_rms(Eager& e, const Norm& norm, const Value& x32, const Value& factor) {
  Value mean = e.reduce_last(e.apply(x32, Keeps::input));
  if (norm.by_power) {
    mean = e.scaled(mean);
    e.save(mean);
  }
  return e.multiply(factor, e.apply(mean, Keeps::result));
}

Value rms(Eager& e, const Norm& norm, const Value& x, const Shape& shape) {
  const Value x32 = e.cast(x, DType::f32);
  const bool narrow = norm.kind == NormKind::rms_t5 || norm.kind == NormKind::rms_t5_plain;
  const Value normed = scaled_by_rms(e, norm, x32, narrow ? x : x32);
  const bool plain = norm.kind == NormKind::rms_plain || norm.kind == NormKind::rms_t5_plain;
  if (plain) return e.cast(normed, x.dtype);
  const Value weight = e.parameter("weight", shape);
  if (norm.kind == NormKind::rms_wide) return e.cast(e.multiply(weight, normed), x.dtype);
  if (norm.kind == NormKind::rms_cast) {
    return e.cast(e.multiply(e.cast(weight, DType::f32), normed), x.dtype);
  }
  if (norm.kind == NormKind::rms_offset) {
    const Value offset = e.scaled(e.cast(weight, DType::f32));
    return e.cast(e.multiply(normed, offset), x.dtype);
  }
  return e.multiply(weight, e.cast(normed, x.dtype));
}

// torch.nn.functional.layer_norm and rms_norm: the input and fp32 statistics of each row.
Value fused(Eager& e, const Value& x, int statistics, bool learns) {
  Shape rows = x.shape;
  rows.back() = 1;
  e.save(x);
  for (int i = 0; i < statistics; ++i) e.save(e.constant(DType::f32, rows));
  return e.make(x.shape, x.dtype, x.grad || learns);
}

Value layer(Eager& e, const Norm& norm, const Value& x, const Shape& shape) {
  if (norm.kind == NormKind::layer_plain) {
    return e.cast(fused(e, e.cast(x, DType::f32), 2, /*learns=*/false), x.dtype);
  }
  if (norm.kind == NormKind::layer_fixed) return fused(e, x, 2, /*learns=*/false);
  const Value weight = e.parameter("weight", shape);
  if (norm.kind == NormKind::layer_apart) {
    const Value scaled = e.multiply(fused(e, x, 2, /*learns=*/false), weight);
    return norm.bias ? e.add(scaled, e.parameter("bias", shape)) : scaled;
  }
  if (norm.kind == NormKind::layer_offset) e.save(e.scaled(weight));
  // The kernel keeps its parameters, too, which are copies where they are cast to x's type.
  if (x.dtype != weight.dtype) e.save(e.cast(weight, x.dtype));
  if (norm.bias) {
    const Value bias = e.parameter("bias", shape);
    if (x.dtype != bias.dtype) e.save(e.cast(bias, x.dtype));
  }
  return fused(e, x, 2, /*learns=*/true);
}

// Cohere's: the difference to the mean is computed twice.
Value layer_wide(Eager& e, const Value& x, const Shape& shape) {
  const Value x32 = e.cast(x, DType::f32);
  const Value variance = e.reduce_last(e.apply(e.scaled(x32), Keeps::input));
  const Value normed = e.multiply(e.scaled(x32), e.apply(variance, Keeps::result));
  const Value weight = e.cast(e.parameter("weight", shape), DType::f32);
  return e.cast(e.multiply(weight, normed), x.dtype);
}

// DeBERTa's, the same with a quotient; its parameters are not cast.
Value layer_cast(Eager& e, const Norm& norm, const Value& x, const Shape& shape) {
  const Value x32 = e.cast(x, DType::f32);
  const Value variance = e.reduce_last(e.apply(e.scaled(x32), Keeps::input));
  const Value normed = e.divide(e.scaled(x32), e.apply(variance, Keeps::result));
  // Of heads side by side each row reads its own part.
  const auto own = [&](const char* name) {
    return Eager::view(e.parameter(name, shape), {x.last()});
  };
  const Value result = e.multiply(own("weight"), e.cast(normed, x.dtype));
  return norm.bias ? e.add(result, own("bias")) : result;
}

// I-BERT's, of which the difference to the mean is computed once.
Value layer_by_hand(Eager& e, const Norm& norm, const Value& x, const Shape& shape) {
  const Value difference = e.scaled(x);
  const Value variance = e.reduce_last(e.apply(difference, Keeps::input));
  const Value normed = e.divide(difference, e.apply(variance, Keeps::result));
  const Value result = e.multiply(normed, e.parameter("weight", shape));
  return norm.bias ? e.add(result, e.parameter("bias", shape)) : result;
}

}  // namespace

std::string_view name_of(NormKind kind) {
  switch (kind) {
    case NormKind::none:
      return "none";
    case NormKind::rms:
    case NormKind::rms_wide:
    case NormKind::rms_cast:
    case NormKind::rms_t5:
    case NormKind::rms_fused:
      return "RMS norm";
    case NormKind::rms_offset:
      return "RMS norm of 1 + weight";
    case NormKind::rms_plain:
    case NormKind::rms_fixed:
    case NormKind::rms_t5_plain:
      return "RMS norm without parameters";
    case NormKind::scale:
      return "scale and offset";
    case NormKind::weight:
      return "scale";
    case NormKind::layer:
    case NormKind::layer_wide:
    case NormKind::layer_cast:
    case NormKind::layer_by_hand:
    case NormKind::layer_apart:
      return "layer norm";
    case NormKind::layer_plain:
    case NormKind::layer_fixed:
      return "layer norm without parameters";
    case NormKind::layer_offset:
      return "layer norm of 1 + weight";
  }
  return "";
}

Value run(Eager& e, const Norm& norm, const Value& x) {
  if (!norm.exists()) return x;
  const Scope at(e, norm.name);
  const Shape shape = norm.weight_shape.empty() ? Shape{x.last()} : norm.weight_shape;
  switch (norm.kind) {
    case NormKind::layer:
    case NormKind::layer_plain:
    case NormKind::layer_fixed:
    case NormKind::layer_apart:
    case NormKind::layer_offset:
      return layer(e, norm, x, shape);
    case NormKind::layer_wide:
      return layer_wide(e, x, shape);
    case NormKind::layer_cast:
      return layer_cast(e, norm, x, shape);
    case NormKind::layer_by_hand:
      return layer_by_hand(e, norm, x, shape);
    case NormKind::scale: {
      const Value scaled = e.multiply(x, e.parameter("weight", shape));
      return e.add(scaled, e.parameter("bias", shape));
    }
    case NormKind::weight:
      return e.multiply(x, e.parameter("weight", shape));
    case NormKind::rms_fixed:
      return fused(e, x, 1, /*learns=*/false);
    case NormKind::rms_fused:
      e.parameter("weight", shape);
      return fused(e, x, 1, /*learns=*/true);
    default:
      return rms(e, norm, x, shape);
  }
}

}  // namespace shardsim::models
