#include "validate/backends/cuda_handles.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text.hpp"

namespace shardsim {

void check_cuda(cudaError_t code) {
  if (code == cudaSuccess) return;
  throw CannotRunError(fmt::format("CUDA: {}", cudaGetErrorString(code)));
}

void check_cublas(cublasStatus_t code) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  throw CannotRunError(fmt::format("cuBLAS: {}", cublasGetStatusString(code)));
}

void check_nccl(ncclResult_t code) {
  if (code == ncclSuccess) return;
  const char* more = ncclGetLastError(nullptr);
  const bool says_more = more != nullptr && *more != '\0';
  throw CannotRunError(fmt::format("NCCL: {}{}{}; NCCL_DEBUG=WARN tells more",
                                   ncclGetErrorString(code), says_more ? ": " : "",
                                   says_more ? more : ""));
}

namespace cuda {

DeviceArray device_array(Bytes bytes) {
  void* data = nullptr;
  const cudaError_t code = cudaMalloc(&data, at(bytes.count()));
  if (code == cudaErrorMemoryAllocation) {
    throw CannotRunError(fmt::format("the device has no {} left", format_bytes(bytes)));
  }
  check_cuda(code);
  return DeviceArray(data);
}

PinnedArray pinned_array(Bytes bytes) {
  void* data = nullptr;
  check_cuda(cudaMallocHost(&data, at(bytes.count())));
  return PinnedArray(data);
}

Stream stream() {
  cudaStream_t made = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  return Stream(made);
}

Event event() {
  cudaEvent_t made = nullptr;
  check_cuda(cudaEventCreate(&made));
  return Event(made);
}

Pool pool(int device) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  cudaMemPool_t made = nullptr;
  check_cuda(cudaMemPoolCreate(&made, &properties));
  return Pool(made);
}

Cublas cublas(cudaStream_t stream) {
  cublasHandle_t made = nullptr;
  check_cublas(cublasCreate(&made));
  Cublas handle(made);
  check_cublas(cublasSetStream(made, stream));
  return handle;
}

}  // namespace cuda
}  // namespace shardsim
