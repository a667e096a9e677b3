#include "workloads/layers/count_sketch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "workloads/layers/activation.hpp"
#include "workloads/layers/attention_kernel.hpp"
#include "workloads/layers/mlp.hpp"

namespace shardsim::models {
namespace {

Shape shape_of(const Axes& axes) {
  Shape shape;
  for (const Axis& axis : axes) shape.push_back(axis.size);
  return shape;
}

bool has(const Axes& axes, const Axis& axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

}  // namespace

CountSketch::CountSketch(Eager& eager, Context& context, const Value& x)
    : e_(eager), context_(context) {
  made(x, {batch(), sequence(), {"hidden", x.last(), AxisRole::hidden}});
}

const Value& CountSketch::value(Node node) const { return values_[static_cast<std::size_t>(node)]; }

Axis CountSketch::batch() const { return {"batch", context_.batch, AxisRole::batch}; }
Axis CountSketch::sequence() const { return {"sequence", context_.sequence, AxisRole::sequence}; }
Axis CountSketch::keys() const { return {"keys", context_.sequence, AxisRole::keys}; }

Node CountSketch::made(Value value, Axes axes) {
  values_.push_back(std::move(value));
  return next_node(std::move(axes));
}

Node CountSketch::linear(const Linear& module, Node x, const Axes& out) {
  Axes axes = axes_of(x);
  const Axes in(axes.end() - module.in, axes.end());
  axes.resize(axes.size() - in.size());
  const std::int64_t width = elements_of(in);
  if (module.grouped) {
    // [batch, width, tokens], of which the convolution reads a transposed view.
    const Scope at(e_, module.name);
    const std::int64_t tokens = elements_of(axes) / batch().size;
    const std::int64_t groups = in[0].size;
    const Value weight = e_.parameter("weight", {elements_of(out), width / groups, 1});
    if (module.bias) e_.parameter("bias", {elements_of(out)});
    const Value y =
        e_.convolution(Eager::view(value(x), {batch().size, width, tokens}), weight, {tokens});
    axes.insert(axes.end(), out.begin(), out.end());
    return made(Eager::view(y, shape_of(axes)), axes);
  }
  const Value rows = Eager::view(value(x), {elements_of(axes), width});
  Value y = module.conv1d ? run_conv1d(e_, module.name, rows, elements_of(out))
                          : run_linear(e_, module.name, rows, elements_of(out), module.bias,
                                       module.bias_apart);
  axes.insert(axes.end(), out.begin(), out.end());
  y = Eager::view(y, shape_of(axes));
  return made(y, axes);
}

void CountSketch::stored(const Linear& module, Node x, const Axes& out) {
  const Scope at(e_, module.name);
  Axes in = axes_of(x);
  in.erase(in.begin(), in.end() - module.in);
  e_.parameter("weight", {elements_of(out), elements_of(in)});
  if (module.bias) e_.parameter("bias", {elements_of(out)});
}

Node CountSketch::product(const std::string& name, Node a, Node b, const Axes& result) {
  for (const Axis& axis : result) {
    if (has(axes_of(a), axis) || has(axes_of(b), axis)) continue;
    throw std::logic_error(fmt::format("{}: no operand has the axis {}", name, axis.name));
  }
  std::int64_t m = 1, k = 1, n = 1;
  for (const Axis& axis : axes_of(a)) {
    const bool both = has(axes_of(b), axis);
    if (!has(result, axis)) k *= axis.size;
    if (has(result, axis) && !both) m *= axis.size;
  }
  for (const Axis& axis : axes_of(b)) {
    if (!has(axes_of(a), axis)) n *= axis.size;
  }
  return made(e_.bmm(value(a), value(b), m, k, n, shape_of(result)), result);
}

Value CountSketch::spread(Node x, const Axes& axes) const {
  const Axes& own = axes_of(x);
  if (own.empty()) return value(x);
  Shape shape;
  for (const Axis& axis : axes) shape.push_back(has(own, axis) ? axis.size : 1);
  return Eager::view(value(x), shape);
}

Node CountSketch::add(Node a, Node b) {
  return made(e_.add(value(a), spread(b, axes_of(a))), axes_of(a));
}

Node CountSketch::multiply(Node a, Node b) {
  return made(e_.multiply(value(a), spread(b, axes_of(a))), axes_of(a));
}

Node CountSketch::apply(PointFunction function, Node x) {
  const bool by_result = function == PointFunction::sigmoid || function == PointFunction::tanh ||
                         function == PointFunction::relu;
  return made(e_.apply(value(x), by_result ? Keeps::result : Keeps::input), axes_of(x));
}

Node CountSketch::activate(const std::string& activation, Node x) {
  return made(models::activate(e_, activation, value(x)), axes_of(x));
}

Node CountSketch::scaled(Node x) { return made(e_.scaled(value(x)), axes_of(x)); }

Node CountSketch::softmax(Node x, const Axis& /*over*/, bool fp32) {
  const Value scores = fp32 ? e_.cast(value(x), DType::f32) : value(x);
  return made(e_.cast(e_.apply(scores, Keeps::result), value(x).dtype), axes_of(x));
}

Node CountSketch::dropout(double rate, Node x) {
  return made(e_.dropout(value(x), rate), axes_of(x));
}

Node CountSketch::norm(const Norm& norm, Node x, const Axes& over) {
  Axes rows = axes_of(x);
  rows.resize(rows.size() - over.size());
  Shape shape = shape_of(rows);
  shape.push_back(elements_of(over));
  return made(Eager::view(run(e_, norm, Eager::view(value(x), shape)), shape_of(axes_of(x))),
              axes_of(x));
}

Node CountSketch::cast(Node x, DType dtype) { return made(e_.cast(value(x), dtype), axes_of(x)); }

Node CountSketch::mean(Node x, const Axis& over) {
  Axes axes = axes_of(x);
  std::erase(axes, over);
  return made(e_.copy(value(x), shape_of(axes)), axes);
}

Node CountSketch::parameter(const std::string& name, const Axes& axes) {
  return made(e_.parameter(name, shape_of(axes)), axes);
}

Node CountSketch::table(const std::string& name, const Axes& axes) {
  const Scope at(e_, name);
  return made(e_.embedding_table("weight", shape_of(axes)), axes);
}

Node CountSketch::look_up(const std::string& name, const Axes& table, const Axes& numbers,
                          const Axes& result) {
  const Scope at(e_, name);
  const Value rows = e_.embedding_table("weight", shape_of(table));
  const Value picked = e_.embedding(e_.constant(DType::i64, shape_of(numbers)), rows);
  return made(Eager::view(picked, shape_of(result)), result);
}

Node CountSketch::handed(const std::string& name, const Axes& axes, bool is_first,
                         const std::function<Node(Sketch&)>& make) {
  Value& known = context_.shared["handed " + name];
  if (is_first) known = value(make(*this));
  return made(Eager::view(known, shape_of(axes)), axes);
}

Node CountSketch::buffer(const std::string& name, const Axes& axes) {
  e_.buffer(name, shape_of(axes), e_.dtype());
  return made(e_.input(e_.dtype(), shape_of(axes)), axes);
}

Node CountSketch::constant(DType dtype, const Axes& axes, const std::string& shared) {
  if (shared.empty()) return made(e_.constant(dtype, shape_of(axes)), axes);
  Value& known = context_.shared[shared];
  if (!known.exists()) known = e_.constant(dtype, shape_of(axes));
  return made(Eager::view(known, shape_of(axes)), axes);
}

Node CountSketch::view(Node x, const Axes& axes) {
  return made(Eager::view(value(x), shape_of(axes)), axes);
}

Node CountSketch::copy(Node x, const Axes& axes) {
  return made(e_.copy(value(x), shape_of(axes)), axes);
}

std::vector<Node> CountSketch::parts(Node x, const std::vector<Axes>& axes) {
  std::vector<Node> nodes;
  for (const Axes& one : axes) nodes.push_back(view(x, one));
  return nodes;
}

Node CountSketch::join(const std::vector<Node>& parts, const Axes& axes) {
  Value first = value(parts.front());
  for (const Node part : parts) first.grad = first.grad || value(part).grad;
  return made(e_.copy(first, shape_of(axes)), axes);
}

Node CountSketch::pick(Node x, const Axes& numbers, const Axes& axes) {
  return made(e_.index(value(x), e_.constant(DType::i64, shape_of(numbers)), shape_of(axes)), axes);
}

// [batch and what else there is, heads, rows, dim] of what has these in any order.
Value CountSketch::by_heads(Node x, const Axis& rows) const {
  const Axes& axes = axes_of(x);
  std::int64_t heads = 1, outer = 1;
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
    if (axes[i] == rows) continue;
    const bool is_head = axes[i].role == AxisRole::heads || axes[i].role == AxisRole::group;
    (is_head ? heads : outer) *= axes[i].size;
  }
  return Eager::view(value(x), {outer, heads, rows.size, axes.back().size});
}

Node CountSketch::attend(const std::string& /*name*/, Node q, Node k, Node v, const Attend& rules) {
  ScoreRules scores{
      .dropout = rules.dropout, .fp32_softmax = rules.fp32_softmax, .plain_only = rules.plain_only};
  if (rules.bias != no_node) scores.bias = value(rules.bias);
  Axes axes = axes_of(q);
  axes.back() = axes_of(v).back();
  const Value out = run_attention_kernel(e_, by_heads(q, rules.queries), by_heads(k, rules.keys),
                                         by_heads(v, rules.keys), scores);
  return made(Eager::view(out, shape_of(axes)), axes);
}

void CountSketch::turn(const Rotary& rotary, Node& q, Node& k) {
  Value both[2] = {value(q), k == no_node ? Value{} : value(k)};
  models::turn(e_, rotary, context_, both[0], both[1]);
  q = made(both[0], axes_of(q));
  if (k != no_node) k = made(both[1], axes_of(k));
}

Node CountSketch::convolve_each(const std::string& name, Node x, std::int64_t taps) {
  const Scope at(e_, name);
  const Axes& axes = axes_of(x);
  const std::int64_t channels = axes.back().size;
  const Value weight = e_.parameter("weight", {channels, 1, taps});
  const Value rows = Eager::view(value(x), {batch().size, channels, sequence().size});
  return made(Eager::view(e_.convolution(rows, weight, {sequence().size}), shape_of(axes)), axes);
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
  return made(Eager::view(y, shape_of(axes)), axes);
}

Node CountSketch::keep(const std::string& /*name*/, Node x, std::int64_t /*window*/) {
  const Value& rows = value(x);
  const std::int64_t bytes = e_.times(elements_of(axes_of(x)), size_of(rows.dtype).count());
  e_.cache(bytes / (batch().size * sequence().size), 0);
  return x;
}

Node CountSketch::step(const Step& step) {
  throw std::logic_error(step.name + ": a token of inference is not counted");
}

Node CountSketch::lies(Node x) { return made(e_.copy(value(x)), axes_of(x)); }

void CountSketch::unread_product(Node a, Node b, const Axes& result) {
  e_.run_forward_alone(true);
  product("", a, b, result);
  e_.run_forward_alone(false);
}

void CountSketch::refuse_if(bool has, const std::string& what) const {
  if (has) throw InputError(e_.options().place, fmt::format("{} is not supported", what));
}

void CountSketch::keeps_numbers(DType dtype, const Axes& axes) {
  e_.save(e_.constant(dtype, shape_of(axes)));
}

}  // namespace shardsim::models
