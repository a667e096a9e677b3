// Why a collective is there, as facts: recorded where it arises, worded when the plan is made
// (compile/word_reasons.hpp). Kind and axes are those of the collective itself.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "plan/plan.hpp"
#include "sharding/sharding.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

using ValueId = std::int32_t;
inline constexpr ValueId no_value = -1;

// An input, as it entered, is brought to how it is read.
struct InputEnters {
  ValueId entered = no_value;
  Sharding read;
};
// An op reads a tensor otherwise than it lies.
struct OpReads {
  const Op* op = nullptr;
  ValueId lies = no_value;
  Sharding needed;
};
// An op makes a tensor otherwise than it is wanted.
struct OpMakes {
  const Op* op = nullptr;
  ValueId made = no_value;
  Sharding wanted;
};
// An op needs a small tensor over all of a factor that is split.
struct OpNeeds {
  const Op* op = nullptr;
  const Statistic* statistic = nullptr;
};
// Rows of tokens go to the experts that they visit, or back.
struct RowsExchanged {
  const Op* op = nullptr;
};
// How many of them there will be, or are in each sequence.
struct RowsCounted {
  const Op* op = nullptr;
};
// Keys and values of a part of the sequence go round, or their gradients.
struct KeysPassedOn {
  const Op* op = nullptr;
};
// Heads of a state-space layer in place of the sequence, or back, or gradients of these.
struct HeadsExchanged {
  const Op* op = nullptr;
  bool enters = false;  // the layer
};
// What leaves the step.
struct OutputLeaves {
  TensorId tensor = no_tensor;
};
// Parameters of a unit, from how they are stored to how ops read them.
struct UnitGathered {
  std::string unit;
  std::vector<TensorId> parameters;
  bool is_root = false;
  bool from_slices = false;  // that forward has left
  Phase phase = Phase::forward;
};
// Their gradients: partial sums, or otherwise made than they are kept.
struct GradientsReduced {
  std::string unit;
  std::vector<TensorId> parameters;
};
// The optimizer keeps its state in shards that the gradient is not in.
struct OptimizerReads {
  TensorId parameter = no_tensor;
};
// Parameters that the optimizer has updated in shards.
struct UnitUpdated {
  std::string unit;
  std::vector<TensorId> parameters;
};
// The same parameter in two stages: their gradients.
struct SharedAddedUp {
  TensorId parameter = no_tensor;
};
struct LossAveraged {};
struct MetricSummed {
  std::string metric;
};

using Reason =
    std::variant<std::monostate, InputEnters, OpReads, OpMakes, OpNeeds, RowsExchanged, RowsCounted,
                 KeysPassedOn, HeadsExchanged, OutputLeaves, UnitGathered, GradientsReduced,
                 OptimizerReads, UnitUpdated, SharedAddedUp, LossAveraged, MetricSummed>;

}  // namespace shardsim
