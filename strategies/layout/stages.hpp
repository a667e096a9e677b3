// Which layers each stage of a pipeline has, and where the embedding, the loss and the layers of
// multi-token prediction are.
//
//   30 layers, 4 ranks, embedding and loss count as a layer each: 32 / 4 = 8
//   stage 0  embedding, layers 0-6        stage 2  layers 15-22
//   stage 1  layers 7-14                  stage 3  layers 23-29, loss
//
// Stages are numbered in the order of the model: under a looped schedule chunk v of rank r is stage
// v x ranks + r (strategies/schedule/schedule.hpp), so that layers are dealt chunk by chunk.
//
// Said by:
//   nothing            the same number for every stage; what counts as a layer beside them is taken
//                      off the first and the last stage
//   first, last        layers of the first and last rank, all its chunks; the rest evenly
//   counts             layers per stage, or per rank (of which every chunk gets the same)
//   layout             Megatron's string, layout_string.hpp
//
// Where it does not come out even Megatron refuses, torchtitan gives the first stages one more: a
// Remainder says which. What is published of Megatron's steps often leaves out how layers lay: they
// are then dealt out as Megatron Bridge does (recipes/deepseek, llama and qwen), and a note says
// so. Layers of multi-token prediction and the loss count as layers: DeepSeek-V3's
// 61 are 4 on each of 15 stages and one with MTP and loss. Embedding and loss count as a layer each
// where it comes out even so: Llama 3.1 405B's 126, Qwen3's 94.
//
// Rules and refusals are Megatron-Core 0.20.0's (get_num_layers_to_build,
// get_transformer_layer_offset, TransformerConfig) and torchtitan 0.3.0's
// (_generate_llm_fqn_per_model_part). Layers of MTP are with the loss unless a layout says
// otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace shardsim {

struct StageLayers {
  std::int32_t first = 0;  // of the model's layers, from 0
  std::int32_t count = 0;
  bool embedding = false;
  bool loss = false;
  std::int32_t mtp = 0;

  friend bool operator==(const StageLayers&, const StageLayers&) = default;
};

enum class Remainder : std::uint8_t {
  refused,
  to_first_stages,
  noted  // as Megatron Bridge does, and a note says that Megatron-Core refuses it
};

struct StagesRequest {
  std::int32_t layers = 0;
  std::int32_t mtp_layers = 0;
  std::int32_t ranks = 1;
  // Stages per rank. A layout has its own number; the two must agree.
  std::optional<std::int32_t> virtual_stages = {};
  // How many layers the embedding (the loss) counts as; Megatron's flags are 0 or 1.
  std::int32_t embedding_counts = 0;
  std::int32_t loss_counts = 0;
  std::optional<std::int32_t> first = {};
  std::optional<std::int32_t> last = {};
  std::vector<std::int32_t> counts = {};
  std::optional<std::string> layout = {};
  bool by_cost = false;  // counts are still to be found (layout/stage_costs.hpp)
  Remainder remainder = Remainder::refused;
};

// "one-less-at-ends": the first and the last stage have a layer less than the others.
void set_one_less_at_ends(StagesRequest& request);

// In the order of the model. `place` is that of the object with "layers", "ends", ....
[[nodiscard]] std::vector<StageLayers> assign_stages(const StagesRequest& request,
                                                     const Place& place);

}  // namespace shardsim
