// Ops of rows that are made of heads or of parts.
#include <fmt/format.h>

#include <utility>

#include "workloads/models/graph/sketch_graph.hpp"
#include "workloads/networks/blueprint_graph.hpp"

namespace shardsim::models {

TensorId BlueprintGraph::parts_and_table(const Learned& l) {
  const std::string name = own(l.name);
  const Dim parts{c_.label("parts", l.rows)};
  const Dim width = dims(0).back();
  const TensorId table = c_.g.parameter(
      name, l.no_batch ? Dims{parts, width} : Dims{{c_.label("one", 1)}, parts, width});
  TensorId x = read(0).id;
  if (read(0).inner == 1) {
    x = c_.g.expand(name + ".expanded", x, {{c_.batch}, parts, width});
  } else {  // so that the gradient that leaves a block is none that the block reads besides
    x = c_.g.slices(name + ".seen", x, {{name + ".seen", dims(0)}}, {}).front();
  }
  return c_.g.elementwise(Function::add, name + ".added", {x, table});
}

// Rows in the middle of a table; a buffer's are cast.
TensorId BlueprintGraph::table_middle(const std::string& name, const Learned& l) {
  const Dim all{c_.label("positions", l.of)};
  const Dims table{{c_.label("one", 1)}, all, dims(0).back()};
  const TensorId whole =
      l.buffered ? c_.g.buffer(name, DType::f32, table) : c_.g.parameter(name, table);
  const std::string middle = name + ".middle";
  const TensorId picked = c_.g.slices(middle, whole, {{middle, {dims(0)[1], dims(0).back()}}},
                                      {all.front(), dims(0)[1].front()})
                              .front();
  return c_.g.cast(name + ".cast", picked, c_.g.compute_dtype());
}

void BlueprintGraph::add_step(const LookedUp& l) {
  const std::string name = own(l.name);
  const Dim width{hidden(l.width)};
  const TensorId table =
      c_.g.parameter(full(l.name) + ".weight", {{c_.label("table_rows", l.rows)}, width});
  const TensorId numbers = c_.g.input(name + ".numbers", c_.options.index_dtype, {{c_.batch}});
  make(c_.g.embedding(name, numbers, table, {{c_.batch}, width}), false);
}

void BlueprintGraph::add_step(const TokenRows& t) {
  const std::string name = own(t.name);
  const Dim width{hidden(t.width)};
  const Dim rows{places(t.count > 0 ? t.count : c_.options.sequence.value_or(net_.text))};
  const TensorId table =
      c_.g.parameter(full(t.name) + ".weight", {{c_.label("table_rows", t.table)}, width});
  Dims numbers{{c_.batch}, rows};
  if (t.by_place) numbers.erase(numbers.begin());
  const TensorId ids = t.given && !t.by_place
                           ? c_.g.input(name + ".numbers", c_.options.index_dtype, numbers)
                           : c_.g.constant(name + ".numbers", c_.options.index_dtype, numbers);
  numbers.push_back(width);
  TensorId made = c_.g.embedding(name, ids, table, numbers);
  if (t.by_place) {
    made = c_.g.expand(name + ".expanded", made, {{c_.batch}, numbers[0], numbers[1]});
  }
  make(made, false);
}

void BlueprintGraph::add_step(const Drawn& d) {
  if (lead(0) > 1 && !read(0).is_picture) {
    const Dim& rows = dims(0)[lead(0) - 1];
    c_.sequence = rows.front();
    c_.key_sequence = keys(size(rows));
    c_.hidden = dims(0).back().front();
  }
  SketchGraph sketch(c_, full(d.module));
  std::vector<Node> nodes;
  for (std::size_t n = 0; n < now_->reads.size(); ++n) {
    Axes axes = read(n).axes;
    if (axes.empty()) {
      std::vector<std::int64_t> shape;
      for (const Dim& dim : dims(n)) shape.push_back(size(dim));
      axes = axes_of_read(shape, read(n).is_picture, n);
    }
    nodes.push_back(sketch.enter(seen(own("read"), read(n).id, sketch.dims(axes)), axes));
  }
  const Node out = draw(sketch, d, nodes);
  const Axes& axes = sketch.axes_of(out);
  make(sketch.tensor(sketch.in_order(out)), are_pictures(axes));
  if (!are_pictures(axes) && !are_rows(axes) && !are_windows(axes)) made_[number_].axes = axes;
}

void BlueprintGraph::add_step(const Flattened& /*f*/) {
  const LabelId all = hidden(size(dims(0)[1]) * size(dims(0).back()));
  const std::string name = own("flattened");
  make(c_.g.slices(name, read(0).id, {{name, {{c_.batch}, {all}}}},
                   {dims(0)[1].front(), dims(0).back().front(), all})
           .front(),
       false);
}

void BlueprintGraph::add_step(const Cast& c) {
  const DType dtype = c.wide ? DType::f32 : c_.g.compute_dtype();
  alike(c_.g.cast(own(c.wide ? "wide" : "narrow"), read(0).id, dtype));
}

// Parts whose gradients nobody asks for are an op of their own.
void BlueprintGraph::slice(const std::vector<PartOf>& parts, const std::vector<LabelId>& whole) {
  for (const bool learns : {true, false}) {
    std::vector<Ref> steps;
    std::vector<GraphBuilder::Part> made;
    for (const PartOf& part : parts) {
      if (learns_[static_cast<std::size_t>(part.step)] != learns) continue;
      steps.push_back(part.step);
      made.push_back(part.part);
    }
    if (made.empty()) continue;
    const std::vector<TensorId> ids = c_.g.slices(own("parts"), read(0).id, made, whole);
    for (std::size_t i = 0; i < steps.size(); ++i) sliced_[steps[i]] = ids[i];
  }
}

// Of a picture's channels.
void BlueprintGraph::add_channel_part(const WidthPart& p) {
  const Dims all = dims(0);
  if (!sliced_.contains(number_)) {
    const Dim each{c_.label("channels", size(all[1]) / p.of * p.count)};
    std::vector<PartOf> parts;
    for (std::size_t i = static_cast<std::size_t>(number_); i < block_end_; ++i) {
      const BlueprintStep& other = net_.steps[i];
      if (!std::holds_alternative<WidthPart>(other.what) || other.reads != now_->reads) continue;
      Dims part = all;
      part[1] = each;
      parts.push_back({static_cast<Ref>(i), {own("part"), std::move(part)}});
    }
    slice(parts, {all[1].front(), each.front()});
  }
  make(sliced_.at(number_), true);
}

void BlueprintGraph::add_step(const WidthPart& p) {
  if (read(0).is_picture) return add_channel_part(p);
  const Ref from = now_->reads[0];
  const std::size_t rows = lead(0);
  const Dims all = dims(0);
  if (!sliced_.contains(number_)) {
    std::vector<PartOf> parts;
    std::vector<LabelId> whole = all[rows];
    std::map<std::pair<std::int64_t, std::int64_t>, Ref> known;
    std::vector<std::pair<Ref, Ref>> again;
    for (std::size_t i = static_cast<std::size_t>(number_); i < block_end_; ++i) {
      const auto* other = std::get_if<WidthPart>(&net_.steps[i].what);
      if (other == nullptr || net_.steps[i].reads[0] != from) continue;
      const Ref step = static_cast<Ref>(i);
      const auto [at, is_new] = known.insert({{other->first, other->count}, step});
      if (!is_new) {
        again.emplace_back(step, at->second);
        continue;
      }
      Dims part = all;
      if (other->count > 1) {
        part[rows] = {c_.label("parts", other->count)};
        whole.push_back(part[rows].front());
      } else {
        part.erase(part.begin() + static_cast<std::ptrdiff_t>(rows));
      }
      parts.push_back({step, {own("part"), std::move(part)}});
    }
    slice(parts, whole);
    for (const auto& [step, first] : again) sliced_[step] = sliced_.at(first);
  }
  const std::size_t inner = read(0).inner - (p.count > 1 ? 0 : 1);
  make(sliced_.at(number_), false);
  made_[number_].inner = inner;
}

// Of a value that is there, or was made in a block before.
const Dim* BlueprintGraph::rows_like(Ref ref) const {
  if (const auto made = made_.find(ref); made != made_.end()) {
    return &c_.g.dims_of(made->second.id)[1];
  }
  const auto known = rows_.find(ref);
  return known == rows_.end() ? nullptr : &known->second;
}

// Of rows, those of one value and those of another.
void BlueprintGraph::add_rows_parts() {
  const Ref from = now_->reads[0];
  const Dims all = dims(0);
  if (!sliced_.contains(number_)) {
    std::vector<PartOf> parts;
    std::vector<LabelId> whole = all[1];
    for (std::size_t i = static_cast<std::size_t>(number_); i < block_end_; ++i) {
      const BlueprintStep& other = net_.steps[i];
      if (!std::holds_alternative<RowsPart>(other.what) || other.reads[0] != from ||
          other.reads.size() < 2) {
        continue;
      }
      const Dim* rows = rows_like(other.reads[1]);
      if (rows == nullptr) continue;  // made behind it
      Dims part = all;
      part[1] = *rows;
      whole.push_back(part[1].front());
      parts.push_back({static_cast<Ref>(i), {own("part"), std::move(part)}});
    }
    slice(parts, whole);
  }
  alike(sliced_.at(number_));
}

// Parts of rows side by side, each of the same heads.
void BlueprintGraph::join_parts() {
  const std::size_t rows = lead(0);
  std::int64_t all = 0;
  std::vector<LabelId> whole;
  std::vector<TensorId> parts;
  Dims shape = dims(0);
  for (std::size_t n = 0; n < now_->reads.size(); ++n) {
    const bool several = read(n).inner > 2;
    all += several ? size(dims(n)[rows]) : 1;
    if (several) whole.push_back(dims(n)[rows].front());
    parts.push_back(read(n).id);
  }
  if (read(0).inner > 2) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(rows));
  const LabelId joined = c_.label("parts", all);
  whole.push_back(joined);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(rows), {joined});
  make(c_.g.concatenate(own("beside"), parts, std::move(shape), std::move(whole)), false);
  made_[number_].inner = 3;
}

