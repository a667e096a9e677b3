#include "workloads/layers/block_attention.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace shardsim::models {
namespace {

class BlockSketch {
 public:
  BlockSketch(Sketch& s, const BlockAttention& a)
      : s_(s),
        blocks_{"blocks", s.tokens() / a.block},
        middle_{"middle_blocks", s.tokens() / a.block - 4},
        inner_{"inner_blocks", s.tokens() / a.block - 2},
        rows_{"block", a.block},
        cols_{"block_keys", a.block},
        heads_(heads_axis(a.heads)),
        dim_{"head_dim", a.head_dim},
        block_(a.block),
        random_(a.random),
        casts_mask_(a.casts_mask) {}

  Node build(Node q, Node k, Node v) {
    const Axes one{s_.batch(), rows_, heads_, dim_};
    const Axes many{s_.batch(), middle_, rows_, heads_, dim_};
    const Node blocked = s_.view(q, {s_.batch(), blocks_, rows_, heads_, dim_});
    const std::vector<Node> qs = s_.parts(blocked, {one, one, many, one, one});
    k_ = s_.view(k, {s_.batch(), blocks_, cols_, heads_, dim_});
    v_ = s_.view(v, {s_.batch(), blocks_, cols_, heads_, dim_});
    const Axes picked{s_.batch(), heads_, inner_, {"random_blocks", random_}};
    picked_k_ = gathered(k_, picked);
    picked_v_ = gathered(v_, picked);
    const Node first = of_all(qs[0], s_.seen(k), s_.seen(v));
    const Node second = of_neighbours(qs[1]);
    const Node between = of_middle(qs[2]);
    const Node before_last = of_neighbours(qs[3]);
    const Node last = of_all(qs[4], s_.seen(k), s_.seen(v));
    const Axes rows{s_.batch(), s_.sequence(), heads_, dim_};
    const Node all = s_.join({first, second, between, before_last, last}, rows);
    s_.keeps_numbers(DType::i64, {middle_, {"neighbours", 3}});  // of probabilities put together
    if (casts_mask_) s_.keeps_numbers(DType::bf16, {s_.batch(), s_.sequence()});
    return s_.lies(s_.scaled(all));  // times the mask, which the batch brings
  }

 private:
  [[nodiscard]] Axis keys(std::int64_t blocks) const {
    return {fmt::format("{}_blocks_of_keys", blocks), blocks * block_};
  }

  // Blocks at random for each of all but the first and the last; both gathers keep one index.
  Node gathered(Node blocks, const Axes& numbers) {
    if (numbers_ == no_node) numbers_ = s_.constant(DType::i64, numbers);
    s_.keeps(numbers_);
    s_.keeps(blocks);  // torch.gather keeps what it picks from
    return s_.copy(blocks, {s_.batch(), heads_, inner_, keys(random_), dim_});
  }

  Node of_all(Node q, Node k, Node v) {
    const Node scores = s_.product("outer_scores", s_.lies_by_example(q), s_.lies_by_example(k),
                                   {s_.batch(), heads_, rows_, s_.keys()});
    const Node p = s_.softmax(s_.scaled(scores), s_.keys(), /*fp32=*/false);
    return s_.product("outer_context", p, s_.lies_by_example(v), {s_.batch(), rows_, heads_, dim_});
  }

  // The second block, and the last but one.
  Node of_neighbours(Node q) {
    const Axis seen = keys(4 + random_);
    const Axes rows{s_.batch(), heads_, seen, dim_};
    const Node k = s_.copy(k_, rows);
    const Node v = s_.copy(v_, rows);
    const Node scores =
        s_.product("near_scores", s_.lies_by_example(q), k, {s_.batch(), heads_, rows_, seen});
    const Node p = s_.softmax(s_.scaled(scores), seen, /*fp32=*/false);
    return s_.product("near_context", p, v, {s_.batch(), rows_, heads_, dim_});
  }

