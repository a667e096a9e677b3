// Frameworks by their names: what each does by itself, filled into the plain values that a strategy
// is made of. Nothing else in the code knows a framework's name; whatever one fills in can be said
// by hand, is printed with a result, and may be overridden key by key.
//
//   "strategy": {"name": "megatron", "sequence_parallel": true, "distributed_optimizer": true}
//
// To add one: a source with its functions and its keys, and its row in frameworks.cpp.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "base/json_reader.hpp"
#include "strategies/layout/assign.hpp"
#include "strategies/strategy.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

struct Framework {
  std::string_view name;
  std::string_view meaning;
  std::vector<std::string_view> keys = {};  // of its own, beside those of all recipes
  // "precision" of a workload that does not say it: {"gradients", "fp32"}. Then what its words for
  // rematerialization mean, as JSON: {"selective", R"({"modules": ["core_attention"]})"}.
  std::vector<std::pair<std::string_view, std::string_view>> precision = {};
  std::vector<std::pair<std::string_view, std::string_view>> rematerialization = {};
  // Before any key is read: what it is without being told.
  void (*begin)(const JsonReader& strategy, const Mesh& mesh, const AxisRoles& roles,
                Strategy& options) = nullptr;
  // Once keys and axes are known, from keys of its own and the numbers of the mesh.
  void (*finish)(const JsonReader& strategy, const Mesh& mesh, Strategy& options) = nullptr;
  // Of a strategy with stages: how its schedule is run.
  void (*stages)(Strategy& options) = nullptr;
  // Of a model: throws InputError where the framework itself refuses it (model_checks.hpp).
  void (*check)(const Workload& workload, const Step& step, const Mesh& mesh,
                const Strategy& strategy, const Layout& layout) = nullptr;
};

[[nodiscard]] const std::vector<Framework>& frameworks();
[[nodiscard]] const Framework* find_framework(std::string_view name);  // nullptr: none

// A workload with the types that the strategy's framework has where it says none, and its words for
// rematerialization resolved.
[[nodiscard]] Json with_framework_defaults(const JsonReader& workload, std::string_view strategy);

// Has the mesh an axis with that role and more than one device?
[[nodiscard]] bool has_axis(const Mesh& mesh, const AxisRoles& roles, AxisRole role);

// Keys that frameworks share. Of each that is not modelled yet a note in the strategy says so.
//   kernels   eager, compiled, transformer-engine, xla, or an object: which operations are one
//             kernel (compile/kernel_lists.hpp)
void read_kernels(const JsonReader& strategy, Strategy& options);
// Of kernels of eager PyTorch that do not say what is "fused": Megatron's own, which it has unless
// told otherwise (--no-masked-softmax-fusion, --no-bias-dropout-fusion), and Megatron-DeepSpeed.
void fuse_as_megatron(Strategy& options);
//   over the mesh's axis for context the sequence is split, and attention reads it so
void split_context(const Mesh& mesh, const AxisRoles& roles, ContextMethod method,
                   Strategy& options);

}  // namespace shardsim
