// What CUDA, cuBLAS and NCCL give, owned; and their errors as ours.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <memory>
#include <type_traits>

#include "base/units.hpp"

namespace shardsim {

// Each throws CannotRunError with the library's text.
void check_cuda(cudaError_t code);
void check_cublas(cublasStatus_t code);
void check_nccl(ncclResult_t code);

namespace cuda {

template <auto destroy>
struct Destroy {
  template <class Handle>
  void operator()(Handle* handle) const {
    destroy(handle);
  }
};

using DeviceArray = std::unique_ptr<void, Destroy<cudaFree>>;
using PinnedArray = std::unique_ptr<void, Destroy<cudaFreeHost>>;
using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy<cudaStreamDestroy>>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy<cudaEventDestroy>>;
using Cublas = std::unique_ptr<std::remove_pointer_t<cublasHandle_t>, Destroy<cublasDestroy>>;
using Pool = std::unique_ptr<std::remove_pointer_t<cudaMemPool_t>, Destroy<cudaMemPoolDestroy>>;
// Not waited for: what is under way when it goes has failed.
using Communicator = std::unique_ptr<std::remove_pointer_t<ncclComm_t>, Destroy<ncclCommAbort>>;

[[nodiscard]] DeviceArray device_array(Bytes bytes);
[[nodiscard]] PinnedArray pinned_array(Bytes bytes);
[[nodiscard]] Stream stream();  // that does not wait for the default one
[[nodiscard]] Event event();    // that tells times
[[nodiscard]] Pool pool(int device);
[[nodiscard]] Cublas cublas(cudaStream_t stream);

}  // namespace cuda
}  // namespace shardsim
