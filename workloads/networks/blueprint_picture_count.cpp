// Of pictures: convolutions, norms over places, what makes them smaller and larger.
#include "workloads/networks/blueprint_count.hpp"
#include "workloads/networks/convolution.hpp"

namespace shardsim::models {

Counted BlueprintCount::a_picture(Value value, bool turned, bool one_dimension) {
  picture_ = true;
  return {std::move(value), turned, one_dimension};
}

Counted BlueprintCount::count(const PictureInput& input) {
  const std::int64_t side = input.times * step_.side;
  const std::int64_t columns = input.is_text_long ? step_.text : side;
  const std::int64_t rows = input.frames * (input.rows > 0 ? input.rows : side);
  const std::int64_t wide = columns_of(columns, input.aspect, net_.coarsest);
  Value x = e_.input(e_.dtype(),
                     {step_.batch, input.channels, rows, input.columns > 0 ? input.columns : wide});
  x.grad = input.learns;
  return a_picture(std::move(x), false, input.one_dimension);
}

Value BlueprintCount::weight_of(const Convolve& c, const Counted& x, std::int64_t in,
                                std::int64_t groups) {
  Shape shape = c.transposed ? Shape{in, c.out / groups} : Shape{c.out, in / groups};
  if (c.tubelet > 0) shape.push_back(c.tubelet);
  if (!x.one_dimension) shape.push_back(c.kernel[0]);
  shape.push_back(c.kernel[1]);
  if (!c.weight_normed) {
    Value weight = e_.parameter("weight", shape);
    weight.grad = !c.frozen;
    return weight;
  }
  const Value length = e_.parameter("parametrizations.weight.original0", {1, 1, c.kernel[1]});
  e_.save(length);
  e_.save(e_.constant(DType::f32, length.shape));
  const Value direction = e_.parameter("parametrizations.weight.original1", shape);
  return e_.copy(direction);
}

Counted BlueprintCount::count(const Convolve& c) {
  Counted x = read(0);
  const Shape& in = x.value.shape;
  const std::int64_t groups = c.each ? in[1] : c.groups;
  Plane sides{in[2], in[3]};
  const Plane places = places_of(c, sides, e_.options().place);
  const Plane zeros = zeros_around(c, sides);
  if (c.same || zeros[0] > 0 || zeros[1] > 0) {
    for (std::size_t i = 0; i < 2; ++i) sides[i] += zeros[i];
    x.value = e_.copy(x.value, {in[0], in[1], sides[0], sides[1]});
  }
  if (c.tubelet > 0) sides[0] /= c.tubelet;
  const Scope at(e_, c.name);
  if (c.weight_normed && c.bias) e_.parameter("bias", {c.out});
  const Value weight = weight_of(c, x, in[1], groups);
  if (!c.weight_normed && c.bias) e_.parameter("bias", {c.out});
  const std::int64_t centers = c.transposed ? sides[0] * sides[1] : places[0] * places[1];
  const std::int64_t flops = e_.times(e_.times(2 * in[0], centers), e_.elements(weight.shape));
  e_.count("convolution", flops, "convolution_backward",
           (weight.grad ? e_.times(flops, groups) : 0) + (x.value.grad ? flops : 0));
  if (weight.grad) e_.save(x.value);
  if (c.weight_normed) e_.save(weight);
  const Value y =
      e_.make({in[0], c.out, places[0], places[1]}, x.value.dtype, weight.grad || x.value.grad);
  // Whatever lies in it, its result lies channel after channel.
  Counted result = a_picture(y, false, x.one_dimension);
  result.value.shape[3] -= c.cut;
  return result;
}

Counted BlueprintCount::count(const BatchNormed& n) {
  return alike(batch_norm(e_, n.name, read(0).value), read(0).turned);
}

Counted BlueprintCount::count(const FrozenNormed& n) {
  const Value& x = read(0).value;
  for (const char* which : {".weight", ".bias", ".running_mean", ".running_var"}) {
    e_.buffer(n.name + which, {x.shape[1]}, e_.dtype());
  }
  const Value scale = e_.constant(e_.dtype(), {1, x.shape[1], 1, 1});
  return alike(e_.scaled(e_.multiply(x, scale)), read(0).turned);
}

Counted BlueprintCount::count(const GroupNormed& n) {
  // The kernel reads channel after channel: what lies place after place is copied.
  const Value x = read(0).turned ? e_.copy(read(0).value) : read(0).value;
  return alike(group_norm(e_, n.name, n.groups > 0 ? n.groups : x.shape[1], x), false);
}

Counted BlueprintCount::count(const Pooled& p) {
  const Value& x = read(0).value;
  Shape shape = x.shape;
  for (std::size_t i = 0; i < 2; ++i) {
    shape[i + 2] = p.whole    ? 1
                   : p.to > 0 ? p.to
                              : (x.shape[i + 2] + 2 * p.padding[i] - p.kernel[i]) / p.stride[i] + 1;
  }
  if (p.to != 1 && x.grad) e_.save(x);
  if (!p.largest) return alike(e_.make(shape, x.dtype, true), read(0).turned);
  return alike(e_.index(x, e_.constant(DType::i64, shape), shape), read(0).turned);
}

Counted BlueprintCount::count(const Resized& r) {
  const Value& x = read(0).value;
  Shape shape = x.shape;
  for (std::size_t i = 2; i < 4; ++i) {
    if (r.times > 0) shape[i] *= r.times;
    if (r.side > 0) shape[i] = r.side;
    if (r.to_image) shape[i] = step_.side;
    if (now_->reads.size() > 1) shape[i] = read(1).value.shape[i];
  }
  if (shape == x.shape) return alike(e_.copy(x), read(0).turned);
  return alike(e_.make(shape, x.dtype, x.grad), read(0).turned);
}

}  // namespace shardsim::models
