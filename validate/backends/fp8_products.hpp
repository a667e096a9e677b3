// Products of 8-bit floats by cuBLASLt, which GemmEx does not have: [m, k] x [k, n] of e4m3, or of
// e5m2 by e4m3 (of two e5m2 there is none), summed in fp32, results in bf16, all scales 1. The
// second operand lies transposed, since tensor cores take 8 bits no other way (cuBLAS
// documentation, "cublasLtMatmul()"). A GPU needs Ada's tensor cores, Hopper's or later.
#pragma once

#include <cublasLt.h>

#include <map>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/dtype.hpp"
#include "validate/backends/cuda_handles.hpp"
#include "validate/backends/work_shape.hpp"

namespace shardsim {
namespace cuda {

using CublasLt = std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, Destroy<cublasLtDestroy>>;
using MatmulDesc = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>,
                                   Destroy<cublasLtMatmulDescDestroy>>;
using MatrixLayout = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>,
                                     Destroy<cublasLtMatrixLayoutDestroy>>;

}  // namespace cuda

class Fp8Products {
 public:
  static constexpr int least_capability = 89;  // 8.9: Ada

  // fp8, fp8_e4m3 and fp8_e5m2; bf16 is the type of their results.
  [[nodiscard]] static bool has(DType dtype);

  // What cuBLASLt holds for the fastest way. Sizes are multiples of 16. Throws CannotRunError where
  // this GPU has none.
  void prepare(const WorkShape& shape, DType dtype, std::size_t stream);

  struct Arrays {
    const void* a = nullptr;
    const void* b = nullptr;
    void* result = nullptr;
  };
  // Of a shape that is prepared for the stream of that index.
  void launch(const WorkShape& shape, DType dtype, const Arrays& arrays, std::size_t index,
              cudaStream_t stream);

 private:
  struct Product {
    cuda::MatmulDesc description;
    cuda::MatrixLayout a;
    cuda::MatrixLayout b;
    cuda::MatrixLayout result;
    cublasLtMatmulAlgo_t algorithm{};
  };
  using Key = std::tuple<DType, std::int64_t, std::int64_t, std::int64_t>;
  static Key key_of(const WorkShape& shape, DType dtype);
  [[nodiscard]] Product product_of(const WorkShape& shape, DType dtype) const;

  cuda::CublasLt library_;
  std::map<Key, Product> products_;
  std::vector<cuda::DeviceArray> workspaces_;  // by stream
};

}  // namespace shardsim
