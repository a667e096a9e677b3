// What a model is made of and what a step of it costs, from its description alone.
//
//   ModelCounts n = count(spec, {.batch = 1, .sequence = 4096});
//   n.total_parameters, n.forward_flops, n.saved_bytes, ...
//
// The walk runs the description's components in order on an Eager, which see. A step is forward and
// loss in training mode: bf16 parameters and activations, the configuration's dropout, no cache; a
// language model's loss is the cross entropy of its logits in fp32.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/eager/eager.hpp"
#include "workloads/models/spec.hpp"

namespace shardsim::models {

// `sequence` of a network are the tokens of the text beside each image.
struct Point {
  std::int64_t batch = 1;
  std::int64_t sequence = 1;
  std::optional<std::int64_t> target{};  // tokens that a decoder beside an encoder reads
  std::optional<std::int64_t> image{};   // a side of what a network reads; its own where not given
  AttentionKernel attention = AttentionKernel::fused;
};

// One of a stack's layers: its own part of each figure.
struct LayerCounts {
  std::string prefix;  // "model.layers.3"
  std::string kind;
  std::int64_t parameters = 0;
  std::int64_t active_parameters = 0;
  std::int64_t forward_flops = 0;
  std::int64_t backward_flops = 0;
  std::int64_t saved_bytes = 0;
  std::int64_t cache_bytes_per_token = 0;
  std::int64_t state_bytes = 0;
};

struct ModelCounts {
  std::vector<Parameter> parameters;
  std::vector<Buffer> buffers;
  std::vector<std::vector<std::string>> tied;
  std::int64_t total_parameters = 0;
  std::int64_t active_parameters = 0;     // routed ones by the share that a token visits
  std::int64_t embedding_parameters = 0;  // of every module of embedding, shared tables again
  OperatorFlops forward, backward;        // by ATen operator
  std::int64_t forward_flops = 0;
  std::int64_t backward_flops = 0;
  std::int64_t scan_flops = 0;  // of forward, by formula, in no total
  std::vector<Saved> saved;
  std::int64_t saved_bytes = 0;
  std::int64_t cache_bytes_per_token = 0;  // keys and values
  std::int64_t state_bytes = 0;            // per sequence
  std::vector<LayerCounts> layers;
};

// As many tokens as the shortest table of learned positions has rows for, and as go evenly into
// windows and blocks; where there is no table, as many as can be counted.
[[nodiscard]] std::int64_t most_positions(const ModelSpec& spec);

// Throws InputError, at `place`, for sizes beyond what can be counted.
[[nodiscard]] ModelCounts count(const ModelSpec& spec, const Point& point, const Place& place);

}  // namespace shardsim::models
