#include "spmd/align_pieces.hpp"

#include <algorithm>
#include <tuple>

#include "spmd/function_editor.hpp"
#include "spmd/tensor_sharding.hpp"
#include "stablehlo/op_rules.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::FactorKind;
using stablehlo::Function;
using stablehlo::Module;
using stablehlo::Op;
using stablehlo::OpId;
using stablehlo::ValueId;

std::size_t at(std::int64_t id) { return static_cast<std::size_t>(id); }

// One tensor of a concatenation.
struct Voter {
  std::vector<DimensionAxes> dimensions;
  std::int64_t elements = 0;
};

struct Candidate {
  std::size_t dim = 0;
  Axes axes;
  std::int64_t votes = 0;  // elements of the tensors of which this is a prefix
  int rank = 0;            // of the kind of dimension
  std::int64_t gain = 1;   // how much finer than what is decided so far

  [[nodiscard]] auto key() const {
    std::vector<std::tuple<int, std::int64_t, std::int64_t>> parts;
    for (const Axis& axis : axes) parts.emplace_back(axis.index, axis.pre_size, axis.size);
    return std::tuple(votes, rank, gain, dim, parts);
  }
};

int rank_of(FactorKind kind) {
  switch (kind) {
    case FactorKind::pass_through:
      return 3;
    case FactorKind::reduction:
      return 2;
    case FactorKind::permutation:
      return 1;
    case FactorKind::need_replication:
      return 0;
  }
  return 0;
}

std::vector<Candidate> candidates_of(const std::vector<Voter>& voters,
                                     const std::vector<FactorKind>& kinds) {
  std::vector<Candidate> result;
  for (const Voter& voter : voters) {
    for (std::size_t dim = 0; dim < kinds.size(); ++dim) {
      for (Axes axes = voter.dimensions[dim].axes; !axes.empty(); axes.pop_back()) {
        const auto same = [&](const Candidate& other) {
          return other.dim == dim && other.axes == axes;
        };
        if (std::any_of(result.begin(), result.end(), same)) continue;
        result.push_back({dim, axes, 0, rank_of(kinds[dim]), total_size(axes)});
      }
    }
  }
  for (Candidate& candidate : result) {
    for (const Voter& voter : voters) {
      if (is_prefix(candidate.axes, voter.dimensions[candidate.dim].axes)) {
        candidate.votes += voter.elements;
      }
    }
  }
  return result;
}

// The longest prefix that shares nothing with `others`.
Axes without(const Axes& axes, const Axes& others) {
  Axes result;
  for (const Axis& axis : axes) {
    const std::optional<Axis> part = prefix_without(axis, others);
    if (part) result.push_back(*part);
    if (part != axis) break;
  }
  return result;
}

std::vector<Axes> elect(std::vector<Candidate> candidates, std::size_t rank) {
  std::vector<Axes> result(rank);
  while (!candidates.empty()) {
    const Candidate best =
        *std::max_element(candidates.begin(), candidates.end(),
                          [](const Candidate& a, const Candidate& b) { return a.key() < b.key(); });
    result[best.dim] = best.axes;
    std::vector<Candidate> left;
    for (Candidate& candidate : candidates) {
      const Axes& decided = result[candidate.dim];
      if (candidate.dim == best.dim) {
        if (!is_strict_prefix(decided, candidate.axes)) continue;
        candidate.gain = total_size(candidate.axes) / total_size(decided);
      } else {
        const Axes trimmed = without(candidate.axes, best.axes);
        const bool is_trimmed = trimmed != candidate.axes;
        candidate.axes = trimmed;
        if (is_trimmed && trimmed == decided) continue;
        candidate.gain =
            total_size(candidate.axes) / (is_trimmed ? total_size(decided) : std::int64_t{1});
      }
      left.push_back(std::move(candidate));
    }
    candidates = std::move(left);
  }
  return result;
}

// Axes of a dimension that cannot be split, to others that have room for them.
void move_elsewhere(std::vector<Axes>& axes, std::size_t from, const std::vector<FactorKind>& kinds,
                    const std::vector<std::int64_t>& sizes) {
  Axes moving;
  std::swap(moving, axes[from]);
  for (std::size_t dim = 0; dim < axes.size(); ++dim) {
    const std::int64_t tiles = total_size(axes[dim]);
    if (kinds[dim] != FactorKind::pass_through || sizes[dim] % tiles != 0) continue;
    std::int64_t room = sizes[dim] / tiles;
    while (!moving.empty() && room % moving.front().size == 0) {
      room /= moving.front().size;
      append(axes[dim], moving.front());
      moving.erase(moving.begin());
    }
  }
}

