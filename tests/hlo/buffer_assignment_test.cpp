#include "hlo/buffer_assignment.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace shardsim {

// What jax 0.10.2 printed for the host program manual_all_kinds of golden/xla_cpu, its values left
// out; memory_analysis() of the same said arguments 5120, results 2068, aliased 0, temp 16416.
TEST_CASE("an assignment of buffers adds up to the compiler's memory") {
  const BufferAssignment assignment = parse_buffer_assignment(
      "BufferAssignment:\n"
      "allocation 0: size 4096, parameter 1, shape |f32[8,128]| at ShapeIndex {}:\n"
      " value: <38 param.3 @0> (size=4096,offset=0): f32[8,128]{1,0}\n"
      "allocation 1: size 2048, maybe-live-out:\n"
      "allocation 2: size 1024, parameter 0, shape |f32[16,16]| at ShapeIndex {}:\n"
      "allocation 3: size 4, thread-local:\n"
      "allocation 4: size 16, output shape is |(f32[4,128], f32[])|, maybe-live-out:\n"
      "allocation 5: size 4, maybe-live-out:\n"
      "allocation 6: size 4, constant:\n"
      "allocation 16: size 16416, preallocated-temp:\n",
      "a.txt");
  CHECK(assignment.allocations.size() == 8);
  CHECK(assignment.memory().argument == Bytes(5120));
  CHECK(assignment.memory().output == Bytes(2068));
  CHECK(assignment.memory().alias == Bytes(0));
  CHECK(assignment.temporaries() == Bytes(16416));
  CHECK(assignment.peak() == Bytes(5120 + 2068 + 16416));
}

TEST_CASE("a parameter that lives on is aliased, an address may stand before the size") {
  const BufferAssignment assignment = parse_buffer_assignment(
      "BufferAssignment:\n"
      "allocation 0: 0x55d0c8, size 64, color 1, parameter 0, shape |f32[16]| at ShapeIndex {0,1}, "
      "maybe-live-out:\n",
      "a.txt");
  CHECK(assignment.memory().alias == Bytes(64));
  CHECK(assignment.peak() == Bytes(64));
}

TEST_CASE("what is no assignment of buffers is refused") {
  const auto parse = [](const std::string& text) { return parse_buffer_assignment(text, "a.txt"); };
  CHECK_THROWS_WITH(parse("HloModule m\n"), Catch::Contains("a.txt: line 1: expected"));
  CHECK_THROWS_WITH(parse("BufferAssignment:\nallocation 0: constant:\n"),
                    Catch::Contains("a.txt: line 2: an allocation without a size"));
  CHECK_THROWS_AS(parse("BufferAssignment:\nallocation 0: size -1:\n"), InputError);
  CHECK_THROWS_AS(parse("BufferAssignment:\nallocation 0: size 9999999999999999:\n"), InputError);
}

}  // namespace shardsim
