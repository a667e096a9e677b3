// Transformers that take noise off latents, under diffusers' names; their patches are rows.
//
// Dit (arXiv:2212.09748): blocks of attention and an MLP, both modulated by the time and a class;
// diffusers has an embedding of both in every block, and the first block's is computed once more
// for the output.
//
// JointTransformer (MMDiT, arXiv:2403.03206; Stable Diffusion 3 and 3.5): rows of the image and of
// a text, each with its own norms, projections and MLP, attend to each other in one attention; the
// last block drops the text's rows. `dual` blocks attend among the image's rows once more.
// FLUX.1 has rotary positions and, behind these blocks, `single` ones of both rows together, in
// which attention and an MLP read the same and one product puts both onto the rows.
//
// Example: DiT-XL/2 at 256: latents of 32 x 32 x 4, 256 rows of 1152, 28 blocks of 16 heads.
// SD3 medium: 64 x 64 patches and 333 tokens are 4429 rows of 1536 in each of 24 attentions.
#pragma once

#include <string>
#include <vector>

#include "workloads/networks/image_step.hpp"

namespace shardsim::models {

struct Dit {
  std::int64_t in = 4;
  std::int64_t out = 4;
  std::int64_t side = 32;
  std::int64_t patch = 2;
  std::int64_t layers = 28;
  std::int64_t heads = 16;
  std::int64_t head_dim = 72;
  std::int64_t classes = 1000;  // and one for none
  std::string activation = "gelu_pytorch_tanh";
  bool qkv_bias = true;
  double dropout = 0;

  bool operator==(const Dit&) const = default;
};

struct JointTransformer {
  std::int64_t in = 16;
  std::int64_t out = 16;
  std::int64_t side = 128;
  std::int64_t patch = 2;
  std::int64_t layers = 18;
  std::int64_t heads = 18;
  std::int64_t head_dim = 64;
  std::int64_t text_width = 4096;
  std::int64_t context_width = 1152;  // of the text's rows: the image's
  std::int64_t pooled_width = 2048;
  std::int64_t positions = 96;  // a side of the table of positions, a buffer
  std::int64_t text = 333;      // tokens: CLIP's 77 and T5's 256
  bool qk_norm = false;
  std::vector<std::int64_t> dual{};  // blocks that attend twice
  std::int64_t single = 0;           // blocks of one stream; without any the last drops the text
  bool packed = false;               // latents come as rows of patches; rotary positions
  bool guidance = false;             // an embedding of it beside the time's

  [[nodiscard]] std::int64_t hidden() const { return heads * head_dim; }

  bool operator==(const JointTransformer&) const = default;
};

[[nodiscard]] std::int64_t coarsest(const Dit& net);
[[nodiscard]] std::int64_t coarsest(const JointTransformer& net);
// [batch, patches, patch^2 * out].
Value run(Eager& e, const Dit& net, const ImageStep& step);
Value run(Eager& e, const JointTransformer& net, const ImageStep& step);

}  // namespace shardsim::models
