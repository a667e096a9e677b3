#include "strategies/compile/parallelism_of.hpp"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "base/index.hpp"

namespace shardsim {
namespace {

bool is_part_of_any(const AxisRef& axis, const AxisList& axes) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](const AxisRef& other) { return other.axis == axis.axis; });
}

// Of what moves along with the tokens.
Parallelism of_activations(const AxisList& axes, const Mesh& mesh, const Layout& layout,
                           std::string_view stages_axis) {
  const auto any = [&](const auto& holds) { return std::any_of(axes.begin(), axes.end(), holds); };
  if (any([&](const AxisRef& axis) { return mesh.axes()[at(axis.axis)].name == stages_axis; })) {
    return Parallelism::pipeline;
  }
  if (any([&](const AxisRef& axis) { return is_part_of_any(axis, layout.sequence_axes); })) {
    return Parallelism::context;
  }
  const bool splits_batch = std::all_of(axes.begin(), axes.end(), [&](const AxisRef& axis) {
    return is_part_of_any(axis, layout.data_axes);
  });
  return splits_batch ? Parallelism::data : Parallelism::tensor;
}

}  // namespace

Parallelism parallelism_of(const Reason& reason, const AxisList& axes, const Mesh& mesh,
                           const Layout& layout, std::string_view stages_axis) {
  return std::visit(
      [&](const auto& fact) {
        using Fact = std::decay_t<decltype(fact)>;
        constexpr bool is_of_parameters =
            std::is_same_v<Fact, UnitGathered> || std::is_same_v<Fact, GradientsReduced> ||
            std::is_same_v<Fact, OptimizerReads> || std::is_same_v<Fact, UnitUpdated>;
        if constexpr (std::is_same_v<Fact, RowsExchanged> || std::is_same_v<Fact, RowsCounted>) {
          return Parallelism::expert;
        } else if constexpr (std::is_same_v<Fact, KeysPassedOn> ||
                             std::is_same_v<Fact, HeadsExchanged>) {
          return Parallelism::context;
        } else if constexpr (std::is_same_v<Fact, SharedAddedUp>) {
          return Parallelism::pipeline;
        } else if constexpr (std::is_same_v<Fact, LossAveraged> ||
                             std::is_same_v<Fact, MetricSummed>) {
          return Parallelism::scalars;
        } else if constexpr (is_of_parameters) {
          const bool is_of_data = std::any_of(axes.begin(), axes.end(), [&](const AxisRef& axis) {
            return is_part_of_any(axis, layout.data_axes);
          });
          return is_of_data ? Parallelism::data : Parallelism::tensor;
        } else {
          return of_activations(axes, mesh, layout, stages_axis);
        }
      },
      reason);
}

}  // namespace shardsim
