// Mappings that praxis layers derive from the one that their user gives.
//
//   pipeline of 4 stages                  prefix [4], split ["stage"]
//   circular, 2 repeats of 4 stages       prefix [2, 4], split [null, "stage"]
//   fused qkv, quantized, w [D, N, H]     w [null, D, N, H], its scale and bias [null, N, H]
//     with N and H combined, w [D, NH]    w [null, D, NH], its scale and bias [null, NH]
//   grouped queries with one kv head      kv weights whole
//
// Source: google/praxis praxis/layers/pipeline.py, quantization/attentions.py (at 0219aeb) and its
// test, grouped_query_attention_test.py.
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

// CombinedQKVProjectionLayer, of the mapping of one projection; the dimension of size 3 in front is
// whole. With `combine_dims` (attention_combine_dims) heads and their width are one dimension; then
// a mapping of three loses its nulls, a leading one too, before it is taken for [D, NH]:
//
//   [null, "data", "mdl"]  ->  w [null, data, mdl], b [null, mdl], but scale [null, data]
//
// The scale is read from the mapping as it was given, which is the original's defect; from a
// mapping of two all agree. Throws RuleError (AssertionError) when other than three entries, or
// two, are left.
[[nodiscard]] FusedQkvSplit fused_qkv_split(const SplitDims& projection, bool combine_dims,
                                            const Place& place);

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
