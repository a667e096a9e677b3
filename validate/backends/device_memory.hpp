// The memory of the device that a process has, for buffers alone: nothing is computed in them.
//
// in_use() and reserved() are what the device, or the operating system, says is taken: never a sum
// of what was asked for. They count this process's buffers, not those of others on the device.
//
// Implementations: CpuMemory (cpu_memory.hpp), CudaMemory (cuda_memory.hpp).
#pragma once

#include <string>

#include "base/units.hpp"
#include "plan/plan.hpp"

namespace shardsim {

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  virtual ~DeviceMemory() = default;  // frees what is left

  // Memory for a buffer that has none; of a byte at least. Throws CannotRunError when it is short.
  virtual void allocate(BufferId buffer, Bytes bytes) = 0;
  virtual void free(BufferId buffer) = 0;

  [[nodiscard]] virtual Bytes in_use() const = 0;    // by buffers, granules rounded up; first 0
  [[nodiscard]] virtual Bytes reserved() const = 0;  // taken from the device for them; not less

  // What buffers may take now, all processes that share the memory together: with more it is not
  // tried. Of what is free a part may be left to others.
  [[nodiscard]] virtual Bytes allowance() const = 0;
  // The same text in all processes that share the memory, and in no other: "node7".
  [[nodiscard]] virtual std::string shared_by() const = 0;
};

}  // namespace shardsim
