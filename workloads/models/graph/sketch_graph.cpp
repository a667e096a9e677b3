#include "workloads/models/graph/sketch_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardsim::models {
namespace {

bool contains(const Axes& axes, const Axis& axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

LabelRole role_of(AxisRole role) {
  switch (role) {
    case AxisRole::heads:
      return LabelRole::heads;
    case AxisRole::group:
      return LabelRole::head_group;
    case AxisRole::width:
      return LabelRole::width;
    default:
      return LabelRole::none;
  }
}

}  // namespace

SketchGraph::SketchGraph(GraphContext& c, TensorId x) : c_(c), scopes_{c.layer} {
  made(x, {batch(), sequence(), {"hidden", c.g.label_size(c.hidden), AxisRole::hidden}});
}

TensorId add(GraphContext& c, const Mixer& mixer, TensorId x) {
  c.refuse_if(c.options.cache && !c.encodes && !generates(mixer), "inference of " + to_text(mixer));
  c.refuse_if(c.options.documents.has_value(), "documents packed into " + to_text(mixer));
  SketchGraph sketch(c, x);
  return sketch.as_stream(draw(sketch, mixer, sketch.entered()));
}

Axis SketchGraph::batch() const { return {"batch", c_.g.label_size(c_.batch), AxisRole::batch}; }
Axis SketchGraph::sequence() const {
  return {"sequence", c_.g.label_size(c_.sequence), AxisRole::sequence};
}
Axis SketchGraph::keys() const {
  return {"keys", c_.g.label_size(c_.key_sequence), AxisRole::keys};
}

void SketchGraph::open(const std::string& module) {
  scopes_.push_back(GraphContext::inside(scopes_.back(), module));
}

void SketchGraph::close() { scopes_.pop_back(); }

Node SketchGraph::made(TensorId tensor, Axes axes) {
  tensors_.push_back(tensor);
  return next_node(std::move(axes));
}

LabelId SketchGraph::label(const Axis& axis) {
  switch (axis.role) {
    case AxisRole::batch:
      return c_.batch;
    case AxisRole::sequence:
      return c_.sequence;
    case AxisRole::keys:
      return c_.key_sequence;
    case AxisRole::kept:
      return kept_.at(axis.name);
    case AxisRole::hidden:
      if (axis.size == c_.g.label_size(c_.hidden)) return c_.hidden;
      return c_.label(axis.name, axis.size);
    default:
      return c_.label(axis.name, axis.size, role_of(axis.role));
  }
}

Dims SketchGraph::dims(const Axes& axes) {
  Dims result;
  for (const Axis& axis : axes) result.push_back({label(axis)});
  return result;
}

std::string SketchGraph::unique(const std::string& name) {
  const std::string full = scopes_.back() + "." + name;
  const int number = ++names_[full];
  return number == 1 ? full : fmt::format("{}_{}", full, number);
}

std::vector<LabelId> SketchGraph::changed(const Axes& from, const std::vector<Axes>& to) {
  std::vector<LabelId> labels;
  const auto add = [&](const Axis& axis) {
    const LabelId id = label(axis);
    if (std::find(labels.begin(), labels.end(), id) == labels.end()) labels.push_back(id);
  };
  for (const Axes& axes : to) {
    for (const Axis& axis : from) {
      if (!contains(axes, axis)) add(axis);
    }
    for (const Axis& axis : axes) {
      if (!contains(from, axis)) add(axis);
    }
  }
  return labels;
}

TensorId SketchGraph::as_stream(Node node) {
  if (c_.g.dims_of(tensor(node)) == c_.stream()) return tensor(node);
  const std::string name = unique("as_stream");
  return c_.g.slices(name, tensor(node), {{name, c_.stream()}}, {}).front();
}

Node SketchGraph::linear(const Linear& module, Node x, const Axes& out) {
  Axes axes = axes_of(x);
  Axes in(axes.end() - module.in, axes.end());
  axes.resize(axes.size() - in.size());
  Axes shared;
  if (module.grouped) shared = {in.front()};
  // Summed over what the result has under the same name: the input is seen under another.
  for (Axis& axis : in) {
    if (contains(shared, axis) || !contains(out, axis)) continue;
    Axes renamed = axes_of(x);
    axis.name += "_in";
    if (axis.role == AxisRole::hidden) axis.role = AxisRole::plain;
    std::copy(in.begin(), in.end(), renamed.end() - module.in);
    x = view(x, renamed);
  }
  const auto dim = [&](const Axes& of) {
    Dim labels;
    for (const Axis& axis : of) labels.push_back(label(axis));
    return labels;
  };
  const std::string name = GraphContext::inside(scopes_.back(), module.name);
  axes.insert(axes.end(), out.begin(), out.end());
  if (module.grouped) {
    Axes of_group(in.begin() + 1, in.end());
    const Dims weight{dim(out), dim(of_group), {c_.label("one", 1)}};
    const TensorId bias = module.bias ? c_.g.parameter(name + ".bias", {dim(out)}) : no_tensor;
    return made(
        c_.g.linear(name, tensor(x), c_.g.parameter(name + ".weight", weight), dims(axes), bias),
        axes);
  }
  const Dims matrix = module.conv1d ? Dims{dim(in), dim(out)} : Dims{dim(out), dim(in)};
  const TensorId weight = c_.g.parameter(name + ".weight", matrix);
  const TensorId bias = module.bias ? c_.g.parameter(name + ".bias", {dim(out)}) : no_tensor;
  // A module may run twice.
  return made(c_.g.linear(unique(module.name), tensor(x), weight, dims(axes), bias), axes);
}

void SketchGraph::stored(const Linear& module, Node x, const Axes& out) {
  const std::string name = GraphContext::inside(scopes_.back(), module.name);
  Axes in = axes_of(x);
  in.erase(in.begin(), in.end() - module.in);
  Dim rows, columns;
  for (const Axis& axis : out) rows.push_back(label(axis));
  for (const Axis& axis : in) columns.push_back(label(axis));
  c_.g.untrained_parameter(name + ".weight", {rows, columns});
  if (module.bias) c_.g.untrained_parameter(name + ".bias", {rows});
  c_.note("projections that a step does not use are stored and not trained");
}

Node SketchGraph::product(const std::string& name, Node a, Node b, const Axes& result) {
  return made(c_.g.linear(unique(name), tensor(a), tensor(b), dims(result)), result);
}

Node SketchGraph::point(Function function, const std::string& name, Node a, Node b) {
  std::vector<TensorId> operands{tensor(a)};
  if (b != no_node) operands.push_back(tensor(b));
  return made(c_.g.elementwise(function, unique(name), operands), axes_of(a));
}

Node SketchGraph::apply(PointFunction function, Node x) {
  switch (function) {
    case PointFunction::sigmoid:
      return point(Function::sigmoid, "sigmoid", x);
    case PointFunction::tanh:
      return point(Function::tanh, "tanh", x);
    case PointFunction::softplus:
      return point(Function::softplus, "softplus", x);
    case PointFunction::relu:
      return point(Function::relu, "relu", x);
    case PointFunction::silu:
      return point(Function::silu, "silu", x);
  }
  return x;
}

Node SketchGraph::activate(const std::string& activation, Node x) {
  return made(c_.activate(activation, unique("act"), tensor(x), scopes_.back()), axes_of(x));
}

Node SketchGraph::softmax(Node x, const Axis& over, bool /*fp32*/) {
  return made(c_.g.over_label(Function::softmax, unique("softmax"), tensor(x), label(over)),
              axes_of(x));
}

Node SketchGraph::dropout(double rate, Node x) {
  return made(c_.dropped(unique("dropout"), tensor(x), rate), axes_of(x));
}

Node SketchGraph::norm(const Norm& norm, Node x, const Axes& over) {
  std::vector<LabelId> labels;
  for (const Axis& axis : over) labels.push_back(label(axis));
  const std::string name = GraphContext::inside(scopes_.back(), norm.name);
  return made(c_.norm(norm, name, tensor(x), labels), axes_of(x));
}

Node SketchGraph::cast(Node x, DType dtype) {
  return made(c_.g.cast(unique("cast"), tensor(x), dtype), axes_of(x));
}

Node SketchGraph::mean(Node x, const Axis& over) {
  Axes axes = axes_of(x);
  std::erase(axes, over);
  return made(c_.g.mean(unique("mean"), tensor(x), dims(axes)), axes);
}

Node SketchGraph::parameter(const std::string& name, const Axes& axes) {
  return made(c_.g.parameter(GraphContext::inside(scopes_.back(), name), dims(axes)), axes);
}

void SketchGraph::idle_parameter(const std::string& name, const Axes& axes) {
  c_.g.untrained_parameter(GraphContext::inside(scopes_.back(), name), dims(axes));
}

Node SketchGraph::table(const std::string& name, const Axes& axes) {
  return parameter(name + ".weight", axes);
}

Node SketchGraph::look_up(const std::string& name, const Axes& table, const Axes& numbers,
                          const Axes& result) {
  const std::string full = GraphContext::inside(scopes_.back(), name);
  const TensorId rows = c_.g.parameter(full + ".weight", dims(table));
  const TensorId ids = c_.g.constant(full + ".numbers", c_.options.index_dtype, dims(numbers));
  return made(c_.g.embedding(full, ids, rows, dims(result)), result);
}

Node SketchGraph::handed(const std::string& name, const Axes& axes, bool /*is_first*/,
                         const std::function<Node(Sketch&)>& /*make*/) {
  return made(find_handed(c_, name)->id, axes);
}

Node SketchGraph::buffer(const std::string& name, const Axes& axes) {
  return made(
      c_.g.buffer(GraphContext::inside(scopes_.back(), name), c_.g.compute_dtype(), dims(axes)),
      axes);
}

Node SketchGraph::constant(DType dtype, const Axes& axes, const std::string& shared) {
  return made(c_.g.constant(unique(shared.empty() ? "constant" : shared), dtype, dims(axes)), axes);
}

Node SketchGraph::view(Node x, const Axes& axes) {
  const std::vector<LabelId> whole = changed(axes_of(x), {axes});
  if (whole.empty()) return made(tensor(x), axes);  // the order of labels says nothing
  const std::string name = unique("view");
  return made(c_.g.slices(name, tensor(x), {{name, dims(axes)}}, whole).front(), axes);
}

Node SketchGraph::copy(Node x, const Axes& axes) {
  const std::vector<LabelId> whole = changed(axes_of(x), {axes});
  const std::string name = unique("copy");
  if (whole.empty()) return made(c_.g.copy(name, tensor(x)), axes);
  return made(c_.g.rearranged(name, tensor(x), dims(axes), whole), axes);
}

Node SketchGraph::expand(Node x, const Axes& axes) {
  return made(c_.g.expand(unique("expanded"), tensor(x), dims(axes)), axes);
}

std::vector<Node> SketchGraph::parts(Node x, const std::vector<Axes>& axes) {
  std::vector<GraphBuilder::Part> wanted;
  for (const Axes& one : axes) wanted.push_back({unique("part"), dims(one)});
  const std::vector<TensorId> ids =
      c_.g.slices(unique("parts"), tensor(x), wanted, changed(axes_of(x), axes));
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < ids.size(); ++i) nodes.push_back(made(ids[i], axes[i]));
  return nodes;
}

