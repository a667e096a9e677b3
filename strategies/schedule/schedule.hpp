// A pipeline schedule as a value: for every rank the computations it runs, in order.
//
//   rank 0: 0F0 0F1 0B0 0B1        GPipe of 2 stages and 2 microbatches, as PyTorch writes it:
//   rank 1: 1F0 1F1 1B0 1B1        stage, what, microbatch
//
//   F  forward of a microbatch through a stage
//   B  its whole backward
//   I  backward with respect to the stage's input; the gradient goes to the stage before
//   W  backward with respect to the weights, some time after I
//   OPTIMIZER  the optimizer's step of a stage. A list need not have it: a stage without one takes
//      it once its rank is through.
//
// Sends, receives, gathers of parameters and reductions of gradients are not in it: they follow
// from the order, the stages and the runtime (messages.hpp has the sends and receives). Nor is
// idling: a rank waits where what it needs is not there yet, see dry_run.hpp.
//
// A rank may hold several stages. Where a stage lies is part of the shape:
//
//   loop  stage s on rank s mod ranks         4 stages on 2 ranks: 0 1 0 1
//   v     down the ranks and up again         4 stages on 2 ranks: 0 1 1 0
//
// Who makes them: schedules.hpp. Text and CSV: schedule_text.hpp. Whether one can run: verify.hpp.
// The form is that of torch/distributed/pipelining/schedules.py, PyTorch 2.15.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardsim {

enum class ActionKind : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  optimizer
};

struct Action {
  ActionKind kind = ActionKind::forward;
  // Overlapped with the next action of the rank, an F with the B after it: neither starts before
  // what both need is there, and what they send leaves when both are done.
  bool with_next = false;
  std::int16_t stage = 0;
  std::int32_t microbatch = 0;  // 0 for the optimizer

  friend bool operator==(const Action&, const Action&) = default;
};
static_assert(sizeof(Action) == 8);

// B and I: what makes the gradient that the stage before waits for.
[[nodiscard]] constexpr bool makes_input_gradient(ActionKind kind) {
  return kind == ActionKind::backward || kind == ActionKind::backward_input;
}
// B and W: after it nothing of the microbatch's forward is needed any more.
[[nodiscard]] constexpr bool releases_activations(ActionKind kind) {
  return kind == ActionKind::backward || kind == ActionKind::backward_weight;
}

enum class StagePlacement : std::uint8_t { loop, v };

struct PipelineShape {
  std::int32_t ranks = 0;
  std::int32_t microbatches = 0;
  std::vector<std::int16_t> rank_of_stage;

  [[nodiscard]] std::size_t stages() const { return rank_of_stage.size(); }
  // In the order of the model.
  [[nodiscard]] std::vector<std::int16_t> stages_of(std::int32_t rank) const;

  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;
};

// `stages_per_rank` many on each. At most max_stages together.
inline constexpr std::int32_t max_stages = 32767;
[[nodiscard]] PipelineShape pipeline_shape(std::int32_t ranks, std::int32_t stages_per_rank,
                                           std::int32_t microbatches, StagePlacement placement);

struct PipelineSchedule {
  PipelineShape shape;
  std::vector<std::vector<Action>> of_rank;

  friend bool operator==(const PipelineSchedule&, const PipelineSchedule&) = default;
};

// Where the receive of a message is posted (messages.hpp).
enum class Receives : std::uint8_t { with_sends, when_needed, one_ahead, exchanged };

// Which of a rank's kernels waits for what it has sent (messages.hpp).
enum class Sends : std::uint8_t { unawaited, next_kernel, next_send, own_backward };

// Of a step that has no backward pass: the forwards, in their order.
[[nodiscard]] PipelineSchedule forward_alone(PipelineSchedule schedule);

}  // namespace shardsim
