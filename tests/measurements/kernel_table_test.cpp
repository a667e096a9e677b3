// Tables of kernels as they are published: what their columns say, and what choices take of them.
// Whole tables are read by shipped_surfaces_test.
#include "measurements/kernel_table.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/json.hpp"

namespace shardsim::kernel_table_test {
namespace {

using Catch::Matchers::Contains;

SweptKernel only(const KernelTable& table) {
  REQUIRE(table.sweep.kernels.size() == 1);
  return table.sweep.kernels.front();
}

double seconds(const SweptKernel& swept) { return swept.time.median.count(); }
double flops(const SweptKernel& swept) { return swept.kernel.flops.count(); }

// 2 * 1024^3 operations: in 20 us they are 107.3741824 TFLOP/s.
constexpr std::int64_t side = 1024;
const std::string square = R"({"dtype": "fp16", "m": 1024, "n": 1024, "k": 1024, )";
constexpr double square_flops = 2.0 * side * side * side;
constexpr const char* any_date = "2026-08";

KernelTable read(const std::string& rows, const std::vector<std::string>& where = {},
                 const std::vector<std::string>& set = {}) {
  const KernelTableChoice choice{"dgx-h100", any_date, read_column_values(where, "where"),
                                 read_column_values(set, "set")};
  return read_kernel_table(Json::parse(fmt::format(R"({{"rows": [{}]}})", rows)), "table.json",
                           choice);
}

}  // namespace

TEST_CASE("a product is its sides, and its time or rate") {
  // 2 m n k operations; three arrays of 1024 x 1024 numbers of two bytes.
  const std::string column = GENERATE("\"time_us\": 20", "\"time_ms\": 0.02", "\"time_s\": 0.00002",
                                      "\"tflops\": 107.3741824", "\"mamf_tflops\": 107.3741824",
                                      "\"achieved_tflops\": 107.3741824");
  const SweptKernel swept = only(read(square + column + "}"));
  CHECK(swept.kernel.kernel_class == KernelClass::matmul);
  CHECK(swept.kernel.dtype == DType::f16);
  CHECK(swept.kernel.product == Product{1, side, side, side});
  CHECK(flops(swept) == square_flops);
  CHECK(swept.kernel.bytes == Bytes(3 * side * side * 2));
  CHECK(seconds(swept) == Approx(20e-6).epsilon(1e-12));
  CHECK(swept.time.repeats == 0);
}

TEST_CASE("products in a list, in groups, and of fp8 with results of two bytes") {
  const SweptKernel listed =
      only(read(R"({"dtype": "bf16", "shape_mnk": [2048, 3072, 512], "tflops": 800})"));
  CHECK(listed.kernel.product == Product{1, 2048, 3072, 512});
  const SweptKernel grouped = only(read(
      R"({"dtype": "fp8", "groups": 4, "m_per_group": 8192, "n": 4096, "k": 7168, "tflops": 1297})"));
  CHECK(grouped.kernel.product == Product{4, 8192, 4096, 7168});
  CHECK(flops(grouped) == 4 * 2.0 * 8192 * 4096 * 7168);
  CHECK(grouped.kernel.bytes ==
        Bytes(std::int64_t{4} * (8192 * 7168 + 7168 * 4096 + 2 * 8192 * 4096)));
  const SweptKernel summed = only(read(square + R"("out_dtype": "fp32", "tflops": 200})"));
  CHECK(summed.kernel.bytes == Bytes(side * side * (2 + 2 + 4)));
}

// Two sequences of 16 heads, 4,096 queries and keys of 128 numbers: 2 q kv (qk + v) operations
// forward, 2 q kv (3 qk + 2 v) backward, half of it where a query sees the keys before it alone.
TEST_CASE("attention by its heads") {
  const std::string shape =
      R"("batch": 2, "heads": 16, "seq": 4096, "head_dim": 128, "dtype": "bf16", )";
  constexpr double pairs = 2.0 * 16 * 4096 * 4096;
  const auto of = [&](const char* rest) { return only(read("{" + shape + rest + "}")); };
  const SweptKernel forward = of(R"("pass": "fwd", "causal": false, "tflops": 500)");
  CHECK(forward.kernel.kernel_class == KernelClass::attention);
  CHECK(forward.kernel.product == Product{32, 4096, 4096, 128});
  CHECK(flops(forward) == 2 * pairs * 256);
  CHECK(seconds(forward) == Approx(2 * pairs * 256 / 500e12));
  // Queries, keys, values and results once.
  CHECK(forward.kernel.bytes == Bytes(std::int64_t{4} * 2 * 16 * 4096 * 128 * 2));
  const SweptKernel backward = of(R"("pass_": "bwd", "mask": "top_left", "tflops": 500)");
  CHECK(backward.kernel.kernel_class == KernelClass::attention_backward);
  CHECK(flops(backward) == pairs * 5 * 128);
  CHECK(seconds(backward) == Approx(2.5 * flops(forward) / 2 / 500e12));
  const SweptKernel all = of(R"("op": "sdp_fwd", "causal": true, "tflops": 500,
                                "flops_counted": "full")");
  CHECK(flops(all) == flops(forward) / 2);
  CHECK(seconds(all) == Approx(seconds(forward)));
}

// DeepSeek-V3's heads: 192 numbers of a query and a key, 128 of a value. A rate counts the backward
// as 2.5 times the forward, 5 (qk + v) for each pair, though it computes 2 (3 qk + 2 v).
TEST_CASE("attention whose values are shorter than its keys") {
  const std::string shape = R"({"batch": 1, "q_heads": 128, "kv_heads": 8, "q_seq": 4096,
    "kv_seq": 8192, "hd_qk": 192, "hd_v": 128, "dtype": "bf16", "mask": "no_mask", "pass": "bwd", )";
  constexpr double pairs = 128.0 * 4096 * 8192;
  const SweptKernel by_rate = only(read(shape + R"("tflops": 1000})"));
  CHECK(flops(by_rate) == pairs * 2 * (3 * 192 + 2 * 128));
  CHECK(seconds(by_rate) == Approx(pairs * 5 * (192 + 128) / 1000e12));
  CHECK(by_rate.kernel.product == Product{128, 4096, 8192, 160});
  const SweptKernel by_time = only(read(shape + R"("time_ms": 8, "tflops": 1})"));
  CHECK(seconds(by_time) == 8e-3);
}

