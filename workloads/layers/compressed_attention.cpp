#include "workloads/layers/compressed_attention.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardsim::models {
namespace {

// Of T queries with the last w tokens each, w <= T: T w - w^2 / 2 pairs, as of a causal mask.
double pairs_within(std::int64_t queries, std::int64_t window) {
  const auto t = static_cast<double>(queries);
  const auto w = static_cast<double>(std::min(window, queries));
  return t * w - w * w / 2;
}

class EntrySketch {
 public:
  EntrySketch(Sketch& s, const Compressor& k, std::int64_t dim, std::int64_t rotary_dims)
      : s_(s),
        k_(k),
        dim_{"entry_dim", dim},
        wide_{"entry_products", k.overlaps() ? 2 * dim : dim},
        rotary_dims_(rotary_dims) {}

  // [batch, entries, entry_dim] of x; of one token of inference the entry that it ends. None where
  // there are fewer tokens than one is made of: products are made, and nobody reads them.
  Node build(Node x) {
    const Axis held{"entry_tokens", k_.tokens};
    const Axis entries{"entries", s_.tokens() / k_.tokens};
    const bool is_none = entries.size == 0 && !s_.is_decoding();
    if (is_none) s_.forward_alone(true);
    const Node values = s_.linear({"kv_proj"}, x, {wide_});
    const Node gates = s_.linear({"gate_proj"}, x, {wide_});
    const Node bias = s_.parameter("position_bias", {held, wide_});
    if (is_none) {
      s_.idle_parameter("kv_norm.weight", {dim_});
      s_.forward_alone(false);
      return no_node;
    }
    if (s_.is_decoding()) return step(values, gates, bias, held);
    leave(values, gates, held);
    const Axes chunks{s_.batch(), entries, held, wide_};
    Node of = s_.view(values, chunks);
    Node open = s_.add(s_.view(gates, chunks), bias);
    Axis over = held;
    if (k_.overlaps()) {
      over = {"two_entries_tokens", 2 * k_.tokens};
      of = overlapping(of, entries, held, over);
      open = overlapping(open, entries, held, over);
    }
    const Node sum = s_.mean(s_.multiply(of, s_.softmax(open, over, /*fp32=*/true)), over);
    return finished(s_.view(sum, {s_.batch(), entries, dim_}), entries, /*by_example=*/true);
  }

 private:
  // The first half of the tokens' products counts for the next entry.
  Node overlapping(Node chunks, const Axis& entries, const Axis& held, const Axis& both) {
    const Axes half{s_.batch(), entries, held, dim_};
    return s_.join(s_.parts(chunks, {half, half}), {s_.batch(), entries, both, dim_});
  }

  Node finished(Node sum, const Axis& entries, bool by_example) {
    return s_.turn_last(s_.norm({NormKind::rms_wide, "kv_norm"}, sum, {dim_}), rotary_dims_,
                        entries, by_example);
  }

  // Products of values and gates of tokens that are no entry yet; of overlapping ones also those
  // of the last entry, which count for the next.
  [[nodiscard]] Axes state(const Axis& held) const {
    return {s_.batch(),
            {"value_gate", 2},
            held,
            {"held_products", k_.overlaps() ? 3 * dim_.size : dim_.size}};
  }

  void leave(Node values, Node gates, const Axis& held) {
    const Axes axes = state(held);
    s_.cache(0, 2 * elements_of({axes[1], axes[2], axes[3]}));
    if (!s_.is_inference()) return;
    const Axes last{s_.batch(), held, axes[3]};
    s_.leave("held", s_.join({s_.view(values, last), s_.view(gates, last)}, axes));
  }

  Node step(Node values, Node gates, Node bias, const Axis& held) {
    const Node entry = s_.step({.name = "held",
                                .operands = {values, gates, bias},
                                .result = {s_.batch(), s_.sequence(), dim_},
                                .state = state(held),
                                .operations = 4});
    return finished(entry, s_.sequence(), /*by_example=*/true);
  }

  Sketch& s_;
  const Compressor& k_;
  Axis dim_, wide_;
  std::int64_t rotary_dims_;
};

class CompressedSketch {
 public:
  CompressedSketch(Sketch& s, const CompressedAttention& a, Node x)
      : s_(s),
        a_(a),
        x_(x),
        hidden_(s.axes_of(x).back()),
        rank_{"q_rank", a.q_rank},
        groups_{"head_groups", a.groups, AxisRole::heads},
        heads_{"heads_of_group", a.heads / a.groups, AxisRole::group},
        dim_{"head_dim", a.head_dim} {}

