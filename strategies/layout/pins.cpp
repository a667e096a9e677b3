#include "strategies/layout/pins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "strategies/rules/partition_manager.hpp"
#include "strategies/rules/pattern_rules.hpp"

namespace shardsim {
namespace {

// As long as the rank; what is longer is not looked at.
PartitionSpec padded(PartitionSpec spec, std::size_t rank) {
  spec.resize(rank);
  return spec;
}

class Pinner {
 public:
  Pinner(const Workload& workload, const Mesh& mesh, const Strategy& strategy, Layout& result)
      : workload_(workload), mesh_(mesh), strategy_(strategy), result_(result) {}

  void pin_inputs() {
    for (std::size_t t = 0; t < workload_.tensors.size(); ++t) {
      const Tensor& input = workload_.tensors[t];
      if (!is_given(input.role)) continue;
      if (input.role == TensorRole::input && pin_as_system_says(static_cast<TensorId>(t))) continue;
      if (follows_rows(input)) continue;
      result_.pinned[static_cast<TensorId>(t)] = split_over_data(input);
    }
  }

  void pin_activations() {
    pin_as_rules_say();
    if (strategy_.sequence_parallel) pin_residual_stream();
    if (!strategy_.loss_parallel) pin_logits();
    if (strategy_.experts) pin_exchanged_rows();
    const bool exchanges = strategy_.experts && !strategy_.experts->parallel.empty();
    if (strategy_.input_gradients == InputGradients::late && !exchanges) pin_rows_whole();
  }

