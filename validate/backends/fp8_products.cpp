#include "validate/backends/fp8_products.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"

namespace shardsim {
namespace {

// What cuBLAS itself takes on Hopper (its documentation, "cublasSetWorkspace()").
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

// Column by column, as cuBLASLt counts; row by row it is the transposed.
cuda::MatrixLayout layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
                                          static_cast<std::uint64_t>(columns),
                                          /*leading dimension*/ rows));
  return cuda::MatrixLayout(made);
}

// Sums in fp32, the first operand transposed.
cuda::MatmulDesc description() {
  cublasLtMatmulDesc_t made = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  cuda::MatmulDesc result(made);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  check_cublas(cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                              sizeof transposed));
  return result;
}

using Preference = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                                   cuda::Destroy<cublasLtMatmulPreferenceDestroy>>;

Preference preference() {
  cublasLtMatmulPreference_t made = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&made));
  Preference result(made);
  check_cublas(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace_bytes, sizeof workspace_bytes));
  return result;
}

}  // namespace

bool Fp8Products::has(DType dtype) {
  return dtype == DType::f8 || dtype == DType::f8_e4m3 || dtype == DType::f8_e5m2;
}

Fp8Products::Key Fp8Products::key_of(const WorkShape& shape, DType dtype) {
  return {dtype, shape.m, shape.n, shape.k};
}

void Fp8Products::prepare(const WorkShape& shape, DType dtype, std::size_t stream) {
  if (!library_) {
    cublasLtHandle_t made = nullptr;
    check_cublas(cublasLtCreate(&made));
    library_.reset(made);
  }
  if (stream >= workspaces_.size()) workspaces_.resize(stream + 1);
  if (!workspaces_[stream]) {
    workspaces_[stream] = cuda::device_array(Bytes(std::int64_t{workspace_bytes}));
  }
  const Key key = key_of(shape, dtype);
  if (!products_.contains(key)) products_.emplace(key, product_of(shape, dtype));
}

// Row by row, C = A B is C' = B' A' column by column: B' is what lies there, transposed once more.
Fp8Products::Product Fp8Products::product_of(const WorkShape& shape, DType dtype) const {
  const cudaDataType_t of_a = dtype == DType::f8_e5m2 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
  Product product{description(),
                  layout(of_a, shape.k, shape.m),
                  layout(CUDA_R_8F_E4M3, shape.k, shape.n),
                  layout(CUDA_R_16BF, shape.n, shape.m),
                  {}};
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      library_.get(), product.description.get(), product.b.get(), product.a.get(),
      product.result.get(), product.result.get(), preference().get(), 1, &best, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0)) {
    throw CannotRunError(
        fmt::format("cuBLASLt has no product of {} on this GPU: it takes Ada's, "
                    "Hopper's or later tensor cores",
                    name_of(dtype)));
  }
  check_cublas(status);
  product.algorithm = best.algo;
  return product;
}

void Fp8Products::launch(const WorkShape& shape, DType dtype, const Arrays& arrays,
                         std::size_t index, cudaStream_t stream) {
  const Product& product = products_.at(key_of(shape, dtype));
  const float one = 1;
  const float zero = 0;
  check_cublas(cublasLtMatmul(
      library_.get(), product.description.get(), &one, arrays.b, product.b.get(), arrays.a,
      product.a.get(), &zero, arrays.result, product.result.get(), arrays.result,
      product.result.get(), &product.algorithm, workspaces_[index].get(), workspace_bytes, stream));
}

}  // namespace shardsim
