// A published table of kernels, read as the sweep of kernels that it is (device_sweep.hpp):
//
//   { "id": "cublas", "source": {"repo": "owner/name", "path": "README.md", "commit": "..."},
//     "notes": ["10,000 warm-up iterations"], "n_rows": 2,
//     "rows": [{"device": "H200", "op": "gemm", "dtype": "fp16", "m": 1024, "n": 1024, "k": 1024,
//               "tflops": 119.4}, ...] }
//
// Tables name their columns as they like. Those that are read, by any of their names:
//
//   product     m, n, k, and b; or shape_mnk, [m, n, k]; or groups, m_per_group, n, k
//               dtype, and out_dtype: dtype where it is missing, bf16 of fp8
//   attention   batch, heads|q_heads|head_num, kv_heads|kv_head_num, seq|seq_len|q_seq, kv_seq,
//               head_dim|hd_qk|qk_head_dim, hd_v|v_head_dim, dtype
//               pass|pass_: fwd, bwd, or an op that ends so; causal or mask; window: left out
//   what moves  bytes_moved; or size_bytes|size_mb of an op that is a copy, read and written; or
//               a time and a rate, also both as fwd_ms and fwd_gb_s, bwd_ms and bwd_gb_s
//   time        time_s|time_ms|time_us, else by tflops|achieved_tflops|mamf_tflops or by
//               gb_s|best_gb_s|gb_s_per_core|tb_s
//
// Operations are 2 b m n k of a product; of attention forward 2 q kv (qk + v) for each head of each
// sequence, backward 2 q kv (3 qk + 2 v) (NVIDIA/cudnn-frontend,
// benchmark/sdpa_benchmark_training), half of it where it is causal. A rate of attention counts 2.5
// times the forward's operations for the backward, and half where it is causal
// (Dao-AILab/flash-attention benchmarks/benchmark_flash_attention.py @0469c72); where
// flops_counted is "full", all of causal attention, too.
//
// Rows must be of one device, those of one class of kernels of one backend, kernel, kind, mode, op
// and deterministic_bwd, or be chosen by these. What is none of the above is left out and told.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "measurements/device_sweep.hpp"

namespace shardsim {

// "column=value"; a value as JSON writes it, text without quotes.
struct ColumnValue {
  std::string column;
  std::string value;
};

struct KernelTableChoice {
  std::string machine;             // a profile, whose device it is
  std::string date;                // of the measurements
  std::vector<ColumnValue> where;  // rows with any of these values in each of these columns
  std::vector<ColumnValue> set;    // what rows do not say
};

struct KernelTable {
  DeviceSweep sweep;               // kernels alone
  std::vector<std::string> notes;  // the table's, and what is left out of it
};

// Throws InputError for words without "=".
[[nodiscard]] std::vector<ColumnValue> read_column_values(const std::vector<std::string>& words,
                                                          const std::string& flag);

// Whether it is a table whose rows are no collective's.
[[nodiscard]] bool is_kernel_table(const Json& document);

// Throws InputError with the place in the file: for rows that leave open what ran or how long,
// choices that fit no row, columns set that rows have, and where no row is a kernel's.
[[nodiscard]] KernelTable read_kernel_table(const Json& document, const std::string& file,
                                            const KernelTableChoice& choice);

}  // namespace shardsim
