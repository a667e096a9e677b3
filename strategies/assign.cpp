#include "strategies/assign.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/pattern.hpp"

namespace shardsim {
namespace {

// Labels that Megatron splits over the model axis: heads, the feed-forward width, the vocabulary.
// (Shoeybi et al. 2019, arXiv:1909.08053, section 3.)
const std::vector<std::string> model_labels = {"kv_heads", "heads", "ffn", "vocab"};
// From this size on, a parameter left whole by a strategy that shards parameters is worth a word.
constexpr std::int64_t large_parameter = std::int64_t{1} << 20;

std::string instance_name(const std::string& name, std::int64_t instance) {
  const std::size_t place = name.find("{}");
  if (place == std::string::npos) return name;
  return name.substr(0, place) + std::to_string(instance) + name.substr(place + 2);
}

// Axes of one device split nothing and are left out.
AxisList axes_of(const std::vector<std::string>& names, const Mesh& mesh) {
  AxisList axes;
  for (const std::string& name : names) {
    const AxisRef axis = mesh.whole(*mesh.find(name));
    if (axis.size > 1) axes.push_back(axis);
  }
  return axes;
}

// The rules of a strategy, and which of them were of use.
class RuleSet {
 public:
  RuleSet(const std::vector<Rule>& rules, const Mesh& mesh) : rules_(rules), mesh_(mesh) {
    for (const Rule& rule : rules) patterns_.emplace_back(rule.pattern, rule.place);
    matched_.resize(rules.size());
    used_.resize(rules.size());
  }

  // The first rule that matches all `instances` of the name.
  std::optional<std::size_t> find(const std::string& name, std::int64_t instances) {
    const std::optional<std::size_t> first = first_match(instance_name(name, 0));
    for (std::int64_t i = 1; i < instances; ++i) {
      const std::optional<std::size_t> match = first_match(instance_name(name, i));
      if (match == first) continue;
      const Rule& rule =
          rules_[std::min(first.value_or(rules_.size()), match.value_or(rules_.size()))];
      throw InputError(
          rule.place,
          fmt::format("pattern \"{}\" tells layers of one repeated block apart ({} and {}), "
                      "which is not supported",
                      rule.pattern, instance_name(name, 0), instance_name(name, i)));
    }
    if (first) used_[*first] = true;
    return first;
  }

  [[nodiscard]] Sharding sharding(std::size_t rule_index, const std::string& name,
                                  std::size_t rank) const {
    const Rule& rule = rules_[rule_index];
    if (rule.spec.size() > rank) {
      throw InputError(rule.place, fmt::format("spec has {} entries, but {} has {} dimensions",
                                               rule.spec.size(), name, rank));
    }
    Sharding sharding = replicated(rank);
    for (std::size_t d = 0; d < rule.spec.size(); ++d) {
      sharding.dims[d].axes = axes_of(rule.spec[d].axes, mesh_);
    }
    return sharding;
  }

  [[nodiscard]] std::string describe(std::size_t rule) const {
    return fmt::format("rule {}: {}", rule, rules_[rule].pattern);
  }

  // Rules that never matched are errors; rules that others always went before are worth a word.
  void check(std::string_view what, std::vector<std::string>& warnings) const {
    for (std::size_t r = 0; r < rules_.size(); ++r) {
      if (!matched_[r]) {
        throw InputError(rules_[r].place,
                         fmt::format("pattern \"{}\" matches no {}", rules_[r].pattern, what));
      }
      if (!used_[r]) {
        warnings.push_back(
            fmt::format("rule {} \"{}\" is shadowed: an earlier rule matches every {} it matches",
                        r, rules_[r].pattern, what));
      }
    }
  }

 private:
  std::optional<std::size_t> first_match(const std::string& name) {
    std::optional<std::size_t> first;
    for (std::size_t r = 0; r < patterns_.size(); ++r) {
      if (!patterns_[r].search(name)) continue;
      matched_[r] = true;
      if (!first) first = r;
    }
    return first;
  }

