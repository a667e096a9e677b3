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

Node SketchGraph::in_order(Node node) {
  const Axes& axes = axes_of(node);
  const Dims wanted = dims(axes);
  if (c_.g.dims_of(tensor(node)) == wanted) return node;
  const std::string name = unique("in_order");
  return made(c_.g.slices(name, tensor(node), {{name, wanted}}, {}).front(), axes);
}

Node SketchGraph::linear(const Linear& module, Node x, const Axes& out) {
  Axes axes = axes_of(x);
  Axes in(axes.end() - module.in, axes.end());
  axes.resize(axes.size() - in.size());
  Axes shared;
  if (module.grouped || module.by_groups) shared = {in.front()};
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
  if (module.grouped || module.by_groups) {
    Axes of_group(in.begin() + 1, in.end());
    Dims weight{dim(out), dim(of_group)};
    if (module.grouped) weight.push_back({c_.label("one", 1)});
    const TensorId bias = module.bias ? own_parameter(name + ".bias", {dim(out)}) : no_tensor;
    return made(
        c_.g.linear(name, tensor(x), own_parameter(name + ".weight", weight), dims(axes), bias),
        axes);
  }
  const Dims matrix = module.conv1d ? Dims{dim(in), dim(out)} : Dims{dim(out), dim(in)};
  const TensorId weight = own_parameter(module.bare ? name : name + ".weight", matrix);
  const TensorId bias = module.bias ? own_parameter(name + ".bias", {dim(out)}) : no_tensor;
  const DType dtype = module.fp32 ? DType::f32 : c_.g.compute_dtype();
  // A module may run twice; a bare parameter has the name that its product would have.
  const std::string product = module.bare ? module.name + ".product" : module.name;
  return made(c_.g.linear(unique(product), tensor(x), weight, dims(axes), bias, dtype), axes);
}

TensorId SketchGraph::own_parameter(const std::string& name, const Dims& dims) {
  return alone_ ? c_.g.untrained_parameter(name, dims) : c_.g.parameter(name, dims);
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
  if (alone_) {
    const TensorId weight = c_.g.untrained_parameter(name + ".weight", dims(over));
    return made(c_.g.norm(Function::rms_norm, name, tensor(x), {weight}, labels), axes_of(x));
  }
  Dims weight;
  if (!norm.weight_shape.empty()) {  // of each head, as one row
    const Axes& axes = axes_of(x);
    Dim row;
    for (const Axis& axis : Axes(axes.begin() + 2, axes.end())) row.push_back(label(axis));
    weight = {row};
  }
  return made(c_.norm(norm, name, tensor(x), labels, weight), axes_of(x));
}

Node SketchGraph::cast(Node x, DType dtype) {
  return made(c_.g.cast(unique("cast"), tensor(x), dtype), axes_of(x));
}

Node SketchGraph::mean(Node x, const Axis& over) {
  Axes axes = axes_of(x);
  std::erase(axes, over);
  return made(c_.g.mean(unique("mean"), tensor(x), dims(axes)), axes);
}

Node SketchGraph::weighted_sum(const std::string& name, Node x, Node weights, const Axis& over) {
  Axes axes = axes_of(x);
  std::erase(axes, over);
  return product(name, x, weights, axes);
}

Node SketchGraph::balanced(Node x, const Axis& rows, const Axis& columns, std::int64_t /*times*/) {
  const TensorId by_rows =
      c_.g.over_label(Function::normalize, unique("balanced"), tensor(x), label(rows));
  static_cast<void>(columns);
  c_.note("maps of hyper-connections are divided by sums of rows and columns in one kernel");
  return made(by_rows, axes_of(x));
}

void SketchGraph::choose(Node x, const Axis& among, std::int64_t count) {
  const LabelId picked = c_.label("chosen_" + among.name, count);
  c_.g.top_k(unique("top_k"), tensor(x), label(among), picked);
}

Node SketchGraph::turn_last(Node x, std::int64_t dims_turned, const Axis& tokens,
                            bool /*by_example*/) {
  const Axes& axes = axes_of(x);
  const Axis turned{"rotary_dim", dims_turned};
  const Axis still{"still_dim", axes.back().size - dims_turned};
  const auto with = [&](const Axis& last) {
    Axes part = axes;
    part.back() = last;
    return part;
  };
  const Axes all = axes, of_turned = with(turned), of_still = with(still);
  const std::vector<Node> halves = parts(x, {of_still, of_turned});
  const Dims angles = dims({tokens, turned});
  const TensorId cos = c_.g.constant(unique("cos"), c_.g.compute_dtype(), angles);
  const TensorId sin = c_.g.constant(unique("sin"), c_.g.compute_dtype(), angles);
  const TensorId y = c_.g.rope(unique("rope"), tensor(halves[1]), cos, sin, label(turned));
  return join({halves[0], made(y, of_turned)}, all);
}

Node SketchGraph::parameter(const std::string& name, const Axes& axes) {
  return made(own_parameter(GraphContext::inside(scopes_.back(), name), dims(axes)), axes);
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

Node SketchGraph::attend(const std::string& name, Node q, Node k, Node v, const Attend& rules) {
  Axes axes = axes_of(q);
  axes.back() = axes_of(v).back();
  GraphBuilder::AttentionParts parts{.fraction = rules.fraction, .drops = c_.drops(rules.dropout)};
  if (rules.bias != no_node) parts.added = tensor(rules.bias);
  if (rules.sinks != no_node) parts.added = tensor(rules.sinks);
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
}  // namespace shardsim::models
