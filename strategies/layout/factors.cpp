#include "strategies/layout/factors.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sharding/reshard.hpp"

namespace shardsim {
namespace {

// Bytes that one device sends for parameters and their gradients, then for everything else.
using Price = std::pair<std::int64_t, std::int64_t>;

// One axis on one factor, as some tensor has it.
struct Proposal {
  LabelId factor = 0;
  AxisRef axis;
};

bool has_factor(const std::vector<Dim>& dims, LabelId factor) {
  return std::any_of(dims.begin(), dims.end(), [&](const Dim& dim) {
    return std::find(dim.begin(), dim.end(), factor) != dim.end();
  });
}

bool in_a_statistic(const Op& op, LabelId factor) {
  return std::any_of(op.statistics.begin(), op.statistics.end(), [&](const Statistic& statistic) {
    return !statistic.is_gathered &&
           std::find(statistic.over.begin(), statistic.over.end(), factor) != statistic.over.end();
  });
}

class FactorChoice {
 public:
  FactorChoice(const Workload& workload, const Op& op, const TensorShardings& shardings)
      : workload_(workload), op_(op), shardings_(shardings) {
    // Activations before parameters: between equally cheap choices the data stays where it is.
    for (const bool parameters : {false, true}) {
      for (const Operand& operand : op.operands) {
        const bool is_parameter = tensor(operand).role == TensorRole::parameter;
        if (is_parameter == parameters) propose(operand);
      }
      if (!parameters) {
        for (const Operand& result : op.results) propose(result);
      }
    }
  }

  FactorAxes cheapest() {
    FactorAxes best;
    Price best_price{std::numeric_limits<std::int64_t>::max(), 0};
    std::vector<std::size_t> choice(conflicts_.size(), 0);
    do {
      FactorAxes factors = take(choice);
      if (conflicts_.empty()) return factors;
      const Price asked = price(factors);
      if (asked < best_price) {
        best_price = asked;
        best = std::move(factors);
      }
    } while (next(choice));
    return best;
  }

 private:
  // An axis that tensors want on different factors.
  struct Conflict {
    AxisRef axis;
    std::vector<LabelId> factors;
  };

  [[nodiscard]] const Tensor& tensor(const Operand& operand) const {
    return workload_.tensors[static_cast<std::size_t>(operand.tensor)];
  }
  [[nodiscard]] const Sharding& sharding(const Operand& operand) const {
    return shardings_.of(op_, operand.tensor);
  }

  void propose(const Operand& operand) {
    for (const auto& [factor, axes] : project(sharding(operand), operand.dims, workload_.labels)) {
      if (std::count(op_.whole.begin(), op_.whole.end(), factor) > 0) continue;
      for (const AxisRef& axis : axes) add(factor, axis);
    }
  }

  void add(LabelId factor, const AxisRef& axis) {
    for (const Proposal& known : proposals_) {
      if (known.factor == factor && known.axis == axis) return;
    }
    for (const Proposal& known : proposals_) {
      if (known.axis == axis && known.factor != factor) note_conflict(axis, known.factor, factor);
    }
    proposals_.push_back({factor, axis});
  }

  void note_conflict(const AxisRef& axis, LabelId first, LabelId second) {
    const auto known = std::find_if(conflicts_.begin(), conflicts_.end(),
                                    [&](const Conflict& c) { return c.axis == axis; });
    Conflict& conflict =
        known != conflicts_.end() ? *known : conflicts_.emplace_back(Conflict{axis, {}});
    for (const LabelId factor : {first, second}) {
      if (std::count(conflict.factors.begin(), conflict.factors.end(), factor) == 0) {
        conflict.factors.push_back(factor);
      }
    }
  }

  // The proposals that a choice per conflict leaves. Parts of one axis that overlap without being
  // equal: the first stays.
  [[nodiscard]] FactorAxes take(const std::vector<std::size_t>& choice) const {
    FactorAxes factors;
    AxisList used;
    for (const Proposal& proposal : proposals_) {
      bool rejected = false;
      for (std::size_t c = 0; c < conflicts_.size(); ++c) {
        rejected |= conflicts_[c].axis == proposal.axis &&
                    conflicts_[c].factors[choice[c]] != proposal.factor;
      }
      if (rejected || overlaps_any(proposal.axis, used)) continue;
      factors[proposal.factor].push_back(proposal.axis);
      used.push_back(proposal.axis);
    }
    return factors;
  }

  // Counts through all choices, the last conflict fastest.
  bool next(std::vector<std::size_t>& choice) const {
    for (std::size_t c = conflicts_.size(); c-- > 0;) {
      if (++choice[c] < conflicts_[c].factors.size()) return true;
      choice[c] = 0;
    }
    return false;
  }

  [[nodiscard]] Price price(const FactorAxes& factors) const {
    Price asked{0, 0};
    for (const Operand& operand : op_.operands) {
      const Sharding needed = sharding_of(operand.dims, factors, workload_.labels);
      const bool parameter = tensor(operand).role == TensorRole::parameter;
      (parameter ? asked.first : asked.second) += wire_bytes(operand, sharding(operand), needed);
    }
    for (const Operand& result : op_.results) {
      Sharding made = sharding_of(result.dims, factors, workload_.labels);
      made.partial = summed_axes(op_, result.dims, factors);
      const bool parameter = tensor(result).role == TensorRole::parameter_gradient;
      (parameter ? asked.first : asked.second) += wire_bytes(result, made, sharding(result));
    }
    return asked;
  }

  [[nodiscard]] std::int64_t wire_bytes(const Operand& operand, const Sharding& from,
                                        const Sharding& to) const {
    return wire_elements(reshard(workload_.shape(operand.dims), from, to)) *
           size_of(tensor(operand).dtype).count();
  }

  const Workload& workload_;
  const Op& op_;
  const TensorShardings& shardings_;
  std::vector<Proposal> proposals_;
  std::vector<Conflict> conflicts_;
};

}  // namespace

FactorAxes choose_factors(const Workload& workload, const Op& op,
                          const TensorShardings& shardings) {
  if (kind_of(op) == OpKind::exchange) return {};  // each side lies in its own way
  return FactorChoice(workload, op, shardings).cheapest();
}

AxisList summed_axes(const Op& op, const std::vector<Dim>& dims, const FactorAxes& factors) {
  AxisList axes;
  const std::vector<LabelId> all = shardsim::factors(op);
  for (const LabelId factor : all) {
    const auto found = factors.find(factor);
    if (found == factors.end() || has_factor(dims, factor) || in_a_statistic(op, factor)) continue;
    axes.insert(axes.end(), found->second.begin(), found->second.end());
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

}  // namespace shardsim
