#include "workloads/layers/lightning_attention.hpp"

#include <fmt/format.h>

#include <vector>

namespace shardsim::models {
namespace {

// Blocks of one length that do the same: the first finds no state, the last leaves none.
struct LightningRun {
  std::int64_t blocks;
  std::int64_t length;
};

std::vector<LightningRun> runs_of(std::int64_t tokens, std::int64_t block) {
  const std::int64_t blocks = (tokens + block - 1) / block;
  const std::int64_t last = tokens - (blocks - 1) * block;
  if (blocks == 1) return {{1, last}};
  if (blocks == 2) return {{1, block}, {1, last}};
  return {{1, block}, {blocks - 2, block}, {1, last}};
}

class LightningSketch {
 public:
  LightningSketch(Sketch& s, const LightningAttention& a)
      : s_(s),
        heads_(heads_axis(a.heads)),
        dim_{"head_dim", a.head_dim},
        seen_dim_{"seen_head_dim", a.head_dim},
        block_{"block", a.block},
        block_keys_{"block_keys", a.block} {
    const Axis one{"one", 1}, first{"first", 1};
    s.buffer("slope_rate", {heads_, one, first});
    query_decay_ = s.buffer("query_decay", {heads_, block_, one});
    key_decay_ = s.buffer("key_decay", {heads_, block_, one});
    decay_ = s.buffer("diagonal_decay", {one, heads_, block_, block_keys_});
  }

  Node build(const std::vector<LightningRun>& runs, Node q, Node k, Node v, const Axes& rows) {
    std::vector<Axes> of_runs;
    for (std::size_t i = 0; i < runs.size(); ++i) of_runs.push_back(axes_of(runs[i], i));
    const std::vector<Node> qs = s_.parts(q, of_runs);
    const std::vector<Node> ks = s_.parts(k, of_runs);
    const std::vector<Node> vs = s_.parts(v, of_runs);
    std::vector<Node> intra, states;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      intra.push_back(within(of_runs[i], qs[i], ks[i], vs[i]));
      const bool is_read = i + 1 < runs.size() || s_.is_inference();
      states.push_back(state(of_runs[i], ks[i], vs[i], is_read));
    }
    const std::vector<Node> entering = entering_states(of_runs, states);
    if (s_.is_inference()) {
      leave(of_runs.back(), runs.size() > 1 ? entering.back() : no_node, states.back());
    }
    std::vector<Node> outs;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      outs.push_back(s_.add(before(of_runs[i], qs[i], entering[i]), intra[i]));
    }
    return s_.join(outs, rows);
  }

 private:
  [[nodiscard]] Axes axes_of(const LightningRun& run, std::size_t number) const {
    return {s_.batch(), Axis{fmt::format("blocks_{}", number), run.blocks},
            Axis{"block", run.length}, heads_, dim_};
  }

  [[nodiscard]] Node cut(Node table, const Axes& axes) { return s_.view(table, axes); }

  // (q k^T * D) v
  Node within(const Axes& axes, Node q, Node k, Node v) {
    const Axis keys{"block_keys", axes[2].size};
    const Axes of_keys{axes[0], axes[1], keys, axes[3], axes[4]};
    const Node scores =
        s_.product("scores", s_.lies_by_example(q), s_.lies_by_example(s_.view(k, of_keys)),
                   {axes[0], axes[1], heads_, axes[2], keys});
    const Node kept = s_.multiply(scores, cut(decay_, {heads_, axes[2], keys}));
    return s_.product("within_blocks", kept, s_.lies_by_example(s_.view(v, of_keys)), axes);
  }

  // (k * b)^T v
  Node state(const Axes& axes, Node k, Node v, bool is_read) {
    const Node decayed = s_.lies_by_example(s_.multiply(k, cut(key_decay_, {heads_, axes[2]})));
    const Axes of_values{axes[0], axes[1], axes[2], axes[3], seen_dim_};
    const Node values = s_.lies_by_example(s_.view(v, of_values));
    const Axes result{axes[0], axes[1], heads_, dim_, seen_dim_};
    if (is_read) return s_.product("block_states", decayed, values, result);
    s_.unread_product(decayed, values, result);
    s_.keeps(decayed);
    s_.keeps(values);
    return no_node;
  }

