// What was measured of the kernels of one device: how long they take by shape.
//
// A file of hardware_profiles/kernels ("shardsim/kernels/1", built into the library; a path to a
// user's own works the same), which a device names as its "kernels". Rates are fractions of the
// device's own peak and bandwidth: on a sibling with others the same table gives scaled times.
//
// Products   a formula with four constants, fitted to the whole table, and for every [n, k] that
//            was measured the logarithm of measured / formula along m (ProductTable::log_ratio)
// Attention  a formula for each kernel generation and direction
// Operations that memory bounds: what they reach of its bandwidth, by operation and stack
// Rows of tokens sent to experts' devices: what a multiprocessor needs for one
//
// Example: the table says 0.02 at [4096 x 4096] x [4096 x 4096], the formula 200 us: 204 us.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/json_reader.hpp"
#include "base/units.hpp"
#include "hardware_profiles/sourced.hpp"

namespace shardsim {

// Products [m, k] x [k, n] of one type.
//
//   time = floor + max(flops / (peak e) (1 + depth / k), bytes / (bandwidth e'))
//
// with e flop_efficiency and e' byte_efficiency, times exp(log_ratio). Beside the formula's
// constants stand the measured curves. Where rows are no multiples of 8 numbers, products run at
// `unaligned` of the peak in place of flop_efficiency; none: not known, and as if they were.
struct ProductTable {
  Source source;
  Seconds floor{0};
  double flop_efficiency = 1;
  double byte_efficiency = 1;
  double depth = 0;
  std::optional<Sourced<double>> unaligned = {};
  std::optional<Sourced<double>> unaligned_batch = {};  // of many side by side, as of heads
  // Of the time that memory takes for Kernel::added, the part that the product does not hide.
  std::optional<Sourced<double>> adding = {};
  std::vector<double> rows;  // logarithms of the m that curves are given at, ascending
  struct Curve {
    std::int64_t n = 1;
    std::int64_t k = 1;
    double log_n = 0;
    double log_k = 0;
    std::vector<float> log_ratios;  // by row
  };
  std::vector<Curve> curves;
};

// How sure a time is.
enum class Evidence : std::uint8_t {
  efficiency,    // the profile's efficiencies and surfaces: no table of such kernels
  modelled,      // the formula fitted to the table, far from what it holds
  interpolated,  // between measured shapes
  measured       // the very shape
};
[[nodiscard]] std::string_view name_of(Evidence evidence);

struct LogRatio {
  double value = 0;
  Evidence evidence = Evidence::modelled;
};
// Of a product of the table. Along m between two rows, and beyond the last as there; between [n, k]
// by Franke and Little's weights (Franke 1982), (reach / distance - 1)^2 with distances of
// logarithms, the formula weighing as much as a curve at `reach` / (1 + sqrt(0.5)) does. So what is
// measured is met exactly, and far from everything measured the ratio fades to none.
[[nodiscard]] LogRatio log_ratio(const ProductTable& table, std::int64_t m, std::int64_t n,
                                 std::int64_t k);

// Attention of one kernel generation, direction and type.
//
//   time = overhead + flops / (peak efficiency) (1 + prologue / keys) (1 + head / k) spread
//
// `keys` are those that a query sees on average, half of all under a causal mask, k the numbers of
// a head. `spread` is 1 where blocks of 128 queries of all heads fill the multiprocessors, else
// multiprocessors / blocks.
struct AttentionTable {
  Source source;
  double efficiency = 1;
  double prologue = 0;  // keys
  double head = 0;      // numbers
  Seconds overhead{0};
};
struct AttentionTables {
  std::map<DType, AttentionTable> forward;
  std::map<DType, AttentionTable> backward;
};

// Kernels that send tokens' rows to the devices of experts (dispatch) or back to their sums
// (combine), which the multiprocessors at work on them bound where links do not:
//
//   time = overhead + (tokens (token + bytes token_byte) + rows (row + bytes row_byte)) / sms
//
// with the bytes of a row, and a row for each device that has an expert of a token, its own
// counted. Over several nodes it is overhead_across in place of overhead.
struct RowExchangeTable {
  Source source;
  Seconds overhead{0};
  Seconds overhead_across{0};
  Seconds token{0};
  Seconds token_byte{0};
  Seconds row{0};
  Seconds row_byte{0};
};
struct RowExchangeTables {
  RowExchangeTable dispatch;
  RowExchangeTable combine;
};

// An operation that memory bounds, time = overhead + bytes / (bandwidth efficiency), or that is no
// product by itself: then what it reaches of the peak may bound it.
struct OperationTable {
  Source source;
  double efficiency = 1;
  Seconds overhead{0};
  std::optional<double> flop_efficiency = {};
};

struct KernelData {
  std::string name;    // "h100"; a path for a file of one's own
  std::string device;  // that was measured: "H100 SXM5 80 GB"
  std::map<DType, ProductTable> products;
  std::map<std::string, AttentionTables> attention;  // by generation: "flash-2"
  // By function ("rms_norm") and stack ("eager").
  std::map<std::string, std::map<std::string, OperationTable>> operations;
  std::map<std::string, RowExchangeTables> row_exchange;  // by kernels: "deepep"
};

// Throws InputError with the place.
[[nodiscard]] KernelData read_kernel_data(const JsonReader& document, const std::string& name);
// A shipped one by its name, or a file, relative to the one that names it.
[[nodiscard]] KernelData load_kernel_data(const JsonReader& name);

}  // namespace shardsim