Node SketchGraph::join(const std::vector<Node>& parts, const Axes& axes) {
  std::vector<TensorId> ids;
  std::vector<Axes> of_parts;
  for (const Node part : parts) {
    ids.push_back(tensor(part));
    of_parts.push_back(axes_of(part));
  }
  return made(c_.g.concatenate(unique("joined"), ids, dims(axes), changed(axes, of_parts)), axes);
}

Node SketchGraph::pick(Node x, const Axes& /*numbers*/, const Axes& axes) { return copy(x, axes); }

Axis SketchGraph::kept(std::int64_t window) {
  if (!c_.is_decoding()) return sequence();
  const LabelId tokens = c_.seen_tokens(window);
  const std::string name = fmt::format("kept_{}", window);
  kept_[name] = tokens;
  return {name, c_.g.label_size(tokens), AxisRole::kept};
}

Node SketchGraph::keep(const std::string& name, Node x, std::int64_t window) {
  if (!is_inference()) return x;
  const TensorId rows = c_.keep(unique(name), {tensor(x)}, c_.g.dims_of(tensor(x)), window);
  if (!c_.is_decoding()) return x;
  Axes axes = axes_of(x);
  std::replace(axes.begin(), axes.end(), sequence(), kept(window));
  return made(rows, axes);
}

