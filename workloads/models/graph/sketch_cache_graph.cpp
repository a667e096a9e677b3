// Steps of inference of sketches: what is kept of tokens, of entries that stand for several, and of
// each sequence.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "workloads/models/graph/sketch_graph.hpp"

namespace shardsim::models {

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

Node SketchGraph::keep_entries(const std::string& name, Node x, std::int64_t tokens) {
  if (!is_inference()) return x;
  const auto entries = [&](std::int64_t of) { return std::max<std::int64_t>(of / tokens, 1); };
  const LabelId places = c_.label("cached_entries", entries(c_.options.cache->places));
  Axes axes = axes_of(x);
  const Dims rows = dims(axes);
  axes[1] = {"cached_entries", c_.g.label_size(places)};
  const DType dtype = c_.options.cache->dtype.value_or(c_.g.compute_dtype());
  const std::string full = unique(name);
  const TensorId kept = c_.g.append(full, c_.g.cache(full + "_cache", dtype, dims(axes)),
                                    {tensor(x)}, rows[1].front(), places);
  if (!c_.is_decoding()) return x;
  const std::int64_t seen = entries(c_.options.cache->context + sequence().size);
  const Node all = made(kept, axes);
  if (seen == c_.g.label_size(places)) return all;
  axes[1] = {"seen_entries", seen};
  return view(all, axes);
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

Node SketchGraph::scanned(Function function, const Step& step, bool reads) {
  GraphBuilder::Scan parts;
  for (const Node node : step.operands) parts.operands.push_back(tensor(node));
  parts.result = dims(step.result);
  parts.whole = {c_.sequence};
  std::vector<LabelId> numbers{c_.sequence};
  for (const Axis& axis : step.state) numbers.push_back(label(axis));
  parts.work = {{step.operations, std::move(numbers)}};
  if (is_inference()) parts.state = {state_cache(step.name, step.state, step.dtype), reads};
  return made(c_.g.scan(function, unique(step.name + ".scan"), std::move(parts)), step.result);
}

Node SketchGraph::step(const Step& step) {
  return scanned(Function::state_update, step, /*reads=*/true);
}

Node SketchGraph::recur(const Step& step) {
  if (c_.is_decoding()) return this->step(step);
  return scanned(Function::selective_scan, step, /*reads=*/false);
}

// As Mamba-2's scan in chunks: keys are what B is there, queries C, values x.
Node SketchGraph::remember(const Memory& memory) {
  const Axis keys = axes_of(memory.keys).back(), values = axes_of(memory.values).back();
  const Axis numbers{"memory_numbers", keys.size * (values.size + 1) + 1};
  const Axes result = axes_of(memory.values);
  GraphBuilder::Scan parts;
  for (const Node node : {memory.queries, memory.keys, memory.values}) {
    parts.operands.push_back(tensor(node));
  }
  for (const Node node : memory.gates) parts.operands.push_back(tensor(node));
  parts.result = dims(result);
  const LabelId k = label(keys), v = label(values), heads = label(memory.heads);
  parts.whole = {c_.sequence, k, v};
  if (is_inference()) {
    const TensorId state =
        state_cache(memory.name, {batch(), memory.heads, numbers}, c_.g.compute_dtype());
    parts.state = {state, c_.is_decoding()};
    parts.whole.push_back(label(numbers));
  }
  const std::vector<LabelId> points{c_.batch, c_.sequence, heads, k, v};
  const std::string name = unique(memory.name + ".scan");
  if (c_.is_decoding()) {  // decayed, k v added, times q
    parts.work = {{5, points}};
    return made(c_.g.scan(Function::state_update, name, std::move(parts)), result);
  }
  c_.note(chunked_scan_note);
  const std::int64_t tokens = std::min(memory.chunk, sequence().size);
  const LabelId chunk = c_.label("chunk", tokens);
  const LabelId chunks = c_.label("chunks", (sequence().size + tokens - 1) / tokens);
  parts.kept = {{name + ".states", DType::f32, {{c_.batch}, {chunks}, {heads}, {k}, {v}}}};
  parts.work = {{2, {c_.batch, c_.sequence, chunk, heads, k}},
                {2, {c_.batch, c_.sequence, chunk, heads, v}},
                {4, points}};
  return made(c_.g.scan(Function::chunked_scan, name, std::move(parts)), result);
}

Node SketchGraph::before(const std::string& name, Node x) {
  const Axes axes = axes_of(x);
  Axes row = axes;
  row.erase(row.begin() + 1);
  if (c_.is_decoding()) {
    return step({.name = name, .operands = {x}, .result = axes, .state = row, .operations = 1});
  }
  if (is_inference()) leave(name, view(x, row));
  return made(c_.g.rearranged(unique(name), tensor(x), dims(axes), {c_.sequence}), axes);
}

}  // namespace shardsim::models
