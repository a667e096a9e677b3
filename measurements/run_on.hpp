// On what something was measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardsim {

struct RunOn {
  std::string backend;             // "mpi"
  std::string library;             // "Open MPI v4.1.4"
  std::int64_t processes = 1;      // or threads of one: ranks
  std::vector<std::string> hosts;  // distinct
};

}  // namespace shardsim
