// Ops of one layer: its branches, one after another or of the same input.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "workloads/models/graph/graph_context.hpp"
#include "workloads/models/graph/sketch_graph.hpp"

namespace shardsim::models {
namespace {

// "attention", "mlp": of its residual add.
std::string word(const LayerKind& kind, const Branch& branch) {
  std::string name = "mixer";
  if (std::holds_alternative<Attention>(branch.body) ||
      std::holds_alternative<LatentAttention>(branch.body) ||
      std::holds_alternative<AttentionExperts>(branch.body)) {
    name = "attention";
  }
  if (std::holds_alternative<Mlp>(branch.body) || std::holds_alternative<Experts>(branch.body)) {
    name = "mlp";
  }
  int same = 0;
  for (const Branch& other : kind.branches) {
    if (&other == &branch) break;
    if (other.body.index() == branch.body.index()) ++same;
  }
  return same == 0 ? name : fmt::format("{}_{}", name, same + 1);
}

OpModule module_of(const Body& body) {
  if (std::holds_alternative<Attention>(body) || std::holds_alternative<LatentAttention>(body)) {
    return OpModule::attention;
  }
  if (std::holds_alternative<Mlp>(body)) return OpModule::mlp;
  return std::holds_alternative<Experts>(body) ? OpModule::experts : OpModule::mixer;
}

TensorId gated(GraphContext& c, const std::optional<NormGate>& gate, TensorId x) {
  if (!gate) return x;
  const std::string at = c.inside(gate->name);
  const LabelId rank = c.label("gate_rank", gate->rank);
  TensorId y = c.linear({GraphContext::inside(at, gate->down), {rank}, {c.hidden}}, x,
                        {{c.batch}, {c.sequence}, {rank}});
  y = c.g.elementwise(Function::silu, at + ".act", {y});
  y = c.linear({GraphContext::inside(at, gate->up), {c.hidden}, {rank}}, y, c.stream());
  y = c.g.elementwise(Function::sigmoid, at + ".open", {c.g.cast(at + ".fp32", y, DType::f32)});
  y = c.g.elementwise(Function::multiply, at + ".gated", {x, y});
  return c.g.cast(at + ".cast", y, c.g.compute_dtype());
}

// The stream as a branch is added to it.
TensorId carried(GraphContext& c, const Branch& branch, const std::string& name, TensorId x) {
  if (branch.stream_multiplied) return c.g.elementwise(Function::scale, name + ".times", {x});
  if (branch.stream_scale.empty()) return x;
  const std::string scale = c.inside(branch.stream_scale);
  return c.g.elementwise(Function::multiply, scale + ".product",
                         {x, c.g.parameter(scale, {{c.hidden}})});
}

// What a branch reads: a stream that is kept in fp32 is cast first; what a block that layers share
// gives is added.
TensorId input_of(GraphContext& c, const Stack& stack, const Branch& branch, TensorId x,
                  TensorId added = no_tensor) {
  const std::string name = branch.before.exists() ? c.inside(branch.before.name) : c.layer;
  if (stack.fp32_residual) x = c.g.cast(name + ".cast", x, c.g.compute_dtype());
  if (added != no_tensor) x = c.g.elementwise(Function::add, name + ".with_shared", {x, added});
  if (!branch.before.exists()) return x;
  const OpModule module = module_of(branch.body);
  const bool feeds = module == OpModule::mlp || module == OpModule::experts;
  const GraphBuilder::Within part(c.g, feeds ? OpPart::feed_forward_norm : OpPart::input_norm);
  // Rows of exchanged experts are dealt out as tokens lie between blocks, and products of split
  // latents read the stream each for itself.
  const bool stays = (c.options.exchange && std::holds_alternative<Experts>(branch.body)) ||
                     (c.options.split_latents && !c.options.cache &&
                      std::holds_alternative<LatentAttention>(branch.body));
  return c.g.marked(gated(c, branch.before_gate, c.norm(branch.before, name, x, {c.hidden})),
                    stays ? StreamMark::stream : StreamMark::branch);
}

// Dropout that a body's module has of its own. Nobody has it twice.
double rate_of_result(const Body& body) {
  if (const auto* attention = std::get_if<Attention>(&body)) return attention->out_dropout;
  const auto* mlp = std::get_if<Mlp>(&body);
  return mlp == nullptr ? 0 : mlp->dropout;
}

TensorId run_body(GraphContext& c, const Body& body, const Norm& after, TensorId x) {
  const GraphBuilder::Within module(c.g, module_of(body));
  const TensorId out = std::visit([&](const auto& what) { return add(c, what, x); }, body);
  return after.exists() ? c.norm(after, c.inside(after.name), out, {c.hidden}) : out;
}

// `stream`: what the branch's norm reads.
TensorId run_branch(GraphContext& c, const Branch& branch, TensorId x, TensorId stream) {
  TensorId out = run_body(c, branch.body, branch.body_after, x);
  if (branch.beside) {
    const TensorId other =
        run_body(c, *branch.beside, branch.beside_after, branch.beside_of_stream ? stream : x);
    out = c.g.elementwise(Function::add, c.inside("beside"), {out, other});
  }
  if (branch.after.exists()) {
    out = c.norm(branch.after, c.inside(branch.after.name), out, {c.hidden});
  }
  if (!branch.scale.empty()) {
    const TensorId scale = c.g.parameter(c.inside(branch.scale), {{c.hidden}});
    out = c.g.elementwise(Function::multiply, c.inside(branch.scale), {out, scale});
  }
  if (branch.multiplied) {
    const std::string name = fmt::format("{}.multiplied", c.g.name_of(out));
    out = c.g.elementwise(Function::scale, name, {out});
  }
  return c.dropped(c.g.name_of(out) + ".dropout", out,
                   std::max(branch.dropout, rate_of_result(branch.body)));
}

TensorId sequential(GraphContext& c, const Stack& stack, const LayerKind& kind, TensorId x) {
  TensorId added = kind.shared ? add_shared_block(c, *kind.shared, x) : no_tensor;
  TensorId shortcut = no_tensor;
  for (const Branch& branch : kind.branches) {
    if (branch.silent) {
      add_silent_branch(c, stack, kind, branch);
      continue;
    }
    const TensorId input = input_of(c, stack, branch, x, std::exchange(added, no_tensor));
    if (branch.shortcut) shortcut = run_body(c, *branch.shortcut, {}, input);
    const TensorId out = run_branch(c, branch, input, x);
    const std::string name = c.inside(fmt::format("{}_residual", word(kind, branch)));
    if (branch.of_normed) x = c.g.elementwise(Function::scale, name + ".of", {input});
    x = c.g.marked(branch.replaces
                       ? out
                       : c.g.elementwise(Function::add, name, {carried(c, branch, name, x), out}),
                   StreamMark::stream);
    if (branch.joined.exists()) {
      x = c.g.marked(c.norm(branch.joined, c.inside(branch.joined.name), x, {c.hidden}),
                     StreamMark::stream);
    }
    if (branch.masked) {
      x = c.g.marked(c.g.elementwise(Function::scale, name + ".masked", {x}), StreamMark::stream);
    }
  }
  if (shortcut != no_tensor) {
    const std::string name = c.inside("shortcut_residual");
    x = c.g.marked(c.g.elementwise(Function::add, name, {x, shortcut}), StreamMark::stream);
  }
  if (kind.scalar.empty()) return x;
  const TensorId scalar =
      c.g.buffer(c.inside(kind.scalar), c.g.compute_dtype(), {{c.label("one", 1)}});
  return c.g.marked(c.g.elementwise(Function::multiply, c.inside("scaled"), {x, scalar}),
                    StreamMark::stream);
}

void add_to(GraphContext& c, TensorId& sum, TensorId out) {
  sum = sum == no_tensor ? out : c.g.elementwise(Function::add, c.inside("branches"), {sum, out});
}

TensorId parallel(GraphContext& c, const Stack& stack, const LayerKind& kind, TensorId x) {
  TensorId first = no_tensor;
  TensorId sum = no_tensor;
  for (const Branch& branch : kind.branches) {
    c.refuse_if(branch.joined.exists(), "a norm of the stream after parallel branches");
    if (branch.before.exists() || first == no_tensor) {
      const TensorId input = input_of(c, stack, branch, x);
      if (first == no_tensor) first = input;
      add_to(c, sum, run_branch(c, branch, input, x));
    } else {
      add_to(c, sum, run_branch(c, branch, first, x));
    }
  }
  return c.g.marked(c.g.elementwise(Function::add, c.inside("residual"), {x, sum}),
                    StreamMark::stream);
}

TensorId around_streams(GraphContext& c, const Stack& stack, const LayerKind& kind, TensorId x) {
  const AltUp& altup = *kind.altup;
  const TensorId predictions = predict_streams(c, altup, x);
  TensorId one = active_stream(c, altup, predictions);
  for (std::size_t i = 0; i + 1 < kind.branches.size(); ++i) {
    const Branch& branch = kind.branches[i];
    const TensorId input = input_of(c, stack, branch, one);
    const TensorId laurel = branch.laurel ? add(c, *branch.laurel, input) : no_tensor;
    const TensorId out = run_branch(c, branch, input, one);
    const std::string name = c.inside(fmt::format("{}_residual", word(kind, branch)));
    one = c.g.marked(c.g.elementwise(Function::add, name, {one, out}), StreamMark::stream);
    if (laurel == no_tensor) continue;
    const std::string sum = c.inside("with_laurel");
    one = c.g.elementwise(Function::scale, sum + ".scaled",
                          {c.g.elementwise(Function::add, sum, {one, laurel})});
  }
  const TensorId corrected = correct_streams(c, altup, predictions, one);
  const TensorId first = first_scaled(c, altup, corrected);
  const TensorId out = run_branch(c, kind.branches.back(), first, first);
  return c.g.marked(add_to_streams(c, altup, corrected, out), StreamMark::stream);
}

// Branches between streams of hyper-connections.
TensorId between_streams(GraphContext& c, const Stack& stack, const LayerKind& kind, TensorId x) {
  for (const Branch& branch : kind.branches) {
    SketchGraph s(c, c.layer);
    const Axes streams = stream_axes(s, *stack.hyper, c.g.label_size(c.hidden));
    const HyperMaps maps = read_streams(s, *stack.hyper, branch.maps, s.enter(x, streams));
    const TensorId read = s.tensor(maps.read);
    const TensorId out = run_branch(c, branch, input_of(c, stack, branch, read), read);
    x = c.g.marked(
        s.tensor(write_streams(s, *stack.hyper, maps, s.enter(out, s.axes_of(maps.read)))),
        StreamMark::stream);
  }
  return x;
}

}  // namespace

TensorId spread_streams(GraphContext& c, const HyperConnections& hyper, TensorId x) {
  SketchGraph s(c, hyper.head);
  const Axes streams = stream_axes(s, hyper, c.g.label_size(c.hidden));
  const Axes one{streams[0], streams[1], streams[3]};
  return c.g.marked(s.tensor(s.copy(s.expand(s.enter(x, one), streams), streams)),
                    StreamMark::stream);
}

TensorId gather_streams(GraphContext& c, const HyperConnections& hyper, TensorId x) {
  SketchGraph s(c, hyper.head);
  const Axes streams = stream_axes(s, hyper, c.g.label_size(c.hidden));
  return c.g.marked(s.tensor(leave_streams(s, hyper, s.enter(x, streams))), StreamMark::stream);
}

TensorId add_layer(GraphContext& c, const Stack& stack, const LayerKind& kind, TensorId x) {
  if (stack.hyper) return between_streams(c, stack, kind, x);
  if (kind.altup) return around_streams(c, stack, kind, x);
  return kind.parallel ? parallel(c, stack, kind, x) : sequential(c, stack, kind, x);
}

}  // namespace shardsim::models
