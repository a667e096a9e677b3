#include "base/error.hpp"
#include "validate/mpi_backend.hpp"

namespace shardsim {

std::unique_ptr<Backend> make_mpi_backend(Seconds /*patience*/, Stalled /*stalled*/) {
  throw CannotRunError(
      "this shardsim was built without MPI: install libopenmpi-dev and openmpi-bin, or another "
      "MPI, "
      "and build it anew");
}

}  // namespace shardsim