TEST_CASE("what moves") {
  const SweptKernel counted =
      only(read(R"({"mode": "stream launch", "bytes_moved": 65536, "best_gb_s": 25})"));
  CHECK(counted.kernel.kernel_class == KernelClass::memory);
  CHECK(counted.kernel.bytes == Bytes(65536));
  CHECK(seconds(counted) == Approx(65536 / 25e9));
  // A copy reads and writes: 33,554,432 bytes in 0.049359414 ms are 1359.6 GB/s
  // (AI-Hypercomputer/tpu-recipes microbenchmarks/README.md).
  const SweptKernel copied =
      only(read(R"({"op": "hbm_copy", "size_bytes": 33554432, "gb_s": 1359.5960438266143})"));
  CHECK(copied.kernel.bytes == Bytes(2 * 33554432));
  CHECK(seconds(copied) == Approx(0.049359414e-3).epsilon(1e-6));
  const KernelTable norms = read(R"({"type": "rms_norm", "dtype": "bfloat16", "fwd_ms": 0.042,
    "fwd_gb_s": 6424.6, "bwd_ms": 0.065, "bwd_gb_s": 6187.3})");
  REQUIRE(norms.sweep.kernels.size() == 2);
  CHECK(seconds(norms.sweep.kernels[1]) == Approx(65e-6));
  CHECK(static_cast<double>(norms.sweep.kernels[1].kernel.bytes.count()) ==
        Approx(65e-6 * 6187.3e9));
}

TEST_CASE("rows are chosen, and told what they leave out") {
  const std::string rows = R"(
    {"device": "A", "m": 64, "n": 64, "k": 64, "time_us": 5},
    {"device": "B", "m": 64, "n": 64, "k": 128, "time_us": 6},
    {"device": "C", "m": 64, "n": 64, "k": 256, "time_us": 7},
    {"device": "A", "op": "all_gather", "gb_s": 100},
    {"device": "A", "op": "all_gather", "gb_s": 200},
    {"device": "A", "batch": 1, "heads": 8, "seq": 4096, "head_dim": 64, "window": 128})";
  const std::vector<std::string> type = {"dtype=bf16"};
  const KernelTable one = read(rows, {"device=A"}, type);
  CHECK(only(one).kernel.dtype == DType::bf16);
  CHECK(one.notes == std::vector<std::string>{
                         "1 row left out: a window of keys is no product",
                         "2 rows left out: all_gather: no sides of a product, no attention, and "
                         "not what it moves in what time"});
  CHECK(read(rows, {"device=B", "device=C"}, type).sweep.kernels.size() == 2);
  CHECK(only(read(rows, {"device=B", "device=C", "k=256"}, type)).kernel.product->k == 256);
  CHECK_THROWS_WITH(read(rows, {}, type),
                    Contains("rows differ in device: \"A\", \"B\", \"C\"; choose with --where "
                             "'device=A'"));
  const std::string two =
      square + R"("kind": "dense", "tflops": 1}, )" + square + R"("kind": "sparse", "tflops": 1})";
  CHECK_THROWS_WITH(read(two), Contains("rows of class matmul differ in kind: \"dense\", "
                                        "\"sparse\""));
  CHECK(read(two, {"kind=sparse", "kind=dense"}).sweep.kernels.size() == 2);
  CHECK_THROWS_WITH(read(rows, {"devise=A"}, type), Contains("did you mean \"device\"?"));
  CHECK_THROWS_WITH(read(rows, {"device=D"}, type),
                    Contains("no row is left with device \"D\": it is \"A\", \"B\", \"C\""));
  CHECK_THROWS_WITH(read(rows, {"op=all_gather"}), Contains("no row is a kernel's: 2 rows"));
  CHECK_THROWS_WITH(read(rows, {"device=A"}, {"dtpe=bf16"}), Contains("did you mean \"dtype\"?"));
  CHECK_THROWS_WITH(read(square + "\"tflops\": 1}", {}, {"dtype=bf16"}),
                    Contains("all rows say their dtype"));
  CHECK_THROWS_WITH(read_column_values({"dtype"}, "set"),
                    Contains("\"dtype\" is not COLUMN=VALUE"));
}

