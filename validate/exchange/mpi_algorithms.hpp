// Algorithms of Open MPI's collectives, chosen in place of its own decision.
//
// They are control variables (MPI 3.1, sec. 14.3) of its component "tuned", which tells their names
// and reads them when a communicator is made. It looks at them only when told so before MPI is
// initialized: let_mpi_algorithms_be_chosen().
#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace shardsim {

// Before MPI is initialized.
void let_mpi_algorithms_be_chosen();

// As MPI names them: "ring", "recursive_doubling". Empty for a kind that has none.
[[nodiscard]] std::vector<std::string> mpi_algorithms(CollectiveKind kind);

// For communicators that are made from now on; an empty name is MPI's own choice. False where it is
// what was chosen before. Throws InputError for a name that MPI does not have, CannotRunError for
// an MPI that does not tell of algorithms.
bool choose_mpi_algorithm(CollectiveKind kind, const std::string& algorithm);

}  // namespace shardsim
