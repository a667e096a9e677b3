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
// may be a list, which is one entry of the spec; "argsort" is of dimension_order.hpp.
//
// Source: phlippe/uvadlc_notebooks scaling/JAX/data_parallel.py at 0da8037.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "plan/mesh.hpp"
#include "strategies/partition_spec.hpp"
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

struct FsdpTutorial {
  BoxName axis;
  std::int64_t min_weight_size = std::int64_t{1} << 18;
  EqualDimensions ties = EqualDimensions::stable;
};

// "axis", "min_weight_size" and "argsort" of the strategy.
[[nodiscard]] FsdpTutorial read_fsdp_tutorial(const JsonReader& strategy);
[[nodiscard]] SpecAssignment assign_fsdp_tutorial(const ParameterTree& tree, const Mesh& mesh,
                                                  const JsonReader& strategy);

}  // namespace shardsim
