// Norms, each as its class in transformers computes it: what is kept for the backward pass depends
// on where the class changes type. T tokens of width h, in bf16:
//
//   kind        computes                                keeps
//   rms         weight * (x32 / rms(x32)).bf16          4Th (x32) + 4T + 2Th
//   rms_wide    (weight * (x32 / rms(x32))).bf16        4Th + 4T + 4Th
//   rms_cast    the same, weight cast to fp32           4Th + 4T + 4Th + 4h    Nemotron-H
//   rms_offset  (x32 / rms(x32)) * (1 + weight)         4Th + 4T + 4Th + 4h    Gemma
//   rms_t5      weight * (x / rms(x32)).bf16            4Th + 2Th + 4T + 2Th
//   rms_t5_plain the same without a weight         4Th + 2Th + 4T
//   rms_fused   torch's rms_norm                        2Th (x) + 4T
//   rms_plain   no parameters, else as rms              4Th + 4T
//   rms_fixed   rms_fused without parameters            2Th + 4T
//   scale       x * weight + bias (MobileBERT)          2Th (x)
//   weight      x * weight (praxis, of queries)         2Th (x)
//   layer       torch's layer_norm                      2Th (x) + 8T
//   layer_wide  mean and variance by hand               4Th + 4Th + 4T + 4Th + 4h    Cohere
//   layer_cast  layer_wide, cast before the weight      4Th + 4Th + 4T + 2Th         DeBERTa 1
//   layer_by_hand the same in x's type, without casts  2Th + 2T + 2Th                I-BERT
//   layer_plain no parameters, in fp32                  4Th + 8T                     OLMo
//   layer_fixed layer without parameters                2Th + 8T
//   layer_apart layer_fixed, then weight and bias     2Th + 8T + 2Th                Chameleon
//   layer_offset layer with 1 + weight                  2Th + 8T + 2h                Nemotron
//
// Example: Llama 3.1 8B, T = 4096, h = 4096: 64 MiB + 16 KiB + 32 MiB for each of its norms.
#pragma once

#include <string>

#include "workloads/eager/eager.hpp"

namespace shardsim::models {

enum class NormKind : std::uint8_t {
  none,
  rms,
  rms_wide,
  rms_cast,
  rms_offset,
  rms_t5,
  rms_t5_plain,
  rms_fused,
  rms_plain,
  rms_fixed,
  scale,
  weight,
  layer,
  layer_wide,
  layer_cast,
  layer_by_hand,
  layer_plain,
  layer_fixed,
  layer_apart,
  layer_offset
};

struct Norm {
  NormKind kind = NormKind::none;
  std::string name;       // of the module
  bool bias = false;      // of layer, layer_cast, layer_apart and layer_offset
  Shape weight_shape{};   // where it is not the width of x
  bool by_power = false;  // the mean to the power -1/2 keeps the mean, too: 4T more (Gemma 4)

  [[nodiscard]] bool exists() const { return kind != NormKind::none; }
  bool operator==(const Norm&) const = default;
};

[[nodiscard]] std::string_view name_of(NormKind kind);
// x itself where there is no norm.
Value run(Eager& e, const Norm& norm, const Value& x);

}  // namespace shardsim::models
