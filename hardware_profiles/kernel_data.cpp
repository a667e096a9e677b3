#include "hardware_profiles/kernel_data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/file_kind.hpp"
#include "base/json.hpp"
#include "hardware_profiles/embedded_kernels.hpp"
#include "hardware_profiles/sourced_reader.hpp"

namespace shardsim {
namespace {

double read_size_of_table(const JsonReader& value) {
  const double size = value.number();
  if (!(size >= 0 && std::isfinite(size))) value.fail("must be at least 0");
  return size;
}

DType dtype_of(const JsonReader& table, const std::string& name) {
  const std::optional<DType> dtype = parse_dtype(name);
  if (!dtype) table.fail(fmt::format("unknown dtype \"{}\", expected for example \"bf16\"", name));
  return *dtype;
}

template <class Table, class Read>
std::map<DType, Table> read_tables(const JsonReader& reader, Read read) {
  std::map<DType, Table> tables;
  for (const auto& [name, table] : reader.members())
    tables.emplace(dtype_of(table, name), read(table));
  return tables;
}

// "n k r r r ...": the ratios are thousandths of a logarithm.
ProductTable::Curve read_curve(const JsonReader& line, std::size_t rows) {
  constexpr double unit = 1e-3;
  const std::string text = line.string();
  std::vector<std::int64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::int64_t number = 0;
    const auto [stop, status] = std::from_chars(at, end, number);
    if (status != std::errc{}) line.fail("is not numbers with a space between them");
    numbers.push_back(number);
    at = stop;
    while (at != end && *at == ' ') ++at;
  }
  if (numbers.size() != rows + 2) {
    line.fail(fmt::format("has {} numbers, expected n, k and {} ratios", numbers.size(), rows));
  }
  if (numbers[0] < 1 || numbers[1] < 1) line.fail("sizes must be at least 1");
  ProductTable::Curve curve;
  curve.n = numbers[0];
  curve.k = numbers[1];
  curve.log_n = std::log(static_cast<double>(curve.n));
  curve.log_k = std::log(static_cast<double>(curve.k));
  for (std::size_t i = 2; i < numbers.size(); ++i) {
    curve.log_ratios.push_back(static_cast<float>(static_cast<double>(numbers[i]) * unit));
  }
  return curve;
}

ProductTable read_products(const JsonReader& reader) {
  reader.only_keys({"floor", "flop_efficiency", "byte_efficiency", "depth", "rows", "curves",
                    "unaligned", "unaligned_batch", "adding", "kind", "source", "date", "note"});
  ProductTable table;
  table.source = read_source(reader);
  table.floor = read_seconds(reader.at("floor"));
  table.flop_efficiency = read_fraction(reader.at("flop_efficiency"));
  table.byte_efficiency = read_fraction(reader.at("byte_efficiency"));
  table.depth = read_size_of_table(reader.at("depth"));
  if (const auto share = reader.find("unaligned")) {
    table.unaligned = read_sourced(*share, read_fraction);
  }
  if (const auto share = reader.find("unaligned_batch")) {
    table.unaligned_batch = read_sourced(*share, read_fraction);
  }
  if (const auto share = reader.find("adding")) {
    table.adding = read_sourced(*share, read_fraction);
  }
  const JsonReader rows = reader.at("rows");
  for (const JsonReader& row : rows.elements()) {
    table.rows.push_back(std::log(static_cast<double>(read_count(row))));
  }
  if (!std::is_sorted(table.rows.begin(), table.rows.end())) rows.fail("must ascend");
  for (const JsonReader& line : reader.at("curves").elements()) {
    table.curves.push_back(read_curve(line, table.rows.size()));
  }
  if (!table.curves.empty() && table.rows.empty()) rows.fail("is empty");
  return table;
}

AttentionTable read_attention(const JsonReader& reader) {
  reader.only_keys(
      {"efficiency", "prologue", "head", "overhead", "kind", "source", "date", "note"});
  return {read_source(reader), read_fraction(reader.at("efficiency")),
          read_size_of_table(reader.at("prologue")), read_size_of_table(reader.at("head")),
          read_seconds(reader.at("overhead"))};
}

RowExchangeTable read_row_exchange(const JsonReader& reader) {
  reader.only_keys({"overhead", "overhead_across", "token", "token_byte", "row", "row_byte", "kind",
                    "source", "date", "note"});
  return {read_source(reader),
          read_seconds(reader.at("overhead")),
          read_seconds(reader.at("overhead_across")),
          read_seconds(reader.at("token")),
          read_seconds(reader.at("token_byte")),
          read_seconds(reader.at("row")),
          read_seconds(reader.at("row_byte"))};
}

OperationTable read_operation(const JsonReader& reader) {
  reader.only_keys({"efficiency", "flop_efficiency", "overhead", "kind", "source", "date", "note"});
  OperationTable table{read_source(reader), read_fraction(reader.at("efficiency")),
                       read_seconds(reader.at("overhead"))};
  if (const auto rate = reader.find("flop_efficiency"))
    table.flop_efficiency = read_fraction(*rate);
  return table;
}

// Between two rows, and beyond the first and last as there.
double at_rows(const ProductTable& table, const ProductTable::Curve& curve, double log_m) {
  const auto above = std::lower_bound(table.rows.begin(), table.rows.end(), log_m);
  if (above == table.rows.begin()) return curve.log_ratios.front();
  if (above == table.rows.end()) return curve.log_ratios.back();
  const auto high = static_cast<std::size_t>(above - table.rows.begin());
  const double share = (log_m - table.rows[high - 1]) / (table.rows[high] - table.rows[high - 1]);
  return curve.log_ratios[high - 1] +
         share * static_cast<double>(curve.log_ratios[high] - curve.log_ratios[high - 1]);
}

}  // namespace

