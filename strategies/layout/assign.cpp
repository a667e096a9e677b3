#include "strategies/layout/assign.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "strategies/key_place.hpp"
#include "strategies/layout/assign_by_system.hpp"
#include "strategies/layout/check_context.hpp"
#include "strategies/layout/context_axes.hpp"
#include "strategies/layout/layout_json.hpp"
#include "strategies/layout/pins.hpp"
#include "strategies/rules/pattern_rules.hpp"
#include "workloads/step/outputs.hpp"

namespace shardsim {
namespace {

// Does Megatron split it over the model axis? (Shoeybi et al. 2019, arXiv:1909.08053, section 3.)
bool is_split_by_model(const Label& label) {
  return label.role == LabelRole::heads || label.role == LabelRole::width ||
         label.role == LabelRole::vocab || label.role == LabelRole::mixer_groups;
}
// From this size on, a parameter left whole by a strategy that shards parameters is worth a word.
constexpr std::int64_t large_element_count = std::int64_t{1} << 20;

class Assigner {
 public:
  Assigner(const Workload& workload, const Mesh& mesh, const Strategy& strategy, DType stored_dtype)
      : workload_(workload), mesh_(mesh), strategy_(strategy), stored_dtype_(stored_dtype) {}

  Layout run() {
    if (!strategy_.layout.is_null()) {
      result_ = read_layout(JsonReader(*strategy_.layout, place_of_key(strategy_.place, "layout")),
                            workload_, mesh_);
      result_.stored_dtype = stored_dtype_;
      result_.saves_sharded_inputs = strategy_.saves_sharded_inputs;
      result_.context = strategy_.context;
      result_.experts = strategy_.experts;
      result_.ends_axes = ends_axes();
      set_head_devices(workload_, strategy_.place, result_);
      find_idle_axes();
      return std::move(result_);
    }
    result_.ends_axes = ends_axes();
    result_.data_axes = splitting_axes(strategy_.batch_axes, mesh_);
    result_.sequence_axes = splitting_axes(strategy_.sequence_axes, mesh_);
    result_.data_axes.insert(result_.data_axes.end(), result_.sequence_axes.begin(),
                             result_.sequence_axes.end());
    if (strategy_.splits_model) {
      result_.model_axes = splitting_axes({strategy_.model_axis}, mesh_);
    }
    result_.stored_dtype = stored_dtype_;
    result_.sequence_parallel = strategy_.sequence_parallel;
    result_.saves_sharded_inputs = strategy_.saves_sharded_inputs;
    result_.input_gradients = strategy_.input_gradients;
    result_.context = strategy_.context;
    result_.zero_stage = strategy_.zero_stage;
    result_.experts = strategy_.experts;
    if (strategy_.whole_outputs) {
      for (const TensorId output : outputs_of(workload_)) {
        result_.leaving[output] = replicated(tensor(output).dims.size());
      }
    }
    pin_inputs(workload_, mesh_, strategy_, result_);
    assign_parameters();
    pin_activations(workload_, mesh_, strategy_, result_);
    deal_out_ends();
    set_head_devices(workload_, strategy_.place, result_);
    check_context(workload_, result_, strategy_.place);
    if (result_.experts) check_shares(workload_, *result_.experts, strategy_.place);
    find_idle_axes();
    return std::move(result_);
  }

 private:
  [[nodiscard]] const Tensor& tensor(TensorId id) const {
    return workload_.tensors[static_cast<std::size_t>(id)];
  }

  [[nodiscard]] const Label& label(LabelId id) const {
    return workload_.labels[static_cast<std::size_t>(id)];
  }

  // Those of a stream.
  [[nodiscard]] AxisList ends_axes() const {
    const std::optional<ShiftingStages>& shifting = strategy_.shifting;
    if (!shifting || !shifting->stream_io) return {};
    return {mesh_.whole(*mesh_.find(shifting->axis))};
  }

  void deal_out_ends() {
    if (result_.ends_axes.empty()) return;
    for (auto& [id, sharding] : result_.pinned) {
      const AxisList taken = split_axes(sharding);
      const bool is_split = std::any_of(taken.begin(), taken.end(), [&](const AxisRef& axis) {
        return overlaps_any(axis, result_.ends_axes);
      });
      if (is_split) continue;
      for (std::size_t d = 0; d < sharding.dims.size(); ++d) {
        if (!is_of_all_microbatches(label(tensor(id).dims[d].front()))) continue;
        AxisList& axes = sharding.dims[d].axes;
        axes.insert(axes.begin(), result_.ends_axes.begin(), result_.ends_axes.end());
      }
    }
  }

