// Work as kernels of a plan describe it, done by a GPU.
//
// Products (work_shape.hpp) are cuBLAS's, of the plan's type, all sizes multiples of 8 as
// tensor cores need them, of 16 where numbers have 8 bits (fp8_products.hpp). Any other kernel
// reads and writes its bytes: y = a x + y in fp32 (cuBLAS's axpy) over arrays that no cache holds.
// Copies to the host go to pinned memory.
//
// Operands are random: a GPU draws less power for zeros, and is faster then.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "plan/plan.hpp"
#include "validate/backends/cuda_handles.hpp"
#include "validate/backends/fp8_products.hpp"

namespace shardsim {

class CudaWork {
 public:
  // Takes memory for the largest of the plan's kernels. `streams` are those of before, and more
  // behind them. Throws InputError for a product of a type that cuBLAS does not have, and
  // CannotRunError for one that this GPU does not.
  void prepare(const Plan& plan, const std::vector<cuda::Stream>& streams);

  // Behind what is on that stream already; by index.
  void launch(const Kernel& kernel, std::size_t stream);
  void copy(TaskKind kind, Bytes bytes, std::size_t stream);  // to_host or from_host

 private:
  // Of products of one type: as many elements as the largest takes.
  struct Operands {
    std::int64_t of_operand = 0;
    std::int64_t of_product = 0;
    cuda::DeviceArray a;
    cuda::DeviceArray b;
    cuda::DeviceArray product;
  };

  void multiply(const Kernel& kernel, std::size_t stream);
  void move(Bytes bytes, std::size_t stream);

  std::vector<cudaStream_t> streams_;  // destroyed after this
  std::vector<cuda::Cublas> cublas_;   // of each stream
  std::map<DType, Operands> operands_;
  Fp8Products fp8_;
  cuda::DeviceArray x_;
  cuda::DeviceArray y_;
  std::int64_t next_ = 0;  // element of x_ and y_ from which on the next bytes are moved
  Bytes copied_{0};        // largest copy
  cuda::DeviceArray device_;
  cuda::PinnedArray host_;
};

}  // namespace shardsim
