// Buffers in a GPU's memory, from a pool of their own (stream-ordered allocation, CUDA C++
// Programming Guide): what is in use and what the pool holds of the device is what CUDA says of it.
#pragma once

#include <map>
#include <string>

#include "validate/backends/cuda_handles.hpp"
#include "validate/backends/device_memory.hpp"

namespace shardsim {

class CudaMemory : public DeviceMemory {
 public:
  // Of the GPU that the calling thread has set; `name` tells it from all others of all hosts.
  CudaMemory(int device, std::string name);
  ~CudaMemory() override;
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  void allocate(BufferId buffer, Bytes bytes) override;
  void free(BufferId buffer) override;
  [[nodiscard]] Bytes in_use() const override;
  [[nodiscard]] Bytes reserved() const override;
  [[nodiscard]] Bytes allowance() const override;  // what is free
  [[nodiscard]] std::string shared_by() const override { return name_; }

 private:
  std::string name_;
  cuda::Stream stream_;
  cuda::Pool pool_;
  std::map<BufferId, void*> buffers_;
};

}  // namespace shardsim
