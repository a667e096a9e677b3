#include "tests/accuracy/memory_reasons.hpp"

namespace shardsim::test {

const std::map<std::string, std::string>& memory_reasons() {
  static const std::map<std::string, std::string> reasons{
      {"vit-l-16-train-zero1-8-a100-8-b1024-s197-bf16m-rnone-unrolled",
       "an A100 has no bf16 arithmetic: XLA computes GELU in fp32 and keeps 394 MiB of it per "
       "layer "
       "for the backward pass, where the estimate has 197 MiB of bf16."},
      {"mistral-7b-train-fsdp_tp_sp-8x4-v6e-32-b32-s8192-bf16m-rfull",
       "the compiler has the attention scores twice in fp32, in two orders of dimensions (8 GiB "
       "each), and the mask at their size (2 GiB); the estimate has them once, and their bf16 "
       "cotangent (4 GiB)."},
      {"llama3-70b-train-fsdp-256-v5e-256-b256-s2048-bf16m-rfull",
       "over 256 devices the compiler all-reduces gradients whole: that of the output projection "
       "(2004 MiB) is made before the backward loop and lives through it. The estimate keeps the "
       "cotangent of the logits (501 MiB) instead. With the 128256 x 4096 of llama3-8b both are "
       "equally large."},
      {"llama3-8b-train-fsdp-32-v5e-32-b32-s4096-bf16m-rfull-L16",
       "the compiler for v5e makes the gradient of the output projection before the backward loop, "
       "that for v5p after it, from the same program; the estimate keeps the cotangent of the "
       "logits (1002 MiB) through the loop, as on v5p."}};
  return reasons;
}

}  // namespace shardsim::test
