// Layouts and padded sizes that the TPU compiler (libtpu 0.0.51) chose for program arguments, as
// memory_analysis() reports them, rounded up to 512 bytes.
#include "base/tile.hpp"

#include <catch2/catch.hpp>

using namespace shardsim;  // NOLINT(google-build-using-namespace)

namespace {

std::int64_t argument_bytes(const std::vector<std::int64_t>& dims, DType dtype) {
  return ceil_div(tpu_array_bytes(dims, dtype).count(), tpu_alignment) * tpu_alignment;
}

}  // namespace

TEST_CASE("scalars and vectors take whole units") {
  CHECK(argument_bytes({}, DType::f32) == 512);         // f32[]{:T(128)}
  CHECK(argument_bytes({511}, DType::bf16) == 1024);    // {0:T(512)(128)(2,1)}
  CHECK(argument_bytes({1536}, DType::f32) == 8192);    // {0:T(1024)}
  CHECK(argument_bytes({5000}, DType::i32) == 20480);   // {0:T(1024)}
  CHECK(argument_bytes({100}, DType::f8_e5m2) == 512);  // {0:T(512)(128)(4,1)}
}

TEST_CASE("the minor dimension is padded to 128, the second to the rows of the tile") {
  CHECK(argument_bytes({129, 129}, DType::f32) == 139264);     // {1,0:T(8,128)}
  CHECK(argument_bytes({63, 127}, DType::bf16) == 16384);      // {1,0:T(8,128)(2,1)}
  CHECK(argument_bytes({4, 300}, DType::f32) == 6144);         // {1,0:T(4,128)}
  CHECK(argument_bytes({100, 100}, DType::boolean) == 13312);  // {1,0:T(8,128)(4,1)}
  CHECK(argument_bytes({4096, 4096}, DType::i8) == 16777216);  // {1,0:T(32,128)(4,1)}
  CHECK(argument_bytes({8, 300}, DType::u4) == 1536);          // {1,0:T(8,128)(8,1)E(4)}
}

TEST_CASE("the two minor dimensions are those that cost least") {
  CHECK(argument_bytes({65, 129}, DType::f32) == 69632);          // {0,1:T(8,128)}
  CHECK(argument_bytes({1024, 4}, DType::u32) == 16384);          // {0,1:T(4,128)}
  CHECK(argument_bytes({64, 1, 64}, DType::i16) == 16384);        // {2,0,1:T(8,128)(2,1)}
  CHECK(argument_bytes({7, 7, 3, 64}, DType::f8_e5m2) == 21504);  // {3,1,2,0:T(8,128)(4,1)}
}

TEST_CASE("a tile lays out the elements of the tile before it") {
  // 196 x 196 in (8,128): 25 x 2 tiles; in (2,1) each pair of rows is interleaved.
  std::vector<std::int64_t> physical{196, 196};
  apply_tile({8, 128}, physical);
  CHECK(physical == std::vector<std::int64_t>{25, 2, 8, 128});
  apply_tile({2, 1}, physical);
  CHECK(physical == std::vector<std::int64_t>{25, 2, 4, 128, 2, 1});
}
