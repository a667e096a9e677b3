// What PyTorch's allocator reserves: expectations are derived from its rules, which head
// caching_allocator.hpp, case by case.
#include "sim/step/reserved_memory.hpp"

#include <catch2/catch.hpp>

#include "plan_builder.hpp"
#include "sim/step/caching_allocator.hpp"

namespace shardsim::reserved_memory_test {
namespace {

using testing::PlanBuilder;

constexpr Bytes mib(std::int64_t count) { return Bytes(count * MiB); }

// The example of the header.
TEST_CASE("what is free in pieces too small is reserved beside what is asked for") {
  CachingAllocator allocator;
  const auto large = allocator.allocate(mib(30), 0);
  (void)allocator.allocate(mib(6), 0);
  (void)allocator.allocate(mib(6), 0);
  CHECK(allocator.reserved() == mib(50));
  CHECK(allocator.allocated() == mib(42));
  allocator.give_back(large);
  (void)allocator.allocate(mib(16), 0);
  CHECK(allocator.reserved() == mib(50));
  (void)allocator.allocate(mib(16), 0);
  CHECK(allocator.reserved() == mib(66));
  CHECK(allocator.allocated() == mib(44));
  CHECK(allocator.most_allocated() == mib(44));
}

TEST_CASE("sizes are rounded to 512 bytes, and small ones have segments of 2 MiB") {
  CachingAllocator allocator;
  (void)allocator.allocate(Bytes(1), 0);
  (void)allocator.allocate(Bytes(513), 0);
  CHECK(allocator.allocated() == Bytes(512 + 1024));
  CHECK(allocator.reserved() == mib(2));
  // 1 MiB is small, and there is room for it; a byte more is not, 21 MiB have a segment of 22.
  (void)allocator.allocate(mib(1), 0);
  CHECK(allocator.reserved() == mib(2));
  (void)allocator.allocate(mib(1) + Bytes(1), 0);
  CHECK(allocator.reserved() == mib(22));
  (void)allocator.allocate(mib(21), 0);
  CHECK(allocator.reserved() == mib(44));
}

// 12 MiB free and 16: for 11 the first is taken, whole, as no more than 1 MiB would be left of it.
TEST_CASE("the smallest block that is large enough is taken, and cut where enough is left") {
  CachingAllocator allocator;
  const auto first = allocator.allocate(mib(16), 0);
  const auto second = allocator.allocate(mib(12), 0);
  allocator.give_back(first);
  allocator.give_back(second);
  (void)allocator.allocate(mib(11), 0);
  CHECK(allocator.allocated() == mib(12));
  (void)allocator.allocate(mib(11), 0);
  CHECK(allocator.allocated() == mib(23));  // of 16, 5 are cut off
  CHECK(allocator.reserved() == mib(28));
}

// Three pieces of one segment, given back one by one, are one again.
TEST_CASE("free neighbours grow together; streams have blocks of their own") {
  CachingAllocator allocator;
  const auto a = allocator.allocate(mib(6), 0);
  const auto b = allocator.allocate(mib(6), 0);
  const auto c = allocator.allocate(mib(6), 0);
  CHECK(allocator.reserved() == mib(20));
  allocator.give_back(a);
  allocator.give_back(c);
  allocator.give_back(b);
  const auto whole = allocator.allocate(mib(20), 0);
  CHECK(allocator.reserved() == mib(20));
  allocator.give_back(whole);
  (void)allocator.allocate(mib(20), 1);
  CHECK(allocator.reserved() == mib(40));
}

// Forward, backward and update. 40 MiB of parameters; forward makes 64 MiB that backward frees;
// state of 48 MiB. The first step: 40, then 64; the update takes 48 out of the free 64. In the
// second one forward finds 16, and another segment of 64 is taken: 168 MiB, where no more than 152
// are allocated.
TEST_CASE("state that the first step makes lies where activations would") {
  PlanBuilder b;
  const TaskId forward = b.kernel(1);
  const TaskId backward = b.kernel(1);
  const TaskId update = b.kernel(1);
  Program& program = b.plan.programs[0];
  program.tasks[static_cast<std::size_t>(update)].phase = Phase::optimizer;
  b.buffer("parameters", mib(40).count(), before_the_step, {}, BufferCategory::parameters);
  b.buffer("state", mib(48).count(), before_the_step, {}, BufferCategory::optimizer);
  b.buffer("activations", mib(64).count(), forward, {backward}, BufferCategory::activations);
  const ReservedMemory counted = reserve_memory(program, lifetimes_of(program), Bytes(0));
  CHECK(counted.allocated == mib(152));
  CHECK(counted.reserved == mib(168));
}

}  // namespace
}  // namespace shardsim::reserved_memory_test
