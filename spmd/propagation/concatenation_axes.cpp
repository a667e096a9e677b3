#include "spmd/propagation/concatenation_axes.hpp"

#include <algorithm>
#include <tuple>

#include "base/index.hpp"
#include "spmd/propagation/function_editor.hpp"
#include "spmd/tiling/tensor_sharding.hpp"
#include "stablehlo/op_rules.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Function;
using stablehlo::Module;
using stablehlo::Op;
using stablehlo::OpId;
using stablehlo::OpView;
using stablehlo::TensorType;
using stablehlo::ValueId;

using DimAxes = std::vector<Axes>;  // by dimension

struct Tensor {
  std::int64_t elements = 0;
  DimAxes dims;
};

// Axes for one dimension, and what speaks for them.
struct Candidate {
  std::size_t dim = 0;
  Axes axes;
  std::int64_t elements = 0;  // of the tensors that are split so
  std::int64_t adds = 1;      // tiles that the axes add to what the dimension has
};

class CommonAxes {
 public:
  CommonAxes(std::vector<Tensor> tensors, std::size_t concatenated, bool must_be_whole,
             const stablehlo::Shape& result)
      : tensors_(std::move(tensors)),
        concatenated_(concatenated),
        must_be_whole_(must_be_whole),
        sizes_(result),
        chosen_(result.size()) {}

  [[nodiscard]] DimAxes find() {
    list_candidates();
    while (!candidates_.empty()) {
      choose(*std::max_element(
          candidates_.begin(), candidates_.end(),
          [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); }));
    }
    if (must_be_whole_) hand_over();
    return chosen_;
  }

 private:
  using Rank = std::tuple<std::int64_t, bool, std::int64_t, std::size_t, std::size_t,
                          std::vector<std::tuple<int, std::int64_t, std::int64_t>>>;

  [[nodiscard]] Rank rank(const Candidate& candidate) const {
    std::vector<std::tuple<int, std::int64_t, std::int64_t>> axes;
    for (const Axis& axis : candidate.axes) {
      axes.emplace_back(axis.index, axis.pre_size, axis.size);
    }
    return {candidate.elements, candidate.dim != concatenated_, candidate.adds,
            candidate.dim,      candidate.axes.size(),          std::move(axes)};
  }

  // The axes of every dimension of every tensor, and all that they begin with.
  void list_candidates() {
    for (const Tensor& tensor : tensors_) {
      for (std::size_t dim = 0; dim < tensor.dims.size(); ++dim) {
        for (Axes axes = tensor.dims[dim]; !axes.empty(); axes.pop_back()) {
          const auto same = std::find_if(
              candidates_.begin(), candidates_.end(),
              [&](const Candidate& other) { return other.dim == dim && other.axes == axes; });
          Candidate& candidate =
              same != candidates_.end()
                  ? *same
                  : candidates_.emplace_back(Candidate{dim, axes, 0, total_size(axes)});
          candidate.elements += tensor.elements;
        }
      }
    }
  }

  void choose(const Candidate& given) {
    const Candidate best = given;
    chosen_[best.dim] = best.axes;
    std::vector<Candidate> left;
    for (Candidate& candidate : candidates_) {
      if (candidate.dim == best.dim) {
        if (!is_strict_prefix(best.axes, candidate.axes)) continue;
        candidate.adds = total_size(candidate.axes) / total_size(best.axes);
      } else if (cut_overlap(candidate.axes, best.axes)) {
        if (candidate.axes == chosen_[candidate.dim]) continue;
        candidate.adds = total_size(candidate.axes) / total_size(chosen_[candidate.dim]);
      } else {
        candidate.adds = total_size(candidate.axes);
      }
      left.push_back(std::move(candidate));
    }
    candidates_ = std::move(left);
  }

  // Keeps the front of `axes` that shares nothing with `taken`; whether something was cut.
  static bool cut_overlap(Axes& axes, const Axes& taken) {
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto kept = prefix_without(axes[i], taken);
      if (kept == axes[i]) continue;
      axes.resize(i);
      if (kept) axes.push_back(*kept);
      return true;
    }
    return false;
  }

  void hand_over() {
    Axes rest = std::move(chosen_[concatenated_]);
    chosen_[concatenated_].clear();
    std::size_t next = 0;
    for (std::size_t dim = 0; dim < sizes_.size() && next < rest.size(); ++dim) {
      const std::int64_t tiles = total_size(chosen_[dim]);
      if (dim == concatenated_ || sizes_[dim] == 0 || sizes_[dim] % tiles != 0) continue;
      std::int64_t room = sizes_[dim] / tiles;
      while (next < rest.size() && room % rest[next].size == 0) {
        room /= rest[next].size;
        append(chosen_[dim], rest[next++]);
      }
    }
  }

  std::vector<Tensor> tensors_;
  std::size_t concatenated_;
  bool must_be_whole_;  // the concatenated dimension
  stablehlo::Shape sizes_;
  DimAxes chosen_;
  std::vector<Candidate> candidates_;
};

