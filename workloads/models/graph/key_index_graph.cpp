#include "workloads/models/graph/key_index_graph.hpp"

#include <algorithm>
#include <utility>

namespace shardsim::models {

void choose_keys(GraphContext& c, const LatentAttention& a, const std::string& module, TensorId x,
                 TensorId latent, LabelId rank) {
  const KeyIndex& index = *a.index;
  c.note(
      "attention computes the keys that the index picks, as kernels for sparse attention do; "
      "the index has no gradient");
  const std::string at = GraphContext::inside(module, index.name);
  const LabelId heads = c.label("index_heads", index.heads);
  const LabelId dim = c.label("index_dim", index.head_dim);
  const auto project = [&](const std::string& name, TensorId from, const Dim& out, LabelId in,
                           Dims to) {
    const std::string full = GraphContext::inside(at, name);
    const TensorId weight = c.g.untrained_parameter(full + ".weight", {out, {in}});
    return c.g.linear(full, from, weight, std::move(to));
  };
  const auto layer_norm = [&](const std::string& name, TensorId of, LabelId over) {
    const std::string norm = GraphContext::inside(at, name);
    return c.g.norm(Function::layer_norm, norm, of,
                    {c.g.untrained_parameter(norm + ".weight", {{over}}),
                     c.g.untrained_parameter(norm + ".bias", {{over}})},
                    {over});
  };
  if (!index.input_norm.empty()) latent = layer_norm(index.input_norm, latent, rank);
  if (!index.learned_scale.empty()) {
    for (const char* number : {".scale", ".bias"}) {
      c.g.untrained_parameter(GraphContext::inside(at, index.learned_scale) + number, {{heads}});
    }
  }
  const TensorId q =
      project(index.q, latent, {heads, dim}, rank, {{c.batch}, {c.sequence}, {heads}, {dim}});
  TensorId k = project(index.k, x, {dim}, c.hidden, {{c.batch}, {c.sequence}, {dim}});
  k = layer_norm(index.k_norm, k, dim);
  const TensorId weights =
      project(index.weights, x, {heads}, c.hidden, {{c.batch}, {c.sequence}, {heads}});
  const LabelId seen = c.is_decoding() ? c.seen_tokens() : c.key_sequence;
  const Dims result{{c.batch}, {c.sequence}, {seen}};
  TensorId sums = no_tensor;
  if (c.options.cache) {  // heads' scores stay within a kernel
    const TensorId kept = c.keep(at + ".keys", {k}, {{c.batch}, {c.sequence}, {dim}});
    sums = c.is_decoding()
               ? c.g.linear(at + ".scores", q, kept, result, weights)
               : c.g.product_with_all(at + ".scores", q, k, result, c.sequence, seen, weights);
  } else {
    const TensorId scores = c.g.product_with_all(
        at + ".scores", q, k, {{c.batch}, {c.sequence}, {heads}, {seen}}, c.sequence, seen);
    sums = c.g.linear(at + ".sums", scores, weights, result);
  }
  const LabelId picked = c.label("chosen_keys", std::min(c.g.label_size(seen), a.chosen));
  c.g.top_k(at + ".top_k", sums, seen, picked);
}

}  // namespace shardsim::models