  // Scores of three neighbours, of what is picked at random, of the first and of the last block.
  Node of_middle(Node q) {
    const Axis band = keys(3), random = keys(random_), seen = keys(5 + random_);
    const Axes near{s_.batch(), heads_, middle_, band, dim_};
    const Axes far{s_.batch(), heads_, middle_, random, dim_};
    const Axes end{s_.batch(), cols_, heads_, dim_};
    const Node near_k = s_.copy(k_, near);
    const Node near_v = s_.copy(v_, near);
    const auto scores = [&](const char* name, Node rows, Node k, const Axis& columns) {
      return s_.scaled(s_.product(name, rows, k, {s_.batch(), heads_, middle_, rows_, columns}));
    };
    const auto end_k = [&] { return s_.lies_by_example(s_.view(k_, end)); };
    const auto end_v = [&] { return s_.lies_by_example(s_.view(v_, end)); };
    const Node of_band = scores("band_scores", s_.lies(q), near_k, band);
    const Node of_random =
        scores("random_scores", s_.lies(q), s_.lies(s_.view(picked_k_, far)), random);
    const Node of_first = scores("first_scores", s_.lies_by_example(q), end_k(), cols_);
    const Node of_last = scores("last_scores", s_.lies_by_example(q), end_k(), cols_);
    const Axes all{s_.batch(), heads_, middle_, rows_, seen};
    const Node p = s_.softmax(s_.join({of_first, of_band, of_random, of_last}, all), seen,
                              /*fp32=*/false);
    const auto columns = [&](const Axis& axis) {
      return Axes{s_.batch(), heads_, middle_, rows_, axis};
    };
    const std::vector<Node> ps =
        s_.parts(p, {columns(band), columns(random), columns(cols_), columns(cols_)});
    const Axes result{s_.batch(), middle_, rows_, heads_, dim_};
    Node out = s_.product("band_context", ps[0], near_v, result);
    out =
        s_.add(out, s_.product("random_context", ps[1], s_.lies(s_.view(picked_v_, far)), result));
    out = s_.add(out, s_.product("first_context", ps[2], end_v(), result));
    return s_.add(out, s_.product("last_context", ps[3], end_v(), result));
  }

  Sketch& s_;
  Axis blocks_, middle_, inner_, rows_, cols_, heads_, dim_;
  std::int64_t block_, random_;
  bool casts_mask_;
  Node k_ = no_node, v_ = no_node, picked_k_ = no_node, picked_v_ = no_node, numbers_ = no_node;
};

Node attend_to_all(Sketch& s, const BlockAttention& a, Node q, Node k, Node v) {
  const Axis heads = heads_axis(a.heads), dim{"head_dim", a.head_dim};
  const auto lies = [&](Node node) { return s.lies_by_example(node); };
  const Node scores =
      s.product("scores", lies(q), lies(s.seen(k)), {s.batch(), heads, s.sequence(), s.keys()});
  const Node p = s.dropout(a.dropout, s.softmax(s.scaled(scores), s.keys(), /*fp32=*/false));
  return s.lies(s.product("context", p, lies(s.seen(v)), {s.batch(), s.sequence(), heads, dim}));
}

}  // namespace

Node draw(Sketch& s, const BlockAttention& a, Node x) {
  const Axis heads = heads_axis(a.heads), dim{"head_dim", a.head_dim};
  const bool blocks = a.blocks && s.tokens() > (5 + 2 * a.random) * a.block;
  s.refuse_if(blocks && s.tokens() % a.block != 0,
              fmt::format("a sequence that is no multiple of the block, {}", a.block));
  Node context = no_node;
  {
    const Sketch::In in(s, a.name);
    const Node q = s.linear({"query", a.bias}, x, {heads, dim});
    const Node k = s.linear({"key", a.bias}, x, {heads, dim});
    const Node v = s.linear({"value", a.bias}, x, {heads, dim});
    context = blocks ? BlockSketch(s, a).build(q, k, v) : attend_to_all(s, a, q, k, v);
  }
  return s.linear({a.out, a.out_bias, 2}, context, {s.axes_of(x).back()});
}

std::string to_text(const BlockAttention& a) {
  const std::string seen =
      a.blocks ? fmt::format("blocks of {}, {} at random", a.block, a.random) : "both ways";
  return fmt::format("attention, {} heads of {}, {}", a.heads, a.head_dim, seen);
}

}  // namespace shardsim::models
