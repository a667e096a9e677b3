#include "hlo/shape.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace shardsim::shape_test {
namespace {

HloShape parse(std::string_view text) { return parse_shape(text, {text, "test"}); }

}  // namespace

TEST_CASE("an array's bytes follow its tiles") {
  // Expected by hand from docs/tiled_layout.md of openxla/xla.
  // 200 x 256 x 4, 8 x 128 x 2, ...
  CHECK(parse("f32[196,196]{1,0:T(8,128)}").bytes() == Bytes(204800));
  CHECK(parse("bf16[3,5]{1,0:T(8,128)(2,1)}").bytes() == Bytes(2048));
  CHECK(parse("f32[4096,1]{0,1:T(1,128)}").bytes() == Bytes(16384));
  CHECK(parse("f32[100]{0:T(128)}").bytes() == Bytes(512));
  CHECK(parse("u32[]{:T(128)}").bytes() == Bytes(512));
  CHECK(parse("s4[10]{0:E(4)}").bytes() == Bytes(5));
  CHECK(parse("f32[3,5]{1,0}").bytes() == Bytes(60));
  CHECK(parse("f32[0,5]{1,0:T(8,128)}").bytes() == Bytes(0));
}

TEST_CASE("tuples hold shapes, tokens weigh nothing") {
  const HloShape shape = parse("(f32[4]{0}, (s32[], token[]), /*index=2*/pred[<=8]{0})");
  REQUIRE(shape.is_tuple);
  CHECK(shape.elements.size() == 3);
  CHECK(arrays_of(shape).size() == 4);
  CHECK(shape.bytes() == Bytes(16 + 4 + 8));
  CHECK(parse("bf16[2]{0:S(5)}").layout.memory_space == 5);
}

TEST_CASE("what is no shape is refused") {
  CHECK_THROWS_AS(parse("f32"), InputError);
  CHECK_THROWS_AS(parse("f33[2]"), InputError);
  CHECK_THROWS_AS(parse("f32[-2]"), InputError);
  CHECK_THROWS_AS(parse("f32[2]{1}"), InputError);
  CHECK_THROWS_AS(parse("f32[9007199254740993]"), InputError);
}

}  // namespace shardsim::shape_test
