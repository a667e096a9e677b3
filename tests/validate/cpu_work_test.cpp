#include "validate/backends/cpu_work.hpp"

#include <catch2/catch.hpp>

namespace shardsim {

TEST_CASE("work of every kind ends") {
  const auto matmul = [](double flops, std::int64_t bytes) {
    return Kernel{"einsum", KernelClass::matmul, DType::bf16, Flops(flops), Bytes(bytes)};
  };
  CpuWork work;
  work.run(matmul(2.0 * 64 * 64 * 64, 2 * 3 * 64 * 64));
  work.run(matmul(1, 2000));  // fewer operations than elements: moved
  work.run({"copy", KernelClass::memory, DType::bf16, Flops(0), Bytes(300 * MiB)});
  work.run({"nothing", KernelClass::memory, DType::bf16, Flops(0), Bytes(0)});
}

}  // namespace shardsim
