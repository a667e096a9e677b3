// Plans on CPUs: a process of MPI for each device of the mesh, its rank the position.
//
// A core does one thing at a time: tasks run one after the other in the order of the program,
// collectives by MPI's blocking functions, kernels as cpu_work.hpp does them. Reductions are sums
// of fp32, of as many bytes as the plan has, whatever its type. Buffers of collectives are taken
// once, of the largest payload; others of the plan are not taken.
#pragma once

#include <memory>

#include "validate/backends/backend.hpp"
#include "validate/exchange/watchdog.hpp"

namespace shardsim {

// `exchange` is that of MPI (mpi_exchange.hpp); `watchdog` is told what is waited for. Throws
// CannotRunError where the program was built without MPI.
[[nodiscard]] std::unique_ptr<Backend> make_mpi_backend(Exchange& exchange, Watchdog& watchdog);

}  // namespace shardsim
