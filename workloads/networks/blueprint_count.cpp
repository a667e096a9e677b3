#include "workloads/networks/blueprint_count.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/layers/activation.hpp"
#include "workloads/layers/attention_kernel.hpp"
#include "workloads/layers/mlp.hpp"
#include "workloads/networks/convolution.hpp"

namespace shardsim::models {
namespace {

// How many of rows and columns.
Plane windows_of(std::int64_t side, const Plane& grid) {
  return {(grid[0] + side - 1) / side, (grid[1] + side - 1) / side};
}

}  // namespace

Value BlueprintCount::run() {
  for (std::size_t i = 0; i < net_.steps.size(); ++i) {
    now_ = &net_.steps[i];
    e_.run_forward_alone(!learns_[i]);
    picture_ = false;
    Counted made = std::visit([this](const auto& what) { return count(what); }, now_->what);
    if (!now_->reads.empty()) {
      if (made.grid[0] == 0) made.grid = read(0).grid;
      made.one_dimension = made.one_dimension || read(0).one_dimension;
      if (made.heads == 0) made.heads = read(0).heads;
    }
    values_.push_back(std::move(made));
    pictures_.push_back(picture_);
  }
  e_.run_forward_alone(false);
  if (in_layer_) e_.close_layer();
  return values_.back().value;
}

const Counted& BlueprintCount::read(std::size_t n) const {
  return values_[static_cast<std::size_t>(now_->reads[n])];
}

bool BlueprintCount::reads_picture(std::size_t n) const {
  return pictures_[static_cast<std::size_t>(now_->reads[n])];
}

Counted BlueprintCount::alike(Value value, bool turned) {
  picture_ = reads_picture(0);
  return {std::move(value), turned, read(0).one_dimension};
}

Counted BlueprintCount::count(const Activated& a) {
  const Scope at(e_, a.name);
  return alike(activate(e_, a.function, read(0).value), read(0).turned);
}

Value BlueprintCount::spread(std::size_t n) const {
  const Value& x = read(n).value;
  const Shape& like = read(0).value.shape;
  if (x.shape.size() >= like.size()) return x;
  Shape shape(like.size(), 1);
  shape[0] = x.shape[0];
  shape[reads_picture(0) ? 1 : like.size() - 1] = x.last();
  return Eager::view(x, shape);
}

Counted BlueprintCount::count(const Combined& c) {
  const Value other = spread(1);
  const Value y = c.function == Pointwise::add ? e_.add(read(0).value, other)
                                               : e_.multiply(read(0).value, other);
  return alike(y, read(0).turned);
}

Counted BlueprintCount::count(const Learned& l) {
  const Value& x = read(0).value;
  if (l.use == LearnedUse::before) {
    e_.parameter(l.name, l.flat ? Shape{x.last()} : Shape{1, l.rows, x.last()});
    return {e_.copy(x, {x.shape[0], x.shape[1] + l.rows, x.last()})};
  }
  if (l.use == LearnedUse::parts) return parts_and_table(l);
  if (l.of > 0) return table_middle(l);
  if (l.use == LearnedUse::table) {
    const Shape shape{1, x.shape[1], x.last()};
    const Plane& grid = read(0).grid;
    if (l.by_places) {
      e_.parameter(l.name, {1, grid[0], grid[1], x.last()});
      return alike(e_.add(x, e_.make(shape, x.dtype, true)), read(0).turned);
    }
    if (l.tables > 1) {
      e_.parameter(l.name, {l.tables, 1, x.shape[1], x.last()});
      return alike(e_.add(x, e_.make(shape, x.dtype, true)), read(0).turned);
    }
    const Value table = l.buffered ? e_.input(e_.dtype(), shape) : e_.parameter(l.name, shape);
    return alike(e_.add(x, table), read(0).turned);
  }
  const std::int64_t width = reads_picture(0) ? x.shape[1] : x.last();
  const Value factor = e_.parameter(l.name, l.channels_only ? Shape{width, 1, 1} : Shape{width});
  const Value seen =
      reads_picture(0) && !l.channels_only ? Eager::view(factor, {width, 1, 1}) : factor;
  return alike(e_.multiply(seen, x), read(0).turned);
}

Counted BlueprintCount::count(const Dropped& d) {
  const Value& x = read(0).value;
  if (d.in_place) return alike(e_.multiply(x, e_.constant(x.dtype, x.shape)), read(0).turned);
  if (d.by_channel) {
    const Value left = e_.constant(x.dtype, {x.shape[0], x.shape[1], 1, 1});
    return alike(e_.multiply(x, left), read(0).turned);
  }
  if (!d.by_example) return alike(e_.dropout(x, d.rate), read(0).turned);
  Shape shape(x.shape.size(), 1);
  shape[0] = step_.batch;
  if (shape.size() == x.shape.size() && x.shape[0] != step_.batch) shape[0] = x.shape[0];
  return alike(e_.multiply(e_.scaled(x), e_.constant(e_.dtype(), shape)), read(0).turned);
}

Counted BlueprintCount::count(const Scaled& /*s*/) {
  return alike(e_.scaled(read(0).value), read(0).turned);
}

Counted BlueprintCount::count(const AsRows& a) {
  const Value& x = read(0).value;
  const Plane grid{x.shape[2], x.shape[3]};
  const Value rows = rows_of(x);
  if (a.copied && !read(0).turned) return {e_.copy(rows), false, false, false, grid};
  return {rows, !read(0).turned, false, false, grid};
}

Counted BlueprintCount::count(const AsPicture& a) {
  const Counted& x = read(0);
  const Shape shape{x.value.shape[0], x.value.last(), x.grid[0], x.grid[1]};
  if (a.copied && !x.turned) return a_picture(e_.copy(x.value, shape), false);
  return a_picture(Eager::view(x.value, shape), !x.turned);
}

Counted BlueprintCount::count(const Windowed& w) {
  const Counted& x = read(0);
  const Plane counts = windows_of(w.side, x.grid);
  const std::int64_t squares = counts[0] * counts[1];
  if (w.apart) {
    return {e_.copy(x.value, {x.value.shape[0] * w.side * w.side, squares, x.value.last()})};
  }
  return {e_.copy(x.value,
                  {x.value.shape[0] * counts[0] * counts[1], w.side * w.side, x.value.last()})};
}

Counted BlueprintCount::count(const Unwindowed& /*w*/) {
  return {e_.copy(read(0).value, read(1).value.shape), false, false, false, read(1).grid};
}

Counted BlueprintCount::count(const Merged& /*m*/) {
  const Counted& x = read(0);
  const Plane half{(x.grid[0] + 1) / 2, (x.grid[1] + 1) / 2};
  Counted merged{e_.copy(x.value, {x.value.shape[0], half[0] * half[1], 4 * x.value.last()})};
  merged.grid = half;
  return merged;
}

Counted BlueprintCount::count(const LearnedRows& l) {
  const Value table = e_.embedding_table(l.name + ".weight", {l.rows, l.width});
  return {e_.copy(table, {step_.batch, l.rows, l.width})};
}

Counted BlueprintCount::count(const RowsPart& p) {
  const Value& x = read(0).value;
  if (p.picked) {
    e_.save(e_.constant(DType::i64, {x.shape[0]}));
    return {e_.index(x, e_.constant(DType::i64, {x.shape[0]}), {x.shape[0], x.last()})};
  }
  if (p.single) return {Eager::view(x, {x.shape[0], x.last()})};
  std::int64_t rows = p.count > 0 ? p.count : x.shape[1] - p.first;
  if (now_->reads.size() > 1) rows = read(1).value.shape[1];
  Counted part{Eager::view(x, {x.shape[0], rows, x.last()}), read(0).turned};
  part.cut = x.shape[0] > 1;
  if (p.copied && part.cut) return {e_.copy(part.value)};
  return part;
}

Counted BlueprintCount::count(const Joined& j) {
  Shape shape = read(0).value.shape;
  const std::size_t axis = j.behind || reads_picture(0) ? 1 : shape.size() - 1;
  bool turned = read(0).turned && reads_picture(0);
  for (std::size_t n = 1; n < now_->reads.size(); ++n) {
    shape[axis] += axis == shape.size() - 1 ? read(n).value.last() : read(n).value.shape[axis];
    turned = turned && read(n).turned;
  }
  return alike(e_.copy(read(0).value, shape), turned);
}

Value BlueprintCount::project(const std::string& name, const Counted& x, std::int64_t out,
                              bool bias) {
  if (x.turned || x.cut) return run_strided_linear(e_, name, x.value, out, bias);
  return run_linear(e_, name, x.value, out, bias);
}

Counted BlueprintCount::count(const LinearStep& l) {
  Counted made{project(l.name, read(0), l.out, l.bias)};
  made.heads = std::max<std::int64_t>(l.heads, 1);
  made.parts = l.parts;
  return made;
}

Value BlueprintCount::of_length_one(const Value& x) {
  e_.save(x);
  const Value length = e_.apply(e_.reduce_last(x), Keeps::result);
  return e_.divide(x, e_.scaled(length));
}

Value BlueprintCount::attend_by_cosine(const Attend& a, Value q, Value k, Value v,
                                       const Value& bias) {
  q = e_.copy(of_length_one(q));
  k = e_.copy(of_length_one(k));
  v = e_.copy(v);
  const Shape scores{q.shape[0], a.heads, q.shape[2], k.shape[2]};
  Value all = e_.bmm(q, k, q.shape[2], q.last(), k.shape[2], scores);
  const Value length = e_.apply(e_.scaled(e_.parameter(a.cosine, {a.heads, 1, 1})), Keeps::result);
  all = e_.add(e_.multiply(all, length), bias);
  const Value seen = e_.dropout(e_.apply(all, Keeps::result), a.dropout);
  const Value out = e_.bmm(seen, v, q.shape[2], k.shape[2], v.last(),
                           {q.shape[0], a.heads, q.shape[2], v.last()});
  return e_.copy(out);
}

// A bias of scores from products of queries with two tables of distances, of rows and of columns.
Value BlueprintCount::decomposed_bias(const Attend& a, const Value& q, bool lies_apart) {
  const std::int64_t dim = q.last();
  const std::int64_t places = a.decomposed[0] * a.decomposed[1];
  const auto score = [&](const char* name, std::int64_t side, bool copies) {
    const Value table = e_.copy(e_.parameter(name, {2 * side - 1, dim}));
    const Value picked = e_.index(table, e_.constant(DType::i64, {side, side}), {side, side, dim});
    const std::int64_t each = q.shape[0] * q.shape[1] * places / side;  // of a row, of a column
    const Value queries = Eager::view(copies ? e_.copy(q) : q, {side, each, dim});
    e_.bmm(queries, picked, each, dim, side, {side, each, side});
  };
  score("rel_pos_h", a.decomposed[0], /*copies=*/true);
  score("rel_pos_w", a.decomposed[1], lies_apart);
  return e_.make({q.shape[0], q.shape[1], places, places}, e_.dtype(), true);
}

Counted BlueprintCount::count(const Attend& a) {
  const Scope at(e_, a.name);
  const Value& x = read(0).value;
  const std::int64_t dim = a.head_dim > 0 ? a.head_dim : x.last() / a.heads;
  const std::int64_t value_dim = a.value_dim > 0 ? a.value_dim : dim;
  const auto by_heads = [&](const Value& rows, std::int64_t width) {
    const std::int64_t places = rows.shape[rows.shape.size() - 2];
    const std::int64_t batch = e_.elements(rows.shape) / (places * rows.last());
    return Eager::view(rows, {batch, a.heads, places, width});
  };
  Value q, k, v;
  if (!a.qkv.empty()) {
    q = k = v = project(a.qkv, read(0), a.heads * (2 * dim + value_dim), a.q_bias);
    q.shape.back() = k.shape.back() = a.heads * dim;
    v.shape.back() = a.heads * value_dim;
  } else {
    q = project(a.q, read(0), a.heads * dim, a.q_bias);
    k = project(a.k, read(1), a.heads * dim, a.k_bias);
    v = project(a.v, read(2), a.heads * value_dim, a.v_bias);
  }
  ScoreRules rules{.dropout = a.dropout, .fp32_softmax = a.fp32_softmax, .plain_only = a.plain};
  if (a.heads_first) {
    rules.contiguous = true;
    q = e_.copy(e_.scaled(q));
    k = e_.copy(k);
    v = e_.copy(v);
  }
  if (a.decomposed[0] > 0) {
    // The heads of several examples are put one behind the other, all three of them in one tensor.
    const bool several = by_heads(q, dim).shape[0] > 1;
    if (several) {
      const int all = e_.make({3, e_.elements(q.shape)}, q.dtype, true).storage;
      q.storage = k.storage = v.storage = all;
    }
    rules.bias = decomposed_bias(a, by_heads(q, dim), !several);
  }
  if (a.has_bias) rules.bias = a.copies_bias ? e_.copy(read(3).value) : read(3).value;
  const Value out = a.cosine.empty() ? run_attention_kernel(e_, by_heads(q, dim), by_heads(k, dim),
                                                            by_heads(v, value_dim), rules)
                                     : attend_by_cosine(a, by_heads(q, dim), by_heads(k, dim),
                                                        by_heads(v, value_dim), rules.bias);
  Shape shape = q.shape;
  shape.back() = a.heads * value_dim;
  const Value rows = Eager::view(out, shape);
  if (a.o.empty()) return {rows};
  return {run_linear(e_, a.o, rows, a.out > 0 ? a.out : x.last(), a.o_bias)};
}

Value BlueprintCount::made_table(const DistanceBias& b) {
  const Scope at(e_, b.name);
  const Value coordinates = e_.input(e_.dtype(), {1, b.distances, 2});
  const Value inner = run_linear(e_, "0", coordinates, b.made_width, /*bias=*/true);
  // ReLU in place: its result is the product's.
  return run_linear(e_, "2", inner, b.heads, /*bias=*/false);
}

Counted BlueprintCount::count(const DistanceBias& b) {
  Value table = b.made_width > 0 ? made_table(b) : e_.parameter(b.name, {b.distances, b.heads});
  if (b.stretched) table = e_.copy(table);
  const std::int64_t pairs = b.places * b.places;
  Value numbers = e_.input(DType::i64, {pairs});
  if (!b.shared.empty()) {
    Value& known = shared_[b.shared];
    if (!known.exists()) known = e_.constant(DType::i64, {pairs});
    numbers = known;
  }
  const Value picked = e_.index(table, numbers, {pairs, b.heads});
  const Value bias = e_.copy(picked, {1, b.heads, b.places, b.places});
  if (b.made_width > 0) return {e_.scaled(e_.apply(bias, Keeps::result))};
  // With the masks of windows that are parts of two sides.
  if (b.shifted)
    return {e_.make({read(0).value.shape[0], b.heads, b.places, b.places}, bias.dtype, true)};
  return {bias};
}

Counted BlueprintCount::count(const Detached& /*d*/) {
  Counted made = alike(read(0).value, read(0).turned);
  made.value.grad = false;
  return made;
}

Counted BlueprintCount::count(const Alias& a) {
  e_.tie_module(a.module, a.name);
  return {};
}

Counted BlueprintCount::count(const Mean& /*m*/) {
  const Value& x = read(0).value;
  return {e_.make({x.shape[0], reads_picture(0) ? x.shape[1] : x.last()}, x.dtype, true)};
}

Counted BlueprintCount::count(const LossStep& l) {
  if (l.kind == LossKind::classes) {
    e_.apply(read(0).value, Keeps::result);
    e_.save(e_.constant(read(0).value.dtype, {}));
  }
  if (l.kind == LossKind::span) {
    const Value& logits = read(0).value;
    for (int end = 0; end < 2; ++end) {
      e_.save(e_.constant(DType::i64, {logits.shape[0]}));  // its place, no farther than the rows
      e_.apply(e_.copy(logits, {logits.shape[0], logits.shape[1]}), Keeps::result);
      e_.save(e_.constant(logits.dtype, {}));
    }
  }
  return {e_.make({}, e_.dtype(), true)};
}

Counted BlueprintCount::count(const LayerMark& m) {
  if (in_layer_) e_.close_layer();
  const std::string name = fmt::format("{}.{}", m.prefix, m.number);
  const auto& known = e_.layers();
  if (std::any_of(known.begin(), known.end(), [&](const Layer& l) { return l.prefix == name; })) {
    e_.reopen_layer(name);
  } else {
    e_.open_layer(name, m.kind);
  }
  in_layer_ = true;
  return {};
}

Counted BlueprintCount::count(const OutsideMark& /*m*/) {
  if (in_layer_) e_.close_layer();
  in_layer_ = false;
  return {};
}

Counted BlueprintCount::count(const Stored& s) {
  if (s.buffer) {
    e_.buffer(s.name, s.shape, e_.dtype());
  } else {
    e_.parameter(s.name, s.shape);
  }
  return {};
}

Value run(Eager& e, const Blueprint& net, const ImageStep& step) {
  if (net.takes_one_side && step.side != net.side) {
    throw InputError(e.options().place,
                     fmt::format("reads images of {} alone, for which it has positions; an image "
                                 "of {} is another",
                                 net.side, step.side));
  }
  ImageStep whole = step;
  if (whole.text <= 1) whole.text = net.text;  // no sound is one sample: none was said
  return BlueprintCount(e, net, whole).run();
}

}  // namespace shardsim::models
