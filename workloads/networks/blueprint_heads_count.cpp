// Of rows that are made of heads or of parts: norms of heads, rotary positions, attention, what
// modulates.
#include "workloads/layers/attention_kernel.hpp"
#include "workloads/layers/count_sketch.hpp"
#include "workloads/networks/blueprint_count.hpp"

namespace shardsim::models {

Counted BlueprintCount::count(const RowsInput& input) {
  std::int64_t rows = input.rows;
  if (input.is_text_long) rows = step_.text;
  if (input.patch > 0) {
    const std::int64_t columns = columns_of(step_.side, input.aspect, net_.coarsest);
    rows = input.frames * (step_.side / input.patch) * (columns / input.patch);
  }
  Shape shape{step_.batch, rows, input.width};
  if (rows == 0) shape = {step_.batch, input.width};
  return {input.constant ? e_.constant(e_.dtype(), shape) : e_.input(e_.dtype(), shape)};
}

Counted BlueprintCount::count(const Normed& n) {
  const Value& x = read(0).value;
  if (reads_picture(0)) {
    const Value last = Eager::view(x, {x.shape[0], x.shape[2], x.shape[3], x.shape[1]});
    return alike(Eager::view(models::run(e_, n.norm, last), x.shape), true);
  }
  if (read(0).heads <= 1 || n.whole) return alike(models::run(e_, n.norm, x), false);
  Shape by_heads = x.shape;
  by_heads.back() = read(0).heads;
  by_heads.push_back(x.last() / read(0).heads);
  return alike(Eager::view(models::run(e_, n.norm, Eager::view(x, by_heads)), x.shape), false);
}

// A table [rows, width] and a vector of as many parts, or one that is seen as each.
Counted BlueprintCount::parts_and_table(const Learned& l) {
  const Counted& x = read(0);
  const std::int64_t width = x.value.last() / x.parts;
  const Shape parts{x.value.shape[0], x.parts, width};
  const Value table =
      e_.parameter(l.name, l.no_batch ? Shape{l.rows, width} : Shape{1, l.rows, width});
  const Value sum = e_.add(table, Eager::view(x.value, parts));
  Counted made{Eager::view(sum, {x.value.shape[0], l.rows * width})};
  made.parts = l.rows;
  return made;
}

// A buffer is cropped by views and cast; of a parameter rows are picked by their numbers.
Counted BlueprintCount::table_middle(const Learned& l) {
  const Value& x = read(0).value;
  const Shape table{1, l.of, x.last()};
  const Shape picked{1, x.shape[1], x.last()};
  if (l.buffered) {
    e_.buffer(l.name, table, DType::f32);
    return alike(e_.add(x, e_.constant(x.dtype, picked)), read(0).turned);
  }
  const Value numbers = e_.constant(DType::i64, {x.shape[1]});
  return alike(e_.add(x, e_.index(e_.parameter(l.name, table), numbers, picked)), read(0).turned);
}

Counted BlueprintCount::count(const LookedUp& l) {
  const Value table = e_.embedding_table(l.name + ".weight", {l.rows, l.width});
  return {e_.embedding(e_.constant(DType::i64, {step_.batch}), table)};
}

Counted BlueprintCount::count(const TokenRows& t) {
  const std::int64_t rows = t.count > 0 ? t.count : step_.text;
  const Shape numbers{t.by_place ? 1 : step_.batch, rows};
  const Value table = e_.embedding_table(t.name + ".weight", {t.table, t.width});
  return {e_.embedding(t.given ? e_.input(DType::i64, numbers) : e_.constant(DType::i64, numbers),
                       table)};
}

Counted BlueprintCount::count(const Drawn& d) {
  const Scope at(e_, d.module);
  context_.batch = step_.batch;
  CountSketch sketch(e_, context_);
  std::vector<Node> nodes;
  for (std::size_t n = 0; n < now_->reads.size(); ++n) {
    const Counted& x = read(n);
    Axes axes = x.axes;
    if (axes.empty()) {
      Shape shape = x.value.shape;
      if (!reads_picture(n) && shape.size() == 3 && shape[0] != step_.batch) {
        shape.insert(shape.begin() + 1, shape[0] / step_.batch);
        shape[0] = step_.batch;
      }
      axes = axes_of_read(shape, reads_picture(n), n);
    }
    for (const Axis& axis : axes) {
      if (n == 0 && axis.role == AxisRole::sequence) context_.sequence = axis.size;
    }
    nodes.push_back(sketch.enter(x.value, axes));
  }
  const Node out = draw(sketch, d, nodes);
  const Axes& axes = sketch.axes_of(out);
  Shape shape;
  for (const Axis& axis : axes) shape.push_back(axis.size);
  if (are_windows(axes)) {
    shape[1] *= shape[0];
    shape.erase(shape.begin());
  }
  Counted made{Eager::view(sketch.value(out), shape)};
  picture_ = are_pictures(axes);
  if (!picture_ && !are_rows(axes) && !are_windows(axes)) made.axes = axes;
  return made;
}

Counted BlueprintCount::count(const Flattened& /*f*/) {
  const Value& x = read(0).value;
  return {Eager::view(x, {x.shape[0], x.shape[1] * x.last()})};
}

Counted BlueprintCount::count(const Cast& c) {
  Counted made = alike(e_.cast(read(0).value, c.wide ? DType::f32 : e_.dtype()), read(0).turned);
  made.parts = read(0).parts;
  return made;
}

Counted BlueprintCount::count(const WidthPart& p) {
  Shape shape = read(0).value.shape;
  if (reads_picture(0)) {
    shape[1] = shape[1] / p.of * p.count;
    return alike(Eager::view(read(0).value, shape), read(0).turned);
  }
  shape.back() = shape.back() / p.of * p.count;
  Counted part{Eager::view(read(0).value, shape)};
  part.parts = p.count;
  return part;
}

Counted BlueprintCount::count(const Turned& t) {
  const Counted& x = read(0);
  const std::int64_t dim = x.value.last() / x.heads;
  Value& table = shared_[t.table];
  if (!table.exists()) {
    const std::int64_t rows = t.of > 0 ? t.of : x.value.shape[1];
    Shape shape = t.whole ? x.value.shape : Shape{rows, dim};
    if (t.each) shape.insert(shape.begin(), x.value.shape[0]);
    const DType dtype = t.fp64 ? DType::f64 : DType::f32;
    const auto made = [&] { return t.given ? e_.input(dtype, shape) : e_.constant(dtype, shape); };
    table = made();  // complex numbers of half as many dimensions are as large
    if (!t.complex) shared_[t.table + ".sin"] = made();
  }
  e_.save(table);
  if (t.complex) {
    const Value wide = e_.copy(e_.cast(x.value, DType::f32));
    return alike(e_.cast(wide, x.value.dtype), false);
  }
  e_.save(shared_[t.table + ".sin"]);
  return alike(e_.copy(x.value), false);
}

Counted BlueprintCount::count(const AttendHeads& a) {
  const auto by_heads = [&](const Counted& x) {
    const Shape& shape = x.value.shape;
    return Eager::view(x.value, {shape[0], x.heads, shape[1], x.value.last() / x.heads});
  };
  const ScoreRules rules{.dropout = a.dropout, .by_heads = a.by_heads};
  Value k = by_heads(read(1));
  Value v = by_heads(read(2));
  if (a.repeats && read(1).heads != read(0).heads) {
    for (Value* x : {&k, &v}) {
      *x = e_.copy(*x, {x->shape[0], read(0).heads, x->shape[2], x->last()});
    }
  }
  const Value out = run_attention_kernel(e_, by_heads(read(0)), k, v, rules);
  return {out};
}

Counted BlueprintCount::count(const AttendLinearly& /*a*/) {
  const Shape& shape = read(0).value.shape;
  const std::int64_t batch = shape[0];
  const std::int64_t heads = read(0).heads;
  const std::int64_t dim = shape.back() / heads;
  const std::int64_t queries = shape[1];
  const std::int64_t keys = read(1).value.shape[1];
  const std::int64_t with_one = dim + 1;
  const auto active = [&](const Counted& x) {
    return e_.cast(e_.apply(x.value, Keeps::result), DType::f32);
  };
  const Value q = active(read(0));
  const Value k = active(read(1));
  const Value v = e_.copy(e_.cast(read(2).value, DType::f32), {batch, heads, with_one, keys});
  const Value sums = e_.bmm(v, k, with_one, keys, dim, {batch, heads, with_one, dim});
  const Value all = e_.bmm(sums, q, with_one, dim, queries, {batch, heads, with_one, queries});
  const Value share = e_.scaled(Eager::view(all, {batch, heads, 1, queries}));
  const Value out = e_.divide(Eager::view(all, {batch, heads, dim, queries}), share);
  return {e_.cast(Eager::view(out, shape), e_.dtype()), /*turned=*/true};
}

}  // namespace shardsim::models
