#include "tests/validate/fake_cuda.hpp"

#include <cublasLt.h>
#include <cublas_v2.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

struct CUmemPoolHandle_st {
  std::map<void*, std::size_t> sizes;
  std::size_t used = 0;
  std::size_t reserved = 0;
};

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace shardsim::testing {
namespace {

thread_local int device_of_thread = 0;

std::map<int, std::vector<FakeCall>>& calls() {
  static std::map<int, std::vector<FakeCall>> made;
  return made;
}

std::map<void*, cudaMemPool_t>& owners() {
  static std::map<void*, cudaMemPool_t> made;
  return made;
}

// A kernel or copy on a stream.
void spend(cudaStream_t stream, double seconds) {
  const std::lock_guard lock(fake_mutex());
  stream->clock += seconds;
  if (fake_gpus().kernels_hang) stream->hangs = true;
}

}  // namespace

FakeGpus& fake_gpus() {
  static FakeGpus gpus = [] {
    FakeGpus made;
    const char* count = std::getenv("FAKE_GPUS");
    if (count != nullptr) made.count = std::atoi(count);
    return made;
  }();
  return gpus;
}

std::mutex& fake_mutex() {
  static std::mutex mutex;
  return mutex;
}

int fake_device() { return device_of_thread; }

double fake_ahead(int device) {
  constexpr double hour = 3600;
  return hour * device;
}

void record_fake_call(FakeCall call) { calls()[call.device].push_back(std::move(call)); }

std::vector<FakeCall> take_fake_calls(int device) {
  const std::lock_guard lock(fake_mutex());
  return std::exchange(calls()[device], {});
}

}  // namespace shardsim::testing

using shardsim::testing::device_of_thread;
using shardsim::testing::fake_gpus;
using shardsim::testing::fake_mutex;
using shardsim::testing::owners;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (fake_gpus().driver_is_missing) return cudaErrorInsufficientDriver;
  *count = fake_gpus().count;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device >= fake_gpus().count) return cudaErrorInvalidDevice;
  device_of_thread = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  *properties = {};
  std::strcpy(properties->name, "NVIDIA H200");
  properties->major = 9;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13010;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t code) {
  return code == cudaErrorInvalidDevice ? "invalid device ordinal" : "a fake's error";
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  *data = std::malloc(std::max<std::size_t>(bytes, 1));
  return *data == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* left, std::size_t* all) {
  *all = std::size_t{1} << 37;
  *left = *all;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr /*attribute*/, int /*device*/) {
  *value = 1'980'000;
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* /*properties*/) {
  *pool = new CUmemPoolHandle_st;
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  delete pool;
  return cudaSuccess;
}

// In granules of 512 B, of blocks of 2 MiB, which a pool keeps.
cudaError_t cudaMallocFromPoolAsync(void** data, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t /*stream*/) {
  constexpr std::size_t granule = 512;
  constexpr std::size_t block = std::size_t{1} << 21;
  const std::lock_guard lock(fake_mutex());
  const std::size_t size = (bytes + granule - 1) / granule * granule;
  *data = std::malloc(1);
  pool->sizes[*data] = size;
  owners()[*data] = pool;
  pool->used += size;
  pool->reserved = std::max(pool->reserved, (pool->used + block - 1) / block * block);
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t /*stream*/) {
  const std::lock_guard lock(fake_mutex());
  const cudaMemPool_t pool = owners().at(data);
  pool->used -= pool->sizes.at(data);
  pool->sizes.erase(data);
  owners().erase(data);
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
  const std::lock_guard lock(fake_mutex());
  *static_cast<std::uint64_t*>(value) =
      which == cudaMemPoolAttrUsedMemCurrent ? pool->used : pool->reserved;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t /*stream*/) { return cudaSuccess; }

cudaError_t cudaFree(void* data) {
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** data, std::size_t bytes) { return cudaMalloc(data, bytes); }
cudaError_t cudaFreeHost(void* data) { return cudaFree(data); }

cudaError_t cudaMemset(void* /*data*/, int /*value*/, std::size_t /*bytes*/) { return cudaSuccess; }

