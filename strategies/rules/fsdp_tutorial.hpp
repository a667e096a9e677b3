// Fully sharded data parallelism written by hand with shard_map, as the UvA deep learning tutorials
// do it: flax boxes name the axis of each dimension, parameters are gathered before a module runs
// and their gradients scattered after it.
//
//   shard_params over data=8, min_weight_size 2^18
//     [784, 512]   401,408 elements, dimension 0 is largest and divides -> [98, 512], P(data, None)
//     [512, 512]   262,144 is not more than 2^18                        -> whole, P()
//     [513, 512]   513 does not divide                                  -> [513, 64], P(None, data)
//
// Shapes are those of one device: what an earlier axis has split counts as split. The dimension is
// the largest that divides and is free (dimension_order.hpp).
//
// Reproduced on purpose:
//   an array of exactly min_weight_size elements stays whole
//   an axis of size 1 is named too
//   "data" is not found inside ("data", "pipe"): such a parameter is split over data once more,
//   and gather_params over data leaves it alone
//   the axes to sync_gradients as a bare string are its letters for boxed gradients
//
// Row "fsdp_tutorial": {"axis": "data", "min_weight_size": 262144, "argsort": "stable"}; the axis
// may be a list, which is one entry of the spec; "argsort" is of dimension_order.hpp. Further keys:
//   "modules": ["input_dense"]                those that shard_module_params wraps: parameters in
//                                             whose names one of these patterns is found; without
//                                             the key all
//   "partitioned": [["up$", [null, "tp"]]]    boxes as they are before, of the first pattern found
//
//   partitioned [null, "tp"] of [512, 2048] over data=8, tp=2: [512, 1024] on a device, of which
//   dimension 1 is the largest, but taken: P(data, tp), [64, 1024]
//
// Source: phlippe/uvadlc_notebooks scaling/JAX/data_parallel.py at 0da8037.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "base/pattern.hpp"
#include "plan/mesh.hpp"
#include "sharding/partition_spec.hpp"
#include "strategies/rules/dimension_order.hpp"
#include "strategies/rules/rule_system.hpp"

namespace shardsim {

// A name in a flax box: an axis, or a tuple of axes, which is equal to no single axis.
struct BoxName {
  std::vector<std::string> axes;
  bool is_tuple = false;
  friend bool operator==(const BoxName&, const BoxName&) = default;
};

using BoxNames = std::vector<std::optional<BoxName>>;  // one per dimension

// An array as one device holds it: plain, or in a box with names.
struct BoxedArray {
  std::vector<std::int64_t> shape;
  std::optional<BoxNames> names;
  friend bool operator==(const BoxedArray&, const BoxedArray&) = default;
};

[[nodiscard]] BoxName read_box_name(const JsonReader& json);  // "data", ["data", "pipe"]
[[nodiscard]] std::string to_string(const BoxName& name);     // data, (data, pipe)
[[nodiscard]] PartitionSpec spec_of(const BoxedArray& array);

// Devices along the axis. Throws RuleError (NameError) for an axis that the mesh lacks.
[[nodiscard]] std::int64_t axis_size(const BoxName& axis, const Mesh& mesh, const Place& place);

enum class ShardOutcome : std::uint8_t {
  sharded,
  already_sharded,  // the axis is among the names; the tutorial warns
  too_small,        // not more than min_weight_size
  no_dimension,     // none free that divides; the tutorial warns
  not_wrapped,      // shard_params never sees it
};

struct ShardedParameter {
  BoxedArray array;
  ShardOutcome outcome = ShardOutcome::sharded;
  std::optional<std::size_t> dimension;  // when sharded
};

[[nodiscard]] ShardedParameter shard_params(const BoxedArray& array, const BoxName& axis,
                                            std::int64_t axis_size, std::int64_t min_weight_size,
                                            EqualDimensions ties = EqualDimensions::stable,
                                            const Place& place = {});

struct GatheredArray {
  BoxedArray array;
  std::optional<std::size_t> dimension;  // what was gathered
};

// The box goes with its last name.
[[nodiscard]] GatheredArray gather_params(const BoxedArray& array, const BoxName& axis,
                                          std::int64_t axis_size);

// The axes given to sync_gradients.
struct SyncAxes {
  std::vector<std::string> axes;
  bool is_bare_string = false;  // then `axes` is this one string
};

// Those that the gradient is averaged over, in order: all for a plain array, for a box those that
// none of its names holds. Throws RuleError (NameError) when they are letters of a bare string.
[[nodiscard]] std::vector<std::string> sync_gradients(const std::optional<BoxNames>& names,
                                                      const SyncAxes& axes, const Place& place);

// "partitioned": the box of parameters in whose names the pattern is found.
struct PartitionedRule {
  Pattern pattern;
  BoxNames names;
  std::string text;
  Place place;
};

struct WrappedModule {
  Pattern pattern;
  std::string text;
  Place place;
};

struct FsdpTutorial {
  BoxName axis;
  std::int64_t min_weight_size = std::int64_t{1} << 18;
  EqualDimensions ties = EqualDimensions::stable;
  std::optional<std::vector<WrappedModule>> modules{};  // nothing: all
  std::vector<PartitionedRule> partitioned{};
};

// Those of the lists above that match a name, by index.
struct TutorialMatches {
  std::vector<std::size_t> modules, partitioned;
};
[[nodiscard]] TutorialMatches matches_of(const std::string& name, const FsdpTutorial& options);

// A parameter before shard_params, on one device: a shard (the largest) of what is partitioned
// already. Throws RuleError: names for another number of dimensions (ValueError), of axes that the
// mesh lacks (NameError).
[[nodiscard]] BoxedArray before_sharding(const ParameterLeaf& leaf, const FsdpTutorial& options,
                                         const Mesh& mesh);
// The same after it, if its module is wrapped.
[[nodiscard]] ShardedParameter after_sharding(const ParameterLeaf& leaf,
                                              const FsdpTutorial& options, const Mesh& mesh,
                                              const Place& place);

// "axis", "min_weight_size", "argsort", "modules" and "partitioned" of the strategy.
[[nodiscard]] FsdpTutorial read_fsdp_tutorial(const JsonReader& strategy);
[[nodiscard]] SpecAssignment assign_fsdp_tutorial(const ParameterTree& tree, const Mesh& mesh,
                                                  const JsonReader& strategy);

}  // namespace shardsim
