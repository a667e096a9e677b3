// How much memory this process can still take on its host before the kernel refuses or kills.
#pragma once

#include <string>

#include "base/units.hpp"

namespace shardsim {

// MemAvailable of /proc/meminfo, or what is left of the limits of the process's cgroup and of those
// above it, where that is less: containers and batch systems set them. `root` is what the files are
// looked for under. Throws CannotRunError where the kernel does not say.
[[nodiscard]] Bytes available_memory(const std::string& root = "");

}  // namespace shardsim