TensorId BlueprintGraph::turned(const Turned& t, LabelId rows, LabelId dim, const char* which) {
  const auto [at, is_new] = tables_.try_emplace(fmt::format("{}.{}.{}", t.table, which, rows));
  if (is_new) {
    at->second =
        c_.g.constant(own(fmt::format("{}.{}", t.table, which)), DType::f32, {{rows}, {dim}});
  }
  return at->second;
}

void BlueprintGraph::add_step(const Turned& t) {
  const LabelId dim = dims(0).back().front();
  const LabelId rows = dims(0)[1].front();
  const TensorId cos = turned(t, rows, dim, "cos");
  const TensorId sin = turned(t, rows, dim, "sin");
  alike(c_.g.rope(own("rope"), read(0).id, cos, sin, dim));
}

void BlueprintGraph::add_step(const AttendHeads& a) {
  const GraphBuilder::Within of(c_.g, OpModule::attention);
  const LabelId dim = dims(0).back().front();
  const LabelId rows = dims(1)[1].front();
  GraphBuilder::AttentionParts parts;
  parts.drops = c_.drops(a.dropout);
  if (a.repeats) c_.note("keys and values that heads share are not copied for each");
  alike(c_.g.attention(own("attention"), read(0).id, read(1).id, read(2).id, dim,
                       {{rows, keys(c_.g.label_size(rows))}}, parts));
}