TensorId SketchGraph::state_cache(const std::string& name, const Axes& axes, DType dtype) {
  return c_.g.cache(GraphContext::inside(scopes_.back(), name), dtype, dims(axes));
}

void SketchGraph::leave(const std::string& name, Node state) {
  if (!is_inference()) return;
  const Axes& axes = axes_of(state);
  const TensorId cache = state_cache(name, axes, c_.g.compute_dtype());
  static_cast<void>(
      c_.g.append(unique(name + ".left"), cache, {tensor(state)}, c_.sequence, c_.sequence));
}

Node SketchGraph::step(const Step& step) {
  GraphBuilder::Scan parts;
  for (const Node node : step.operands) parts.operands.push_back(tensor(node));
  parts.result = dims(step.result);
  parts.whole = {c_.sequence};
  std::vector<LabelId> numbers{c_.sequence};
  for (const Axis& axis : step.state) numbers.push_back(label(axis));
  parts.work = {{step.operations, std::move(numbers)}};
  parts.state = {state_cache(step.name, step.state, step.dtype), /*is_read=*/true};
  return made(c_.g.scan(Function::state_update, unique(step.name + ".update"), std::move(parts)),
              step.result);
}

Node SketchGraph::attend(const std::string& name, Node q, Node k, Node v, const Attend& rules) {
  Axes axes = axes_of(q);
  axes.back() = axes_of(v).back();
  GraphBuilder::AttentionParts parts{.fraction = rules.fraction, .drops = c_.drops(rules.dropout)};
  if (rules.bias != no_node) parts.added = tensor(rules.bias);
  const LabelId dim = label(axes_of(q).back());
  if (axes.back() != axes_of(q).back()) parts.value_dim = label(axes.back());
  // Keys under a label of their own are whole.
  Axis among = rules.keys;
  if (rules.keys.role == AxisRole::sequence) among = keys();
  if (rules.keys.role == AxisRole::kept) {
    parts.fraction = 1;
    parts.merges = true;
  }
  return made(c_.g.attention(unique(name), tensor(q), tensor(k), tensor(v), dim,
                             {{label(rules.keys), label(among)}}, parts),
              axes);
}

void SketchGraph::turn(const Rotary& rotary, Node& q, Node& k) {
  TensorId both[2] = {tensor(q), k == no_node ? no_tensor : tensor(k)};
  models::turn(c_, rotary, unique("rope"), label(axes_of(q).back()), both[0], both[1]);
  q = made(both[0], axes_of(q));
  if (k != no_node) k = made(both[1], axes_of(k));
}

// Of the taps' windows: what is around each token is seen, not copied.
Node SketchGraph::convolve_each(const std::string& name, Node x, std::int64_t taps) {
  const Dim channels{label(axes_of(x).back())};
  return made(c_.convolution(GraphContext::inside(scopes_.back(), name), tensor(x), channels, taps,
                             /*bias=*/false, /*silu=*/false),
              axes_of(x));
}

Node SketchGraph::convolve_causal(const std::string& name, Node x, std::int64_t taps, bool bias) {
  const Dim channels{label(axes_of(x).back())};
  return made(c_.convolution(GraphContext::inside(scopes_.back(), name), tensor(x), channels, taps,
                             bias, /*silu=*/false),
              axes_of(x));
}

}  // namespace shardsim::models
