// Starts a backend, and does something on every rank that this process has of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/units.hpp"
#include "validate/backends/backend.hpp"
#include "validate/exchange/launcher.hpp"

namespace shardsim {

struct BackendOptions {
  std::string name;         // "mpi", "nccl"
  Seconds patience{60};     // that a process waits for another before all end
  LaunchFlags launch = {};  // of nccl; what started the processes tells it otherwise
  // Of a process that was started alone: how many GPUs it is to have; empty: all that there are.
  std::function<std::int64_t()> ranks = {};
  bool chooses_algorithms = false;  // in place of the library
};

// The exit code: the highest of all ranks of this process. A rank that cannot run ends all
// processes. Throws CannotRunError where this build has no such backend, InputError for wrong
// words of what started the processes.
[[nodiscard]] int on_backend(const BackendOptions& options,
                             const std::function<int(Backend&)>& work);

}  // namespace shardsim