  const std::vector<Rule>& rules_;
  const Mesh& mesh_;
  std::vector<Pattern> patterns_;
  std::vector<bool> matched_;
  std::vector<bool> used_;
};

// Adds `axes` as the most minor split of the dimension that the strategy shards. Answers the
// dimension, or nothing when the parameter stays as it is.
std::optional<std::size_t> shard(Sharding& sharding, const std::vector<std::int64_t>& shape,
                                 const AxisList& axes, ShardDimension rule) {
  if (shape.empty() || axes.empty()) return std::nullopt;
  const AxisList taken = split_axes(sharding);
  for (const AxisRef& axis : axes) {
    if (overlaps_any(axis, taken)) return std::nullopt;
  }
  std::optional<std::size_t> chosen;
  if (rule == ShardDimension::first) {
    chosen = 0;
  } else {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const bool is_free = sharding.dims[d].axes.empty();
      if (is_free && shape[d] % Mesh::size_of(axes) == 0 && (!chosen || shape[d] >= shape[*chosen]))
        chosen = d;
    }
  }
  if (chosen) {
    AxisList& dim = sharding.dims[*chosen].axes;
    dim.insert(dim.end(), axes.begin(), axes.end());
  }
  return chosen;
}

class Assigner {
 public:
  Assigner(const Workload& workload, const Mesh& mesh, const StrategyOptions& strategy)
      : workload_(workload), mesh_(mesh), strategy_(strategy) {}

  Assignment run() {
    result_.data_axes = axes_of(strategy_.batch_axes, mesh_);
    const AxisList sequence = axes_of(strategy_.sequence_axes, mesh_);
    result_.data_axes.insert(result_.data_axes.end(), sequence.begin(), sequence.end());
    assign_parameters();
    pin_inputs();
    pin_activations();
    if (strategy_.sequence_parallel) pin_residual_stream();
    warn_about_idle_axes();
    return std::move(result_);
  }

