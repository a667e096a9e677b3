// Kernels and copies on GPUs that are not there: what is called of cuBLAS and CUDA, and how long it
// takes (fake_gpus.hpp).
#include <catch2/catch.hpp>

#include "tests/validate/nccl_steps.hpp"
#include "validate/step/validate_step.hpp"

namespace shardsim {

using namespace testing;  // NOLINT(google-build-using-namespace)

// 512^3 products in bf16; a kernel of 12 MB moves a million elements
// thrice.
TEST_CASE("kernels are cuBLAS's products, and sums of their bytes") {
  fake_gpus() = {};
  Plan plan;
  plan.mesh = Mesh({{"data", 1}});
  plan.names = {"task"};
  const double n = 512;
  plan.kernels = {{"einsum", KernelClass::matmul, DType::bf16, Flops(2 * n * n * n),
                   storage_bytes(3 * 512 * 512, DType::bf16)},
                  {"rms_norm", KernelClass::memory, DType::bf16, Flops(0), Bytes(12'000'000)}};
  Program program;
  program.name = "all";
  program.streams = {"compute"};
  for (const std::int32_t work : {0, 1}) {
    (void)program.add_task(task_of(TaskKind::kernel, work), {});
  }
  plan.programs.push_back(program);
  const auto spans = step_on_gpus(plan);
  CHECK(calls_of(0) == std::vector<FakeCall>{{0, "GemmEx", 512 * 512 * 512, "", {}},
                                             {0, "Saxpy", 1'000'000, "", {}}});
  CHECK((spans[0][0].end - spans[0][0].start).count() ==
        Approx(2 * n * n * n / 1e12).epsilon(1e-3));
  CHECK((spans[0][1].end - spans[0][1].start).count() == Approx(12e6 / 1e12).epsilon(1e-3));
}

// The fake takes what cuBLASLt's documentation allows of 8 bits.
TEST_CASE("products of 8-bit floats are cuBLASLt's, in sizes that tensor cores take") {
  fake_gpus() = {};
  Plan plan;
  plan.mesh = Mesh({{"data", 1}});
  plan.names = {"task"};
  Program program;
  program.name = "all";
  program.streams = {"compute"};
  for (const DType dtype : {DType::f8, DType::f8_e4m3, DType::f8_e5m2}) {
    const auto index = static_cast<std::int32_t>(plan.kernels.size());
    // 1000 is no multiple of 16, 1008 is the nearest.
    plan.kernels.push_back({"einsum", KernelClass::matmul, dtype, Flops(2.0 * 1000 * 512 * 256),
                            storage_bytes(1000 * 256 + 256 * 512, dtype),
                            Product{1, 1000, 512, 256}});
    (void)program.add_task(task_of(TaskKind::kernel, index), {});
  }
  plan.programs.push_back(program);
  const auto spans = step_on_gpus(plan);
  const FakeCall product{0, "LtMatmul", std::int64_t{1008} * 512 * 256, "", {}};
  CHECK(calls_of(0) == std::vector<FakeCall>{product, product, product});
  CHECK((spans[0][2].end - spans[0][2].start).count() ==
        Approx(2.0 * 1008 * 512 * 256 / 1e12).epsilon(1e-3));

  FakeGpus ampere;
  ampere.has_fp8 = false;
  fake_gpus() = ampere;
  CHECK_THAT(mistake_of_step(plan), Catch::Contains("cuBLASLt has no product of fp8 on this GPU"));
}

// By the fake's rates: 10 us, and a member's buffer at 100 GB/s, whatever the devices' clocks say.
// At 10 GB/s: 100 us there, while nothing else runs, and then 50 us back.
TEST_CASE("copies to the host and back are CUDA's, on streams of their own") {
  fake_gpus() = {};
  Plan plan;
  plan.mesh = Mesh({{"data", 1}});
  plan.names = {"task"};
  const auto copied = [](std::int64_t bytes) {
    return Kernel{"copy", KernelClass::memory, DType::bf16, Flops(0), Bytes(bytes)};
  };
  plan.kernels = {copied(1'000'000), copied(500'000), copied(200'000)};
  Program program;
  program.name = "all";
  program.streams = {"compute", "communication", "to host", "from host"};
  const TaskId there = program.add_task(task_of(TaskKind::to_host, 0, 2), {});
  (void)program.add_task(task_of(TaskKind::from_host, 1, 3), {there});
  (void)program.add_task(task_of(TaskKind::from_host, 2, 3), {});
  plan.programs.push_back(std::move(program));
  verify(plan);
  const std::vector<TaskSpan> spans = step_on_gpus(plan).at(0);
  CHECK(calls_of(0) == std::vector<FakeCall>{{0, "MemcpyToHost", 1'000'000, "", {}},
                                             {0, "MemcpyToDevice", 500'000, "", {}},
                                             {0, "MemcpyToDevice", 200'000, "", {}}});
  const double start = spans[0].start.count();
  CHECK(spans[0].end.count() - start == Approx(100e-6));
  CHECK(spans[1].start.count() - start == Approx(100e-6));
  CHECK(spans[2].end.count() - start == Approx(170e-6));
}

}  // namespace shardsim
