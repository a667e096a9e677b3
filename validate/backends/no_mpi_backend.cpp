#include "base/error.hpp"
#include "validate/backends/mpi_backend.hpp"
#include "validate/exchange/mpi_exchange.hpp"

namespace shardsim {

std::unique_ptr<Exchange> make_mpi_exchange(Watchdog& /*watchdog*/, bool /*chooses_algorithms*/) {
  throw CannotRunError(
      "this shardsim was built without MPI: install libopenmpi-dev and openmpi-bin, or another "
      "MPI, and build it anew");
}

// Not reached: there is no exchange to call it with.
std::unique_ptr<Backend> make_mpi_backend(Exchange& /*exchange*/, Watchdog& /*watchdog*/) {
  return nullptr;
}

}  // namespace shardsim
