#include "strategies/layout/propagate.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/index.hpp"
#include "strategies/layout/factors.hpp"
#include "strategies/shifting_stages.hpp"

namespace shardsim {
namespace {

class Propagation {
 public:
  Propagation(const Workload& workload, const Layout& layout)
      : workload_(workload), layout_(layout), successions_(successions(workload)) {
    for (const Tensor& tensor : workload.tensors)
      shardings_.tensors.push_back(replicated(tensor.dims.size()));
    open_.assign(workload.tensors.size(), true);
    is_source_.assign(workload.tensors.size(), true);
    for (const auto& [tensor, sharding] : layout.pinned) pin(tensor, sharding);
    for (const ParameterLayout& a : layout.parameters) {
      pin(a.tensor, a.compute);
      is_source_[at(a.tensor)] = false;
      if (a.look_up != a.compute) shardings_.look_up[a.tensor] = a.look_up;
      if (a.look_up != a.compute || has_casts(a.tensor)) shardings_.summed[a.tensor] = a.gradient;
    }
  }

  TensorShardings run() {
    run_to_fixpoint(/*backwards=*/false);
    is_source_.assign(is_source_.size(), true);
    run_to_fixpoint(/*backwards=*/false);
    run_to_fixpoint(/*backwards=*/true);
    follow_primals();
    read_as_added();
    return std::move(shardings_);
  }

 private:
  void pin(TensorId tensor, const Sharding& sharding) {
    known(tensor) = sharding;
    open_[at(tensor)] = false;
  }

  void run_to_fixpoint(bool backwards) {
    bool changed = true;
    while (changed) {
      changed = false;
      for (std::size_t b = 0; b < workload_.blocks.size(); ++b) {
        const Block& block = workload_.blocks[b];
        for (const Op& op : block.forward) changed |= visit(op, backwards);
        for (auto op = block.forward.rbegin(); op != block.forward.rend(); ++op) {
          changed |= visit(*op, backwards);
        }
        changed |= tie_carries(b);
      }
    }
  }

  // What leaves a block is what enters those that follow it, but for axes over which examples of
  // all microbatches are dealt out.
  bool tie_carries(std::size_t b) {
    bool changed = false;
    for (const auto& [before, after] : successions_) {
      if (before != b) continue;
      changed |= tie(workload_.blocks[before].carries_out, workload_.blocks[after].carries_in);
    }
    return changed;
  }

  bool tie(const std::vector<TensorId>& out, const std::vector<TensorId>& in) {
    bool changed = false;
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (std::size_t d = 0; d < known(out[i]).dims.size(); ++d) {
        changed |= extend(out[i], d, as_in(out[i], d, in[i]));
        changed |= extend(in[i], d, as_in(in[i], d, out[i]));
      }
    }
    return changed;
  }

  // How a dimension of `there` lies `here`.
  [[nodiscard]] DimSharding as_in(TensorId here, std::size_t d, TensorId there) const {
    DimSharding sharding = known(there).dims[d];
    const bool is_at_end = !layout_.ends_axes.empty() && is_of_all(here, d) != is_of_all(there, d);
    if (!is_at_end) return sharding;
    std::erase_if(sharding.axes,
                  [&](const AxisRef& axis) { return overlaps_any(axis, layout_.ends_axes); });
    if (is_of_all(here, d)) {
      sharding.axes.insert(sharding.axes.begin(), layout_.ends_axes.begin(),
                           layout_.ends_axes.end());
    }
    return sharding;
  }

  [[nodiscard]] bool is_of_all(TensorId id, std::size_t d) const {
    const Dim& dim = workload_.tensors[at(id)].dims[d];
    return is_of_all_microbatches(workload_.labels[at(dim.front())]);
  }

  bool visit(const Op& op, bool backwards) {
    if (kind_of(op) == OpKind::exchange) return false;
    const bool both_ways = backwards || kind_of(op) == OpKind::elementwise;
    FactorAxes merged_axes;
    AxisList used;
    const auto merge = [&](const Operand& operand) {
      if (!is_source_[at(operand.tensor)]) return;
      for (auto& [factor, axes] : project(known(operand.tensor), operand.dims, workload_.labels)) {
        merge_factor(merged_axes[factor], axes, used);
      }
    };
    for (const Operand& operand : op.operands) merge(operand);
    if (both_ways) {
      for (const Operand& result : op.results) merge(result);
    }
    for (const LabelId factor : op.whole) merged_axes.erase(factor);

    bool changed = false;
    const auto extend_to = [&](const Operand& operand) {
      if (!open_[at(operand.tensor)]) return;
      const Sharding target = sharding_of(operand.dims, merged_axes, workload_.labels);
      for (std::size_t d = 0; d < target.dims.size(); ++d)
        changed |= extend(operand.tensor, d, target.dims[d]);
    };
    if (both_ways) {
      for (const Operand& operand : op.operands) extend_to(operand);
    }
    for (const Operand& result : op.results) extend_to(result);
    return changed;
  }

  static void merge_factor(AxisList& have, const AxisList& said, AxisList& used) {
    if (said.size() <= have.size() || !is_prefix(have, said)) return;
    for (std::size_t i = have.size(); i < said.size(); ++i) {
      if (overlaps_any(said[i], used)) return;
      have.push_back(said[i]);
      used.push_back(said[i]);
    }
  }

