// eformer's match_partition_rules, the rules of EasyDeL: the first pattern found anywhere in a
// parameter's name gives it its PartitionSpec.
//
//   rules  [["self_attn/(q_proj|k_proj)/kernel", [["fsdp", "sp"], "tp"]], [".*", [null]]]
//   layers/0/self_attn/q_proj/kernel [4096, 4096]   ->  P((fsdp, sp), tp)
//   layers/0/norm/kernel             [4096]         ->  P(): fewer than min_size = 16384 elements
//
// In this order, for every leaf: no array and scalars are P(), whatever the rules say; the first
// pattern that is found decides; a leaf of fewer than min_size ELEMENTS is P(); a spec of more
// entries than the leaf has dimensions keeps the leading ones, a shorter one stays as short as it
// is. A leaf that no pattern is found in is an error, be it ever so small. With strict = false the
// pattern alone counts. Neither axes nor divisibility are checked.
//
// Source: github.com/erfanzar/eformer, eformer/escale/partition/constraints.py, at 5c877a3
// (v0.0.21, March 2025) and, for min_size and strict, at 4b17881.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/pattern.hpp"
#include "sharding/partition_spec.hpp"
#include "strategies/rules/rule_matches.hpp"

namespace shardsim {

// A pattern and the spec of the leaves that it is found in.
struct SpecRule {
  Pattern pattern;
  PartitionSpec spec;
  std::string text;  // "q_proj/kernel -> P(fsdp, tp)"
  Place place;
};

// Throws InputError for an invalid pattern, though Python would only when it gets to search it.
[[nodiscard]] SpecRule make_spec_rule(std::string_view pattern, PartitionSpec spec,
                                      const Place& place);
[[nodiscard]] RuleMatches rule_matches(const std::vector<SpecRule>& rules);
// The first rule whose pattern is found in `name`. Counts in `matches` who matches and who decides.
[[nodiscard]] RuleIndex first_match(const std::vector<SpecRule>& rules, std::string_view name,
                                    RuleMatches& matches);

struct MatchOptions {
  static constexpr std::int64_t default_min_size = 16384;  // the environment's MIN_SHARDING_SIZE

  std::int64_t min_size = default_min_size;
  bool strict = true;
};

// Throws RuleError (ValueError) at `place`, that of the rules, for a leaf without a rule.
[[nodiscard]] SpecAssignment match_partition_rules(const std::vector<SpecRule>& rules,
                                                   const ParameterTree& tree,
                                                   const MatchOptions& options, const Place& place);

// "min_size" (null is the default) and "strict" of an object.
[[nodiscard]] MatchOptions read_match_options(const JsonReader& json);
// [[pattern, spec], ...] of specs that `read_spec` reads. Throws RuleError (ValueError) for a rule
// that is no pair.
[[nodiscard]] std::vector<SpecRule> read_spec_rules(
    const JsonReader& json, const std::function<PartitionSpec(const JsonReader&)>& read_spec);

// A spec in which an entry may be a field of the PartitionAxis of March 2025 that "partition_axis"
// of the strategy describes, as EasyDeL's rules and constraints of that time are written:
//   ["generation_batch_axis", "sequence_axis"]  ->  P(None, sp)
// What is no field is a mesh axis. Throws RuleError (ValueError) for a field that holds several
// axes inside a list.
[[nodiscard]] PartitionSpec read_partition_axis_spec(const JsonReader& spec,
                                                     const JsonReader& strategy);

// {"rules": [[pattern, spec], ...], "min_size": 16384, "strict": true, "partition_axis": {...}}
[[nodiscard]] SpecAssignment assign_match_partition_rules(const ParameterTree& tree,
                                                          const Mesh& mesh,
                                                          const JsonReader& strategy);

}  // namespace shardsim
