// What each operator computes and what autograd keeps of it (torch 2.15, derivatives.yaml).
#include <algorithm>
#include <cassert>

#include "workloads/eager/eager.hpp"

namespace shardsim::models {
namespace {

DType wider(DType a, DType b) { return bits_of(a) >= bits_of(b) ? a : b; }

Shape broadcast(const Shape& a, const Shape& b) {
  Shape result = a.size() >= b.size() ? a : b;
  const Shape& other = a.size() >= b.size() ? b : a;
  const std::size_t skipped = result.size() - other.size();
  for (std::size_t i = 0; i < other.size(); ++i) {
    std::int64_t& size = result[skipped + i];
    assert(size == other[i] || size == 1 || other[i] == 1);
    size = std::max(size, other[i]);
  }
  return result;
}

// Whether PyTorch lifts the scalar-like operand's type: one without dimensions does not decide.
DType type_of(const Value& a, const Value& b) {
  if (a.shape.empty() && !b.shape.empty()) return b.dtype;
  if (b.shape.empty() && !a.shape.empty()) return a.dtype;
  return wider(a.dtype, b.dtype);
}

}  // namespace

Value Eager::view(const Value& x, const Shape& shape) {
  Value result = x;
  result.shape = shape;
  return result;
}

Value Eager::copy(const Value& x) { return make(x.shape, x.dtype, x.grad); }

Value Eager::copy(const Value& x, const Shape& shape) { return make(shape, x.dtype, x.grad); }

Value Eager::cast(const Value& x, DType dtype) {
  return x.dtype == dtype ? x : make(x.shape, dtype, x.grad);
}

Value Eager::add(const Value& a, const Value& b) {
  return make(broadcast(a.shape, b.shape), type_of(a, b), a.grad || b.grad);
}

Value Eager::multiply(const Value& a, const Value& b) {
  if (b.grad) save(a);
  if (a.grad) save(b);
  return make(broadcast(a.shape, b.shape), type_of(a, b), a.grad || b.grad);
}

Value Eager::divide(const Value& a, const Value& b) {
  if (a.grad || b.grad) save(b);
  if (b.grad) save(a);
  return make(broadcast(a.shape, b.shape), type_of(a, b), a.grad || b.grad);
}

Value Eager::apply(const Value& x, Keeps keeps) {
  if (x.grad && keeps == Keeps::input) save(x);
  Value result = make(x.shape, x.dtype, x.grad);
  if (x.grad && keeps == Keeps::result) save(result);
  return result;
}

Value Eager::reduce_last(const Value& x) {
  Shape shape = x.shape;
  shape.back() = 1;
  return make(shape, x.dtype, x.grad);
}

Value Eager::dropout(const Value& x, double rate) {
  if (rate == 0) return x;
  if (x.grad) save(make(x.shape, DType::boolean, /*grad=*/false));
  return make(x.shape, x.dtype, x.grad);
}

Value Eager::index(const Value& x, const Value& positions, const Shape& shape) {
  if (x.grad) save(positions);
  return make(shape, x.dtype, x.grad);
}

Value Eager::embedding(const Value& ids, const Value& table) {
  save(ids);
  Shape shape = ids.shape;
  shape.push_back(table.last());
  return make(shape, table.dtype, table.grad);
}

void Eager::count_matmul(std::string_view op, std::string_view backward_op, std::int64_t flops,
                         const Value& a, const Value& b) {
  count(op, flops, backward_op, times(flops, (a.grad ? 1 : 0) + (b.grad ? 1 : 0)));
}

Value Eager::linear(const Value& x, const Value& weight, const Value& bias) {
  assert(weight.shape.size() == 2 && x.last() == weight.shape[1]);
  const std::int64_t flops = times(times(2, elements(x.shape)), weight.shape[0]);
  count_matmul(bias.exists() ? "addmm" : "mm", "mm", flops, x, weight);
  if (weight.grad) save(x);
  if (x.grad) save(weight);  // that counts where it is a copy in another type
  Shape shape = x.shape;
  shape.back() = weight.shape[0];
  return make(shape, x.dtype, x.grad || weight.grad);
}

Value Eager::conv1d_linear(const Value& x, const Value& weight, const Value& bias) {
  Value turned = weight;
  std::swap(turned.shape[0], turned.shape[1]);
  return linear(x, turned, bias);
}

Value Eager::bmm(const Value& a, const Value& b, std::int64_t m, std::int64_t k, std::int64_t n,
                 const Shape& shape, std::string_view op) {
  const std::int64_t batch = elements(a.shape) / (m * k);
  const std::int64_t flops = times(times(times(2, batch), times(m, k)), n);
  count_matmul(op, "bmm", flops, a, b);
  if (b.grad) save(a);
  if (a.grad) save(b);
  return make(shape, a.dtype, a.grad || b.grad);
}

Value Eager::grouped_matmul(const Value& x, const Value& weight, const Value& offsets,
                            std::int64_t out) {
  const std::int64_t flops = times(times(2, elements(x.shape)), out);
  count_matmul("_grouped_mm", "_grouped_mm", flops, x, weight);
  if (weight.grad) save(x);
  save(weight);
  save(offsets);
  Shape shape = x.shape;
  shape.back() = out;
  return make(shape, x.dtype, x.grad || weight.grad);
}

Value Eager::convolution(const Value& x, const Value& weight, const Shape& places) {
  const std::int64_t results = times(x.shape[0], elements(places));
  const std::int64_t flops = times(times(2, results), elements(weight.shape));
  const std::int64_t groups = x.shape[1] / weight.shape[1];
  count("convolution", flops, "convolution_backward",
        (x.grad ? flops : 0) + (weight.grad ? times(flops, groups) : 0));
  if (weight.grad) save(x);
  Shape shape{x.shape[0], weight.shape[0]};
  shape.insert(shape.end(), places.begin(), places.end());
  return make(shape, x.dtype, x.grad || weight.grad);
}

}  // namespace shardsim::models
