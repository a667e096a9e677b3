#include "workloads/models/walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "workloads/layers/count_sketch.hpp"
#include "workloads/layers/mlp.hpp"

namespace shardsim::models {
namespace {

struct RunBody {
  Eager& e;
  const Value& x;
  Context& context;

  Value operator()(const Attention& body) const { return run(e, body, x, context); }
  Value operator()(const LatentAttention& body) const { return run(e, body, x, context); }
  Value operator()(const AttentionExperts& body) const { return run(e, body, x, context); }
  Value operator()(const PerLayerGate& body) const { return run(e, body, x, context); }
  Value operator()(const Mixer& body) const { return run(e, body, x, context); }
  template <class Body>
  Value operator()(const Body& body) const {
    return run(e, body, x);
  }
};

Value run_branch(Eager& e, const Branch& branch, const Value& x, const Value& stream,
                 Context& context) {
  Value out = run(e, branch.body_after, std::visit(RunBody{e, x, context}, branch.body));
  if (branch.beside) {
    const Value& read = branch.beside_of_stream ? stream : x;
    const Value other = std::visit(RunBody{e, read, context}, *branch.beside);
    out = e.add(out, run(e, branch.beside_after, other));
  }
  Value result = run(e, branch.after, out);
  if (!branch.scale.empty()) {
    result = e.multiply(result, e.parameter(branch.scale, {result.last()}));
  }
  if (branch.multiplied) result = e.scaled(result);
  return e.dropout(result, branch.dropout);
}

Value run_altup_layer(Eager& e, const LayerKind& kind, const Value& streams, Context& context) {
  const Value predictions = predict(e, *kind.altup, streams);
  Value x = active(predictions);
  for (std::size_t i = 0; i + 1 < kind.branches.size(); ++i) {
    const Branch& branch = kind.branches[i];
    const Value input = run(e, branch.before, x);
    const Value laurel = branch.laurel ? run(e, *branch.laurel, input) : Value{};
    x = e.add(x, run_branch(e, branch, input, x, context));
    if (laurel.exists()) x = e.scaled(e.add(x, laurel));
  }
  Value corrected = correct(e, *kind.altup, predictions, x);
  const Value first = first_scaled(e, *kind.altup, corrected);
  run_branch(e, kind.branches.back(), first, first, context);
  return corrected;  // to which the others' part is added in place
}

// Branches between streams.
Value run_hyper_layer(Eager& e, const HyperConnections& hyper, const LayerKind& kind, Value x,
                      Context& context) {
  for (const Branch& branch : kind.branches) {
    CountSketch s(e, context);
    const Node streams = s.enter(x, stream_axes(s, hyper, x.last()));
    const HyperMaps maps = read_streams(s, hyper, branch.maps, streams);
    const Value read = s.value(maps.read);
    const Value out = run_branch(e, branch, run(e, branch.before, read), read, context);
    x = s.value(write_streams(s, hyper, maps, s.enter(out, s.axes_of(maps.read))));
  }
  return x;
}

Value leave_hyper(Eager& e, const HyperConnections& hyper, const Value& x, Context& context) {
  const Scope at(e, hyper.head);
  CountSketch s(e, context);
  return s.value(leave_streams(s, hyper, s.enter(x, stream_axes(s, hyper, x.last()))));
}

// Its parameters, and nothing of what it would do.
void run_silent(Eager& e, const Branch& branch, const Value& x, const Context& context) {
  Context alone = context;
  alone.encoder = x;
  e.mute(true);
  run(e, branch.before, x);
  run_branch(e, branch, x, x, alone);
  run(e, branch.joined, x);
  e.mute(false);
}

Value gated(Eager& e, const std::optional<NormGate>& gate, const Value& x) {
  if (!gate) return x;
  const Scope at(e, gate->name);
  const Value narrow = e.apply(run_linear(e, gate->down, x, gate->rank, false), Keeps::input);
  const Value wide = e.cast(run_linear(e, gate->up, narrow, x.last(), false), DType::f32);
  return e.cast(e.multiply(x, e.apply(wide, Keeps::result)), x.dtype);
}

// The stream as a branch is added to it.
Value carried(Eager& e, const Branch& branch, const Value& x) {
  if (branch.stream_multiplied) return e.scaled(x);
  if (branch.stream_scale.empty()) return x;
  return e.multiply(e.parameter(branch.stream_scale, {x.last()}), x);
}

Value run_layer(Eager& e, const Stack& stack, const LayerKind& kind, Value x, Context& context) {
  if (kind.altup) return run_altup_layer(e, kind, x, context);
  if (stack.hyper) return run_hyper_layer(e, *stack.hyper, kind, std::move(x), context);
  if (kind.parallel) {
    Value sum = x;
    Value first;
    for (const Branch& branch : kind.branches) {
      const Value input = branch.before.exists() ? run(e, branch.before, x) : first;
      if (!first.exists()) first = input;
      sum = e.add(sum, run_branch(e, branch, input, x, context));
    }
    return sum;
  }
  Value added, shortcut;
  if (kind.shared) added = run(e, *kind.shared, x, context.embedded, context);
  for (const Branch& branch : kind.branches) {
    if (branch.silent) {
      run_silent(e, branch, x, context);
      continue;
    }
    if (stack.fp32_residual) {
      const Value input = run(e, branch.before, e.cast(x, e.dtype()));
      x = e.add(e.cast(x, DType::f32), run_branch(e, branch, input, x, context));
      continue;
    }
    const Value input = added.exists() ? e.add(x, std::exchange(added, {})) : x;
    const Value read = gated(e, branch.before_gate, run(e, branch.before, input));
    if (branch.shortcut) shortcut = std::visit(RunBody{e, read, context}, *branch.shortcut);
    const Value out = run_branch(e, branch, read, x, context);
    if (branch.of_normed) x = e.scaled(read);
    x = branch.replaces ? out : e.add(carried(e, branch, x), out);
    x = run(e, branch.joined, x);
    if (branch.masked) x = e.multiply(x, e.constant(x.dtype, {x.shape[0], x.shape[1], 1}));
  }
  if (shortcut.exists()) x = e.add(x, shortcut);
  if (!kind.scalar.empty()) {
    e.buffer(kind.scalar, {1}, e.dtype());
    x = e.scaled(x);
  }
  return x;
}

struct RunInput {
  Eager& e;
  std::int64_t hidden;
  const Value& ids;
  const Context& context;

