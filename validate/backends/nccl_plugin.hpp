// The backend nccl is in a module of its own, shardsim_nccl.so, loaded when it is asked for: the
// libraries of CUDA take a fifth of a second and 200 MB to load, which no other verb should pay.
#pragma once

#include <memory>

#include "base/version.hpp"
#include "validate/backends/backend.hpp"
#include "validate/exchange/watchdog.hpp"

namespace shardsim {

struct NcclPlugin {
  const char* build = nullptr;  // version of shardsim, which is that of the program
  int (*gpus_of_process)() = nullptr;
  std::unique_ptr<Backend> (*make_backend)(Exchange& exchange, Watchdog& watchdog,
                                           int device) = nullptr;
};

// Beside the program, or where it is installed. Throws CannotRunError where it is not, where its
// libraries are missing, or where it is of another build.
[[nodiscard]] const NcclPlugin& load_nccl_plugin();

// Of this side.
[[nodiscard]] inline const char* nccl_plugin_build() { return program_version; }

}  // namespace shardsim
