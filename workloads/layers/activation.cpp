#include "workloads/layers/activation.hpp"

#include <algorithm>
#include <cassert>

namespace shardsim::models {
namespace {

// 0.5 * x * (1 + tanh(c * (x + 0.044715 * x^3)))
Value gelu_new(Eager& e, const Value& x) {
  const Value inner = e.scaled(e.add(x, e.scaled(e.apply(x, Keeps::input))));
  const Value tanh = e.apply(inner, Keeps::result);
  return e.multiply(e.scaled(x), e.scaled(tanh));
}

// 0.5 * x * (1 + tanh(x * c * (1 + 0.044715 * x * x)))
Value gelu_fast(Eager& e, const Value& x) {
  const Value root = e.scaled(x);                             // x * c
  const Value square = e.scaled(e.multiply(e.scaled(x), x));  // 1 + 0.044715 * x * x
  const Value tanh = e.apply(e.multiply(root, square), Keeps::result);
  return e.multiply(e.scaled(x), e.scaled(tanh));
}

// x * 0.5 * (1 + erf(x / sqrt(2)))
Value gelu_python(Eager& e, const Value& x) {
  const Value erf = e.apply(e.scaled(x), Keeps::input);
  return e.multiply(e.scaled(x), e.scaled(erf));
}

Value quick_gelu(Eager& e, const Value& x) {
  return e.multiply(x, e.apply(e.scaled(x), Keeps::result));
}

// x > 0: p x x + b x; else (exp(min(x, eps)) - 1 - x) n + b x, with p and n of two parameters.
Value xielu(Eager& e, const Value& x) {
  const Scope at(e, "act_fn");
  const Value positive = e.apply(e.parameter("alpha_p", {1}), Keeps::input);
  const Value negative = e.scaled(e.apply(e.parameter("alpha_n", {1}), Keeps::input));
  e.buffer("beta", {}, e.dtype());
  e.buffer("eps", {}, e.dtype());
  const Value linear = e.scaled(x);
  const Value above = e.add(e.multiply(e.multiply(positive, x), x), linear);
  const Value inner = e.apply(e.apply(x, Keeps::input), Keeps::result);  // exp(min(x, eps)) - 1
  const Value below = e.add(e.multiply(e.add(inner, x), negative), e.scaled(x));
  e.save(e.constant(DType::boolean, x.shape));
  return e.add(above, below);
}

Value squared_relu(Eager& e, const Value& x) {
  return e.apply(e.apply(x, Keeps::result), Keeps::input);
}

}  // namespace

const std::vector<std::string>& known_activations() {
  static const std::vector<std::string> names = {
      "gelu",      "gelu_new",   "gelu_fast",     "gelu_python", "gelu_pytorch_tanh",
      "gelu_tanh", "quick_gelu", "gelu_accurate", "relu",        "relu2",
      "relu6",     "silu",       "swish",         "sigmoid",     "tanh",
      "mish",      "leaky_relu", "linear",        "xielu"};
  return names;
}

bool learns(std::string_view activation) { return activation == "xielu"; }

Value activate(Eager& e, std::string_view name, const Value& x) {
  assert(std::find(known_activations().begin(), known_activations().end(), name) !=
         known_activations().end());
  if (name == "gelu_new" || name == "gelu_accurate") return gelu_new(e, x);
  if (name == "gelu_fast") return gelu_fast(e, x);
  if (name == "gelu_python") return gelu_python(e, x);
  if (name == "quick_gelu") return quick_gelu(e, x);
  if (name == "relu2") return squared_relu(e, x);
  if (name == "linear") return x;
  if (name == "xielu") return xielu(e, x);
  const bool by_result = name == "relu" || name == "sigmoid" || name == "tanh";
  return e.apply(x, by_result ? Keeps::result : Keeps::input);
}

}  // namespace shardsim::models