  Value operator()(const TokenEmbedding& input) const { return run(e, input, hidden, ids); }
  Value operator()(const MaskedRows& input) const { return run(e, input, hidden, context.encoder); }
  Value operator()(const NoInput&) const { return e.make({1, 1, hidden}, e.dtype(), true); }
  template <class Other>
  Value operator()(const Other& input) const {
    return run(e, input, hidden, ids.shape[0]);
  }
};

// Numbers of padding behind those of tokens: a copy.
Value padded_numbers(Eager& e, const Stack& stack, const Value& ids) {
  const std::int64_t tokens = padded_tokens(stack, ids.shape[1]);
  return tokens == ids.shape[1] ? ids : e.constant(ids.dtype, {ids.shape[0], tokens});
}

// Rows of several examples lie apart then, of which what reads them makes a copy.
Value without_padding(Eager& e, const Value& x, std::int64_t tokens) {
  if (x.shape[1] <= tokens) return x;
  const Shape shape{x.shape[0], tokens, x.last()};
  return x.shape[0] > 1 ? e.copy(x, shape) : Eager::view(x, shape);
}

// Rows of distances, which all layers read.
void look_up_distances(Eager& e, const Stack& stack, Context& context) {
  const DistanceTable& table = *stack.distances;
  const Shape shape{table.buckets, table.heads > 0 ? table.heads : stack.hidden};
  Value rows;
  {
    const Scope at(e, table.name);
    rows = e.embedding_table("weight", shape);
  }
  context.dropout = table.dropout;
  context.most_distances = table.near_only ? 2 * context.sequence : table.buckets;
  if (table.heads > 0) {
    context.shared["relative bias"] =
        e.embedding(e.constant(DType::i64, {context.sequence, context.sequence}), rows);
  } else {
    context.shared["relative rows"] = run(e, table.norm, rows);
  }
}

Value run_stack(Eager& e, const Stack& stack, const Value& given, Context& context) {
  const Value ids = padded_numbers(e, stack, given);
  Value x = std::visit(RunInput{e, stack.hidden, ids, context}, stack.input);
  context.sequence = x.shape[1];
  context.embedded = x;
  context.rotary.clear();
  if (stack.per_layer) {
    context.per_layer =
        run(e, *stack.per_layer, ids, x, static_cast<std::int64_t>(stack.order.size()));
  }
  if (stack.altup) x = spread(e, *stack.altup, x);
  if (stack.hyper) x = e.copy(x, {x.shape[0], x.shape[1], stack.hyper->streams, x.last()});
  if (stack.distances) look_up_distances(e, stack, context);
  for (std::size_t i = 0; i < stack.order.size(); ++i) {
    const LayerKind& kind = stack.kinds[static_cast<std::size_t>(stack.order[i])];
    if (stack.numbered_inside) {
      e.open_layer(stack.prefix, kind.name, static_cast<int>(i));
    } else {
      e.open_layer(stack.modules.empty() ? fmt::format("{}.{}", stack.prefix, i) : stack.modules[i],
                   kind.name);
    }
    if (kind.silent) e.mute(true);
    const Value out = run_layer(e, stack, kind, x, context);
    if (!kind.silent) x = out;
    e.mute(stack.role == StackRole::silent);
    e.close_layer();
  }
  if (stack.pads_to > 0) x = without_padding(e, x, given.shape[1]);
  if (stack.altup) x = gather(e, *stack.altup, x);
  if (stack.hyper) x = leave_hyper(e, *stack.hyper, x, context);
  if (stack.norm_first_only) x = Eager::view(x, {x.shape[0], x.last()});
  x = e.dropout(run(e, stack.norm, x), stack.dropout);
  if (!stack.idle_pooler.empty()) {
    e.run_forward_alone(true);
    run_linear(e, stack.idle_pooler, Eager::view(x, {x.shape[0], x.last()}), x.last(), true);
    e.run_forward_alone(false);
  }
  const auto projected = [&] {
    return run_linear(e, stack.project, x, stack.project_width, stack.project_bias);
  };
  if (stack.projects_rows) x = projected();
  if (stack.picks_row) {
    const Shape one{x.shape[0], x.last()};
    e.save(e.constant(DType::i64, {x.shape[0]}));
    x = e.index(x, e.constant(DType::i64, {x.shape[0]}), one);
  }
  if (stack.picks_last) x = Eager::view(x, {x.shape[0], x.last()});
  if (stack.pool && stack.pool_unread) {
    e.run_forward_alone(true);
    run(e, *stack.pool, x);
    e.run_forward_alone(false);
  } else if (stack.pool) {
    x = run(e, *stack.pool, x);
  }
  return stack.project.empty() || stack.projects_rows ? x : projected();
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
    e.add_up(n.total_parameters, elements);
    n.active_parameters += active;
    n.embedding_parameters += parameter.embeddings * elements;
    if (parameter.layer < 0) continue;
    LayerCounts& layer = n.layers[static_cast<std::size_t>(parameter.layer)];
    layer.parameters += elements;
    layer.active_parameters += active;
  }
  for (const Saved& saved : n.saved) {
    e.add_up(n.saved_bytes, saved.bytes);
    if (saved.layer >= 0)
      n.layers[static_cast<std::size_t>(saved.layer)].saved_bytes += saved.bytes;
  }
  std::int64_t both = 0;
  for (const auto& [op, flops] : n.forward) {
    n.forward_flops += flops;
    e.add_up(both, flops);
  }
  for (const auto& [op, flops] : n.backward) {
    n.backward_flops += flops;
    e.add_up(both, flops);
  }
  return n;
}

}  // namespace

