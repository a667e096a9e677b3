#include "measurements/kernel_row.hpp"

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <optional>
#include <span>

#include "measurements/collective_measurement.hpp"
#include "plan/plan_io.hpp"

namespace shardsim {
namespace {

// A column with a figure, and what that counts in.
struct Column {
  const char* name;
  double unit;
};
constexpr std::array times = {Column{"time_s", 1}, Column{"time_ms", 1e-3},
                              Column{"time_us", 1e-6}};
constexpr std::array flop_rates = {Column{"tflops", 1e12}, Column{"achieved_tflops", 1e12},
                                   Column{"mamf_tflops", 1e12}};
constexpr std::array byte_rates = {Column{"gb_s", 1e9}, Column{"best_gb_s", 1e9},
                                   Column{"gb_s_per_core", 1e9}, Column{"tb_s", 1e12}};
constexpr std::array copied_sizes = {Column{"size_bytes", 1}, Column{"size_mb", 1e6}};
constexpr std::array forward_times = {Column{"fwd_ms", 1e-3}};
constexpr std::array forward_rates = {Column{"fwd_gb_s", 1e9}};
constexpr std::array backward_times = {Column{"bwd_ms", 1e-3}};
constexpr std::array backward_rates = {Column{"bwd_gb_s", 1e9}};

using Names = std::initializer_list<const char*>;

// The first of these that the row has.
std::optional<JsonReader> find(const JsonReader& row, Names names) {
  for (const char* name : names) {
    if (auto found = row.find(name)) return found;
  }
  return std::nullopt;
}

std::optional<std::int64_t> side(const JsonReader& row, Names names) {
  const auto found = find(row, names);
  if (!found) return std::nullopt;
  return found->integer(1, longest_side);
}

std::int64_t needed_side(const JsonReader& row, Names names) {
  if (const auto found = side(row, names)) return *found;
  const char* first = *names.begin();
  row.fail(
      fmt::format("does not say {}: --set {}=NUMBER, or leave it out by --where", first, first));
}

std::optional<double> figure(const JsonReader& row, std::span<const Column> columns) {
  for (const Column& column : columns) {
    const auto found = row.find(column.name);
    if (!found) continue;
    const double value = found->number() * column.unit;
    if (!(value > 0)) found->fail("expected a number above 0");
    return value;
  }
  return std::nullopt;
}

DType read_type(const JsonReader& json) {
  const auto dtype = parse_dtype(json.string());
  if (!dtype) {
    json.fail(
        fmt::format("unknown type of elements \"{}\"; leave it out by --where", json.string()));
  }
  return *dtype;
}

DType needed_type(const JsonReader& row) {
  if (const auto dtype = row.find("dtype")) return read_type(*dtype);
  row.fail("does not say dtype: --set dtype=bf16");
}

std::string op_of(const JsonReader& row) {
  const auto op = find(row, {"op", "what", "kind"});
  return op && op->is_string() ? op->string() : std::string();
}

SweptKernel swept(const JsonReader& row, Kernel kernel, double bytes, double seconds) {
  if (!(bytes >= 0 && bytes <= static_cast<double>(most_swept_bytes))) {
    row.fail(fmt::format("moves {} bytes", bytes));
  }
  if (!(seconds >= shortest_measured && seconds <= longest_measured)) {
    row.fail(fmt::format("{} s is no time of a kernel", seconds));
  }
  kernel.bytes = Bytes(static_cast<std::int64_t>(bytes));
  const Seconds time(seconds);
  return {std::move(kernel), {time, time, time, 0}};
}

// By its time, else by its rate, of which `counted` operations are.
double seconds_of(const JsonReader& row, double counted) {
  if (const auto time = figure(row, times)) return *time;
  if (const auto rate = figure(row, flop_rates)) return counted / *rate;
  row.fail("says no time: neither time_us, time_ms, time_s nor tflops");
}

std::optional<Product> product_of(const JsonReader& row) {
  if (const auto shape = row.find("shape_mnk")) {
    const std::vector<JsonReader> sides = shape->elements();
    if (sides.size() != 3) shape->fail("expected [m, n, k]");
    return Product{1, sides[0].integer(1, longest_side), sides[1].integer(1, longest_side),
                   sides[2].integer(1, longest_side)};
  }
  const auto n = side(row, {"n"});
  const auto k = side(row, {"k"});
  if (!n || !k) return std::nullopt;
  if (const auto groups = side(row, {"groups"})) {
    const auto m = side(row, {"m_per_group"});
    return m ? std::optional(Product{*groups, *m, *n, *k}) : std::nullopt;
  }
  const auto m = side(row, {"m"});
  return m ? std::optional(Product{side(row, {"b"}).value_or(1), *m, *n, *k}) : std::nullopt;
}

SweptKernel product_kernel(const JsonReader& row, const Product& product) {
  Kernel kernel{op_of(row), KernelClass::matmul, needed_type(row), Flops(0), Bytes(0), product};
  const auto out = row.find("out_dtype");
  const DType of_result = type_of_product(kernel.dtype);
  const auto size = [](DType dtype) { return static_cast<double>(bits_of(dtype)) / 8; };
  const auto number = [](std::int64_t of) { return static_cast<double>(of); };
  const double mk = number(product.m) * number(product.k);
  const double kn = number(product.k) * number(product.n);
  const double mn = number(product.m) * number(product.n);
  const double bytes = number(product.batch) * (size(kernel.dtype) * (mk + kn) +
                                                size(out ? read_type(*out) : of_result) * mn);
  kernel.flops = Flops(2 * number(product.batch) * mn * number(product.k));
  const double flops = kernel.flops.count();
  return swept(row, std::move(kernel), bytes, seconds_of(row, flops));
}

struct Attention {
  std::int64_t batch = 1;
  std::int64_t query_heads = 1;
  std::int64_t key_heads = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t head = 1;   // numbers of a query and of a key
  std::int64_t value = 1;  // of a value
  bool is_backward = false;
  bool is_causal = false;
};

bool ends_in(const std::string& text, std::initializer_list<const char*> endings) {
  for (const char* ending : endings) {
    if (text.ends_with(ending)) return true;
  }
  return false;
}

bool is_backward(const JsonReader& row) {
  const auto pass = find(row, {"pass", "pass_"});
  if (pass) return pass->choice({"fwd", "bwd"}) == "bwd";
  const std::string op = op_of(row);
  if (ends_in(op, {"_fwd", "_forward"})) return false;
  if (ends_in(op, {"_bwd", "_backward"})) return true;
  row.fail("does not say pass: --set pass=fwd or --set pass=bwd");
}

bool is_causal(const JsonReader& row) {
  if (const auto causal = row.find("causal")) return causal->boolean();
  const auto mask = row.find("mask");
  if (!mask) row.fail("does not say causal: --set causal=true or --set causal=false");
  const std::string kind = mask->choice({"causal", "top_left", "bottom_right", "none", "no_mask"});
  return kind != "none" && kind != "no_mask";
}

bool is_attention(const JsonReader& row) {
  return find(row, {"head_dim", "hd_qk", "qk_head_dim"}) && find(row, {"seq", "seq_len", "q_seq"});
}

Attention attention_of(const JsonReader& row) {
  Attention of;
  of.batch = needed_side(row, {"batch"});
  of.query_heads = needed_side(row, {"heads", "q_heads", "head_num"});
  of.key_heads = side(row, {"kv_heads", "kv_head_num"}).value_or(of.query_heads);
  of.queries = needed_side(row, {"seq", "seq_len", "q_seq"});
  of.keys = side(row, {"kv_seq"}).value_or(of.queries);
  of.head = needed_side(row, {"head_dim", "hd_qk", "qk_head_dim"});
  of.value = side(row, {"hd_v", "v_head_dim"}).value_or(of.head);
  of.is_backward = is_backward(row);
  of.is_causal = is_causal(row);
  return of;
}

SweptKernel attention_kernel(const JsonReader& row) {
  const Attention of = attention_of(row);
  const auto number = [](std::int64_t count) { return static_cast<double>(count); };
  const double pairs =
      number(of.batch) * number(of.query_heads) * number(of.queries) * number(of.keys);
  const double qk = number(of.head);
  const double v = number(of.value);
  const double computed = of.is_causal ? pairs / 2 : pairs;
  Kernel kernel{op_of(row),
                of.is_backward ? KernelClass::attention_backward : KernelClass::attention,
                needed_type(row),
                Flops(2 * computed * (of.is_backward ? 3 * qk + 2 * v : qk + v)),
                Bytes(0),
                Product{of.batch * of.query_heads, of.queries, of.keys, (of.head + of.value) / 2}};
  const auto what = row.find("flops_counted");
  const bool counts_all = what && what->choice({"half", "full"}) == "full";
  const double counted = (counts_all ? pairs : computed) * (of.is_backward ? 5 : 2) * (qk + v);
  const double read_once =
      number(of.batch) * (qk + v) *
      (number(of.query_heads) * number(of.queries) + number(of.key_heads) * number(of.keys));
  const double bytes = read_once * static_cast<double>(bits_of(kernel.dtype)) / 8;
  return swept(row, std::move(kernel), of.is_backward ? 2 * bytes : bytes,
               seconds_of(row, counted));
}

SweptKernel moving_kernel(const JsonReader& row, double bytes, double seconds) {
  const auto dtype = row.find("dtype");
  return swept(row,
               {op_of(row), KernelClass::memory, dtype ? read_type(*dtype) : DType::f32, Flops(0)},
               bytes, seconds);
}

// What moves so many bytes; nothing for a row that says no time of it.
std::optional<SweptKernel> moving_kernel(const JsonReader& row, double bytes) {
  if (const auto time = figure(row, times)) return moving_kernel(row, bytes, *time);
  if (const auto rate = figure(row, byte_rates)) return moving_kernel(row, bytes, bytes / *rate);
  return std::nullopt;
}

void add_pass(const JsonReader& row, std::span<const Column> time_columns,
              std::span<const Column> rate_columns, std::vector<SweptKernel>& kernels) {
  const auto time = figure(row, time_columns);
  if (!time) return;
  if (const auto rate = figure(row, rate_columns))
    kernels.push_back(moving_kernel(row, *time * *rate, *time));
}

std::vector<SweptKernel> moving_kernels(const JsonReader& row) {
  std::vector<SweptKernel> kernels;
  std::optional<SweptKernel> kernel;
  if (const auto moved = figure(row, std::array{Column{"bytes_moved", 1}})) {
    kernel = moving_kernel(row, *moved);
  } else if (const auto size = figure(row, copied_sizes)) {
    const bool is_copy = op_of(row).find("copy") != std::string::npos;
    if (is_copy) kernel = moving_kernel(row, 2 * *size);
  } else {
    add_pass(row, times, byte_rates, kernels);
    add_pass(row, forward_times, forward_rates, kernels);
    add_pass(row, backward_times, backward_rates, kernels);
  }
  if (kernel) kernels.push_back(*std::move(kernel));
  return kernels;
}

}  // namespace

KernelRow read_kernel_row(const JsonReader& row) {
  if (const auto product = product_of(row)) return {{product_kernel(row, *product)}, ""};
  if (is_attention(row)) {
    if (row.find("window")) return {{}, "a window of keys is no product"};
    return {{attention_kernel(row)}, ""};
  }
  KernelRow moving{moving_kernels(row), ""};
  if (!moving.kernels.empty()) return moving;
  const std::string op = op_of(row);
  moving.why_not = fmt::format(
      "{}no sides of a product, no attention, and not what it moves in "
      "what time",
      op.empty() ? "" : op + ": ");
  return moving;
}

const std::vector<std::string>& settable_columns() {
  static const std::vector<std::string> columns = {
      "dtype", "out_dtype", "batch",         "heads", "kv_heads",
      "pass",  "causal",    "flops_counted", "op",    "size_bytes"};
  return columns;
}

}  // namespace shardsim