cudaError_t cudaMemcpy(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/,
                       cudaMemcpyKind /*kind*/) {
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* /*to*/, const void* /*from*/, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  shardsim::testing::spend(stream, static_cast<double>(bytes) / fake_gpus().host_bytes_per_second);
  const std::lock_guard lock(fake_mutex());
  const char* name = kind == cudaMemcpyDeviceToHost ? "MemcpyToHost" : "MemcpyToDevice";
  shardsim::testing::record_fake_call(
      {stream->device, name, static_cast<std::int64_t>(bytes), "", {}});
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  *stream = new CUstream_st{device_of_thread, shardsim::testing::fake_ahead(device_of_thread)};
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  const std::lock_guard lock(fake_mutex());
  if (!event->is_recorded) return cudaErrorInvalidValue;  // the real one goes on: a mistake here
  stream->clock = std::max(stream->clock, event->clock);
  stream->hangs |= event->hangs;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(fake_mutex());
  *event = {stream->clock, true, stream->hangs};
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(fake_mutex());
  return event->hangs ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const std::lock_guard lock(fake_mutex());
  if (!start->is_recorded || !end->is_recorded) return cudaErrorInvalidResourceHandle;
  *milliseconds = static_cast<float>((end->clock - start->clock) * 1e3);
  return cudaSuccess;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusString(cublasStatus_t /*status*/) { return "a fake's error"; }

cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float* /*alpha*/,
                              const float* /*x*/, int /*incx*/, float* /*y*/, int /*incy*/) {
  const double bytes = 12.0 * n;
  shardsim::testing::spend(handle->stream, bytes / fake_gpus().memory_bytes_per_second);
  const std::lock_guard lock(fake_mutex());
  shardsim::testing::record_fake_call({handle->stream->device, "Saxpy", n, "", {}});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t /*transa*/,
                            cublasOperation_t /*transb*/, int m, int n, int k,
                            const void* /*alpha*/, const void* /*a*/, cudaDataType /*a_type*/,
                            int /*lda*/, const void* /*b*/, cudaDataType /*b_type*/, int /*ldb*/,
                            const void* /*beta*/, void* /*c*/, cudaDataType /*c_type*/, int /*ldc*/,
                            cublasComputeType_t /*compute*/, cublasGemmAlgo_t /*algorithm*/) {
  const double flops = 2.0 * m * n * k;
  shardsim::testing::spend(handle->stream, flops / fake_gpus().flops_per_second);
  const std::lock_guard lock(fake_mutex());
  shardsim::testing::record_fake_call(
      {handle->stream->device, "GemmEx", std::int64_t{m} * n * k, "", {}});
  return CUBLAS_STATUS_SUCCESS;
}

// A description is the library's own; a layout is its rows and columns.
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new char);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<char*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                        cublasComputeType_t /*compute*/, cudaDataType_t /*scale*/) {
  *description = new cublasLtMatmulDescOpaque_t{};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t /*bytes*/) {
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) {
    description->data[0] = *static_cast<const cublasOperation_t*>(value);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  *layout = new cublasLtMatrixLayoutOpaque_t{};
  (*layout)->data[0] = rows;
  (*layout)->data[1] = columns;
  (*layout)->data[2] = static_cast<std::uint64_t>(type);
  (*layout)->data[3] = static_cast<std::uint64_t>(leading);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t{};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t /*preference*/, cublasLtMatmulPreferenceAttributes_t /*attribute*/,
    const void* /*value*/, std::size_t /*bytes*/) {
  return CUBLAS_STATUS_SUCCESS;
}

// What cuBLASLt documents of products of 8 bits: the first operand transposed, sizes of operands
// multiples of 16, not two of e5m2, results in bf16.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t /*c*/, cublasLtMatrixLayout_t result,
    cublasLtMatmulPreference_t /*preference*/, int /*requested*/,
    cublasLtMatmulHeuristicResult_t /*results*/[], int* found) {
  const auto is = [](cublasLtMatrixLayout_t layout, cudaDataType_t type) {
    return layout->data[2] == static_cast<std::uint64_t>(type);
  };
  const auto is_aligned = [](cublasLtMatrixLayout_t layout) {
    return layout->data[0] % 16 == 0 && layout->data[1] % 16 == 0;
  };
  const bool fits = description->data[0] == CUBLAS_OP_T && a->data[0] == b->data[0] &&
                    result->data[0] == a->data[1] && result->data[1] == b->data[1] &&
                    is_aligned(a) && is_aligned(b) && is(result, CUDA_R_16BF) &&
                    !(is(a, CUDA_R_8F_E5M2) && is(b, CUDA_R_8F_E5M2));
  if (!fits || !fake_gpus().has_fp8) return CUBLAS_STATUS_NOT_SUPPORTED;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t /*description*/,
                              const void* /*alpha*/, const void* /*A*/, cublasLtMatrixLayout_t a,
                              const void* /*B*/, cublasLtMatrixLayout_t b, const void* /*beta*/,
                              const void* /*C*/, cublasLtMatrixLayout_t /*c*/, void* /*D*/,
                              cublasLtMatrixLayout_t /*d*/,
                              const cublasLtMatmulAlgo_t* /*algorithm*/, void* /*workspace*/,
                              std::size_t /*bytes*/, cudaStream_t stream) {
  const std::uint64_t products = a->data[0] * a->data[1] * b->data[1];
  const double flops = 2.0 * static_cast<double>(products);
  shardsim::testing::spend(stream, flops / fake_gpus().flops_per_second);
  const std::lock_guard lock(fake_mutex());
  shardsim::testing::record_fake_call(
      {stream->device, "LtMatmul", static_cast<std::int64_t>(products), "", {}});
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
