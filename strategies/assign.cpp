#include "strategies/assign.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "strategies/rules/partition_manager.hpp"
#include "strategies/rules/pattern_rules.hpp"
#include "strategies/rules/rule_error.hpp"

namespace shardsim {
namespace {

// Labels that Megatron splits over the model axis: heads, the feed-forward width, the vocabulary.
// (Shoeybi et al. 2019, arXiv:1909.08053, section 3.)
const std::vector<std::string> model_labels = {"kv_heads", "heads", "ffn", "vocab"};
// From this size on, a parameter left whole by a strategy that shards parameters is worth a word.
constexpr std::int64_t large_element_count = std::int64_t{1} << 20;

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

class Assigner {
 public:
  Assigner(const Workload& workload, const Mesh& mesh, const StrategyOptions& strategy,
           DType stored_dtype)
      : workload_(workload), mesh_(mesh), strategy_(strategy), stored_dtype_(stored_dtype) {}

  Assignment run() {
    result_.data_axes = axes_of(strategy_.batch_axes, mesh_);
    const AxisList sequence = axes_of(strategy_.sequence_axes, mesh_);
    result_.data_axes.insert(result_.data_axes.end(), sequence.begin(), sequence.end());
    pin_inputs();
    assign_parameters();
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
    const AxisList zero_axes = axes_of(strategy_.batch_axes, mesh_);
    for (const ParameterView& view : parameters(workload_)) {
      result_.parameters.push_back(
          {view.tensor, view.shape, view.instances, {}, {}, {}, {}, {}, "", std::nullopt, "", {}});
    }
    if (strategy_.is_rule_system()) {
      apply_rule_system();
    } else {
      apply_rules_and_recipe();
    }
    for (ParameterAssignment& a : result_.parameters) {
      a.compute = without(a.stored, result_.data_axes);
      a.look_up = strategy_.gather_embedding || !is_table(a.tensor) ? a.compute : a.stored;
      a.gradient = a.optimizer = a.stored;
      if (strategy_.zero_stage >= 1)
        add_shards(a.optimizer, a.shape, zero_axes, strategy_.shard_dimension);
      if (strategy_.zero_stage >= 2) a.gradient = a.optimizer;
    }
    for (std::string& warning : rule_warnings(result_.rules, "parameter")) {
      result_.warnings.push_back(std::move(warning));
    }
  }

  // Is it looked up in?
  [[nodiscard]] bool is_table(TensorId parameter) const {
    for (const Block& block : workload_.blocks) {
      for (const Op& op : block.forward) {
        if (op.kind != OpKind::lookup) continue;
        for (const Operand& operand : op.operands) {
          if (operand.tensor == parameter) return true;
        }
      }
    }
    return false;
  }

  void apply_rules_and_recipe() {
    PatternRules rules(strategy_.rules, mesh_);
    for (ParameterAssignment& a : result_.parameters) {
      const Tensor& parameter = tensor(a.tensor);
      a.rule = rule_of_all(rules, parameter.name, a.instances);
      if (a.rule) {
        a.stored = rules.sharding(*a.rule, parameter.name, a.shape.size());
        a.assigned_by = describe(*a.rule, strategy_.rules[*a.rule].pattern);
      } else {
        apply_recipe(parameter, a);
      }
    }
    rules.require_matches("parameter");
    result_.rules = rules.uses();
  }

  // The first rule that matches, the same for all instances of the name.
  static std::optional<std::size_t> rule_of_all(PatternRules& rules, const std::string& name,
                                                std::int64_t instances) {
    const std::optional<std::size_t> first = rules.find(instance_name(name, 0));
    for (std::int64_t i = 1; i < instances; ++i) {
      const std::optional<std::size_t> match = rules.find(instance_name(name, i));
      if (match == first) continue;
      const std::vector<RuleUse> uses = rules.uses();
      const RuleUse& rule =
          uses[std::min(first.value_or(uses.size()), match.value_or(uses.size()))];
      fail_apart(rule.place, fmt::format("pattern \"{}\" tells", rule.text), name, 0, i);
    }
    return first;
  }

  [[noreturn]] static void fail_apart(const Place& place, std::string_view who,
                                      const std::string& name, std::int64_t one,
                                      std::int64_t other) {
    throw InputError(place,
                     fmt::format("{} layers of one repeated block apart ({} and {}), which is not "
                                 "supported",
                                 who, instance_name(name, one), instance_name(name, other)));
  }

  [[nodiscard]] static std::string describe(std::size_t rule, const std::string& text) {
    return fmt::format("rule {}: {}", rule, text);
  }