 private:
  [[nodiscard]] const Tensor& tensor(TensorId id) const {
    return workload_.tensors[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] LabelRole role_of(LabelId label) const {
    return workload_.labels[static_cast<std::size_t>(label)].role;
  }

  // A mixer's state lies as its channels do; keys and values of a rule system as its heads do.
  [[nodiscard]] bool follows_rows(const Tensor& value) const {
    if (value.role != TensorRole::cache) return false;
    const auto has = [&](LabelRole role) {
      return std::any_of(value.dims.begin(), value.dims.end(),
                         [&](const Dim& dim) { return role_of(dim.front()) == role; });
    };
    return has(LabelRole::width) || has(LabelRole::mixer_groups) ||
           (has(LabelRole::heads) && strategy_.is_rule_system());
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

  void pin_as_rules_say() {
    PatternRules rules(strategy_.activations, mesh_);
    for (std::size_t t = 0; t < workload_.tensors.size(); ++t) {
      const Tensor& activation = workload_.tensors[t];
      const bool is_cache = activation.role == TensorRole::cache;
      if (!is_cache &&
          (activation.role != TensorRole::activation || activation.primal != no_tensor))
        continue;
      const Block& block = workload_.blocks[static_cast<std::size_t>(activation.block)];
      const auto rule = rules.find_for_all(activation.name, block.numbers);
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

  // Megatron's sequence parallelism (Korthikanti et al. 2022, arXiv:2205.05198): between the blocks
  // of tensor parallelism, values are split along the sequence; what leaves a norm is gathered.
  void pin_residual_stream() {
    const AxisList model = splitting_axes({strategy_.model_axis}, mesh_);
    for (std::size_t t = 0; t < workload_.tensors.size(); ++t) {
      const Tensor& value = workload_.tensors[t];
      if (value.mark == StreamMark::none || value.primal != no_tensor) continue;
      if (value.mark == StreamMark::stream && strategy_.saves_sharded_inputs) {
        pin_summed_embeddings(static_cast<TensorId>(t));
      }
      Sharding sharding = split_over_data(value);
      for (std::size_t d = 0; d < value.dims.size(); ++d) {
        const bool splits = value.mark == StreamMark::stream &&
                            role_of(value.dims[d].front()) == LabelRole::sequence;
        AxisList& axes = sharding.dims[d].axes;
        if (splits) axes.insert(axes.end(), model.begin(), model.end());
      }
      result_.pinned.try_emplace(static_cast<TensorId>(t), std::move(sharding));
    }
  }

  // Megatron-Core reduces a look-up to parts of the sequence where nothing is added to it; else it
  // adds up whole and scatters the sum (LanguageModelEmbedding, reduce_scatter_embeddings).
  void pin_summed_embeddings(TensorId sum) {
    const Op* add = maker_of(sum);
    if (add == nullptr || add->function != Function::add) return;
    for (const Operand& operand : add->operands) {
      const Op* op = maker_of(operand.tensor);
      const bool is_sum = op != nullptr && op->function == Function::add;
      const bool is_looked_up = op != nullptr && kind_of(*op) == OpKind::lookup;
      if (is_sum) pin_summed_embeddings(operand.tensor);
      if (is_looked_up || (is_sum && is_pinned(*op))) pin_whole(operand.tensor);
    }
  }

  // Are all its operands?
  [[nodiscard]] bool is_pinned(const Op& op) const {
    return std::all_of(op.operands.begin(), op.operands.end(), [&](const Operand& operand) {
      return result_.pinned.contains(operand.tensor);
    });
  }

  [[nodiscard]] const Op* maker_of(TensorId value) const {
    const Block& block = workload_.blocks[static_cast<std::size_t>(tensor(value).block)];
    const auto op = std::find_if(block.forward.begin(), block.forward.end(), [&](const Op& one) {
      return std::any_of(one.results.begin(), one.results.end(),
                         [&](const Operand& result) { return result.tensor == value; });
    });
    return op != block.forward.end() ? &*op : nullptr;
  }

  // Rows lie by token as tokens do, and by expert where their experts are.
  void pin_exchanged_rows() {
    for (const Block& block : workload_.blocks) {
      for (const Op& op : block.forward) {
        if (kind_of(op) != OpKind::exchange) continue;
        for (std::size_t i = 0; i < op.results.size(); ++i) {
          for (const TensorId rows : {op.operands[i].tensor, op.results[i].tensor}) {
            result_.pinned.try_emplace(rows, sharding_of_rows(tensor(rows)));
          }
        }
      }
    }
  }

  // Rows of tokens that every device of the model axis has, with the numbers and the weights of
  // their experts (torchtitan 0.3, models/common/moe_sharding.py without expert parallelism).
  void pin_rows_whole() {
    for (const Block& block : workload_.blocks) {
      for (const Op& op : block.forward) {
        if (op.function == Function::dispatch) {
          pin_whole(op.operands[1].tensor);
          pin_whole(op.results[0].tensor);
        }
        if (op.function != Function::combine) continue;
        for (const Operand& operand : op.operands) pin_whole(operand.tensor);
      }
    }
  }

  [[nodiscard]] Sharding sharding_of_rows(const Tensor& rows) const {
    const ExpertLayout& experts = *strategy_.experts;
    if (role_of(rows.dims.front().front()) == LabelRole::experts) {
      return computed_rows(experts, rows.dims.size());
    }
    Sharding sharding = split_over_data(rows);
    if (!strategy_.sequence_parallel) return sharding;
    const AxisList model = splitting_axes({strategy_.model_axis}, mesh_);
    for (std::size_t d = 0; d < rows.dims.size(); ++d) {
      if (role_of(rows.dims[d].front()) != LabelRole::sequence) continue;
      AxisList& axes = sharding.dims[d].axes;
      axes.insert(axes.end(), model.begin(), model.end());
    }
    return sharding;
  }

  // What a product makes over the vocabulary: whole.
  void pin_logits() {
    for (const Block& block : workload_.blocks) {
      for (const Op& op : block.forward) {
        if (kind_of(op) != OpKind::einsum) continue;
        const TensorId logits = op.results.front().tensor;
        const auto& dims = tensor(logits).dims;
        const bool of_words = std::any_of(dims.begin(), dims.end(), [&](const Dim& dim) {
          return role_of(dim.front()) == LabelRole::vocab;
        });
        if (of_words) result_.pinned.try_emplace(logits, split_over_data(tensor(logits)));
      }
    }
  }

  // But for batch and context.
  void pin_whole(TensorId id) { result_.pinned.try_emplace(id, split_over_data(tensor(id))); }

  [[nodiscard]] Sharding split_over_data(const Tensor& value) const {
    Sharding sharding = replicated(value.dims.size());
    for (std::size_t d = 0; d < value.dims.size(); ++d) {
      const LabelRole role = role_of(value.dims[d].front());
      if (role == LabelRole::batch)
        sharding.dims[d].axes = splitting_axes(strategy_.batch_axes, mesh_);
      if (role == LabelRole::sequence)
        sharding.dims[d].axes = splitting_axes(strategy_.sequence_axes, mesh_);
      if (value.role != TensorRole::cache) continue;
      if (role == LabelRole::key_sequence)
        sharding.dims[d].axes = splitting_axes(strategy_.sequence_axes, mesh_);
      if (role == LabelRole::heads && strategy_.splits_model)
        sharding.dims[d].axes = splitting_axes({strategy_.model_axis}, mesh_);
    }
    return sharding;
  }

  const Workload& workload_;
  const Mesh& mesh_;
  const Strategy& strategy_;
  Layout& result_;
  std::vector<std::size_t> unfit_;  // constraints that were warned about
};

}  // namespace

void pin_inputs(const Workload& workload, const Mesh& mesh, const Strategy& strategy,
                Layout& layout) {
  Pinner(workload, mesh, strategy, layout).pin_inputs();
}

void pin_activations(const Workload& workload, const Mesh& mesh, const Strategy& strategy,
                     Layout& layout) {
  Pinner(workload, mesh, strategy, layout).pin_activations();
}

}  // namespace shardsim