class Aligner {
 public:
  Aligner(Module& module, Function& function)
      : module_(module), function_(function), meshes_(module), editor_(function) {}

  void run() {
    uses_ = uses_of(function_);
    for (const OpId id : ops_in_order(function_)) {
      if (function_.op(id).name == "stablehlo.concatenate") align(id);
    }
    editor_.commit();
  }

 private:
  // Nothing: no sharding is given.
  [[nodiscard]] std::optional<TensorSharding> sharding_of(ValueId value) const {
    const stablehlo::Value& described = function_.values[at(value)];
    if (!described.sharding.axes) return {};
    return meshes_.resolve(*described.sharding.axes, described.type.rank(),
                           {module_.file, "%" + described.name});
  }

  [[nodiscard]] DimAxes axes_of(ValueId value) const {
    DimAxes result(function_.type_of(value).rank());
    const auto sharding = sharding_of(value);
    for (std::size_t i = 0; sharding && i < result.size(); ++i) {
      result[i] = sharding->dimensions[i].axes;
    }
    return result;
  }

  [[nodiscard]] bool needs_replication(const Op& op, std::int64_t dim) const {
    const auto rule = stablehlo::factor_rule(module_, function_, op).rule;
    const int factor = rule->results.front()[at(dim)].front();
    return rule->factors[at(factor)].kind == stablehlo::FactorKind::need_replication;
  }

  void align(OpId id) {
    const Op op = function_.op(id);
    const ValueId result = op.results.front();
    const DimAxes result_axes = axes_of(result);
    std::vector<Tensor> tensors;
    std::vector<std::optional<TensorSharding>> shardings;
    bool alike = true;
    for (const ValueId operand : op.operands) {
      tensors.push_back({function_.type_of(operand).elements(), axes_of(operand)});
      shardings.push_back(sharding_of(operand));
      alike = alike && tensors.back().dims == result_axes;
    }
    tensors.push_back({function_.type_of(result).elements(), result_axes});
    shardings.push_back(sharding_of(result));
    if (alike) return;
    std::vector<const TensorSharding*> given;
    for (const auto& sharding : shardings) given.push_back(sharding ? &*sharding : nullptr);
    const auto mesh = meshes_.common(given);
    if (!mesh) return;
    const std::int64_t dim = OpView(module_, function_, op).integer({"dim", "dimension"}, 0);
    const DimAxes common = CommonAxes(std::move(tensors), at(dim), needs_replication(op, dim),
                                      function_.type_of(result).dims)
                               .find();
    TensorSharding sharding;
    sharding.mesh = *mesh;
    for (const Axes& axes : common) sharding.dimensions.push_back({axes, /*open=*/false});
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (axes_of(op.operands[i]) == common) continue;
      function_.ops[at(id)].operands[i] = reshard(op.operands[i], sharding, id, /*after=*/false);
    }
    if (result_axes == common) return;
    TensorSharding before = sharding;
    for (std::size_t i = 0; i < result_axes.size(); ++i) before.dimensions[i].axes = result_axes[i];
    const ValueId made = reshard(result, before, id, /*after=*/true);
    function_.values[at(result)].sharding.axes = meshes_.text_form(sharding);
    for (const Use& use : uses_[at(result)]) {
      function_.ops[at(use.op)].operands[use.operand] = made;
    }
  }

  ValueId reshard(ValueId value, const TensorSharding& sharding, OpId near, bool after) {
    Op op;
    op.name = "sdy.reshard";
    op.operands = {value};
    op.line = function_.op(near).line;
    const TensorType type = function_.type_of(value);
    const OpId made = editor_.create(std::move(op), type, near);
    if (after) {
      editor_.place_after(made, near);
    } else {
      editor_.place_before(made, near);
    }
    const ValueId result = function_.op(made).results.front();
    function_.values[at(result)].sharding.axes = meshes_.text_form(sharding);
    return result;
  }

  Module& module_;
  Function& function_;
  Meshes meshes_;
  FunctionEditor editor_;
  std::vector<std::vector<Use>> uses_;
};

}  // namespace

void align_concatenations(Module& program) {
  for (Function& function : program.functions) Aligner(program, function).run();
}

}  // namespace shardsim::spmd
