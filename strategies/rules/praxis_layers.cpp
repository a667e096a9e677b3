#include "strategies/rules/praxis_layers.hpp"

#include <fmt/format.h>

#include <utility>

#include "sharding/rule_error.hpp"

namespace shardsim {

RepeatPrefix pipeline_prefix(std::int64_t stages, std::int64_t repeats, bool is_circular,
                             const std::string& stage_axis) {
  RepeatPrefix prefix;
  if (is_circular || repeats > 1) {
    prefix.sizes.push_back(repeats);
    prefix.split.emplace_back();
  }
  prefix.sizes.push_back(stages);
  prefix.split.push_back({stage_axis, false, {}});
  return prefix;
}

FusedQkvSplit fused_qkv_split(const SplitDims& projection, bool combine_dims, const Place& place) {
  constexpr std::size_t separate_rank = 3;
  constexpr std::size_t combined_rank = 2;
  SplitDims own = projection;
  if (combine_dims && own.size() == separate_rank) std::erase(own, SplitDim{});
  const std::size_t rank = combine_dims ? combined_rank : separate_rank;
  if (own.size() != rank) {
    throw RuleError(
        "AssertionError", place,
        fmt::format("a mapping of {} entries for a projection of {} dimensions", own.size(), rank));
  }
  FusedQkvSplit split;
  split.weight = {SplitDim{}};
  split.weight.insert(split.weight.end(), own.begin(), own.end());
  split.bias = {SplitDim{}};
  split.bias.insert(split.bias.end(), own.begin() + 1, own.end());
  split.scale = {SplitDim{}, projection[1]};
  if (!combine_dims) split.scale.push_back(projection[2]);
  return split;
}

GroupedQuerySplit grouped_query_split(const SplitDims& q_weight, bool one_kv_head,
                                      const std::string& batch_axis, bool by_sequence,
                                      const Place& place) {
  if (q_weight.size() != 3) {
    throw RuleError("AssertionError", place,
                    fmt::format("a mapping of {} entries for [d, n, h]", q_weight.size()));
  }
  GroupedQuerySplit split;
  split.q_weight = q_weight;
  split.kv_weight = one_kv_head ? SplitDims(3) : q_weight;
  SplitDim batch{batch_axis, false, {}};
  SplitDim sequence;
  if (by_sequence) std::swap(batch, sequence);
  split.queries = {batch, sequence, q_weight[1], q_weight[2]};
  split.keys_values = {batch, sequence, split.kv_weight[1], split.kv_weight[2]};
  return split;
}

}  // namespace shardsim
