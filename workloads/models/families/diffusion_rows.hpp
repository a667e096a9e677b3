// What transformers that take noise off latents have in common, as diffusers' classes name it: an
// embedding of the time, modulated norms, attention of one kind of rows to themselves, to others or
// of two kinds to both together.
//
//   const Ref time = time_embedding(d, "time_embedder", 256, hidden);
//   const Ref by = d.linear({.name = "norm1.linear", .out = 6 * hidden, .parts = 6}, silu(time));
//   Ref rows = modulated(d, d.norm(plain_norm("norm1.norm"), x), {by, 6}, 0, 1);
//   x = gated(d, x, attend_rows(d, {.name = "attn1", .heads = 24, .head_dim = 128}, rows, rows),
//             {by, 6}, 2);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/models/families/families.hpp"
#include "workloads/networks/blueprint.hpp"

namespace shardsim::models {

[[nodiscard]] inline Norm plain_norm(std::string name) {
  return {NormKind::layer_fixed, std::move(name)};
}

// linear_1, silu, linear_2 of numbers that say the time; of any vector.
Ref two_products(Draft& d, const std::string& name, std::int64_t width, Ref x, bool bias = true,
                 const std::string& activation = "silu");
Ref time_embedding(Draft& d, const std::string& name, std::int64_t numbers, std::int64_t width,
                   bool bias = true);

// A vector from the time, a guidance and a pooled text.
Ref time_and_text(Draft& d, const std::string& name, std::int64_t hidden, bool guidance,
                  const RowsInput& pooled);

// silu and a product of as many parts, "NAME.linear".
Ref modulation(Draft& d, const std::string& name, std::int64_t parts, std::int64_t hidden,
               Ref condition, bool bias = true);
// What a modulation made: vectors, by their numbers.
struct Parts {
  Ref all = 0;
  std::int64_t of = 6;
};
// x (1 + scale) + shift, and x + gate * out.
Ref modulated(Draft& d, Ref x, const Parts& by, std::int64_t shift, std::int64_t scale);
Ref gated(Draft& d, Ref x, Ref out, const Parts& by, std::int64_t gate);
// gate * out + x, which has the layout of the former.
Ref gated_first(Draft& d, Ref x, Ref out, const Parts& by, std::int64_t gate);
// The norm of what leaves, of scale and shift in this order, or the other way round.
Ref modulated_end(Draft& d, const std::string& name, const Norm& norm, Ref x, Ref condition,
                  bool bias = true, bool shift_first = false);

// A module of attention, and its projections.
struct RowAttention {
  std::string name;
  std::int64_t heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t kv_heads = 0;  // where heads share keys; 0: as many
  bool bias = true, o_bias = true;
  NormKind norm = NormKind::none;  // of queries and keys: "norm_q", "norm_k"
  bool norm_whole = false;         // over all heads together
  bool norm_bias = false;
  std::optional<Turned> turned{};  // `of` is of a text's table alone
  bool by_heads = false;           // AttendHeads
  double dropout = 0;
  std::int64_t out = 0;  // 0: all heads' size
  std::string o = "to_out.0";
  std::string q = "to_q", k = "to_k", v = "to_v";

  [[nodiscard]] std::int64_t width() const { return heads * head_dim; }
};

// One of its projections by heads; `norm` names its norm, empty has none.
Ref heads_of(Draft& d, const RowAttention& a, const std::string& module, const std::string& norm,
             Ref x);
// Queries of x, keys and values of `states`.
Ref attend_rows(Draft& d, const RowAttention& a, Ref x, Ref states);

// Of rows to themselves, without a softmax.
Ref attend_linearly(Draft& d, const RowAttention& a, Ref x);

// Rows of an image and of a text that attend to both. Rows lie in this order where they are joined.
enum class JointOrder : std::uint8_t { image_first, text_first };
enum class JointTurn : std::uint8_t { none, both_before, both_joined, image_only };
struct JointAttention {
  RowAttention rows{};
  JointOrder order = JointOrder::text_first;
  JointTurn turn = JointTurn::none;
  bool keeps_text = true;    // the text's rows have a result
  bool copies_parts = true;  // before they are projected
  std::string text_q = "add_q_proj", text_k = "add_k_proj", text_v = "add_v_proj";
  std::string text_q_norm = "norm_added_q", text_k_norm = "norm_added_k";
  std::string text_o = "to_add_out";
};
struct JointRows {
  Ref image = 0, text = 0;
};
JointRows attend_jointly(Draft& d, const JointAttention& a, const JointRows& x);

// FeedForward: "NAME.net.0.proj", an activation, "NAME.net.2".
struct FeedForwardRows {
  std::string name = "ff";
  std::int64_t hidden = 0;
  std::int64_t width = 0;
  std::string activation = "gelu_pytorch_tanh";
  bool bias = true;
  bool gate = false;  // the first product has a gate in its second half, which the activation is of
  double dropout = 0;
  double last_dropout = 0;
};
Ref feed_forward(Draft& d, const FeedForwardRows& f, Ref x);
// up and gate of one product, the first half activated: "NAME.linear_in", "NAME.linear_out".
Ref silu_gated(Draft& d, const std::string& up, const std::string& down, std::int64_t width,
               std::int64_t hidden, bool bias, Ref x);

[[nodiscard]] Norm end_norm(std::int64_t hidden);  // of modulated_end: "norm", without parameters

// diffusers' activation_fn in the words of transformers.
[[nodiscard]] std::string activation_of(const Config& c, std::string_view key,
                                        std::string_view otherwise);

// Of a file without "num_layers" and the like, which diffusers leaves out.
[[nodiscard]] std::int64_t layers_of(const Config& c, std::string_view key, std::int64_t otherwise);
[[nodiscard]] ModelSpec drafted(Draft& d, Blueprint about);

// What a file may say of what enters, in CogVideoX's words: latents' frames, rows, columns.
struct Canvas {
  std::int64_t frames = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};
[[nodiscard]] Canvas read_canvas(const Config& c, Canvas usual);
// Patches of a few frames each (frames, rows, columns) as rows; a convolution that steps by its own
// size.
Ref video_rows(Draft& d, const std::string& name, std::int64_t channels, std::int64_t hidden,
               const std::vector<std::int64_t>& patch, const Canvas& canvas, bool copied);

}  // namespace shardsim::models
