// What processes of MPI tell each other, over MPI itself.
//
//   mpirun -n 4 shardsim validate ...
#pragma once

#include <memory>

#include "validate/exchange/exchange.hpp"
#include "validate/exchange/watchdog.hpp"

namespace shardsim {

// Initializes MPI, and at its end finalizes it; one of them in the life of a process. `watchdog` is
// told what is waited for. Algorithms can be chosen (mpi_algorithms.hpp) where that is said now.
// Throws CannotRunError where the program was built without MPI.
[[nodiscard]] std::unique_ptr<Exchange> make_mpi_exchange(Watchdog& watchdog,
                                                          bool chooses_algorithms);

}  // namespace shardsim
