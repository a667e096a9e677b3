// Ops of rows [batch, places, width] and of windows of them.
#include <algorithm>

#include "workloads/networks/blueprint_graph.hpp"

namespace shardsim::models {

void BlueprintGraph::add_step(const RowsInput& input) {
  std::int64_t rows = input.rows;
  if (input.is_text_long) rows = net_.text;
  if (input.patch > 0) {
    const std::int64_t columns = columns_of(side_, input.aspect, net_.coarsest);
    rows = input.frames * (side_ / input.patch) * (columns / input.patch);
  }
  Dims shape{{c_.batch}};
  if (rows > 0) shape.push_back({places(rows)});
  shape.push_back({hidden(input.width)});
  make(c_.g.input(input.name, c_.g.compute_dtype(), std::move(shape)), false);
}

void BlueprintGraph::add_step(const Learned& l) {
  const LabelId one = c_.label("one", 1);
  if (l.use == LearnedUse::parts) {
    make(parts_and_table(l), false);
    made_[number_].inner = 2;
    return;
  }
  const std::string name = own(l.name);
  if (l.use == LearnedUse::before) {
    const Dim width = dims(0).back();
    const LabelId rows = c_.label("learned_rows", l.rows);
    const LabelId all = places(size(dims(0)[1]) + l.rows);
    const TensorId learned = c_.g.expand(
        name + ".expanded", c_.g.parameter(name, l.flat ? Dims{width} : Dims{{one}, {rows}, width}),
        {{c_.batch}, {rows}, width});
    return make(c_.g.concatenate(name + ".before", {learned, read(0).id},
                                 {{c_.batch}, {all}, width}, {rows, dims(0)[1].front(), all}),
                false);
  }
  if (l.use == LearnedUse::table) {
    const Dims shape{{one}, dims(0)[1], dims(0).back()};
    TensorId table = no_tensor;
    if (l.by_places) {
      const LabelId rows = c_.label("rows", read(0).grid[0]);
      const LabelId columns = c_.label("columns", read(0).grid[1]);
      const std::string seen_as = name + ".rows";
      table = c_.g.slices(seen_as, c_.g.parameter(name, {{one}, {rows}, {columns}, shape[2]}),
                          {{seen_as, {shape[1], shape[2]}}}, {rows, columns, one, shape[1].front()})
                  .front();
    } else if (l.tables > 1) {
      const LabelId tables = c_.label("tables", l.tables);
      const std::string first = name + ".first";
      table = c_.g.slices(first, c_.g.parameter(name, {{tables}, shape[0], shape[1], shape[2]}),
                          {{first, shape}}, {tables})
                  .front();
    } else if (l.of > 0) {
      table = table_middle(name, l);
    } else if (l.buffered) {
      table = c_.g.constant(name, c_.g.compute_dtype(), {dims(0)[1], dims(0).back()});
    } else if (l.trained) {
      table = c_.g.parameter(name, shape);
    } else {
      table = c_.g.untrained_parameter(name, shape);
    }
    return alike(c_.g.elementwise(Function::add, name + ".added", {read(0).id, table}));
  }
  const Dim width = read(0).is_picture ? dims(0)[1] : dims(0).back();
  const TensorId factor =
      c_.g.parameter(name, l.channels_only ? Dims{width, {one}, {one}} : Dims{width});
  alike(c_.g.elementwise(Function::multiply, name + ".scaled", {read(0).id, factor}));
}

void BlueprintGraph::add_step(const Windowed& w) {
  const Plane& grid = read(0).grid;
  const std::int64_t squares =
      ((grid[0] + w.side - 1) / w.side) * ((grid[1] + w.side - 1) / w.side);
  const std::int64_t area = w.side * w.side;
  const LabelId count = c_.label("windows", w.apart ? area : squares);
  const LabelId rows = places(w.apart ? squares : area);
  make(c_.g.rearranged(own("windows"), read(0).id, {{c_.batch}, {count}, {rows}, dims(0).back()},
                       {dims(0)[1].front(), count, rows}),
       false);
}

void BlueprintGraph::add_step(const Unwindowed& /*w*/) {
  const Dims& like = dims(1);
  make(c_.g.rearranged(own("from_windows"), read(0).id, {{c_.batch}, like[1], dims(0).back()},
                       {dims(0)[1].front(), dims(0)[2].front(), like[1].front()}),
       false, read(1).grid);
}

void BlueprintGraph::add_step(const Merged& /*m*/) {
  const Plane half{(read(0).grid[0] + 1) / 2, (read(0).grid[1] + 1) / 2};
  const LabelId rows = places(half[0] * half[1]);
  const LabelId four = c_.label("merged", 4 * size(dims(0).back()));
  make(c_.g.rearranged(own("merged"), read(0).id, {{c_.batch}, {rows}, {four}},
                       {dims(0)[1].front(), dims(0).back().front(), rows, four}),
       false, half);
}

void BlueprintGraph::add_step(const LearnedRows& l) {
  const std::string name = own(l.name);
  const Dims table{{places(l.rows)}, {hidden(l.width)}};
  make(c_.g.expand(name + ".expanded", c_.g.parameter(name + ".weight", table),
                   {{c_.batch}, table[0], table[1]}),
       false);
}

void BlueprintGraph::add_step(const RowsPart& p) {
  if (now_->reads.size() > 1) return add_rows_parts();
  const Dim width = dims(0).back();
  const Dim rows = dims(0)[1];
  const std::string name = own("part");
  if (p.single) {
    return make(
        c_.g.slices(name, read(0).id, {{name, {{c_.batch}, width}}}, {rows.front()}).front(),
        false);
  }
  const std::int64_t count = p.count > 0 ? p.count : size(rows) - p.first;
  make(seen(name, read(0).id, {{c_.batch}, {places(count)}, width}), false);
}

void BlueprintGraph::add_step(const Joined& j) {
  const bool is_rows = !read(0).is_picture;
  if (is_rows && !j.behind && read(0).inner > 1) return join_parts();
  Dims shape = dims(0);
  const std::size_t axis = j.behind || read(0).is_picture ? 1 : shape.size() - 1;
  std::int64_t all = 0;
  std::vector<LabelId> whole;
  std::vector<TensorId> parts;
  for (std::size_t n = 0; n < now_->reads.size(); ++n) {
    const bool is_vector = dims(n).size() < shape.size();
    const Dim along = is_vector ? dims(n).back() : dims(n)[axis];
    all += size(along);
    Dims wanted = dims(0);
    wanted[axis] = along;
    const std::string name = own("joined");
    parts.push_back(is_vector ? c_.g.expand(name, read(n).id, wanted)
                              : seen(name, read(n).id, wanted));
    whole.push_back(along.front());
  }
  const LabelId joined = read(0).is_picture ? c_.label("channels", all)
                         : j.behind         ? places(all)
                                            : hidden(all);
  shape[axis] = {joined};
  whole.push_back(joined);
  alike(c_.g.concatenate(own("beside"), parts, std::move(shape), std::move(whole)));
}

TensorId BlueprintGraph::apart(const std::string& name, TensorId x, LabelId out) {
  Dims as = c_.g.dims_of(x);
  if (as.back() != Dim{out}) return x;
  as.back() = {c_.label("projected", c_.g.label_size(out))};
  return seen(name + ".input", x, as);
}

bool BlueprintGraph::gives_classes() const {
  return std::any_of(net_.steps.begin(), net_.steps.end(), [&](const BlueprintStep& step) {
    const auto* loss = std::get_if<LossStep>(&step.what);
    return loss != nullptr && loss->kind == LossKind::classes && step.reads[0] == number_;
  });
}

Dims BlueprintGraph::out_dims(const LinearStep& l) {
  Dims out;
  const std::int64_t each = l.out / l.parts;
  if (l.parts > 1) out.push_back({c_.label("parts", l.parts)});
  if (l.heads > 0) {
    const std::int64_t kv_heads = l.kv_heads > 0 ? l.kv_heads : l.heads;
    out.push_back({c_.label("heads", kv_heads, LabelRole::heads)});
    heads_.insert(out.back().front());
    if (kv_heads != l.heads) {
      out.push_back({c_.label("head_group", l.heads / kv_heads, LabelRole::head_group)});
    }
    out.push_back({c_.label("head_dim", each / l.heads)});
  } else if (l.inner) {
    out.push_back({c_.label("ffn", each, LabelRole::width)});
    inner_.insert(out.back().front());
  } else {
    out.push_back({gives_classes() ? c_.label("classes", each) : hidden(each)});
  }
  return out;
}

void BlueprintGraph::add_step(const LinearStep& l) {
  const std::string name = full(l.name);
  bool reads_inner = false;
  bool reads_heads = false;
  for (const Dim& dim : width_dims(0)) {
    reads_inner = reads_inner || inner_.contains(dim.front());
    reads_heads = reads_heads || heads_.contains(dim.front());
  }
  const bool attends = l.heads > 0 || reads_heads;
  const GraphBuilder::Within module(c_.g, attends                  ? OpModule::attention
                                          : l.inner || reads_inner ? OpModule::mlp
                                                                   : OpModule::none);
  const GraphBuilder::Within part(c_.g, l.heads > 0   ? OpPart::input_projection
                                        : reads_heads ? OpPart::out_projection
                                        : l.inner     ? OpPart::first_product
                                        : reads_inner ? OpPart::last_product
                                                      : OpPart::none);
  const std::size_t rows = lead(0);
  const Dims out = out_dims(l);
  const TensorId x = read(0).inner == 1 ? apart(name, read(0).id, out.back().front()) : read(0).id;
  const Dims& from = c_.g.dims_of(x);
  Dim in;
  for (std::size_t i = rows; i < from.size(); ++i) {
    in.insert(in.end(), from[i].begin(), from[i].end());
  }
  Dims shape{from.begin(), from.begin() + static_cast<std::ptrdiff_t>(rows)};
  shape.insert(shape.end(), out.begin(), out.end());
  Dim width;
  for (const Dim& dim : out) width.insert(width.end(), dim.begin(), dim.end());
  make(c_.linear({name, width, in, l.bias}, x, std::move(shape)), false);
  made_[number_].inner = out.size();
}

// Products of queries with two tables of distances, added up for each pair of places.
TensorId BlueprintGraph::decomposed_bias(const std::string& at, const Attend& a, TensorId q,
                                         LabelId dim) {
  const LabelId rows = c_.label("query_rows", a.decomposed[0]);
  const LabelId columns = c_.label("query_columns", a.decomposed[1]);
  Dims lead = c_.g.dims_of(q);  // batch, windows, places, heads, head_dim
  const std::size_t place = lead.size() - 3;
  const LabelId all = lead[place].front();
  lead[place] = {rows, columns};
  const TensorId queries = seen(at + ".queries", q, lead);
  lead.pop_back();
  const auto score = [&](const std::string& name, LabelId of_query, LabelId of_key) {
    const std::string full_name = at + "." + name;
    const LabelId distances = c_.label("distances", 2 * c_.g.label_size(of_key) - 1);
    const TensorId numbers =
        c_.g.constant(full_name + ".numbers", c_.options.index_dtype, {{of_query}, {of_key}});
    const TensorId picked =
        c_.g.embedding(full_name, numbers, c_.g.parameter(full_name, {{distances}, {dim}}),
                       {{of_query}, {of_key}, {dim}});
    Dims result = lead;
    result.push_back({of_key});
    return c_.g.linear(full_name + ".scores", queries, picked, std::move(result));
  };
  const LabelId key_rows = c_.label("key_rows", a.decomposed[0]);
  const LabelId key_columns = c_.label("key_columns", a.decomposed[1]);
  const TensorId by_row = score("rel_pos_h", rows, key_rows);
  const TensorId by_column = score("rel_pos_w", columns, key_columns);
  Dims pairs = lead;
  pairs.push_back({key_rows, key_columns});
  const TensorId sum =
      c_.g.elementwise(Function::add, at + ".distance_scores",
                       {c_.g.expand(at + ".row_scores", by_row, pairs), by_column});
  pairs[place] = {all};
  pairs.back() = {keys(c_.g.label_size(all))};
  return seen(at + ".distance_bias", sum, pairs);
}

BlueprintGraph::Projections BlueprintGraph::project(const Attend& a, const std::string& at,
                                                    LabelId heads, LabelId dim, LabelId value_dim) {
  const GraphBuilder::Within part(c_.g, OpPart::input_projection);
  if (!a.qkv.empty()) {
    const LabelId three = c_.label("qkv", 3);
    Dims all = dims(0);
    all.back() = {three};
    all.insert(all.end(), {{heads}, {dim}});
    const TensorId fused =
        c_.linear({GraphContext::inside(at, a.qkv), {three, heads, dim}, dims(0).back(), a.q_bias},
                  read(0).id, std::move(all));
    const auto parts = c_.g.split({at + ".query", at + ".key", at + ".value"}, fused, three);
    return {parts[0], parts[1], parts[2]};
  }
  const auto one = [&](const std::string& module, std::size_t n, LabelId each, bool bias) {
    Dims by_heads = dims(n);
    by_heads.back() = {heads};
    by_heads.push_back({each});
    return c_.linear({GraphContext::inside(at, module), {heads, each}, dims(n).back(), bias},
                     read(n).id, std::move(by_heads));
  };
  const TensorId q = one(a.q, 0, dim, a.q_bias);
  const TensorId k = one(a.k, 1, dim, a.k_bias);
  return {q, k, one(a.v, 2, value_dim, a.v_bias)};
}

void BlueprintGraph::add_step(const Attend& a) {
  const GraphBuilder::Within of(c_.g, OpModule::attention);
  if (a.plain) c_.note("attention is one kernel; transformers' class multiplies its scores out");
  const std::string at = a.name.empty() ? c_.layer : full(a.name);
  const std::int64_t width = size(dims(0).back());
  const std::int64_t head_dim = a.head_dim > 0 ? a.head_dim : width / a.heads;
  const std::int64_t values = a.value_dim > 0 ? a.value_dim : head_dim;
  const LabelId heads = c_.label("heads", a.heads, LabelRole::heads);
  const LabelId dim = c_.label("head_dim", head_dim);
  const LabelId value_dim = values == head_dim ? dim : c_.label("value_dim", values);
  auto [q, k, v] = project(a, at, heads, dim, value_dim);
  if (!a.cosine.empty()) {
    const LabelId one = c_.label("one", 1);
    q = c_.g.norm(Function::rms_norm, at + ".unit_queries", q, {}, {dim});
    k = c_.g.norm(Function::rms_norm, at + ".unit_keys", k, {}, {dim});
    const TensorId length =
        c_.g.parameter(GraphContext::inside(at, a.cosine), {{heads}, {one}, {one}});
    q = c_.g.elementwise(Function::multiply, at + ".scaled_queries", {q, length});
  }
  const LabelId rows = dims(1)[dims(1).size() - 2].front();
  GraphBuilder::AttentionParts parts;
  if (a.causal) parts.fraction = attention_fraction(0, c_.g.label_size(rows));
  if (a.has_bias) parts.added = read(3).id;
  if (a.decomposed[0] > 0) parts.added = decomposed_bias(at, a, q, dim);
  if (value_dim != dim) parts.value_dim = value_dim;
  parts.drops = c_.drops(a.dropout);
  const TensorId out = c_.g.attention(own(GraphContext::inside(a.name, "attention")), q, k, v, dim,
                                      {{rows, keys(c_.g.label_size(rows))}}, parts);
  const GraphBuilder::Within part(c_.g, OpPart::out_projection);
  Dims shape = dims(0);
  shape.back() = {hidden(a.out > 0 ? a.out : width)};
  make(c_.linear({GraphContext::inside(at, a.o), shape.back(), {heads, value_dim}, a.o_bias}, out,
                 shape),
       false);
}

TensorId BlueprintGraph::made_table(const std::string& name, const DistanceBias& b,
                                    LabelId distances, LabelId heads) {
  const LabelId two = c_.label("coordinates", 2);
  const LabelId inner = c_.label("table_width", b.made_width);
  const TensorId coordinates =
      c_.g.constant(name + ".coordinates", c_.g.compute_dtype(), {{distances}, {two}});
  const TensorId wide = c_.activate(
      "relu", name + ".1",
      c_.linear({name + ".0", {inner}, {two}, /*bias=*/true}, coordinates, {{distances}, {inner}}));
  return c_.linear({name + ".2", {heads}, {inner}}, wide, {{distances}, {heads}});
}

void BlueprintGraph::add_step(const DistanceBias& b) {
  const std::string name = own(b.name);
  const LabelId heads = c_.label("heads", b.heads, LabelRole::heads);
  const LabelId distances = c_.label("distances", b.distances);
  const TensorId table = b.made_width > 0 ? made_table(name, b, distances, heads)
                                          : c_.g.parameter(name, {{distances}, {heads}});
  const Dims pairs{{places(b.places)}, {keys(b.places)}};
  const TensorId numbers = c_.g.constant(name + ".numbers", c_.options.index_dtype, pairs);
  TensorId bias = c_.g.embedding(name + ".bias", numbers, table, {pairs[0], pairs[1], {heads}});
  if (b.made_width > 0) {
    bias = c_.g.elementwise(Function::sigmoid, name + ".sigmoid", {bias});
    bias = c_.g.elementwise(Function::scale, name + ".scaled", {bias});
  }
  if (b.shifted) {
    const Dim count = dims(0)[1];
    const TensorId mask =
        c_.g.constant(name + ".mask", c_.g.compute_dtype(), {count, pairs[0], pairs[1]});
    bias = c_.g.expand(name + ".of_windows", bias, {count, pairs[0], pairs[1], {heads}});
    bias = c_.g.elementwise(Function::add, name + ".masked", {bias, mask});
  }
  make(bias, false);
}

}  // namespace shardsim::models
