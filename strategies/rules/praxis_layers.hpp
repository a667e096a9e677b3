// Mappings that praxis layers derive from the one that their user gives.
//
//   pipeline of 4 stages                  prefix [4], split ["stage"]
//   circular, 2 repeats of 4 stages       prefix [2, 4], split [null, "stage"]
//   fused qkv, quantized, w [D, N, H]     w [null, D, N, H], its scale and bias [null, N, H]
//   grouped queries with one kv head      kv weights whole
//
// Source: google/praxis praxis/layers/pipeline.py, quantization/attentions_test.py,
// grouped_query_attention_test.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "strategies/rules/praxis_split_dims.hpp"

namespace shardsim {

// What stacking puts before a weight's own shape.
struct RepeatPrefix {
  std::vector<std::int64_t> sizes;
  SplitDims split;
};

// LayerwiseShardablePipelined, and its circular variant when `repeats` is more than 1 or
// `is_circular`: a circular pipeline of one repeat has the dimension of size 1.
[[nodiscard]] RepeatPrefix pipeline_prefix(std::int64_t stages, std::int64_t repeats,
                                           bool is_circular, const std::string& stage_axis);

struct FusedQkvSplit {
  SplitDims weight;
  SplitDims scale;  // of the quantized weight, one per output
  SplitDims bias;
};

// Of the mapping of one projection; the dimension of size 3 in front is whole. Throws RuleError
// (AssertionError) for an empty mapping.
[[nodiscard]] FusedQkvSplit fused_qkv_split(const SplitDims& projection, const Place& place);

struct GroupedQuerySplit {
  SplitDims q_weight;     // [d, n, h]; the output projection has it too
  SplitDims kv_weight;    // [d, k, h]
  SplitDims queries;      // [b, t, n, h]
  SplitDims keys_values;  // [b, s, k, h]
};

// `batch_axis` splits the batch, or with `by_sequence` the sequence. Throws RuleError
// (AssertionError) when `q_weight` has not three entries.
[[nodiscard]] GroupedQuerySplit grouped_query_split(const SplitDims& q_weight, bool one_kv_head,
                                                    const std::string& batch_axis, bool by_sequence,
                                                    const Place& place);

}  // namespace shardsim
