#include "validate/backends/cuda_work.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>

#include "base/error.hpp"
#include "base/index.hpp"
#include "validate/backends/work_shape.hpp"

namespace shardsim {
namespace {

// Sizes are multiples of 16 bytes of a type (cuBLAS documentation, "Tensor Core Usage").
WorkLimits limits_of(DType dtype) {
  return {16384, std::int64_t{1} << 28, Fp8Products::has(dtype) ? 16 : 8};
}

// Of each of the two arrays of what is moved: 256 MiB, more than the L2 of any GPU.
constexpr std::int64_t moved_elements = std::int64_t{1} << 26;

struct GemmType {
  cudaDataType_t data;
  cublasComputeType_t compute;
};

// Sums of bf16 and fp16 are fp32; fp32 is multiplied as such, not as TF32.
std::optional<GemmType> gemm_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return GemmType{CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DType::f32:
      return GemmType{CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::bf16:
      return GemmType{CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    case DType::f16:
      return GemmType{CUDA_R_16F, CUBLAS_COMPUTE_32F};
    default:
      return std::nullopt;
  }
}

void append(std::string& bytes, DType dtype, float value) {
  const auto add = [&](const auto& number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  switch (dtype) {
    case DType::f64:
      return add(static_cast<double>(value));
    case DType::bf16:
      return add(__float2bfloat16(value));
    case DType::f16:
      return add(__float2half(value));
    case DType::f8:
    case DType::f8_e4m3:
      return add(__nv_fp8_e4m3(value));
    case DType::f8_e5m2:
      return add(__nv_fp8_e5m2(value));
    default:
      return add(value);
  }
}

// Numbers from -1 to 1: a MiB of them, again and again.
cuda::DeviceArray random_array(std::int64_t elements, DType dtype) {
  constexpr std::int64_t drawn = std::int64_t{1} << 18;
  std::mt19937 generator;
  std::uniform_real_distribution<float> number(-1, 1);
  std::string some;
  for (std::int64_t i = 0; i < std::min(elements, drawn); ++i) {
    append(some, dtype, number(generator));
  }
  const Bytes whole = storage_bytes(elements, dtype);
  cuda::DeviceArray array = cuda::device_array(whole);
  auto* data = static_cast<char*>(array.get());
  for (std::size_t at_byte = 0; at_byte < at(whole.count()); at_byte += some.size()) {
    const std::size_t bytes = std::min(some.size(), at(whole.count()) - at_byte);
    check_cuda(cudaMemcpy(data + at_byte, some.data(), bytes, cudaMemcpyHostToDevice));
  }
  return array;
}

void check_type(const Kernel& kernel) {
  if (gemm_type(kernel.dtype) || Fp8Products::has(kernel.dtype)) return;
  throw InputError(
      {"", "/kernels"},
      fmt::format("products of {} are not run by the backend nccl: fp64, fp32, bf16, fp16, "
                  "fp8_e4m3 and fp8_e5m2 are",
                  name_of(kernel.dtype)));
}

}  // namespace

void CudaWork::prepare(const Plan& plan, const std::vector<cuda::Stream>& streams) {
  while (streams_.size() < streams.size()) {
    streams_.push_back(streams[streams_.size()].get());
    cublas_.push_back(cuda::cublas(streams_.back()));
  }
  bool moves = false;
  Bytes copied{0};
  std::map<DType, Operands> largest;  // sizes only
  for (const Program& program : plan.programs) {
    for (const Task& task : program.tasks) {
      if (task.kind != TaskKind::kernel && !is_host_copy(task.kind)) continue;
      const Kernel& kernel = plan.kernels[at(task.work)];
      if (kernel.kernel_class == KernelClass::host) {
        throw InputError({"", "/programs"},
                         "what runs on the host, as its optimizer, is not run by the backend nccl");
      }
      if (is_host_copy(task.kind)) {
        copied = std::max(copied, kernel.bytes);
      } else if (is_product(kernel)) {
        check_type(kernel);
        const WorkShape shape = work_shape(kernel, limits_of(kernel.dtype));
        if (Fp8Products::has(kernel.dtype)) fp8_.prepare(shape, kernel.dtype, task.stream);
        Operands& most = largest[kernel.dtype];
        most.of_operand = std::max(most.of_operand, shape.operand());
        most.of_product = std::max(most.of_product, shape.result());
      } else {
        moves = true;
      }
    }
  }
  for (const auto& [dtype, most] : largest) {
    Operands& operands = operands_[dtype];
    if (operands.of_operand < most.of_operand) {
      operands.of_operand = most.of_operand;
      operands.a = {};  // before more is taken
      operands.b = {};
      operands.a = random_array(most.of_operand, dtype);
      // Of two e5m2 there is no product.
      operands.b = random_array(most.of_operand, dtype == DType::f8_e5m2 ? DType::f8_e4m3 : dtype);
    }
    if (operands.of_product < most.of_product) {
      operands.of_product = most.of_product;
      operands.product = {};
      operands.product = cuda::device_array(storage_bytes(most.of_product, type_of_product(dtype)));
    }
  }
  if (moves && !x_) {
    x_ = random_array(moved_elements, DType::f32);
    y_ = random_array(moved_elements, DType::f32);
  }
  if (copied > copied_) {
    copied_ = copied;
    device_ = {};
    device_ = cuda::device_array(copied);
    host_ = cuda::pinned_array(copied);
  }
}

void CudaWork::launch(const Kernel& kernel, std::size_t stream) {
  if (is_product(kernel)) {
    multiply(kernel, stream);
  } else {
    move(kernel.bytes, stream);
  }
}

// Row by row, C = A B is C' = B' A' column by column.
void CudaWork::multiply(const Kernel& kernel, std::size_t stream) {
  const WorkShape shape = work_shape(kernel, limits_of(kernel.dtype));
  const Operands& operands = operands_.at(kernel.dtype);
  if (Fp8Products::has(kernel.dtype)) {
    const Fp8Products::Arrays arrays{operands.a.get(), operands.b.get(), operands.product.get()};
    for (std::int64_t i = 0; i < shape.times; ++i) {
      fp8_.launch(shape, kernel.dtype, arrays, stream, streams_[stream]);
    }
    return;
  }
  const GemmType type = gemm_type(kernel.dtype).value();
  const double one = 1;
  const double zero = 0;
  const float one_f = 1;
  const float zero_f = 0;
  const bool is_double = kernel.dtype == DType::f64;
  const void* alpha = is_double ? static_cast<const void*>(&one) : &one_f;
  const void* beta = is_double ? static_cast<const void*>(&zero) : &zero_f;
  const auto m = static_cast<int>(shape.m);
  const auto n = static_cast<int>(shape.n);
  const auto k = static_cast<int>(shape.k);
  for (std::int64_t i = 0; i < shape.times; ++i) {
    check_cublas(cublasGemmEx(cublas_[stream].get(), CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, alpha,
                              operands.b.get(), type.data, n, operands.a.get(), type.data, k, beta,
                              operands.product.get(), type.data, n, type.compute,
                              CUBLAS_GEMM_DEFAULT));
  }
}

// Two reads and a write of four bytes for every element. One of nothing is an element.
void CudaWork::move(Bytes bytes, std::size_t stream) {
  constexpr std::int64_t bytes_of_element = 3 * sizeof(float);
  const float factor = 0.5F;
  std::int64_t left = std::max(std::int64_t{1}, ceil_div(bytes.count(), bytes_of_element));
  while (left > 0) {
    const std::int64_t some = std::min(left, moved_elements - next_);
    const float* x = static_cast<const float*>(x_.get()) + next_;
    float* y = static_cast<float*>(y_.get()) + next_;
    check_cublas(cublasSaxpy(cublas_[stream].get(), static_cast<int>(some), &factor, x, 1, y, 1));
    next_ = (next_ + some) % moved_elements;
    left -= some;
  }
}

void CudaWork::copy(TaskKind kind, Bytes bytes, std::size_t stream) {
  if (kind == TaskKind::to_host) {
    check_cuda(cudaMemcpyAsync(host_.get(), device_.get(), at(bytes.count()),
                               cudaMemcpyDeviceToHost, streams_[stream]));
  } else {
    check_cuda(cudaMemcpyAsync(device_.get(), host_.get(), at(bytes.count()),
                               cudaMemcpyHostToDevice, streams_[stream]));
  }
}

}  // namespace shardsim
