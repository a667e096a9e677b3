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
  if (module.by_groups) {
    const Scope at(e_, module.name);
    const std::int64_t groups = in[0].size, rows = elements_of(axes);
    const std::int64_t each = width / groups, to = elements_of(out) / groups;
    const Value weight = e_.parameter("weight", {elements_of(out), each});
    axes.insert(axes.end(), out.begin(), out.end());
    return made(e_.bmm(value(x), weight, rows, each, to, shape_of(axes)), axes);
  }
  const Value rows = Eager::view(value(x), {elements_of(axes), width});
  if (module.bare) {
    Value weight = e_.parameter(module.name, {elements_of(out), width});
    if (module.fp32) weight = e_.cast(weight, DType::f32);
    axes.insert(axes.end(), out.begin(), out.end());
    return made(Eager::view(e_.linear(rows, weight), shape_of(axes)), axes);
  }
  Value y = module.conv1d ? run_conv1d(e_, module.name, rows, elements_of(out))
                          : run_linear(e_, module.name, rows, elements_of(out), module.bias,
                                       module.bias_apart);
  axes.insert(axes.end(), out.begin(), out.end());
  y = Eager::view(y, shape_of(axes));
  return made(y, axes);
}

Node CountSketch::product_normed(const Norm& /*norm*/, const Linear& matrix, Node x,
                                 const Axes& over, const Axes& out) {
  const Node made_of = linear(matrix, x, out);
  Shape rows = shape_of(axes_of(x));
  rows.resize(rows.size() - over.size());
  rows.push_back(elements_of(over));
  const Value square = e_.apply(Eager::view(value(x), rows), Keeps::input);
  const Value inverse = e_.apply(e_.reduce_last(square), Keeps::result);
  return made(e_.multiply(value(made_of), inverse), axes_of(made_of));
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

Node CountSketch::weighted_sum(const std::string& /*name*/, Node x, Node weights,
                               const Axis& over) {
  return cast(mean(multiply(x, weights), over), DType::bf16);
}

Node CountSketch::balanced(Node x, const Axis& rows, const Axis& columns, std::int64_t times) {
  const auto divide = [&](const Axis& over) {
    Axes axes = axes_of(x);
    std::erase(axes, over);
    const Node sum = scaled(mean(x, over));
    x = made(e_.divide(value(x), spread(sum, axes_of(x))), axes_of(x));
  };
  divide(rows);
  for (std::int64_t i = 1; i < times; ++i) {
    divide(columns);
    divide(rows);
  }
  return x;
}

void CountSketch::choose(Node x, const Axis& among, std::int64_t count) {
  Axes axes = axes_of(x);
  std::replace(axes.begin(), axes.end(), among, {"chosen", count});
  keeps_numbers(DType::i64, axes);
}

Node CountSketch::turn_last(Node x, std::int64_t dims, const Axis& tokens, bool by_example) {
  Axes table{tokens, {"rotary_dim", dims}};
  if (by_example) table.insert(table.begin(), batch());
  for (int i = 0; i < 2; ++i) keeps_numbers(DType::bf16, table);
  return lies(x);
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

Node CountSketch::repeated(Node x, const Axis& tokens) {
  if (batch().size == 1) return x;
  Axes axes = axes_of(x);
  axes.insert(axes.begin() + 1, tokens);
  return copy(x, axes);
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

Node CountSketch::largest(const std::string& /*name*/, Node x, const Axis& /*from*/,
                          const Axis& /*to*/, const Axes& axes) {
  keeps(x);
  return made(e_.index(value(x), e_.constant(DType::i64, shape_of(axes)), shape_of(axes)), axes);
}

Node CountSketch::sample(const std::string& /*name*/, Node value, Node grid,
                         const Axis& /*coordinates*/, const Axes& axes) {
  for (const Node one : {value, grid}) keeps(one);
  return made(e_.make(shape_of(axes), e_.dtype(), true), axes);
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
  scores.sinks = rules.sinks != no_node;
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

Node CountSketch::keep(const std::string& name, Node x, std::int64_t /*window*/) {
  return keep_entries(name, x, 1);
}

// [batch, tokens or entries, ...].
Node CountSketch::keep_entries(const std::string& /*name*/, Node x, std::int64_t tokens) {
  const Axes& axes = axes_of(x);
  const std::int64_t row = elements_of(axes) / (axes[0].size * axes[1].size);
  e_.cache(e_.times(row, size_of(value(x).dtype).count()) / tokens, 0);
  return x;
}

Node CountSketch::step(const Step& step) {
  throw std::logic_error(step.name + ": a token of inference is not counted");
}

Node CountSketch::recur(const Step& step) {
  const std::int64_t states = elements_of(step.state) / batch().size;
  const auto operations = static_cast<std::int64_t>(step.operations * static_cast<double>(states));
  e_.count_scan(e_.times(e_.times(batch().size, sequence().size), operations));
  e_.cache(0, e_.times(states, size_of(step.dtype).count()));
  for (const Node node : step.operands) e_.save(value(node));
  const Node result = made(e_.make(shape_of(step.result), e_.dtype(), true), step.result);
  e_.save(value(result));
  return result;
}

Node CountSketch::remember(const Memory& memory) {
  const std::int64_t k = axes_of(memory.keys).back().size, v = axes_of(memory.values).back().size;
  const std::int64_t heads = memory.heads.size;
  for (const Node node : {memory.queries, memory.keys, memory.values}) keeps(lies(node));
  for (const Node node : memory.gates) keeps(lies(node));
  for (int i = 0; i < 2; ++i) keeps_numbers(DType::f32, {batch(), memory.heads, sequence()});
  const std::int64_t tokens = e_.times(batch().size * sequence().size, heads);
  e_.count_scan(e_.times(tokens, 2 * memory.chunk * (k + v) + 4 * k * v));
  e_.cache(0, e_.times(heads * (k * (v + 1) + 1), size_of(e_.dtype()).count()));
  const Axes axes = axes_of(memory.values);
  return made(e_.make(shape_of(axes), e_.dtype(), true), axes);
}

Node CountSketch::before(const std::string& /*name*/, Node x) {
  const std::int64_t row = elements_of(axes_of(x)) / (batch().size * sequence().size);
  e_.cache(0, e_.times(row, size_of(value(x).dtype).count()));
  return lies(x);
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
