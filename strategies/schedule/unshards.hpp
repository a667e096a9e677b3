// A schedule's computations with what FSDP does to its stages between them, as PyTorch's runtime of
// lists has it (torch/distributed/pipelining/schedules.py, _add_unshard_reshard and
// _add_reduce_grad, PyTorch 2.15.0).
//
//   0UNSHARD 4UNSHARD 0F0 4F0 4B0 4REDUCE_GRAD 4WAIT_REDUCE_GRAD 4RESHARD 0B0 ...
//
// UNSHARD gathers all parameters of a stage, RESHARD gives them back: the next three stages that a
// rank will compute are there, others make room. REDUCE_GRAD reduces a stage's gradients, of all
// microbatches at once, behind its last B or W; what is computed next waits for it. A rank with
// three stages or fewer gathers each once.
#pragma once

#include "strategies/schedule/messages.hpp"

namespace shardsim {

[[nodiscard]] CallLists with_unshards(const PipelineSchedule& schedule);

}  // namespace shardsim
