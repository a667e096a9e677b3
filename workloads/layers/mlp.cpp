#include "workloads/layers/mlp.hpp"

#include "workloads/layers/activation.hpp"

namespace shardsim::models {

Value run_linear(Eager& e, std::string_view name, const Value& x, std::int64_t out, bool bias,
                 bool bias_apart) {
  const Scope at(e, name);
  const Value weight = e.parameter("weight", {out, x.last()});
  const Value added = bias ? e.parameter("bias", {out}) : Value{};
  return e.linear(x, weight, bias_apart ? Value{} : added);
}

Value run_conv1d(Eager& e, std::string_view name, const Value& x, std::int64_t out) {
  const Scope at(e, name);
  const Value weight = e.parameter("weight", {x.last(), out});
  return e.conv1d_linear(x, weight, e.parameter("bias", {out}));
}

namespace {

// relu(x - mean(x) - z std(x)), of each row.
Value largest_part(Eager& e, const Value& x) {
  e.save(x);
  const Value deviation = e.apply(e.reduce_last(x), Keeps::result);
  e.save(e.constant(x.dtype, {}));
  return e.apply(e.add(x, e.scaled(deviation)), Keeps::result);
}

}  // namespace

Value run(Eager& e, const Mlp& mlp, const Value& x) {
  const Scope at(e, mlp.name);
  const std::int64_t hidden = x.last();
  const auto project = [&](const std::string& name, const Value& from, std::int64_t out) {
    return mlp.conv1d ? run_conv1d(e, name, from, out)
                      : run_linear(e, name, from, out, mlp.bias, mlp.bias_apart);
  };
  Value inner;
  if (mlp.form == MlpForm::plain) {
    inner = activate(e, mlp.activation, project(mlp.up, x, mlp.width));
  } else if (mlp.form == MlpForm::gated) {
    Value gate = project(mlp.gate, x, mlp.width);
    if (mlp.sparse) gate = largest_part(e, gate);
    if (mlp.limited) gate = e.apply(gate, Keeps::input);
    if (mlp.wide) gate = e.cast(gate, DType::f32);
    gate = activate(e, mlp.activation, gate);
    Value up = project(mlp.up, x, mlp.width);
    if (mlp.limited) up = e.apply(up, Keeps::input);
    if (mlp.wide) up = e.cast(up, DType::f32);
    inner = e.cast(e.multiply(gate, up), x.dtype);
  } else {
    const Value both = add_adapter(e, mlp.adapters, mlp.up + "_adapter_list", x,
                                   project(mlp.up, x, 2 * mlp.width));
    Shape half = both.shape;
    half.back() = mlp.width;
    const Value gate = Eager::view(both, half);
    if (mlp.clamped) {
      const Value kept = e.apply(gate, Keeps::input);
      const Value up = e.scaled(e.apply(Eager::view(both, half), Keeps::input));
      const Value open = e.apply(e.scaled(kept), Keeps::result);
      inner = e.multiply(up, e.multiply(kept, open));
    } else {
      inner = e.multiply(Eager::view(both, half), activate(e, mlp.activation, gate));
    }
  }
  inner = run(e, mlp.inner_norm, e.dropout(inner, mlp.inner_dropout));
  const Value out = mlp.down_bias ? run_linear(e, mlp.down, inner, hidden, /*bias=*/true)
                                  : project(mlp.down, inner, hidden);
  return e.dropout(out, mlp.dropout);
}

}  // namespace shardsim::models
