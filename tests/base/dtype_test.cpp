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
      {DType::f64, "fp64", 8},
      {DType::f32, "fp32", 4},
      {DType::bf16, "bf16", 2},
      {DType::f16, "fp16", 2},
      {DType::f8, "fp8", 1},
      {DType::i64, "int64", 8},
      {DType::i32, "int32", 4},
      {DType::i8, "int8", 1},
      {DType::boolean, "bool", 1},
      {DType::f8_e4m3, "fp8_e4m3", 1},
      {DType::f8_e5m2, "fp8_e5m2", 1},
      {DType::f8_e8m0, "fp8_e8m0", 1},
      {DType::f8_e4m3fnuz, "fp8_e4m3fnuz", 1},
      {DType::f8_e5m2fnuz, "fp8_e5m2fnuz", 1},
      {DType::f6_e2m3, "fp6_e2m3", 1},
      {DType::f6_e3m2, "fp6_e3m2", 1},
      {DType::f4_e2m1, "fp4_e2m1", 1},
      {DType::i16, "int16", 2},
      {DType::i4, "int4", 1},
      {DType::u64, "uint64", 8},
      {DType::u32, "uint32", 4},
      {DType::u16, "uint16", 2},
      {DType::u8, "uint8", 1},
      {DType::u4, "uint4", 1},
      {DType::c64, "complex64", 8},
      {DType::c128, "complex128", 16},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    CHECK(name_of(row.dtype) == row.name);
    CHECK(size_of(row.dtype) == Bytes(row.bytes));
    CHECK(parse_dtype(row.name) == row.dtype);
  }
}

// Packed without gaps, as safetensors' README and XLA's layouts have them.
TEST_CASE("elements of less than a byte share bytes in an array") {
  CHECK(bits_of(DType::f4_e2m1) == 4);
  CHECK(storage_bytes(0, DType::i4) == Bytes(0));
  CHECK(storage_bytes(3, DType::i4) == Bytes(2));
  CHECK(storage_bytes(4, DType::f6_e2m3) == Bytes(3));
  CHECK(storage_bytes(5, DType::bf16) == Bytes(10));
  CHECK(storage_bytes(std::int64_t{1} << 53, DType::c128) == Bytes(std::int64_t{1} << 57));
}

// Of Dtype in safetensors/src/tensor.rs (0.8), torch/headeronly/core/ScalarType.h, ml_dtypes and
// xla/primitive_util.
TEST_CASE("8-bit floats keep their formats apart") {
  for (const char* name : {"float8_e4m3fn", "F8_E4M3", "f8e4m3fn"}) {
    CHECK(parse_dtype(name) == DType::f8_e4m3);
  }
  CHECK(parse_dtype("F8_E5M2") == DType::f8_e5m2);
  CHECK(parse_dtype("float8_e8m0fnu") == DType::f8_e8m0);
  CHECK(parse_dtype("F8_E4M3FNUZ") == DType::f8_e4m3fnuz);
  CHECK(parse_dtype("fp8") == DType::f8);
}

TEST_CASE("element types are read in the spellings of safetensors") {
  CHECK(parse_dtype("F32") == DType::f32);
  CHECK(parse_dtype("BF16") == DType::bf16);
  CHECK(parse_dtype("U8") == DType::u8);
  CHECK(parse_dtype("BOOL") == DType::boolean);
  CHECK(parse_dtype("F4") == DType::f4_e2m1);
  CHECK(parse_dtype("C64") == DType::c64);
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

TEST_CASE("products of floats of 8 bits and fewer are written as bf16") {
  for (const DType dtype : {DType::f8, DType::f8_e4m3, DType::f8_e5m2fnuz, DType::f4_e2m1}) {
    CHECK(type_of_product(dtype) == DType::bf16);
  }
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8}) {
    CHECK(type_of_product(dtype) == dtype);
  }
}
