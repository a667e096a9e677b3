// The passes from the op graph of a step to its plan, in order. Each reads what those before it
// have made and adds its own; any station on the way can be looked at (`plan --stop-after PASS`).
//
//   layout      what lies where: parameters, inputs, chosen activations, the layers of stages
//   propagate   a sharding for every value
//   partition   each op on its shard, and what is needed of parameters and gradients
//   kernels     what the stack launches for each op, where the strategy says which it is
//   runtime     the needs as calls
//   products    those that a framework computes as one, and in pieces beside collectives
//   reasons     of each collective, in words
//   schedule    the order of forward and backward passes of microbatches, on every rank of a
//               pipeline
//   emit        the plan: everything unrolled, with dependencies and lifetimes
//   verify      whether the plan keeps what plans promise: a bug of ours if not
//   describe    what people are told beside it: specs, padding, notes, warnings
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"
#include "strategies/compile/compile.hpp"
#include "strategies/layout/assign.hpp"
#include "strategies/layout/stage_ranges.hpp"
#include "strategies/layout/tensor_shardings.hpp"
#include "strategies/partition/partial_sums.hpp"
#include "strategies/partition/spmd.hpp"
#include "strategies/schedule/schedule.hpp"

namespace shardsim {

// A step on its way to a plan. `sums` and `spmd` point into what stands above them.
struct Compilation {
  const Workload& workload;
  const Step& step;
  const Mesh& mesh;
  const Strategy& strategy;
  const Workload& given;  // `workload`, but for what the strategy itself changes of it

  Layout layout{};
  TensorShardings shardings{};
  std::optional<PartialSums> sums{};
  std::vector<StageRange> stages{};
  SpmdStep spmd{};
  PipelineSchedule schedule{};
  CompiledStep compiled{};
};

struct Pass {
  std::string_view name;
  std::string_view makes;  // for --help
  void (*run)(Compilation& compilation);
  Json (*station)(const Compilation& compilation);  // what it has made, to look at
};
[[nodiscard]] const std::vector<Pass>& passes();

}  // namespace shardsim