std::string_view name_of(Evidence evidence) {
  switch (evidence) {
    case Evidence::efficiency:
      return "efficiency";
    case Evidence::modelled:
      return "modelled";
    case Evidence::interpolated:
      return "interpolated";
    case Evidence::measured:
      return "measured";
  }
  assert(false);
  return {};
}

LogRatio log_ratio(const ProductTable& table, std::int64_t m, std::int64_t n, std::int64_t k) {
  // Both chosen by leaving each [n, k] of the H100, A100 and B200 tables out in turn: errors at the
  // 90th percentile hardly change from 1 to 2.5 and from 0.3 to 1 (docs/calibration-kernels.md).
  constexpr double reach = 1.5;
  constexpr double weight_of_formula = 0.5;
  const double log_m = std::log(static_cast<double>(m));
  const double log_n = std::log(static_cast<double>(n));
  const double log_k = std::log(static_cast<double>(k));
  double sum = 0;
  double weights = weight_of_formula;
  for (const ProductTable::Curve& curve : table.curves) {
    if (curve.n == n && curve.k == k) {
      const bool is_row = std::binary_search(table.rows.begin(), table.rows.end(), log_m);
      return {at_rows(table, curve, log_m), is_row ? Evidence::measured : Evidence::interpolated};
    }
    const double distance = std::hypot(curve.log_n - log_n, curve.log_k - log_k);
    if (distance >= reach) continue;
    const double nearness = reach / distance - 1;
    sum += nearness * nearness * at_rows(table, curve, log_m);
    weights += nearness * nearness;
  }
  if (weights <= weight_of_formula) return {};
  return {sum / weights, Evidence::interpolated};
}

KernelData read_kernel_data(const JsonReader& document, const std::string& name) {
  document.only_keys(
      {"schema", "name", "device", "products", "attention", "operations", "row_exchange"});
  KernelData data;
  data.name = name;
  data.device = read_text(document.at("device"));
  if (const auto products = document.find("products")) {
    data.products = read_tables<ProductTable>(*products, read_products);
  }
  if (const auto attention = document.find("attention")) {
    for (const auto& [generation, directions] : attention->members()) {
      directions.only_keys({"forward", "backward"});
      data.attention[generation] = {
          read_tables<AttentionTable>(directions.at("forward"), read_attention),
          read_tables<AttentionTable>(directions.at("backward"), read_attention)};
    }
  }
  if (const auto operations = document.find("operations")) {
    for (const auto& [function, stacks] : operations->members()) {
      for (const auto& [stack, table] : stacks.members()) {
        data.operations[function].emplace(stack, read_operation(table));
      }
    }
  }
  if (const auto exchanges = document.find("row_exchange")) {
    for (const auto& [kernels, ways] : exchanges->members()) {
      ways.only_keys({"dispatch", "combine"});
      data.row_exchange.emplace(kernels, RowExchangeTables{read_row_exchange(ways.at("dispatch")),
                                                           read_row_exchange(ways.at("combine"))});
    }
  }
  return data;
}

KernelData load_kernel_data(const JsonReader& name) {
  const std::string given = name.string();
  if (given.ends_with(".json")) {
    const std::string path =
        (std::filesystem::path(name.place().file).parent_path() / given).string();
    const Json document = load_json(path, FileKind::kernels);
    return read_kernel_data(JsonReader(document, {path, ""}), path);
  }
  std::vector<std::string> known;
  for (const EmbeddedFile& shipped : embedded_kernels()) {
    if (shipped.name == given) {
      const Json document = parse_json(shipped.text, given);
      return read_kernel_data(JsonReader(document, {given, ""}), given);
    }
    known.emplace_back(shipped.name);
  }
  name.fail(fmt::format("unknown table of kernels \"{}\"; known are {}, or a path ending in .json",
                        given, fmt::join(known, ", ")));
}

}  // namespace shardsim