  // Every instance of a repeated block is a leaf of the tree that the rule system sees.
  void apply_rule_system() {
    ParameterTree tree{workload_.model, {}};
    for (const ParameterAssignment& a : result_.parameters) {
      for (std::int64_t i = 0; i < a.instances; ++i) {
        ParameterLeaf leaf;
        leaf.name = instance_name(tensor(a.tensor).name, i);
        leaf.shape = a.shape;
        leaf.dtype = stored_dtype_;
        leaf.place = strategy_.place;
        tree.leaves.push_back(std::move(leaf));
      }
    }
    const RuleSystem& system = *find_rule_system(strategy_.name);
    if (system.reads_logical_axes) {
      throw InputError(
          strategy_.place,
          fmt::format("strategy \"{}\" goes by names of dimensions, which the parameters of {} do "
                      "not have ({}): a parameter tree can have them",
                      strategy_.name, workload_.model, tree.leaves.front().name));
    }
    const SpecAssignment specs =
        system.assign(tree, mesh_, JsonReader(*strategy_.system, strategy_.place));
    require_fitting_rules(specs, tree);
    result_.rules = specs.rules;
    std::size_t leaf = 0;
    for (ParameterAssignment& a : result_.parameters) {
      const LeafSpec& first = specs.leaves[leaf];
      for (std::int64_t i = 0; i < a.instances; ++i, ++leaf) {
        if (specs.leaves[leaf].spec == first.spec) continue;
        fail_apart(strategy_.place, "the rules tell", tensor(a.tensor).name, 0, i);
      }
      a.stored = without_unit_axes(to_sharding(first.spec, a.shape.size(), mesh_, strategy_.place));
      a.rule = first.rule;
      a.reason = first.reason;
      a.from_system = first;
      a.assigned_by = decided_by(first, specs.rules);
    }
    for (std::string& warning : system_warnings(strategy_.name, specs.warnings)) {
      result_.warnings.push_back(std::move(warning));
    }
  }

  // Rules for another tree's names would make a step in which every parameter is whole.
  void require_fitting_rules(const SpecAssignment& specs, const ParameterTree& tree) const {
    const bool splits = std::any_of(specs.leaves.begin(), specs.leaves.end(), [](const auto& leaf) {
      return std::any_of(leaf.spec.begin(), leaf.spec.end(),
                         [](const SpecEntry& entry) { return !entry.is_whole(); });
    });
    if (splits) return;
    constexpr std::size_t most_named = 4;
    std::vector<std::string> unused;
    const Place* place = nullptr;
    for (std::size_t r = 0; r < specs.rules.size(); ++r) {
      if (specs.rules[r].matches > 0) continue;
      if (place == nullptr) place = &specs.rules[r].place;
      unused.push_back(fmt::format("{} \"{}\"", r, specs.rules[r].text));
    }
    if (unused.empty()) return;
    const std::size_t more = unused.size() > most_named ? unused.size() - most_named : 0;
    unused.resize(unused.size() - more);
    throw InputError(
        *place, fmt::format("the rules split no parameter of {}: none is matched by rule {}{}; "
                            "their names are like \"{}\" and \"{}\"",
                            workload_.model, fmt::join(unused, ", "),
                            more > 0 ? fmt::format(" and {} more", more) : "",
                            tree.leaves.front().name, tree.leaves[tree.leaves.size() / 2].name));
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
      if (const auto d = add_shards(a.stored, a.shape, axes, strategy_.shard_dimension)) {
        why.push_back(fmt::format("dimension {} over {}", *d, strategy_.shard_axis));
      } else if (element_count(a.shape) >= large_element_count) {
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
      if (input.role == TensorRole::input && pin_as_system_says(static_cast<TensorId>(t))) continue;
      Sharding sharding = replicated(input.dims.size());
      for (std::size_t d = 0; d < input.dims.size(); ++d) {
        const std::string& name = label_name(input.dims[d].front());
        if (name == "batch") sharding.dims[d].axes = axes_of(strategy_.batch_axes, mesh_);
        if (name == "sequence") sharding.dims[d].axes = axes_of(strategy_.sequence_axes, mesh_);
      }
      result_.pinned[static_cast<TensorId>(t)] = sharding;
    }
  }

