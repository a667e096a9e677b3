// A strategy: what gives every parameter, gradient, optimizer state, input and chosen activation
// its sharding. Named strategies are recipes over the mesh's axes, which have roles by their names
// (axis_roles.hpp):
//
//   replicate, dp   parameters whole everywhere; the batch over the data axes
//   fsdp            ZeRO-3: parameters, gradients and optimizer state sharded over the shard axis,
//                   gathered unit by unit in forward and again in backward
//   hsdp            fsdp over the shard axis within replicas over the other data axes
//   tp              Megatron: column and row splits over the model axis
//   fsdp+tp         both
//   megatron, ...   frameworks by their names, each with all that it does by itself
//                   (frameworks/framework.hpp)
//   rules           only what "rules" says; parameters that no rule matches are replicated
//
// "rules" may stand beside any recipe and goes before it. Beside the recipes there are the rule
// systems of other frameworks (rules/rule_system.hpp), under their own names and with keys of their
// own. In an experiment:
//
//   "strategy": "fsdp"
//   "strategy": {"name": "fsdp", "prefetch": 2, "reshard_after_forward": false}
//   "strategy": {"name": "fsdp", "gather": "tensor", "gather_embedding": false}
//   "strategy": {"name": "fsdp", "reshard_after_forward": 8}
//   "strategy": {"name": "rules", "batch_axes": ["data"],
//                "rules": [{"pattern": "(gate|up)_proj", "spec": ["model", null]},
//                          {"pattern": "down_proj",      "spec": [null, "model"]}]}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/owned_json.hpp"
#include "plan/mesh.hpp"
#include "sharding/partition_spec.hpp"
#include "strategies/layout/axis_roles.hpp"
#include "strategies/layout/context_layout.hpp"
#include "strategies/layout/expert_layout.hpp"
#include "strategies/pipeline.hpp"
#include "strategies/rules/system_axes.hpp"
#include "strategies/runtime/runtime.hpp"
#include "strategies/shifting_stages.hpp"

namespace shardsim {

struct Rule {
  std::string pattern;  // regular expression, searched in the name as match_partition_rules does
  PartitionSpec spec;   // shorter than the rank: the remaining dimensions are whole
  Place place;
};

enum class ShardDimension {
  first,    // dimension 0, padded when it does not divide (FSDP2)
  largest,  // the largest that divides, the later of equals; replicated when none does (JAX
            // practice)
  fitting   // dimension 0; 1 of experts where these are fewer than the devices that hold different
            // tokens (torchtitan/distributed/fsdp.py, Shard(1))
};

// Gradients that products make of an input that they share, as q, k and v do, where these are
// partial sums.
enum class InputGradients : std::uint8_t {
  together,  // added up, then reduced: one all-reduce (Megatron)
  apart,  // each reduced by itself: three (PyTorch, where each ColwiseParallel has its own input)
  late  // together, rows of experts as tokens, those of latents at what these are made of, and with
        // their weights' gradients (DTensor, of weights that are whole on every device)
};

// What an experiment says of a step: what its layout is made by (layout/assign.hpp makes it, of a
// graph and a mesh) and the runtime, both filled in by the recipe or rule system of that name. No
// pass of a recipe goes by the name.
struct Strategy {
  std::string name = "replicate";
  bool shards_parameters = false;  // fsdp, hsdp, fsdp+tp: over shard_axis
  bool splits_model = false;       // tp, fsdp+tp: over model_axis
  int zero_stage = 0;  // of all but fsdp, hsdp and fsdp+tp, which are stage 3 by themselves: 1
                       // shards the optimizer state over the batch axes, 2 the gradients too
  std::vector<std::string> batch_axes;     // default: the axes with the role batch or shard
  std::vector<std::string> sequence_axes;  // of the inputs' sequence dimension; default: none, or
                                           // what a rule system says
  std::string shard_axis;  // fsdp: default the axis with the role shard, else the only batch axis
  bool shards_over_context = false;  // over the sequence axes as well, behind it (torchtitan)
  ContextLayout context{};
  // tp, and where sequence_parallel: default the axis with the role model; else empty. Of a rule
  // system: an axis that is not for the batch, whatever its name.
  std::string model_axis;
  ShardDimension shard_dimension = ShardDimension::first;
  bool sequence_parallel = false;  // residual stream split along the sequence
  bool loss_parallel = true;       // the loss over a vocabulary that is split; false: over whole
                                   // logits, gathered to every device
  InputGradients input_gradients = InputGradients::together;
  bool gather_embedding = true;  // look-ups read the whole table (FSDP2); false: each device looks
                                 // all tokens up in its shard (XLA, where that sends less)
  std::vector<Rule> rules;       // for parameters
  bool whole_outputs = false;    // Workload::outputs are gathered to every device
  OwnedJson layout;  // as it is written out (layout/layout_json.hpp); null: by what stands above
  OwnedJson system;  // of a rule system: the object with its own keys; null for a recipe
  Place place;       // where the strategy is given
  std::vector<Rule> activations;  // for activations, by the names that `plan` prints
  // What a product reads from all of the model axes is kept as the device's own part of it and
  // gathered again in backward (Megatron-Core); false: as it was gathered (PyTorch).
  bool saves_sharded_inputs = false;
  // Of queries and keys before what is made of either, and the projection of multi-token prediction
  // is split over the model axis: Megatron-Core's modules (workloads/models/build.hpp).
  bool latents_first = false;
  bool split_latents = false;  // what makes latents of attention is split over the model axis
  std::optional<ExpertLayout> experts;   // of mixtures, dealt out over devices; none: as all else
  std::int64_t vocabulary_multiple = 1;  // to which the vocabulary is padded
  OwnedJson kernels;                     // null: nothing said
  std::vector<std::string> notes;        // of what is said and not modelled
  Runtime runtime;
  std::optional<ShiftingStages> shifting{};  // in place of a pipeline of several programs
  std::optional<Pipeline> pipeline;          // where the mesh has stages
  bool exchanges_messages = false;  // Megatron's interleaved 1F1B without overlap of messages

  [[nodiscard]] bool is_rule_system() const { return !system.is_null(); }
};

// Over which parameters are sharded, where they are; of a mesh with these axes.
[[nodiscard]] AxisList shard_axes(const Strategy& strategy, const Mesh& mesh);

// What the strategy's rule system says of the mesh's axes; nothing of a recipe.
[[nodiscard]] SystemAxes system_axes(const Strategy& strategy, const Mesh& mesh);

[[nodiscard]] std::vector<std::string> strategy_names();  // recipes, frameworks, then rule systems

// Reads a name or an object and fills in the defaults that depend on the mesh and what its axes are
// for. Throws InputError: unknown strategy, key or axis; an axis used twice; a recipe whose axis
// the mesh lacks. Axes that the strategy has no use for are left to `require_served_axes`.
[[nodiscard]] Strategy read_strategy(const JsonReader& json, const Mesh& mesh,
                                     const AxisRoles& roles = {});
// Every field; `read_strategy` of it gives the same options.
[[nodiscard]] Json strategy_to_json(const Strategy& options);

}  // namespace shardsim
