// Plans on GPUs: one for each device of the mesh, joined by NCCL. A process drives one of them, or
// a thread does (thread_exchange.hpp).
//
// A CUDA stream for each stream of the program, events for what waits across streams, as the plan
// says. A task's time is between two events of its stream. Processes begin together, behind a small
// all-reduce; each measures by its own device's clock.
#pragma once

#include <memory>

#include "validate/backends/backend.hpp"
#include "validate/exchange/watchdog.hpp"

namespace shardsim {

// GPUs that CUDA shows this process. Throws CannotRunError with CUDA's text where there is no
// driver.
[[nodiscard]] int gpus_of_process();

// Of the GPU `device`, from the thread that runs it. `watchdog` is told what is waited for. Throws
// CannotRunError.
[[nodiscard]] std::unique_ptr<Backend> make_nccl_backend(Exchange& exchange, Watchdog& watchdog,
                                                         int device);

}  // namespace shardsim