  // An input of a system that says how inputs enter and where they are brought.
  bool pin_as_system_says(TensorId id) {
    const RuleSystem* system = find_rule_system(strategy_.name);
    if (system == nullptr || system->inputs == nullptr) return false;
    const Tensor& input = tensor(id);
    const std::size_t rank = input.dims.size();
    const auto specs = system->inputs(rank, JsonReader(*strategy_.system, strategy_.place), mesh_);
    if (!specs) return false;
    const auto sharding = [&](const PartitionSpec& spec) {
      return without_unit_axes(to_sharding(spec, rank, mesh_, strategy_.place));
    };
    const Sharding entering = sharding(specs->entering);
    const Sharding read = sharding(specs->read);
    result_.pinned[id] = read;
    if (read != entering) result_.entering[id] = entering;
    for (const AxisRef& axis : split_axes(read)) {
      if (!overlaps_any(axis, result_.data_axes)) result_.data_axes.push_back(axis);
    }
    return true;
  }

  void pin_activations() {
    PatternRules rules(strategy_.activations, mesh_);
    for (std::size_t t = 0; t < workload_.tensors.size(); ++t) {
      const Tensor& activation = workload_.tensors[t];
      if (activation.role != TensorRole::activation || activation.primal != no_tensor) continue;
      const std::int64_t instances =
          workload_.blocks[static_cast<std::size_t>(activation.block)].count;
      const auto rule = rule_of_all(rules, activation.name, instances);
      if (!rule) continue;
      std::optional<Sharding> pin =
          fits(*rule) ? rules.sharding(*rule, activation.name, activation.dims.size())
                      : fitted_activation(*rule, activation);
      if (pin) result_.pinned[static_cast<TensorId>(t)] = std::move(*pin);
    }
    rules.require_matches("activation");
    for (std::string& warning : rule_warnings(rules.uses(), "activation")) {
      result_.warnings.push_back(std::move(warning));
    }
  }

  // Is the constraint applied as it stands?
  [[nodiscard]] bool fits(std::size_t rule) const {
    const RuleSystem* system = find_rule_system(strategy_.name);
    if (system == nullptr || system->unfit_activation == UnfitActivation::refused) return true;
    if (system->unfit_activation == UnfitActivation::corrected) return false;
    const PartitionSpec& spec = strategy_.activations[rule].spec;
    return std::all_of(spec.begin(), spec.end(), [&](const SpecEntry& entry) {
      return std::all_of(entry.axes.begin(), entry.axes.end(),
                         [&](const std::string& axis) { return mesh_.parse(axis).has_value(); });
    });
  }

  // What is left of a constraint that its system makes fit; nothing where it skips it. Warns once.
  std::optional<Sharding> fitted_activation(std::size_t rule, const Tensor& activation) {
    const Rule& given = strategy_.activations[rule];
    const bool skips =
        find_rule_system(strategy_.name)->unfit_activation == UnfitActivation::skipped;
    const std::vector<std::int64_t> shape = workload_.shape(activation.dims);
    const PartitionSpec left =
        skips ? PartitionSpec{} : corrected_spec(given.spec, shape, mesh_, given.place);
    const bool differs = skips || (spec_of(to_sharding(left, shape.size(), mesh_, given.place),
                                           mesh_) != padded(given.spec, shape.size()));
    const bool told = std::count(unfit_.begin(), unfit_.end(), rule) > 0;
    if (differs && !told) {
      unfit_.push_back(rule);
      result_.warnings.push_back(
          fmt::format("the constraint {} on {} {}, as eformer does where the mesh lacks an axis{}",
                      to_string(given.spec), activation.name,
                      skips ? "is skipped" : fmt::format("becomes {}", to_string(left)),
                      skips ? "" : " or a dimension does not divide"));
    }
    if (skips) return std::nullopt;
    return without_unit_axes(to_sharding(left, shape.size(), mesh_, given.place));
  }

  // As long as the rank; what is longer is not looked at.
  static PartitionSpec padded(PartitionSpec spec, std::size_t rank) {
    spec.resize(rank);
    return spec;
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
      result_.idle_axes.push_back(mesh_.whole(static_cast<int>(i)));
      result_.warnings.push_back(fmt::format(
          "axis \"{}\" is used by nothing: its {} devices all do the same", axis.name, axis.size));
    }
  }

  const Workload& workload_;
  const Mesh& mesh_;
  const StrategyOptions& strategy_;
  DType stored_dtype_;
  Assignment result_;
  std::vector<std::size_t> unfit_;  // constraints that were warned about
};

}  // namespace

std::optional<std::size_t> add_shards(Sharding& sharding, const std::vector<std::int64_t>& shape,
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

Assignment assign(const Workload& workload, const Mesh& mesh, const StrategyOptions& strategy,
                  DType stored_dtype) {
  return Assigner(workload, mesh, strategy, stored_dtype).run();
}

}  // namespace shardsim