void BlueprintGraph::add_step(const AttendLinearly& /*a*/) {
  const GraphBuilder::Within of(c_.g, OpModule::attention);
  c_.note("a quotient of two tensors is an op as their product is");
  const std::string at = own("linear_attention");
  const Dims rows = dims(0);
  const Dim dim = rows.back();
  const Dim key_dim{c_.label("key_dim", size(dim))};
  const Dim with_one{c_.label("values_and_one", size(dim) + 1)};
  const Dim one{c_.label("one", 1)};
  const auto last = [&rows](const Dim& label) {
    Dims as = rows;
    as.back() = label;
    return as;
  };
  const auto active = [&](std::size_t n, const char* name) {
    const std::string full_name = at + name;
    const TensorId x = c_.g.elementwise(Function::relu, full_name, {read(n).id});
    return seen(full_name + ".wide", c_.g.cast(full_name + ".fp32", x, DType::f32), last(key_dim));
  };
  const TensorId q = active(0, ".queries");
  const TensorId k = active(1, ".keys");
  const TensorId v = c_.g.concatenate(at + ".values",
                                      {c_.g.cast(at + ".values.fp32", read(2).id, DType::f32),
                                       c_.g.constant(at + ".one", DType::f32, last(one))},
                                      last(with_one), {dim.front(), one.front(), with_one.front()});
  const Dims states{rows[0], rows[2], with_one, key_dim};
  const TensorId state = c_.g.linear(at + ".state", v, k, states, no_tensor, DType::f32);
  const TensorId all = c_.g.linear(at + ".seen", q, state, last(with_one), no_tensor, DType::f32);
  const auto parts = c_.g.slices(
      at + ".parts", all, {{at + ".sums", rows}, {at + ".shares", {rows[0], rows[1], rows[2]}}},
      {dim.front(), with_one.front()});
  const TensorId out = c_.g.elementwise(Function::multiply, at + ".divided", {parts[0], parts[1]});
  alike(c_.g.cast(at, out, c_.g.compute_dtype()));
}

}  // namespace shardsim::models