  bool extend(TensorId tensor, std::size_t d, const DimSharding& target) {
    Sharding& sharding = known(tensor);
    DimSharding& dim = sharding.dims[d];
    if (!open_[at(tensor)] || target.axes.size() <= dim.axes.size()) return false;
    if (!is_prefix(dim.axes, target.axes)) return false;
    const AxisList taken = split_axes(sharding);
    for (std::size_t i = dim.axes.size(); i < target.axes.size(); ++i) {
      if (overlaps_any(target.axes[i], taken)) return false;
    }
    dim = target;
    return true;
  }

  void follow_primals() {
    const std::vector<Sharding> made = as_made();
    for (std::size_t t = 0; t < workload_.tensors.size(); ++t) {
      const Tensor& tensor = workload_.tensors[t];
      if (tensor.primal == no_tensor) continue;
      const bool gradient = tensor.role == TensorRole::activation_gradient;
      known(static_cast<TensorId>(t)) = (gradient ? made : shardings_.tensors)[at(tensor.primal)];
    }
    follow_look_ups();
  }

  // Sums whose pin is not how their summands, which are pinned as well, say that they are added up.
  void read_as_added() {
    for (const Block& block : workload_.blocks) {
      for (const Op& op : block.forward) {
        if (op.function != Function::add || !are_pinned(op.operands)) continue;
        const Operand& sum = op.results.front();
        if (!are_pinned(op.results)) continue;
        FactorAxes added;
        AxisList used;
        for (const Operand& operand : op.operands) {
          for (const auto& [factor, axes] :
               project(known(operand.tensor), operand.dims, workload_.labels)) {
            merge_factor(added[factor], axes, used);
          }
        }
        const Sharding as_added = sharding_of(sum.dims, added, workload_.labels);
        if (as_added == known(sum.tensor)) continue;
        for (std::size_t t = 0; t < workload_.tensors.size(); ++t) {
          const Tensor& tensor = workload_.tensors[t];
          const bool is_gradient =
              tensor.role == TensorRole::activation_gradient && tensor.primal == sum.tensor;
          if (is_gradient) shardings_.read_as[static_cast<TensorId>(t)] = as_added;
        }
      }
    }
  }

  [[nodiscard]] bool are_pinned(const std::vector<Operand>& operands) const {
    return std::all_of(operands.begin(), operands.end(), [&](const Operand& operand) {
      const bool is_activation =
          workload_.tensors[at(operand.tensor)].role == TensorRole::activation;
      return is_activation && !open_[at(operand.tensor)];
    });
  }

  // Gradients of tables are made where their look-ups read them, and added up where they are kept.
  void follow_look_ups() {
    for (const Block& block : workload_.blocks) {
      for (const Op& op : block.backward) {
        if (kind_of(op) == OpKind::einsum) continue;
        const auto& homes = kind_of(op) == OpKind::lookup ? shardings_.look_up : shardings_.summed;
        for (const Operand& result : op.results) {
          const Tensor& tensor = workload_.tensors[at(result.tensor)];
          const auto home = homes.find(tensor.primal);
          const bool gradient = tensor.role == TensorRole::parameter_gradient;
          if (gradient && home != homes.end()) known(result.tensor) = home->second;
        }
      }
    }
  }

  // Is a gradient of this parameter cast, to be added to others?
  [[nodiscard]] bool has_casts(TensorId parameter) const {
    std::optional<DType> dtype;
    return std::any_of(workload_.tensors.begin(), workload_.tensors.end(), [&](const Tensor& t) {
      if (t.role != TensorRole::parameter_gradient || t.primal != parameter) return false;
      return t.dtype != std::exchange(dtype, t.dtype).value_or(t.dtype);
    });
  }

  // How the op that makes a value leaves it, before it is brought to where it is pinned. Partial
  // sums have to be reduced anyway: they count as brought.
  [[nodiscard]] std::vector<Sharding> as_made() const {
    std::vector<Sharding> made = shardings_.tensors;
    for (const Block& block : workload_.blocks) {
      for (const Op& op : block.forward) {
        if (kind_of(op) == OpKind::exchange) continue;
        const FactorAxes factors = choose_factors(workload_, op, shardings_);
        for (const Operand& result : op.results) {
          if (!open_[at(result.tensor)] && summed_axes(op, result.dims, factors).empty()) {
            made[at(result.tensor)] = sharding_of(result.dims, factors, workload_.labels);
          }
        }
      }
    }
    return made;
  }

  [[nodiscard]] Sharding& known(TensorId tensor) { return shardings_.tensors[at(tensor)]; }
  [[nodiscard]] const Sharding& known(TensorId tensor) const {
    return shardings_.tensors[at(tensor)];
  }

  const Workload& workload_;
  const Layout& layout_;
  std::vector<Succession> successions_;
  TensorShardings shardings_;
  std::vector<bool> open_;
  std::vector<bool> is_source_;  // false: its sharding is not propagated in this round
};

}  // namespace

TensorShardings propagate(const Workload& workload, const Layout& layout) {
  return Propagation(workload, layout).run();
}

}  // namespace shardsim