  void assign_parameters() {
    const AxisList zero_axes = splitting_axes(strategy_.batch_axes, mesh_);
    for (const ParameterView& view : parameters(workload_)) {
      result_.parameters.push_back(
          {view.tensor, view.shape, view.numbers, {}, {}, {}, {}, {}, "", std::nullopt, "", {}});
    }
    if (strategy_.is_rule_system()) {
      assign_by_system(workload_, mesh_, strategy_, result_);
    } else {
      apply_rules_and_recipe();
    }
    for (ParameterLayout& a : result_.parameters) {
      if (strategy_.experts && !a.rule && is_of_routed_experts(workload_, a.tensor)) {
        deal_out(*strategy_.experts, zero_axes, a);
        continue;
      }
      a.compute = without(a.stored, result_.data_axes);
      if (strategy_.experts && strategy_.is_rule_system()) keep_experts(*strategy_.experts, a);
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

  // Experts that rules deal out are read where they lie.
  void keep_experts(const ExpertLayout& experts, ParameterLayout& a) const {
    if (!is_of_routed_experts(workload_, a.tensor)) return;
    const Tensor& parameter = tensor(a.tensor);
    for (std::size_t d = 0; d < parameter.dims.size(); ++d) {
      if (label(parameter.dims[d].front()).role != LabelRole::experts) continue;
      if (!is_prefix(experts.parallel, a.stored.dims[d].axes)) {
        throw InputError(
            strategy_.place,
            fmt::format("tokens are sent to experts over {}, and the rules do not split the "
                        "experts of {} so",
                        fmt::join(mesh_.names_of(experts.parallel), ", "), parameter.name));
      }
      a.compute.dims[d].axes = experts.parallel;
      require_even(label(parameter.dims[d].front()).size, experts.parallel);
    }
  }

  // Is it looked up in?
  [[nodiscard]] bool is_table(TensorId parameter) const {
    for (const Block& block : workload_.blocks) {
      for (const Op& op : block.forward) {
        if (kind_of(op) != OpKind::lookup) continue;
        for (const Operand& operand : op.operands) {
          if (operand.tensor == parameter) return true;
        }
      }
    }
    return false;
  }

  void apply_rules_and_recipe() {
    PatternRules rules(strategy_.rules, mesh_);
    for (ParameterLayout& a : result_.parameters) {
      // A copy lies as what it is a copy of.
      const TensorId original = tensor(a.tensor).copy_of;
      const Tensor& parameter = tensor(original == no_tensor ? a.tensor : original);
      a.rule = rules.find_for_all(parameter.name, a.numbers);
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

  [[nodiscard]] static std::string describe(std::size_t rule, const std::string& text) {
    return fmt::format("rule {}: {}", rule, text);
  }

  void apply_recipe(const Tensor& parameter, ParameterLayout& a) {
    a.stored = replicated(a.shape.size());
    std::vector<std::string> why;
    if (strategy_.splits_model) {
      if (const auto d = split_model_dimension(parameter, a)) {
        why.push_back(fmt::format("dimension {} over {}", *d, strategy_.model_axis));
      }
    }
    if (strategy_.shards_parameters) {
      const AxisList axes = shard_axes(strategy_, mesh_);
      if (is_sharded_within(a)) {
        a.stored.dims[1].axes.insert(a.stored.dims[1].axes.end(), axes.begin(), axes.end());
        why.push_back(fmt::format("dimension 1 over {}", strategy_.shard_axis));
      } else if (const auto d = add_shards(a.stored, a.shape, axes, strategy_.shard_dimension)) {
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

  // Experts of which there are fewer than devices.
  [[nodiscard]] bool is_sharded_within(const ParameterLayout& a) const {
    return strategy_.shard_dimension == ShardDimension::fitting && a.shape.size() > 1 &&
           a.shape.front() < Mesh::size_of(result_.data_axes) &&
           is_of_routed_experts(workload_, a.tensor);
  }

  // Experts over the devices that they are dealt out over, each split over its model axis; shards
  // are of those that have the same experts.
  void deal_out(const ExpertLayout& experts, const AxisList& zero_axes, ParameterLayout& a) const {
    const Tensor& parameter = tensor(a.tensor);
    a.stored = replicated(a.shape.size());
    for (std::size_t d = 0; d < parameter.dims.size(); ++d) {
      std::int64_t blocks = 1;
      for (const LabelId id : parameter.dims[d]) {
        const LabelRole role = label(id).role;
        if (role == LabelRole::experts) {
          require_even(label(id).size, experts.parallel);
          a.stored.dims[d] = {experts.parallel, blocks};
        }
        if (role == LabelRole::width && !experts.tensor.empty()) {
          a.stored.dims[d] = {experts.tensor, blocks};
        }
        blocks *= label(id).size;
      }
    }
    const Sharding whole = a.stored;
    const auto among_these = [&](const AxisList& axes) {
      AxisList own = experts.data;
      std::erase_if(own, [&](const AxisRef& axis) { return !overlaps_any(axis, axes); });
      return own;
    };
    if (strategy_.shards_parameters) {
      shard_experts(a.stored, a.shape, among_these(shard_axes(strategy_, mesh_)));
    }
    a.compute = a.look_up = whole;
    a.gradient = a.optimizer = a.stored;
    if (strategy_.zero_stage >= 1) shard_experts(a.optimizer, a.shape, among_these(zero_axes));
    if (strategy_.zero_stage >= 2) a.gradient = a.optimizer;
    a.assigned_by =
        fmt::format("{}: experts over {} devices", strategy_.name, Mesh::size_of(experts.parallel));
  }

  void require_even(std::int64_t experts, const AxisList& parallel) const {
    const std::int64_t devices = Mesh::size_of(parallel);
    if (experts % devices == 0) return;
    std::int64_t fewer = devices;
    while (experts % fewer != 0) --fewer;
    const Place at = place_of_key(strategy_.place, "experts");
    throw InputError({at.file, at.pointer + "/parallel"},
                     fmt::format("the {} experts of {} do not go evenly over {} devices; over {} "
                                 "they do",
                                 experts, workload_.model, devices, fewer));
  }

  // Whole experts where they go round, else within each of them (torchtitan, parallelize.py:
  // Shard(0), or Shard(1) where experts are fewer than devices).
  void shard_experts(Sharding& sharding, const std::vector<std::int64_t>& shape,
                     const AxisList& axes) const {
    if (axes.empty()) return;
    const std::int64_t devices = Mesh::size_of(sharding.dims.front().axes) * Mesh::size_of(axes);
    const bool is_whole = shape.front() >= devices || shape.size() == 1;
    const std::size_t d = is_whole || strategy_.experts->shards_first ? 0 : 1;
    AxisList& split = sharding.dims[d].axes;
    split.insert(split.end(), axes.begin(), axes.end());
  }

  // The first dimension with a label that Megatron splits; labels more major in the same dimension
  // (the q, k, v of a fused projection) become blocks that are split each.
  std::optional<std::size_t> split_model_dimension(const Tensor& parameter, ParameterLayout& a) {
    const AxisList axes = splitting_axes({strategy_.model_axis}, mesh_);
    for (std::size_t d = 0; d < parameter.dims.size(); ++d) {
      std::int64_t blocks = 1;
      for (std::size_t i = 0; i < parameter.dims[d].size(); ++i) {
        const Label& label = this->label(parameter.dims[d][i]);
        if (is_split_by_model(label)) {
          if (!takes(parameter.dims[d], i, axes)) {
            leave_whole(parameter, label, axes, a);
            return std::nullopt;
          }
          if (!axes.empty()) a.stored.dims[d] = {axes, blocks};
          return d;
        }
        blocks *= label.size;
      }
    }
    return std::nullopt;
  }

  // Groups of a mixer are dealt out with their heads, but not cut otherwise.
  [[nodiscard]] bool takes(const Dim& dim, std::size_t i, const AxisList& axes) const {
    if (label(dim[i]).role != LabelRole::mixer_groups) return true;
    std::int64_t parts = label(dim[i]).size;
    const bool has_heads = i + 1 < dim.size() && label(dim[i + 1]).role == LabelRole::head_group;
    if (has_heads) parts *= label(dim[i + 1]).size;
    return parts % Mesh::size_of(axes) == 0;
  }

  void leave_whole(const Tensor& parameter, const Label& groups, const AxisList& axes,
                   ParameterLayout& a) {
    a.reason = fmt::format("{} {} do not go evenly over the {} devices of {}: it is whole on each",
                           groups.size, groups.name, Mesh::size_of(axes), strategy_.model_axis);
    if (element_count(a.shape) < large_element_count) return;
    result_.warnings.push_back(
        fmt::format("{} is not split: {}{}", parameter.name, a.reason, "; Megatron refuses it"));
  }

  static std::int64_t element_count(const std::vector<std::int64_t>& shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    return count;
  }

  void find_idle_axes() {
    AxisList used = result_.data_axes;
    for (const ParameterLayout& a : result_.parameters) {
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
      if (strategy_.pipeline && strategy_.pipeline->axis == axis.name) continue;
      if (strategy_.shifting && strategy_.shifting->axis == axis.name) continue;
      result_.idle_axes.push_back(mesh_.whole(static_cast<int>(i)));
    }
  }

  const Workload& workload_;
  const Mesh& mesh_;
  const Strategy& strategy_;
  DType stored_dtype_;
  Layout result_;
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
  if (rule != ShardDimension::largest) {
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

Layout assign(const Workload& workload, const Mesh& mesh, const Strategy& strategy,
              DType stored_dtype) {
  return Assigner(workload, mesh, strategy, stored_dtype).run();
}

}  // namespace shardsim
