#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "workloads/models/graph/attention_graph.hpp"
#include "workloads/models/graph/sketch_graph.hpp"

namespace shardsim::models {
namespace {

TensorId handed(const GraphContext& c, std::string_view name) {
  const GraphContext::Beside* found = find_handed(c, name);
  return found == nullptr ? no_tensor : found->id;
}

// Products of contents with all rows of distances, of which every pair of tokens picks one.
TensorId place_scores(GraphContext& c, const Attention& a, const std::string& at,
                      const Projected& p) {
  const PlaceScores& places = *a.places;
  const LabelId distances = c.label("distances", c.g.label_size(c.distances));
  const TensorId rows = c.dropped(at + ".rows", handed(c, "relative_rows"), c.distance_dropout);
  const TensorId numbers =
      c.g.constant(at + ".distances", c.options.index_dtype, {{c.sequence}, {c.key_sequence}});
  const std::vector<LabelId>& heads = p.q_heads;
  const auto score = [&](const std::string& name, TensorId contents, bool are_keys, bool bias) {
    const std::string full = GraphContext::inside(at, name);
    Dim out(heads.begin(), heads.end());
    out.push_back(p.head_dim);
    Dims to{{distances}};
    Dims scores{{c.batch}, {c.sequence}};
    Dims picked{{c.batch}, {c.sequence}, {c.key_sequence}};
    for (const LabelId head : heads) {
      scores.push_back({head});
      picked.push_back({head});
    }
    for (const LabelId label : out) to.push_back({label});
    scores.push_back({distances});
    const TensorId of_places = c.linear({full, out, {c.hidden}, bias}, rows, to);
    TensorId all = c.g.linear(full + ".scores", contents, of_places, scores);
    if (are_keys) {
      scores[1] = {c.key_sequence};
      all = c.g.slices(full + ".of_keys", all, {{full + ".of_keys", scores}},
                       {c.sequence, c.key_sequence})
                .front();
    }
    return c.g.embedding(full + ".picked", numbers, all, picked);
  };
  TensorId sum = no_tensor;
  if (places.of_queries) {
    sum = score(places.shared ? a.k : places.key, p.q, /*are_keys=*/false, places.key_bias);
  }
  if (!places.of_keys) return sum;
  const TensorId other =
      score(places.shared ? a.q : places.query, p.k, /*are_keys=*/true, /*bias=*/true);
  return sum == no_tensor ? other
                          : c.g.elementwise(Function::add, at + ".place_scores", {sum, other});
}

// DeBERTa's: rows that each layer projects.
void add_relative_rows_of(GraphContext& c, const DistanceTable& table) {
  c.distances = c.label("distances", table.buckets);
  c.distance_dropout = table.dropout;
  TensorId rows = c.g.parameter(table.name + ".weight", {{c.distances}, {c.hidden}});
  rows = table.norm.exists() ? c.norm(table.norm, table.norm.name, rows, {c.hidden})
                             : c.g.elementwise(Function::scale, table.name + ".rows", {rows});
  const std::int64_t near = 2 * c.g.label_size(c.sequence);
  if (table.near_only && near < table.buckets) {
    const LabelId all = std::exchange(c.distances, c.label("distances", near));
    const std::string name = table.name + ".near";
    rows =
        c.g.slices(name, rows, {{name, {{c.distances}, {c.hidden}}}}, {all, c.distances}).front();
  }
  c.beside.push_back({"relative_rows", rows});
  c.ended.insert("relative_rows");
}

}  // namespace

const GraphContext::Beside* find_handed(const GraphContext& c, std::string_view name) {
  const auto found = std::find_if(c.beside.begin(), c.beside.end(),
                                  [&](const auto& value) { return value.name == name; });
  return found == c.beside.end() ? nullptr : &*found;
}

TensorId added_to_scores(GraphContext& c, const Attention& a, const std::string& at,
                         const Projected& p) {
  if (a.places) return place_scores(c, a, at, p);
  if (a.sinks) return c.g.parameter(at + ".sinks", {p.q_heads});
  if (a.mask != ScoreMask::relative || a.cross) return no_tensor;
  const TensorId bias = handed(c, "position_bias");
  if (bias != no_tensor) return bias;
  return add_relative_rows(c, c.inside(a.name + ".relative_attention_bias"), a.relative_buckets, a);
}

TensorId scale_by_position(GraphContext& c, const std::string& name, TensorId q) {
  const TensorId factors = c.g.constant(name + ".factors", DType::f32, {{c.sequence}});
  return c.g.elementwise(Function::multiply, name, {q, factors});
}

double bidirectional_fraction(std::int64_t window, std::int64_t sequence) {
  if (window <= 0 || window >= 2 * sequence) return 1;
  const double r = static_cast<double>(window) / static_cast<double>(sequence);
  return r * (1 - r / 4);
}

TensorId add_relative_rows(GraphContext& c, const std::string& name, std::int64_t buckets,
                           const Attention& a) {
  const Dim heads{c.label("kv_heads", a.kv_heads, LabelRole::heads),
                  c.label("group", a.heads / a.kv_heads, LabelRole::head_group)};
  const TensorId table = c.g.parameter(name + ".weight", {{c.label("distances", buckets)}, heads});
  const TensorId numbers =
      c.g.constant(name + ".numbers", c.options.index_dtype, {{c.sequence}, {c.key_sequence}});
  return c.g.embedding(name, numbers, table,
                       {{c.sequence}, {c.key_sequence}, {heads[0]}, {heads[1]}});
}

double attention_fraction(std::int64_t window, std::int64_t sequence) {
  if (window <= 0 || window >= sequence) return 0.5;
  const double r = static_cast<double>(window) / static_cast<double>(sequence);
  return r * (1 - r / 2);
}

// T5's: looked up once a stack, whose layers hand it on.
void add_relative_bias(GraphContext& c, const Stack& stack) {
  const LayerKind& first = stack.kinds[static_cast<std::size_t>(stack.order.front())];
  if (const auto* mixer = std::get_if<Mixer>(&first.branches.front().body)) {
    const auto* local = std::get_if<LocalAttention>(&mixer->what);
    if (local == nullptr) return;
    c.layer = fmt::format("{}.0", stack.prefix);
    SketchGraph sketch(c, no_tensor);
    c.beside.push_back({local_bias, sketch.tensor(draw_bias(sketch, *local))});
    c.ended.insert(local_bias);
    return;
  }
  const auto* attention = std::get_if<Attention>(&first.branches.front().body);
  if (attention != nullptr && attention->places) return add_relative_rows_of(c, *stack.distances);
  if (attention != nullptr && stack.distances) {
    c.beside.push_back({"position_bias", add_relative_rows(c, stack.distances->name,
                                                           stack.distances->buckets, *attention)});
    c.ended.insert("position_bias");
    return;
  }
  if (attention == nullptr || attention->relative_buckets == 0) return;
  if (std::all_of(stack.kinds.begin(), stack.kinds.end(), [](const LayerKind& kind) {
        return std::get<Attention>(kind.branches.front().body).relative_buckets > 0;
      })) {
    return;  // each layer has its own
  }
  c.layer = fmt::format("{}.0", stack.prefix);
  const std::string name = c.inside(attention->name + ".relative_attention_bias");
  c.beside.push_back(
      {"position_bias", add_relative_rows(c, name, attention->relative_buckets, *attention)});
  c.ended.insert("position_bias");
}

}  // namespace shardsim::models
