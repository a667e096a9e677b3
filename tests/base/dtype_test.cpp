#include "base/dtype.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace shardsim;  // NOLINT(google-build-using-namespace)

// Sizes are what the names say: the number in a name is bits; a bool takes a byte in JAX and
// PyTorch.
TEST_CASE("sizes and names of element types") {
  struct Row {
    DType dtype;
    std::string_view name;
    std::int64_t bytes;
  };
  const std::vector<Row> rows = {
      {DType::f64, "fp64", 8},  {DType::f32, "fp32", 4}, {DType::bf16, "bf16", 2},
      {DType::f16, "fp16", 2},  {DType::f8, "fp8", 1},   {DType::i64, "int64", 8},
      {DType::i32, "int32", 4}, {DType::i8, "int8", 1},  {DType::boolean, "bool", 1},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    CHECK(name_of(row.dtype) == row.name);
    CHECK(size_of(row.dtype) == Bytes(row.bytes));
    CHECK(parse_dtype(row.name) == row.dtype);
  }
}

TEST_CASE("element types are read in the spellings of JAX, PyTorch and HLO") {
  CHECK(parse_dtype("bfloat16") == DType::bf16);
  CHECK(parse_dtype("float32") == DType::f32);
  CHECK(parse_dtype("f32") == DType::f32);
  CHECK(parse_dtype("s32") == DType::i32);
  CHECK(parse_dtype("pred") == DType::boolean);
  CHECK(parse_dtype("float31") == std::nullopt);
  CHECK(parse_dtype("") == std::nullopt);
}