 private:
  [[nodiscard]] const Tensor& tensor(TensorId id) const {
    return workload_.tensors[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] const std::string& label_name(LabelId label) const {
    return workload_.labels[static_cast<std::size_t>(label)].name;
  }

  void assign_parameters() {
    RuleSet rules(strategy_.rules, mesh_);
    const AxisList zero_axes = axes_of(strategy_.batch_axes, mesh_);
    for (const ParameterView& view : parameters(workload_)) {
      const Tensor& parameter = tensor(view.tensor);
      ParameterAssignment a{view.tensor, view.shape, view.instances, {}, {}, {}, {}, ""};
      if (const auto rule = rules.find(parameter.name, view.instances)) {
        a.stored = rules.sharding(*rule, parameter.name, view.shape.size());
        a.assigned_by = rules.describe(*rule);
      } else {
        apply_recipe(parameter, a);
      }
      a.compute = without(a.stored, result_.data_axes);
      a.gradient = a.optimizer = a.stored;
      if (strategy_.zero_stage >= 1)
        shard(a.optimizer, a.shape, zero_axes, strategy_.shard_dimension);
      if (strategy_.zero_stage >= 2) a.gradient = a.optimizer;
      result_.parameters.push_back(std::move(a));
    }
    rules.check("parameter", result_.warnings);
  }

  void apply_recipe(const Tensor& parameter, ParameterAssignment& a) {
    a.stored = replicated(a.shape.size());
    std::vector<std::string> why;
    if (strategy_.splits_model()) {
      if (const auto d = split_model_dimension(parameter, a.stored)) {
        why.push_back(fmt::format("dimension {} over {}", *d, strategy_.model_axis));
      }
    }
    if (strategy_.shards_parameters()) {
      const AxisList axes = axes_of({strategy_.shard_axis}, mesh_);
      if (const auto d = shard(a.stored, a.shape, axes, strategy_.shard_dimension)) {
        why.push_back(fmt::format("dimension {} over {}", *d, strategy_.shard_axis));
      } else if (element_count(a.shape) >= large_parameter) {
        result_.warnings.push_back(
            fmt::format("{} ({} parameters) is replicated over {}: no dimension divides",
                        parameter.name, element_count(a.shape), strategy_.shard_axis));
      }
    }
    a.assigned_by =
        fmt::format("{}: {}", strategy_.name,
                    why.empty() ? "replicated" : fmt::format("{}", fmt::join(why, ", ")));
  }

  // The first dimension with one of Megatron's labels; labels more major in the same dimension
  // (the q, k, v of a fused projection) become blocks that are split each.
  std::optional<std::size_t> split_model_dimension(const Tensor& parameter,
                                                   Sharding& sharding) const {
    for (std::size_t d = 0; d < parameter.dims.size(); ++d) {
      std::int64_t blocks = 1;
      for (const LabelId label : parameter.dims[d]) {
        if (std::count(model_labels.begin(), model_labels.end(), label_name(label)) > 0) {
          const AxisList axes = axes_of({strategy_.model_axis}, mesh_);
          if (!axes.empty()) sharding.dims[d] = {axes, blocks};
          return d;
        }
        blocks *= workload_.labels[static_cast<std::size_t>(label)].size;
      }
    }
    return std::nullopt;
  }

  static std::int64_t element_count(const std::vector<std::int64_t>& shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    return count;
  }

  void pin_inputs() {
    for (std::size_t t = 0; t < workload_.tensors.size(); ++t) {
      const Tensor& input = workload_.tensors[t];
      if (input.role != TensorRole::input && input.role != TensorRole::constant) continue;
      Sharding sharding = replicated(input.dims.size());
      for (std::size_t d = 0; d < input.dims.size(); ++d) {
        const std::string& name = label_name(input.dims[d].front());
        if (name == "batch") sharding.dims[d].axes = axes_of(strategy_.batch_axes, mesh_);
        if (name == "sequence") sharding.dims[d].axes = axes_of(strategy_.sequence_axes, mesh_);
      }
      result_.pinned[static_cast<TensorId>(t)] = sharding;
    }
  }

  void pin_activations() {
    RuleSet rules(strategy_.activations, mesh_);
    for (std::size_t t = 0; t < workload_.tensors.size(); ++t) {
      const Tensor& activation = workload_.tensors[t];
      if (activation.role != TensorRole::activation || activation.primal != no_tensor) continue;
      const std::int64_t instances =
          workload_.blocks[static_cast<std::size_t>(activation.block)].count;
      if (const auto rule = rules.find(activation.name, instances)) {
        result_.pinned[static_cast<TensorId>(t)] =
            rules.sharding(*rule, activation.name, activation.dims.size());
      }
    }
    rules.check("activation", result_.warnings);
  }

  // Megatron's sequence parallelism (Korthikanti et al. 2022, arXiv:2205.05198): between the blocks
  // of tensor parallelism, values are split along the sequence; what leaves a norm is gathered.
  void pin_residual_stream() {
    const auto is_stream = [&](const Tensor& t) {
      return t.dims.size() == 3 && label_name(t.dims[0].front()) == "batch" &&
             label_name(t.dims[1].front()) == "sequence" &&
             label_name(t.dims[2].front()) == "hidden";
    };
    Sharding split = replicated(3);
    split.dims[0].axes = axes_of(strategy_.batch_axes, mesh_);
    split.dims[1].axes = axes_of(strategy_.sequence_axes, mesh_);
    const Sharding gathered = split;
    const AxisList model = axes_of({strategy_.model_axis}, mesh_);
    split.dims[1].axes.insert(split.dims[1].axes.end(), model.begin(), model.end());
    for (const Block& block : workload_.blocks) {
      for (const Op& op : block.forward) {
        for (const Operand& result : op.results) {
          const Tensor& value = tensor(result.tensor);
          if (value.role != TensorRole::activation || !is_stream(value)) continue;
          if (op.kind == OpKind::norm) result_.pinned.try_emplace(result.tensor, gathered);
          if (op.kind == OpKind::elementwise && op.function == "add") {
            result_.pinned.try_emplace(result.tensor, split);
          }
        }
      }
    }
  }

  void warn_about_idle_axes() {
    AxisList used = result_.data_axes;
    for (const ParameterAssignment& a : result_.parameters) {
      for (const Sharding* sharding : {&a.stored, &a.optimizer}) {
        const AxisList axes = split_axes(*sharding);
        used.insert(used.end(), axes.begin(), axes.end());
      }
    }
    for (const auto& [id, sharding] : result_.pinned) {
      const AxisList axes = split_axes(sharding);
      used.insert(used.end(), axes.begin(), axes.end());
    }
    for (std::size_t i = 0; i < mesh_.axes().size(); ++i) {
      const MeshAxis& axis = mesh_.axes()[i];
      if (axis.size == 1 || overlaps_any(mesh_.whole(static_cast<int>(i)), used)) continue;
      result_.warnings.push_back(fmt::format(
          "axis \"{}\" is used by nothing: its {} devices all do the same", axis.name, axis.size));
    }
  }

  const Workload& workload_;
  const Mesh& mesh_;
  const StrategyOptions& strategy_;
  Assignment result_;
};

}  // namespace

Assignment assign(const Workload& workload, const Mesh& mesh, const StrategyOptions& strategy) {
  return Assigner(workload, mesh, strategy).run();
}

}  // namespace shardsim
