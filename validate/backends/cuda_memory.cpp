#include "validate/backends/cuda_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text.hpp"

namespace shardsim {
namespace {

Bytes told_by(cudaMemPool_t pool, cudaMemPoolAttr what) {
  std::uint64_t bytes = 0;
  check_cuda(cudaMemPoolGetAttribute(pool, what, &bytes));
  return Bytes(static_cast<std::int64_t>(bytes));
}

}  // namespace

CudaMemory::CudaMemory(int device, std::string name)
    : name_(std::move(name)), stream_(cuda::stream()), pool_(cuda::pool(device)) {}

CudaMemory::~CudaMemory() {
  for (const auto& [buffer, data] : buffers_) cudaFreeAsync(data, stream_.get());
  cudaStreamSynchronize(stream_.get());
}

void CudaMemory::allocate(BufferId buffer, Bytes bytes) {
  assert(!buffers_.contains(buffer));
  void* data = nullptr;
  const std::size_t size = at(std::max(bytes, Bytes(1)).count());
  const cudaError_t code = cudaMallocFromPoolAsync(&data, size, pool_.get(), stream_.get());
  if (code == cudaErrorMemoryAllocation) {
    throw CannotRunError(fmt::format("{} has no {} left", name_, format_bytes(bytes)));
  }
  check_cuda(code);
  buffers_.emplace(buffer, data);
}

void CudaMemory::free(BufferId buffer) {
  const auto found = buffers_.find(buffer);
  assert(found != buffers_.end());
  check_cuda(cudaFreeAsync(found->second, stream_.get()));
  buffers_.erase(found);
}

Bytes CudaMemory::in_use() const { return told_by(pool_.get(), cudaMemPoolAttrUsedMemCurrent); }

Bytes CudaMemory::reserved() const {
  return told_by(pool_.get(), cudaMemPoolAttrReservedMemCurrent);
}

Bytes CudaMemory::allowance() const {
  std::size_t left = 0;
  std::size_t all = 0;
  check_cuda(cudaMemGetInfo(&left, &all));
  return Bytes(static_cast<std::int64_t>(left));
}

}  // namespace shardsim
