#include "workloads/models/walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace shardsim::models {
namespace {

struct RunBody {
  Eager& e;
  const Value& x;
  Context& context;

  Value operator()(const Attention& body) const { return run(e, body, x, context); }
  Value operator()(const LatentAttention& body) const { return run(e, body, x, context); }
  template <class Body>
  Value operator()(const Body& body) const {
    return run(e, body, x);
  }
};

Value run_branch(Eager& e, const Branch& branch, const Value& x, Context& context) {
  const Value out = std::visit(RunBody{e, x, context}, branch.body);
  return e.dropout(run(e, branch.after, out), branch.dropout);
}

Value run_layer(Eager& e, const Stack& stack, const LayerKind& kind, Value x, Context& context) {
  if (kind.parallel) {
    Value sum = x;
    Value first;
    for (const Branch& branch : kind.branches) {
      const Value input = branch.before.exists() ? run(e, branch.before, x) : first;
      if (!first.exists()) first = input;
      sum = e.add(sum, run_branch(e, branch, input, context));
    }
    return sum;
  }
  for (const Branch& branch : kind.branches) {
    if (stack.fp32_residual) {
      const Value input = run(e, branch.before, e.cast(x, e.dtype()));
      x = e.add(e.cast(x, DType::f32), run_branch(e, branch, input, context));
      continue;
    }
    x = e.add(x, run_branch(e, branch, run(e, branch.before, x), context));
    x = run(e, branch.joined, x);
  }
  return x;
}

Value run_linear_at(Eager& e, const std::string& name, const Value& x, std::int64_t out) {
  return run_linear(e, name, x, out, /*bias=*/false);
}

Value embed(Eager& e, const TokenEmbedding& embedding, std::int64_t hidden, const Value& ids,
            const Context& context) {
  Value x;
  {
    const Scope at(e, embedding.name);
    x = e.embedding(ids, e.embedding_table("weight", {embedding.vocab, embedding.width}));
  }
  if (embedding.scaled) x = e.scaled(x);
  if (!embedding.project.empty()) x = run_linear_at(e, embedding.project, x, hidden);
  if (!embedding.positions.empty()) {
    const Scope at(e, embedding.positions);
    const Value table = e.embedding_table("weight", {embedding.position_rows, hidden});
    const std::int64_t rows = embedding.positions_per_example ? context.batch : 1;
    x = e.add(x, e.embedding(e.constant(DType::i64, {rows, context.sequence}), table));
  }
  x = run(e, embedding.norm, x);
  const Scope at(e, embedding.dropout_name);
  return e.dropout(x, embedding.dropout);
}

Value run_stack(Eager& e, const Stack& stack, const Value& ids, Context& context) {
  Value x = embed(e, std::get<TokenEmbedding>(stack.input), stack.hidden, ids, context);
  for (std::size_t i = 0; i < stack.order.size(); ++i) {
    const LayerKind& kind = stack.kinds[static_cast<std::size_t>(stack.order[i])];
    e.open_layer(fmt::format("{}.{}", stack.prefix, i), kind.name);
    x = run_layer(e, stack, kind, x, context);
    e.close_layer();
  }
  x = run(e, stack.norm, x);
  if (stack.project.empty()) return x;
  return run_linear_at(e, stack.project, x, stack.project_width);
}

Value logits_of(Eager& e, const Head& head, const Value& x) {
  Value logits;
  {
    const Scope at(e, head.name);
    const std::string weight = e.path() + ".weight";
    if (!head.tied_to.empty()) e.tie(head.tied_to, weight);
    const Value matrix = head.tied_to.empty() ? e.parameter("weight", {head.vocab, x.last()})
                                              : e.named(head.tied_to);
    logits = e.linear(e.cast(x, e.dtype()), matrix, head.bias ? e.parameter("bias", {head.vocab}) : Value{});
  }
  if (head.soft_cap > 0) logits = e.scaled(e.apply(e.scaled(logits), Keeps::result));
  return logits;
}

// transformers' ForCausalLMLoss: labels padded by one and shifted, a copy unless the batch is 1 and
// the shifted rows lie together already; cross entropy keeps the log-softmax, labels and a weight.
void causal_loss(Eager& e, const Value& logits, const Context& context) {
  const Value wide = e.cast(logits, DType::f32);
  e.apply(wide, Keeps::result);
  const std::int64_t rows = context.batch * context.sequence;
  e.save(e.constant(DType::i64, {context.batch == 1 ? rows + 1 : rows}));
  e.save(e.constant(DType::f32, {}));
}

std::int64_t active_of(const Parameter& parameter, std::int64_t elements) {
  return parameter.experts == 0 ? elements : elements / parameter.experts * parameter.visited;
}

// What the walk left, summed up.
ModelCounts summed(const Eager& e) {
  ModelCounts n;
  n.parameters = e.parameters();
  n.buffers = e.buffers();
  n.tied = e.ties();
  n.forward = e.forward_flops();
  n.backward = e.backward_flops();
  n.scan_flops = e.scan_flops();
  n.saved = e.saved();
  for (const Layer& layer : e.layers()) {
    n.layers.push_back({.prefix = layer.prefix,
                        .kind = layer.kind,
                        .forward_flops = layer.forward_flops,
                        .backward_flops = layer.backward_flops,
                        .cache_bytes_per_token = layer.cache_bytes_per_token,
                        .state_bytes = layer.state_bytes});
    n.cache_bytes_per_token += layer.cache_bytes_per_token;
    n.state_bytes += layer.state_bytes;
  }
  for (const Parameter& parameter : n.parameters) {
    const std::int64_t elements = e.elements(parameter.shape);
    const std::int64_t active = active_of(parameter, elements);
    n.total_parameters += elements;
    n.active_parameters += active;
    if (parameter.embedding) n.embedding_parameters += elements;
    if (parameter.layer < 0) continue;
    LayerCounts& layer = n.layers[static_cast<std::size_t>(parameter.layer)];
    layer.parameters += elements;
    layer.active_parameters += active;
  }
  for (const Saved& saved : n.saved) {
    n.saved_bytes += saved.bytes;
    if (saved.layer >= 0) n.layers[static_cast<std::size_t>(saved.layer)].saved_bytes += saved.bytes;
  }
  for (const auto& [op, flops] : n.forward) n.forward_flops += flops;
  for (const auto& [op, flops] : n.backward) n.backward_flops += flops;
  return n;
}

}  // namespace

std::int64_t most_positions(const ModelSpec& spec) {
  std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (const Stack& stack : spec.stacks) {
    const auto* embedding = std::get_if<TokenEmbedding>(&stack.input);
    if (embedding == nullptr || embedding->positions.empty()) continue;
    most = std::min(most, embedding->position_rows - embedding->position_offset);
  }
  return most;
}

ModelCounts count(const ModelSpec& spec, const Point& point, const Place& place) {
  Eager e({.place = place, .dtype = spec.dtype, .attention = point.attention});
  Context context;
  context.batch = point.batch;
  context.sequence = point.sequence;
  const Value ids = e.input(DType::i64, {point.batch, point.sequence});
  Value x;
  for (const Stack& stack : spec.stacks) x = run_stack(e, stack, ids, context);
  if (spec.head.vocab > 0) causal_loss(e, logits_of(e, spec.head, x), context);
  return summed(e);
}

}  // namespace shardsim::models
