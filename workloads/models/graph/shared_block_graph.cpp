// A block that layers share (Zamba 2). Its parameters go by the name of the first layer that uses
// it; layers that use it are of one unit, as modules that layers have in common are.
//
//   joined   the stream beside the tokens' embeddings: [b, s, 2 hidden]
//   block    norm, attention, norm, MLP with the layer's own adapters
//   linear   the layer's own [hidden, hidden]: added to what its mixer reads
#include "workloads/layers/shared_block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "workloads/models/graph/graph_context.hpp"

namespace shardsim::models {
namespace {

TensorId embedded_of(const GraphContext& c) {
  const auto found = std::find_if(c.beside.begin(), c.beside.end(),
                                  [](const auto& value) { return value.name == "embedded"; });
  assert(found != c.beside.end());
  return found->id;
}

}  // namespace

TensorId add_adapter(GraphContext& c, const Adapters& adapters, const std::string& list, TensorId x,
                     TensorId projected, const Dim& out) {
  if (adapters.rank == 0) return projected;
  const LabelId rank = c.label("adapter_rank", adapters.rank);
  const std::string pair = fmt::format("{}.{}", list, adapters.used);
  const TensorId narrow =
      c.linear({pair + ".0", {rank}, {c.read_width()}}, x, {{c.batch}, {c.sequence}, {rank}});
  const TensorId wide = c.linear({pair + ".1", out, {rank}}, narrow, c.g.dims_of(projected));
  return c.g.elementwise(Function::add, pair + ".added", {projected, wide});
}

TensorId add_shared_block(GraphContext& c, const SharedBlock& block, TensorId x) {
  c.note(
      "layers that share a block are of the unit of what is no layer; each adds to its gradients");
  const std::string own = c.layer;
  c.layer = block.first.empty() ? c.inside(block.name) : block.first;
  const LabelId both = c.label("stream_and_embedded", 2 * c.g.label_size(c.hidden));
  const TensorId joined = c.g.concatenate(own + ".joined", {x, embedded_of(c)},
                                          {{c.batch}, {c.sequence}, {both}}, {both, c.hidden});
  c.reads = both;
  TensorId out = c.norm(block.before, c.inside(block.before.name), joined, {both});
  {
    const GraphBuilder::Within module(c.g, OpModule::attention);
    out = add(c, block.attention, out);
  }
  c.reads.reset();
  {
    const GraphBuilder::Within module(c.g, OpModule::mlp);
    out = add(c, block.mlp, c.norm(block.between, c.inside(block.between.name), out, {c.hidden}));
  }
  c.layer = own;
  const LabelId in = c.label("shared_width", c.g.label_size(c.hidden));
  const std::string name = c.inside(block.linear);
  const TensorId seen =
      c.g.slices(name + ".input", out, {{name + ".input", {{c.batch}, {c.sequence}, {in}}}},
                 {c.hidden, in})
          .front();
  return c.linear({name, {c.hidden}, {in}}, seen, c.stream());
}

}  // namespace shardsim::models