  Node build() {
    const Node latent =
        s_.norm({NormKind::rms_wide, "q_a_norm"}, s_.linear({"q_a_proj"}, x_, {rank_}), {rank_});
    const Node raised = s_.linear({"q_b_proj"}, latent, {groups_, heads_, dim_});
    s_.keeps_numbers(DType::bf16, {s_.batch(), s_.sequence(), groups_, heads_});  // of the norm
    const Node q = turned(s_.norm({NormKind::rms_t5_plain, "q_b_norm"}, raised, {dim_}));
    Node keys = turned(
        s_.norm({NormKind::rms_wide, "kv_norm"}, s_.linear({"kv_proj"}, x_, {dim_}), {dim_}));
    keys = s_.keep("keys", keys, a_.window);
    Axis seen = s_.kept(a_.window);
    double pairs = pairs_within(s_.tokens(), a_.window);
    if (a_.compressor) {
      const Node entries = compressed(latent, pairs);
      if (entries != no_node) {
        const Axis all{"keys_and_entries", seen.size + s_.axes_of(entries)[1].size};
        keys = s_.join({keys, entries}, {s_.batch(), all, dim_});
        seen = all;
      }
    }
    const Axis tokens = s_.sequence();
    const double all_pairs = static_cast<double>(tokens.size) * static_cast<double>(seen.size);
    const Axes of_heads{groups_, heads_};
    Node out = s_.attend("attention", q, keys, keys,
                         {.queries = tokens,
                          .keys = seen,
                          .fraction = s_.is_decoding() ? 1 : std::min(1.0, pairs / all_pairs),
                          .dropout = a_.dropout,
                          .fp32_softmax = false,
                          .sinks = sinks()});
    out = s_.lies(turned(out));
    const Axis narrow{"out_rank", a_.out_rank};
    const Node grouped =
        s_.linear({.name = "o_a_proj", .in = 3, .by_groups = true}, out, {groups_, narrow});
    return s_.linear({.name = "o_b_proj", .in = 2}, s_.lies(grouped), {hidden_});
  }

 private:
  Node turned(Node x) {
    return s_.turn_last(x, a_.rotary_dims, s_.sequence(), /*by_example=*/false);
  }

  Node sinks() { return s_.view(s_.parameter("sinks", {{"heads", a_.heads}}), {groups_, heads_}); }

  // Entries that are attended to, and how many pairs of queries with them there are.
  Node compressed(Node latent, double& pairs) {
    const Sketch::In in(s_, "compressor");
    const Compressor& k = *a_.compressor;
    Node entries = EntrySketch(s_, k, a_.head_dim, a_.rotary_dims).build(x_);
    if (entries == no_node) {
      if (k.index) choose(*k.index, latent);
      return no_node;
    }
    entries = s_.keep_entries("entries", entries, k.tokens);
    const Axis all = s_.axes_of(entries)[1];
    std::int64_t most = all.size;
    if (k.index) {
      choose(*k.index, latent);
      most = std::min(most, k.index->chosen);
      if (s_.is_decoding() && most < all.size) {
        entries = s_.view(entries, {s_.batch(), {"chosen_entries", most}, s_.axes_of(entries)[2]});
      }
    }
    pairs += pairs_within(s_.tokens(), most * k.tokens) / static_cast<double>(k.tokens);
    return s_.view(entries, {s_.batch(), s_.axes_of(entries)[1], dim_});
  }

  // Which entries each query sees.
  void choose(const EntryIndex& index, Node latent) {
    s_.note(
        "attention computes the entries that the index picks, as kernels for sparse attention do; "
        "the index has no gradient");
    const Sketch::In in(s_, "indexer");
    s_.forward_alone(true);
    const Compressor own{a_.compressor->tokens, index};
    Node entries = EntrySketch(s_, own, index.head_dim, a_.rotary_dims).build(x_);
    s_.forward_alone(true);
    const Axis heads{"index_heads", index.heads}, dim{"entry_dim", index.head_dim};
    const Axis tokens = s_.sequence();
    const Node q = turned(s_.linear({"q_b_proj"}, latent, {heads, dim}));
    const Node of_heads = s_.cast(s_.linear({"scorer.weights_proj"}, x_, {heads}), DType::f32);
    if (entries == no_node) return s_.forward_alone(false);
    entries = s_.keep_entries("entries", entries, own.tokens);
    const Axis all = s_.axes_of(entries)[1];
    const Node scores =
        s_.apply(PointFunction::relu, s_.product("scores", s_.cast(q, DType::f32),
                                                 s_.repeated(s_.cast(entries, DType::f32), tokens),
                                                 {s_.batch(), tokens, heads, all}));
    const Node sums = s_.weighted_sum("sums", s_.scaled(scores), s_.scaled(of_heads), heads);
    s_.keeps_numbers(DType::boolean, {tokens, all});
    s_.choose(sums, all, std::min(all.size, index.chosen));
    s_.forward_alone(false);
  }

  Sketch& s_;
  const CompressedAttention& a_;
  Node x_;
  Axis hidden_, rank_, groups_, heads_, dim_;
};

}  // namespace

Node draw(Sketch& s, const CompressedAttention& a, Node x) {
  const Sketch::In in(s, "self_attn");
  return CompressedSketch(s, a, x).build();
}

std::string to_text(const CompressedAttention& a) {
  std::string text = fmt::format("attention of {} heads of {} to one of keys, window {}", a.heads,
                                 a.head_dim, a.window);
  if (!a.compressor) return text;
  text += fmt::format(", entries of {} tokens", a.compressor->tokens);
  if (a.compressor->index) text += fmt::format(", {} of them", a.compressor->index->chosen);
  return text;
}

}  // namespace shardsim::models
