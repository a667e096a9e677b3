#include "strategies/rules/semantic_axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array fields = {
    Pair{"__BATCH__", "batch_axis"},
    Pair{"__LENGTH__", "sequence_axis"},
    Pair{"__QUERY_LENGTH__", "query_sequence_axis"},
    Pair{"__KV_LENGTH__", "key_sequence_axis"},
    Pair{"__EMBED__", "hidden_state_axis"},
    Pair{"__HEAD__", "head_axis"},
    Pair{"__KV_HEAD__", "kv_head_axis"},
    Pair{"__MLP_INTERMEDIATE__", "mlp_intermediate_axis"},
    Pair{"__VOCAB__", "vocab_axis"},
    Pair{"__EXPERT__", "expert_axis"},
    Pair{"__EXPERT_GATE__", "expert_gate_axis"},
    Pair{"__HEAD_DIM__", "attention_dim_axis"},
    Pair{"__KV_HEAD_DIM__", "attention_kv_dim_axis"},
    Pair{"__BIAS_HEAD_SEQ__", "bias_head_sequence_axis"},
    Pair{"__BIAS_KV_SEQ__", "bias_key_sequence_axis"},
    Pair{"__DATA_PARALLEL__", "data_parallel_axis"},
    Pair{"__FULLY_SHARDED_DATA_PARALLEL__", "fully_sharded_data_parallel_axis"},
    Pair{"__TENSOR_PARALLEL__", "tensor_parallel_axis"},
    Pair{"__SEQUENCE_PARALLEL__", "sequence_parallel_axis"},
    Pair{"__EXPERT_PARALLEL__", "expert_parallel_axis"},
};

constexpr std::array short_names = {
    Pair{"__DP__", "data_parallel_axis"},   Pair{"__FSDP__", "fully_sharded_data_parallel_axis"},
    Pair{"__TP__", "tensor_parallel_axis"}, Pair{"__SP__", "sequence_parallel_axis"},
    Pair{"__EP__", "expert_parallel_axis"},
};

constexpr std::array twins = {
    Pair{"batch_axis", "decode_batch_axis"},
    Pair{"query_sequence_axis", "decode_query_sequence_axis"},
    Pair{"key_sequence_axis", "decode_key_sequence_axis"},
    Pair{"head_axis", "decode_head_axis"},
    Pair{"kv_head_axis", "decode_kv_head_axis"},
    Pair{"attention_dim_axis", "decode_attention_dim_axis"},
    Pair{"attention_kv_dim_axis", "decode_attention_kv_dim_axis"},
};

template <std::size_t n>
std::string_view look_up(const std::array<Pair, n>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Pair& pair) { return pair.first == name; });
  return found == table.end() ? std::string_view() : found->second;
}

std::string checked_name(std::string_view name, const Place& place) {
  constexpr std::string_view blanks = " \t\n\r\f\v";
  const std::size_t begin = name.find_first_not_of(blanks);
  if (begin == std::string_view::npos) {
    throw RuleError("ValueError", place, "the name of a semantic axis is empty");
  }
  return std::string(name.substr(begin, name.find_last_not_of(blanks) - begin + 1));
}

}  // namespace

void SemanticAxes::add(std::string_view name, AxisRule rule, std::optional<AxisRule> generation,
                       bool override_known, const Place& place) {
  const std::string key = checked_name(name, place);
  const bool known =
      key == whole_dimension || !look_up(fields, key).empty() || added_.contains(key);
  if (known && !override_known) {
    throw RuleError("ValueError", place, fmt::format("semantic axis \"{}\" exists already", key));
  }
  if (!generation && rule.name() != nullptr) {
    const std::string_view twin = generation_twin(*rule.name());
    if (!twin.empty()) generation = AxisRule{std::string(twin)};
  }
  added_[key] = std::move(rule);
  added_generation_.erase(key);
  if (generation) added_generation_[key] = std::move(*generation);
}

void SemanticAxes::remove(std::string_view name, bool missing_ok, const Place& place) {
  const std::string key = checked_name(name, place);
  const std::size_t removed = added_.erase(key) + added_generation_.erase(key);
  if (removed == 0 && !missing_ok) {
    throw RuleError("KeyError", place, fmt::format("semantic axis \"{}\" was never added", key),
                    closest(key, names()));
  }
}

AxisRule SemanticAxes::find(std::string_view name) const {
  const auto added = added_.find(name);
  if (added != added_.end()) return added->second;
  std::string_view field = look_up(fields, name);
  if (field.empty()) field = look_up(short_names, name);
  return field.empty() ? AxisRule{} : AxisRule{std::string(field)};
}

const AxisRule* SemanticAxes::find_generation(std::string_view name) const {
  const auto added = added_generation_.find(name);
  return added == added_generation_.end() ? nullptr : &added->second;
}

std::vector<std::string> SemanticAxes::names() const {
  std::vector<std::string> names;
  for (const auto& [name, rule] : added_) names.push_back(name);
  for (const auto& [name, field] : fields) names.emplace_back(name);
  for (const auto& [name, field] : short_names) names.emplace_back(name);
  return names;
}

std::string_view generation_twin(std::string_view field) { return look_up(twins, field); }

}  // namespace shardsim
