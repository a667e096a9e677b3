#include "strategies/rules/t5x.hpp"

#include <fmt/format.h>

#include <limits>

#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

std::int64_t read_dims(const JsonReader& strategy, std::string_view key) {
  const auto dims = strategy.find(key);
  using Limits = std::numeric_limits<std::int64_t>;
  return dims ? dims->integer(Limits::min(), Limits::max()) : 1;
}

}  // namespace

LogicalAxisRules standard_logical_axis_rules(std::int64_t activation_dims,
                                             std::int64_t parameter_dims,
                                             const LogicalAxisRules& more, const Place& place) {
  if (activation_dims < 1 || activation_dims > 2 || parameter_dims < 1 || parameter_dims > 2) {
    throw RuleError("ValueError", place,
                    fmt::format("activation_dims and param_dims are 1 or 2, not {} and {}",
                                activation_dims, parameter_dims));
  }
  LogicalAxisRules rules;
  const auto add = [&](const char* name, const SpecEntry& axes) {
    rules.push_back({name, axes, place});
  };
  const SpecEntry data{"data"};
  const SpecEntry model{"model"};
  const SpecEntry nothing;
  const bool is_1d = activation_dims == 1 && parameter_dims == 1;
  add("batch", data);
  add("vocab", model);
  if (is_1d) add("embed", nothing);
  add("mlp", model);
  add("heads", model);
  add("kv", nothing);
  add("joined_kv", model);
  // Last among those with axes, so that it gets what the others leave.
  if (activation_dims == 2) add("embed", model);
  if (parameter_dims == 2) add("embed", data);
  for (const char* name :
       {"relpos_buckets", "abspos_buckets", "length", "layers", "stack", "mlp_activations"}) {
    add(name, nothing);
  }
  rules.insert(rules.end(), more.begin(), more.end());
  return rules;
}

SpecAssignment assign_t5x(const ParameterTree& tree, const Mesh& /*mesh*/,
                          const JsonReader& strategy) {
  LogicalAxisRules more;
  if (const auto extra = strategy.find("extra_rules")) more = read_logical_axis_rules(*extra);
  SpecAssignment assignment = assign_by_logical_rules(
      tree, standard_logical_axis_rules(read_dims(strategy, "activation_dims"),
                                        read_dims(strategy, "param_dims"), more, strategy.place()));
  const std::size_t standard = assignment.rules.size() - more.size();
  for (std::size_t r = 0; r < standard; ++r) assignment.rules[r].built_in = true;
  return assignment;
}

}  // namespace shardsim