  // What is known before each block: nothing, then what all before it left.
  std::vector<Node> entering_states(const std::vector<Axes>& runs,
                                    const std::vector<Node>& states) {
    const Axes none{runs[0][0], runs[0][1], heads_, dim_, seen_dim_};
    std::vector<Node> entering{s_.constant(DType::bf16, none)};
    if (runs.size() == 1) return entering;
    std::int64_t blocks = 0;
    std::vector<Node> left(states.begin(), states.end() - 1);
    std::vector<Axes> wanted;
    for (std::size_t i = 1; i < runs.size(); ++i) {
      blocks += runs[i][1].size;
      wanted.push_back({runs[i][0], runs[i][1], heads_, dim_, seen_dim_});
      for (std::int64_t n = 0; n < runs[i][1].size; ++n) s_.keeps_numbers(DType::bf16, {heads_});
    }
    const Axes all{runs[0][0], {"block_states", blocks}, heads_, dim_, seen_dim_};
    for (const Node node : s_.parts(s_.scaled(s_.join(left, all)), wanted)) {
      entering.push_back(node);
    }
    return entering;
  }

  // What is known behind the last block.
  void leave(const Axes& last, Node entered, Node own) {
    const Node all = entered == no_node ? own : s_.add(own, s_.scaled(entered));
    s_.leave("state", s_.view(all, {last[0], heads_, dim_, seen_dim_}));
  }

  // (q * a) S
  Node before(const Axes& axes, Node q, Node state) {
    const Node decayed = s_.lies_by_example(s_.multiply(q, cut(query_decay_, {heads_, axes[2]})));
    const Axes result{axes[0], axes[1], axes[2], axes[3], seen_dim_};
    return s_.view(s_.product("before_blocks", decayed, state, result), axes);
  }

  Sketch& s_;
  Axis heads_, dim_, seen_dim_, block_, block_keys_;
  Node query_decay_ = no_node, key_decay_ = no_node, decay_ = no_node;
};

// One token: S <- S exp(-r) + k^T v, o = q S.
Node decoded(Sketch& s, const LightningAttention& a, const std::vector<Node>& qkv,
             const Axes& rows) {
  const Axis heads = heads_axis(a.heads), one{"one", 1}, first{"first", 1};
  const Axis block{"block", a.block}, block_keys{"block_keys", a.block};
  const Node rate = s.buffer("slope_rate", {heads, one, first});
  s.buffer("query_decay", {heads, block, one});
  s.buffer("key_decay", {heads, block, one});
  s.buffer("diagonal_decay", {one, heads, block, block_keys});
  return s.step(
      {.name = "state",
       .operands = {qkv[0], qkv[1], qkv[2], rate},
       .result = rows,
       .state = {s.batch(), heads, {"head_dim", a.head_dim}, {"seen_head_dim", a.head_dim}},
       .operations = 5});  // decayed; k v, added; times q, summed
}

}  // namespace

Node draw(Sketch& s, const LightningAttention& a, Node x) {
  const Sketch::In in(s, "self_attn");
  s.note(
      "lightning attention runs as products over all blocks of tokens at once; states of blocks "
      "are added up in one kernel");
  const Axis heads = heads_axis(a.heads);
  const Axis dim{"head_dim", a.head_dim};
  const Axis three{"q_k_v", 3};
  const Axes rows{s.batch(), s.sequence(), heads, dim};
  const Node all = s.activate(a.activation, s.linear({"qkv_proj"}, x, {heads, three, dim}));
  const std::vector<Node> qkv = s.parts(all, {rows, rows, rows});
  const Node out = s.is_decoding()
                       ? decoded(s, a, qkv, rows)
                       : s.lies(LightningSketch(s, a).build(runs_of(s.tokens(), a.block), qkv[0],
                                                            qkv[1], qkv[2], rows));
  s.cache(0, a.heads * a.head_dim * a.head_dim * 2);
  const Node normed = s.norm({NormKind::rms, "norm"}, out, {heads, dim});
  const Node gate = s.apply(PointFunction::sigmoid, s.linear({"output_gate"}, x, {heads, dim}));
  return s.linear({"out_proj", false, 2}, s.multiply(gate, normed), {s.axes_of(x).back()});
}

std::string to_text(const LightningAttention& a) {
  return fmt::format("lightning attention, {} heads of {}, blocks of {}", a.heads, a.head_dim,
                     a.block);
}

}  // namespace shardsim::models
