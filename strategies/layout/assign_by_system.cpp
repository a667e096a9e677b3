#include "strategies/layout/assign_by_system.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "strategies/rules/pattern_rules.hpp"
#include "workloads/views/tree_leaves.hpp"

namespace shardsim {
namespace {

class SystemAssigner {
 public:
  SystemAssigner(const Workload& workload, const Mesh& mesh, const Strategy& strategy,
                 Layout& layout)
      : workload_(workload), mesh_(mesh), strategy_(strategy), result_(layout) {}

  // The rule system sees the leaves of the workload's view: every instance of a repeated block, or
  // layers stacked.
  void run() {
    std::vector<TreeLeaf> leaves = tree_leaves(workload_);
    ParameterTree tree{workload_.model, {}};
    tree.leaves.reserve(leaves.size());
    for (TreeLeaf& made : leaves) {
      tree.leaves.push_back(std::move(made.leaf));
      tree.leaves.back().dtype = result_.stored_dtype;
      tree.leaves.back().place = strategy_.place;
      if (strategy_.shifting) stack_stages(made, tree.leaves.back());
    }
    const RuleSystem& system = *find_rule_system(strategy_.name);
    if (system.reads_logical_axes) require_logical_axes(tree);
    SpecAssignment specs =
        system.assign(tree, mesh_, JsonReader(*strategy_.system, strategy_.place));
    require_fitting_rules(specs, tree);
    result_.rules = specs.rules;
    std::vector<ParameterLayout*> layouts(workload_.tensors.size());
    for (ParameterLayout& a : result_.parameters) layouts[at(a.tensor)] = &a;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const LeafSpec& given = specs.leaves[i];
      if (all_have(layouts, leaves[i], given)) continue;  // the next expert of many
      const Sharding sharding =
          without_unit_axes(to_sharding(given.spec, leaves[i].dims.size(), mesh_, strategy_.place));
      require_whole_layers(leaves[i], tree.leaves[i], sharding);
      for (const TreeLeaf::Instance& instance : leaves[i].holds) {
        ParameterLayout& a = *layouts[at(instance.tensor)];
        Sharding stored = of_parameter(leaves[i], sharding, a.shape.size());
        if (!a.from_system) {
          a.stored = std::move(stored);
          a.rule = given.rule;
          a.reason = given.reason;
          a.from_system = given;
          a.assigned_by = decided_by(given, specs.rules);
        } else if (a.stored != stored) {
          fail_apart(strategy_.place, "the rules tell", workload_.tensors[at(a.tensor)].name,
                     a.numbers.front(), instance.number);
        }
      }
    }
    if (workload_.view) result_.leaves = std::move(specs.leaves);
    for (std::string& warning : system_warnings(strategy_.name, specs.warnings)) {
      result_.warnings.push_back(std::move(warning));
    }
  }

 private:
  // Leaves of one parameter have their dimensions alike.
  static bool all_have(const std::vector<ParameterLayout*>& layouts, const TreeLeaf& leaf,
                       const LeafSpec& given) {
    return std::all_of(leaf.holds.begin(), leaf.holds.end(), [&](const TreeLeaf::Instance& held) {
      const std::optional<LeafSpec>& known = layouts[at(held.tensor)]->from_system;
      return known && *known == given;
    });
  }

  void require_logical_axes(const ParameterTree& tree) const {
    const bool has = std::any_of(tree.leaves.begin(), tree.leaves.end(),
                                 [](const ParameterLeaf& leaf) { return leaf.logical_axes; });
    if (has) return;
    throw InputError(
        strategy_.place,
        fmt::format(
            "strategy \"{}\" goes by names of dimensions, which the parameters of {} do not "
            "have under {}: view \"flax\" has them",
            strategy_.name, workload_.model,
            workload_.view ? fmt::format("view \"{}\"", workload_.view->name) : "their own names"));
  }

  // Rules see the layers of all stages in a stack, of which the workload has those of one.
  void stack_stages(const TreeLeaf& made, ParameterLeaf& leaf) const {
    if (made.layers_at) leaf.shape[*made.layers_at] *= strategy_.shifting->stages;
  }

  // A step computes layer by layer: each device has all of them, or a pipeline's stage.
  void require_whole_layers(const TreeLeaf& leaf, const ParameterLeaf& seen,
                            const Sharding& sharding) const {
    for (std::size_t d = 0; d < leaf.dims.size(); ++d) {
      const AxisList& axes = sharding.dims[d].axes;
      if (leaf.dims[d] || axes.empty()) continue;
      // Stages that shift: the workload has the layers of one.
      const bool are_stages = strategy_.shifting && axes.size() == 1 &&
                              axes.front() == mesh_.whole(*mesh_.find(strategy_.shifting->axis));
      if (are_stages) continue;
      throw InputError(
          strategy_.place,
          fmt::format("the rules split the {} layers of {} over {}: a step has all layers on every "
                      "device; a parameter tree shows such specs",
                      seen.shape[d], seen.name,
                      fmt::join(mesh_.names_of(sharding.dims[d].axes), ", ")));
    }
  }

  static Sharding of_parameter(const TreeLeaf& leaf, const Sharding& sharding, std::size_t rank) {
    Sharding result = replicated(rank);
    for (std::size_t d = 0; d < leaf.dims.size(); ++d) {
      if (leaf.dims[d]) result.dims[*leaf.dims[d]] = sharding.dims[d];
    }
    return result;
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

  const Workload& workload_;
  const Mesh& mesh_;
  const Strategy& strategy_;
  Layout& result_;
};

}  // namespace

void assign_by_system(const Workload& workload, const Mesh& mesh, const Strategy& strategy,
                      Layout& layout) {
  SystemAssigner(workload, mesh, strategy, layout).run();
}

Sharding of_leaf(const TreeLeaf& leaf, const Sharding& parameter) {
  Sharding result = replicated(leaf.dims.size());
  for (std::size_t d = 0; d < leaf.dims.size(); ++d) {
    if (leaf.dims[d]) result.dims[d] = parameter.dims[*leaf.dims[d]];
  }
  return result;
}

}  // namespace shardsim
