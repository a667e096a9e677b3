// Plans on CPUs: a process of MPI for each device of the mesh, its rank the position.
//
//   mpirun -n 4 shardsim validate ...
//
// A core does one thing at a time: tasks run one after the other in the order of the program,
// collectives by MPI's blocking functions, kernels as cpu_work.hpp does them. Reductions are sums
// of fp32, of as many bytes as the plan has, whatever its type. Buffers of collectives are taken
// once, of the largest payload; others of the plan are not taken.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/units.hpp"
#include "validate/backend.hpp"

namespace shardsim {

// Of a process in which nothing has ended for `patience`, with what it stands in: tells people. The
// job is ended after that, with the exit code of what cannot run.
using Stalled = std::function<void(const std::string&)>;

// Initializes MPI, and at its end finalizes it; one of them in the life of a process. Throws
// CannotRunError where the program was built without MPI.
[[nodiscard]] std::unique_ptr<Backend> make_mpi_backend(Seconds patience, Stalled stalled);

}  // namespace shardsim