namespace {

std::int64_t step_of_sequences(const ModelSpec& spec) {
  std::int64_t step = 1;
  for (const Stack& stack : spec.stacks) {
    if (stack.pads_to > 0) continue;
    for (const LayerKind& kind : stack.kinds) {
      for (const Branch& branch : kind.branches) {
        const auto* mixer = std::get_if<Mixer>(&branch.body);
        if (mixer != nullptr) step = std::lcm(step, sequence_step(*mixer));
      }
    }
  }
  return step;
}

}  // namespace

std::int64_t most_positions(const ModelSpec& spec) {
  std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (const Stack& stack : spec.stacks) {
    const auto* embedding = std::get_if<TokenEmbedding>(&stack.input);
    if (embedding == nullptr || embedding->positions.empty()) continue;
    most = std::min(most, embedding->position_rows - embedding->position_offset);
  }
  const std::int64_t step = step_of_sequences(spec);
  return most < step ? most : most - most % step;
}

ModelCounts count(const ModelSpec& spec, const Point& point, const Place& place) {
  Eager e({.place = place, .dtype = spec.dtype, .attention = point.attention});
  Context context;
  context.batch = point.batch;
  context.sequence = point.sequence;
  const bool decodes = std::any_of(spec.stacks.begin(), spec.stacks.end(), [](const Stack& stack) {
    return stack.role == StackRole::encoder;
  });
  const Value ids = e.input(DType::i64, {point.batch, point.sequence});
  const Value target = e.input(DType::i64, {point.batch, point.target.value_or(point.sequence)});
  for (const SharedTable& table : spec.shared) {
    const Scope at(e, table.name);
    e.embedding_table("weight", {table.vocab, table.width});
  }
  std::vector<Value> outputs;
  e.mute(false);
  for (const Stack& stack : spec.stacks) {
    e.mute(stack.role == StackRole::silent);
    const bool reads_target = decodes && stack.role == StackRole::main;
    const Value x = run_stack(e, stack, reads_target ? target : ids, context);
    if (stack.role == StackRole::encoder) context.encoder = x;
    if (stack.role == StackRole::main) outputs.push_back(x);
  }
  if (spec.network) {
    const std::int64_t side = point.image.value_or(usual_side(*spec.network));
    if (side % coarsest(*spec.network) != 0) {
      throw InputError(place,
                       fmt::format("an image of {} is no multiple of {}, by which the network "
                                   "makes it smaller",
                                   side, coarsest(*spec.network)));
    }
    outputs.push_back(run(e, *spec.network, {point.batch, side, point.sequence}));
  }
  for (const NamedParameter& p : spec.apart) {
    if (p.embedding) {
      e.embedding_table(p.name, p.shape);
    } else {
      e.parameter(p.name, p.shape);
    }
    if (!p.other_name.empty()) e.tie(p.name, p.other_name);
  }
  for (const NamedBuffer& buffer : spec.buffers) e.buffer(buffer.name, buffer.shape, spec.dtype);
  run(e, spec.head, outputs);
  return summed(e);
}

}  // namespace shardsim::models