class PieceAligner {
 public:
  PieceAligner(const Module& module, Function& function)
      : module_(module), function_(function), meshes_(module), editor_(function) {}

  void run() {
    for (const OpId id : ops_in_order(function_)) {
      if (function_.op(id).name == "stablehlo.concatenate") align(id);
    }
    editor_.commit();
  }

 private:
  [[nodiscard]] TensorSharding sharding_of(ValueId value, const Op& op) const {
    const std::size_t rank = function_.type_of(value).rank();
    const auto& sharding = function_.values[at(value)].sharding.axes;
    return sharding ? meshes_.resolve(*sharding, rank, module_.place_of(op))
                    : open_sharding(0, rank);
  }

  void align(OpId id) {
    const Op op = function_.op(id);
    std::vector<ValueId> values = op.operands;
    values.push_back(op.results.front());
    std::vector<TensorSharding> shardings;
    std::vector<const TensorSharding*> said;
    std::vector<Voter> voters;
    for (const ValueId value : values) {
      shardings.push_back(sharding_of(value, op));
      voters.push_back({shardings.back().dimensions, function_.type_of(value).elements()});
    }
    for (const TensorSharding& sharding : shardings) said.push_back(&sharding);
    const std::optional<int> mesh = meshes_.common(said);
    const auto alike = [&](const TensorSharding& sharding) {
      return same_axes(sharding, shardings.back());
    };
    const auto rule = stablehlo::factor_rule(module_, function_, op).rule;
    if (!mesh || !rule || std::all_of(shardings.begin(), shardings.end(), alike)) return;

    const std::vector<std::int64_t>& sizes = function_.type_of(values.back()).dims;
    std::vector<FactorKind> kinds;
    for (const auto& factors : rule->results.front()) {
      kinds.push_back(rule->factors[at(factors.front())].kind);
    }
    std::vector<Axes> common = elect(candidates_of(voters, kinds), sizes.size());
    for (std::size_t dim = 0; dim < kinds.size(); ++dim) {
      if (kinds[dim] == FactorKind::need_replication) move_elsewhere(common, dim, kinds, sizes);
    }
    TensorSharding target;
    target.mesh = *mesh;
    for (Axes& axes : common) target.dimensions.push_back({std::move(axes), false});
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (!same_axes(shardings[i], target)) reshard_piece(id, i, target);
    }
    if (!same_axes(shardings.back(), target)) reshard_result(id, target);
  }

  [[nodiscard]] static bool same_axes(const TensorSharding& a, const TensorSharding& b) {
    return std::equal(a.dimensions.begin(), a.dimensions.end(), b.dimensions.begin(),
                      [](const auto& x, const auto& y) { return x.axes == y.axes; });
  }

  ValueId create_reshard(ValueId operand, OpId near) {
    Op op;
    op.name = "sdy.reshard";
    op.operands = {operand};
    op.line = function_.op(near).line;
    const OpId made = editor_.create(std::move(op), function_.type_of(operand), near);
    return function_.op(made).results.front();
  }

  void reshard_piece(OpId id, std::size_t operand, const TensorSharding& target) {
    const ValueId made = create_reshard(function_.op(id).operands[operand], id);
    function_.values[at(made)].sharding = {meshes_.text_form(target), std::nullopt};
    editor_.place_before(function_.values[at(made)].defined_by, id);
    function_.ops[at(id)].operands[operand] = made;
  }

  // All readers of the result read what it is brought back to.
  void reshard_result(OpId id, const TensorSharding& target) {
    const ValueId result = function_.op(id).results.front();
    const std::size_t known = function_.ops.size();
    const ValueId made = create_reshard(result, id);
    function_.values[at(made)].sharding = function_.values[at(result)].sharding;
    function_.values[at(result)].sharding = {meshes_.text_form(target), std::nullopt};
    editor_.place_after(function_.values[at(made)].defined_by, id);
    for (std::size_t i = 0; i < known; ++i) {
      auto& operands = function_.ops[i].operands;
      std::replace(operands.begin(), operands.end(), result, made);
    }
  }

  const Module& module_;
  Function& function_;
  Meshes meshes_;
  FunctionEditor editor_;
};

}  // namespace

void align_pieces(Module& program) {
  if (program.meshes.empty()) return;
  for (Function& function : program.functions) PieceAligner(program, function).run();
}

}  // namespace shardsim::spmd