TEST_CASE("rows that leave open what ran, or say what cannot be") {
  const auto [row, says] = GENERATE(table<std::string, std::string>(
      {{R"({"m": 64, "n": 64, "k": 64, "time_us": 5})", "/rows/0: does not say dtype"},
       {R"({"m": 64, "n": 64, "k": 64, "dtype": "fp9", "time_us": 5})",
        "unknown type of elements \"fp9\""},
       {square + "\"gb_s\": 5}", "says no time"},
       {square + "\"tflops\": 0}", "/rows/0/tflops: expected a number above 0"},
       {square + "\"time_s\": 1e12}", "is no time of a kernel"},
       {R"({"m": 0, "n": 64, "k": 64, "dtype": "bf16", "time_us": 5})", "/rows/0/m: "},
       {R"({"m": 2147483648, "n": 2147483648, "k": 1, "dtype": "bf16", "time_us": 5})", "moves"},
       {R"({"shape_mnk": [64, 64], "dtype": "bf16", "time_us": 5})", "expected [m, n, k]"},
       {R"({"batch": 1, "seq": 64, "head_dim": 64, "dtype": "bf16", "time_us": 5})",
        "does not say heads: --set heads=NUMBER"},
       {R"({"batch": 1, "heads": 8, "seq": 64, "head_dim": 64, "dtype": "bf16", "time_us": 5})",
        "does not say pass"},
       {R"({"op": "sdp_fwd", "batch": 1, "heads": 8, "seq": 64, "head_dim": 64, "dtype": "bf16"})",
        "does not say causal"}}));
  CAPTURE(row);
  CHECK_THROWS_WITH(read(row), Contains(says));
}

TEST_CASE("a table that was cut short says so") {
  const Json table =
      Json::parse(fmt::format(R"({{"n_rows": 2, "rows": [{}"tflops": 1}}]}})", square));
  CHECK_THROWS_WITH(read_kernel_table(table, "table.json", {"dgx-h100", any_date, {}, {}}),
                    Contains("/rows: n_rows says 2, there are 1"));
}

TEST_CASE("tables of kernels are told from tables of collectives") {
  CHECK(is_kernel_table(Json::parse(R"({"rows": [{"m": 1}]})")));
  CHECK_FALSE(is_kernel_table(Json::parse(R"({"rows": [{"bytes": 1}]})")));
  CHECK_FALSE(is_kernel_table(Json::parse(R"({"collective": null, "rows": [{"size": 1}]})")));
  CHECK_FALSE(is_kernel_table(Json::parse(R"({"rows": []})")));
  CHECK_FALSE(is_kernel_table(Json::parse("[1]")));
}

TEST_CASE("a table's source is where it was published") {
  const auto source = [](const std::string& said) {
    const Json table =
        Json::parse(fmt::format(R"({{"source": {}, "rows": [{}"tflops": 1}}]}})", said, square));
    return read_kernel_table(table, "table.json", {"dgx-h100", any_date, {}, {}}).sweep.source;
  };
  CHECK(source(R"({"kind": "github", "repo": "a/b", "path": "c.md", "commit": "0123456789"})") ==
        "a/b c.md @0123456");
  CHECK(source(R"({"title": "A paper, Table 2"})") == "A paper, Table 2");
  CHECK(source(R"("somewhere")") == "somewhere");
  CHECK(source("null") == "table.json");
}

}  // namespace shardsim::kernel_table_test
