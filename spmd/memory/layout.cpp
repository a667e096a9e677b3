#include "spmd/memory/layout.hpp"

#include <algorithm>
#include <optional>

#include "base/index.hpp"
#include "stablehlo/dimension_numbers.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::spmd {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

namespace {

constexpr int no_dimension = -1;

// Where the dimensions of a value lie in the array that it is a slice or a view of.
struct Origin {
  ValueId root = 0;
  ValueId slice = 0;      // the dynamic slice of root
  std::vector<int> dims;  // of root, by dimension of the value
};

class Finder {
 public:
  Finder(const Module& module, const Function& main) : module_(module), main_(main) {
    copies_.turns_stack.resize(main.values.size());
    copies_.reordered_state.resize(main.values.size());
    copies_.foreign_result.resize(main.values.size());
    copies_.turned.resize(main.values.size());
    transposed_.resize(main.values.size());
  }

  LayoutCopies find() {
    region(0);
    return std::move(copies_);
  }

 private:
  void region(RegionId id) {
    for (const OpId op : main_.regions[at(id)].ops) visit(op);
  }

  void visit(OpId id) {
    const Op& op = main_.op(id);
    if (op.name == "stablehlo.while") {
      region(op.regions.back());
      stacked(op);
    } else if (op.name == "stablehlo.all_gather") {
      gathered(op);
    } else if (op.name == "stablehlo.dot_general") {
      dotted(op);
    } else if (op.name == "stablehlo.transpose") {
      sliced_and_transposed(op);
      if (is_turned(op)) copies_.turned[at(op.operands.front())] = true;
      transposed_[at(op.results.front())] = is_transposed_dot(op);
    } else if (op.regions.empty() && op.results.size() == 1) {
      // Elementwise ops and views hand the order on.
      const std::int64_t elements = main_.type_of(op.results.front()).elements();
      transposed_[at(op.results.front())] =
          std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId operand) {
            return transposed_[at(operand)] && main_.type_of(operand).elements() == elements;
          });
    }
  }

  bool is_transposed_dot(const Op& op) const {
    const ValueId operand = op.operands.front();
    const Op* dot = main_.definition(operand);
    if (dot == nullptr || dot->name != "stablehlo.dot_general") return false;
    return !dot_dimensions(OpView(module_, main_, *dot)).lhs_batching.empty() && is_turned(op);
  }

  // Another order of what is more than 1.
  bool is_turned(const Op& op) const {
    const ValueId operand = op.operands.front();
    const auto permutation = OpView(module_, main_, op).integers({"dims", "permutation"});
    std::int64_t last = -1;
    for (const std::int64_t from : permutation) {
      if (main_.type_of(operand).dims[at(from)] == 1) continue;
      if (from < last) return true;
      last = from;
    }
    return false;
  }

  // Which results of the loop stack what lies in a dot's order, computed there or sliced from a
  // stack that was turned.
  void stacked(const Op& loop) {
    const Region& body = main_.regions[at(loop.regions.back())];
    const Op& terminator = main_.op(body.ops.back());
    for (std::size_t i = 0; i < loop.results.size(); ++i) {
      const Op* update = main_.definition(terminator.operands[i]);
      if (update == nullptr || update->name != "stablehlo.dynamic_update_slice") continue;
      if (update->operands.front() != body.arguments[i]) continue;
      const ValueId part = update->operands[1];
      if (transposed_[at(part)]) copies_.foreign_result[at(loop.results[i])] = true;
      const auto origin = origin_of(part);
      if (origin && copies_.turns_stack[at(origin->slice)]) {
        copies_.reordered_state[at(body.arguments[i])] = true;
      }
    }
  }

  void gathered(const Op& op) {
    const auto dim = OpView(module_, main_, op).integer({"all_gather_dim"}, 0);
    const auto origin = origin_of(op.operands.front());
    if (!origin) return;
    const int place = origin->dims[at(dim)];
    for (const int other : origin->dims) {
      if (other >= 0 && other < place && main_.type_of(origin->root).dims[at(other)] > 1) {
        copies_.turns_stack[at(origin->slice)] = true;
      }
    }
  }

  // The slices of what an earlier loop stacked are turned before anything but a dot reads them.
  void sliced_and_transposed(const Op& op) {
    const auto origin = origin_of(op.operands.front());
    if (!origin || !is_turned(op)) return;
    for (const Op& reader : main_.ops) {
      if (reader.name == "stablehlo.dot_general") continue;
      if (std::find(reader.operands.begin(), reader.operands.end(), op.results.front()) ==
          reader.operands.end())
        continue;
      copies_.turns_stack[at(origin->slice)] = true;
      return;
    }
  }

  void dotted(const Op& op) {
    const DotDimensions dims = dot_dimensions(OpView(module_, main_, op));
    if (dims.lhs_batching.empty()) return;
    dotted(op.operands[0], dims.lhs_batching, dims.lhs_contracting);
    dotted(op.operands[1], dims.rhs_batching, dims.rhs_contracting);
  }

  void dotted(ValueId operand, const std::vector<int>& batch, const std::vector<int>& contracted) {
    const auto origin = origin_of(operand);
    if (!origin) return;
    const auto& sizes = main_.type_of(origin->root).dims;
    std::vector<int> part(sizes.size(), no_dimension);
    for (std::size_t i = 0; i < origin->dims.size(); ++i) {
      const int place = origin->dims[i];
      if (place == no_dimension || sizes[at(place)] == 1) continue;
      const auto is_in = [&](const std::vector<int>& list) {
        return std::find(list.begin(), list.end(), static_cast<int>(i)) != list.end();
      };
      part[at(place)] = is_in(batch) ? 0 : is_in(contracted) ? 2 : 1;
    }
    part.erase(std::remove(part.begin(), part.end(), no_dimension), part.end());
    if (std::is_sorted(part.begin(), part.end())) return;
    copies_.turns_stack[at(origin->slice)] = true;
    copies_.reordered_state[at(origin->root)] = true;
  }

  // The loop state that `value` is a slice or a view of, if it is one.
  std::optional<Origin> origin_of(ValueId value) const {
    Origin origin{value, value, {}};
    for (std::size_t i = 0; i < main_.type_of(value).rank(); ++i) {
      origin.dims.push_back(static_cast<int>(i));
    }
    bool is_slice = false;
    while (const Op* op = main_.definition(origin.root)) {
      const std::string& name = op->name;
      if (name == "stablehlo.dynamic_slice" || name == "stablehlo.dynamic_update_slice") {
        is_slice = true;
        if (name == "stablehlo.dynamic_slice") origin.slice = origin.root;
      } else if (name == "stablehlo.transpose") {
        const auto from = OpView(module_, main_, *op).integers({"dims", "permutation"});
        for (int& dim : origin.dims) {
          if (dim != no_dimension) dim = static_cast<int>(from[at(dim)]);
        }
      } else if (name == "stablehlo.reshape") {
        if (!through_reshape(*op, origin.dims)) return std::nullopt;
      } else if (name == "stablehlo.optimization_barrier") {
        origin.root = op->operands[at(main_.values[at(origin.root)].result)];
        continue;
      } else if (name != "stablehlo.convert" && name != "mhlo.copy" && name != "spmd.copy") {
        break;  // made by a kernel, perhaps in the region around
      }
      origin.root = op->operands.front();
    }
    if (!is_slice) return std::nullopt;
    return origin;
  }

  // Only dimensions of size 1 come and go.
  bool through_reshape(const Op& op, std::vector<int>& dims) const {
    const auto& from = main_.type_of(op.operands.front()).dims;
    const auto& to = main_.type_of(op.results.front()).dims;
    std::vector<int> place(to.size(), no_dimension);
    std::size_t f = 0;
    for (std::size_t t = 0; t < to.size(); ++t) {
      if (to[t] == 1) continue;
      while (f < from.size() && from[f] == 1) ++f;
      if (f == from.size() || from[f] != to[t]) return false;
      place[t] = static_cast<int>(f++);
    }
    for (int& dim : dims) {
      if (dim != no_dimension) dim = place[at(dim)];
    }
    return true;
  }

  const Module& module_;
  const Function& main_;
  LayoutCopies copies_;
  std::vector<bool> transposed_;  // lies in the order of a dot, not in its own
};

}  // namespace

LayoutCopies gpu_layout_copies(const Module& module, const Function& main) {
  return Finder(module, main).find();
}

}  // namespace shardsim::spmd
