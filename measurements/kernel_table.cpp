#include "measurements/kernel_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "measurements/kernel_row.hpp"

namespace shardsim {
namespace {

constexpr std::size_t most_rows = 100'000;

// Rows that differ in these are of different things, though of one class.
constexpr std::array of_one_kind = {"backend", "kernel", "kind", "mode", "op", "deterministic_bwd"};

// As somebody writes it after a "=".
std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string value_in(const Json& row, const std::string& column) {
  const auto found = row.find(column);
  return found == row.end() ? "null" : text_of(*found);
}

// JSON where it is a number or a truth, else the text itself.
Json json_of(const std::string& value) {
  Json json = Json::parse(value, nullptr, /*allow_exceptions=*/false);
  return json.is_number() || json.is_boolean() ? json : Json(value);
}

struct Row {
  std::size_t index = 0;  // in the file
  Json columns;
};

Place place_of(const std::string& file, const Row& row) {
  return {file, fmt::format("/rows/{}", row.index)};
}

std::vector<std::string> columns_of(const std::vector<Row>& rows) {
  std::set<std::string> columns;
  for (const Row& row : rows) {
    for (const auto& [column, value] : row.columns.items()) columns.insert(column);
  }
  return {columns.begin(), columns.end()};
}

// In the order of the rows; at most as many as somebody would read.
std::string values_text(const std::vector<Row>& rows, const std::string& column) {
  constexpr std::size_t most = 12;
  std::vector<std::string> first;
  std::set<std::string> all;
  for (const Row& row : rows) {
    const std::string value = value_in(row.columns, column);
    if (all.insert(value).second && first.size() < most) first.push_back(value);
  }
  const std::size_t others = all.size() - first.size();
  return fmt::format("\"{}\"{}", fmt::join(first, "\", \""),
                     others == 0 ? "" : fmt::format(" and {} more", others));
}

std::vector<Row> read_rows(const JsonReader& json) {
  const std::vector<JsonReader> elements = json.at("rows").elements();
  if (elements.size() > most_rows) json.at("rows").fail(fmt::format("more than {}", most_rows));
  std::vector<Row> rows;
  for (const JsonReader& row : elements) {
    if (!row.is_object()) row.fail("expected an object, a row");
    rows.push_back({rows.size(), row.json()});
  }
  const auto count = json.find("n_rows");
  const auto expected = count ? count->integer(0, most_rows) : std::ssize(rows);
  if (expected != std::ssize(rows)) {
    json.at("rows").fail(fmt::format("n_rows says {}, there are {}", expected, rows.size()));
  }
  return rows;
}

// Rows with any of the values that are given of each column.
std::vector<Row> chosen_rows(std::vector<Row> rows, const std::vector<ColumnValue>& where) {
  std::map<std::string, std::vector<std::string>> values;
  for (const ColumnValue& one : where) values[one.column].push_back(one.value);
  const Place place{"command line", "/where"};
  for (const auto& chosen : values) {
    const std::string& column = chosen.first;
    const std::vector<std::string>& any_of = chosen.second;
    const std::vector<std::string> columns = columns_of(rows);
    if (std::find(columns.begin(), columns.end(), column) == columns.end()) {
      throw InputError(place, fmt::format("no row has a column \"{}\"", column),
                       closest(column, columns));
    }
    std::vector<Row> kept;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(kept), [&](const Row& row) {
      const std::string value = value_in(row.columns, column);
      return std::find(any_of.begin(), any_of.end(), value) != any_of.end();
    });
    if (kept.empty()) {
      throw InputError(place,
                       fmt::format("no row is left with {} \"{}\": it is {}", column,
                                   fmt::join(any_of, "\" or \""), values_text(rows, column)));
    }
    rows = std::move(kept);
  }
  return rows;
}

void set_columns(std::vector<Row>& rows, const std::vector<ColumnValue>& set) {
  const Place place{"command line", "/set"};
  const std::vector<std::string>& known = settable_columns();
  for (const auto& [column, value] : set) {
    if (std::find(known.begin(), known.end(), column) == known.end()) {
      throw InputError(
          place,
          fmt::format("\"{}\" is no column to set; those are {}", column, fmt::join(known, ", ")),
          closest(column, known));
    }
    bool is_new = false;
    for (Row& row : rows) {
      Json& old = row.columns[column];
      if (!old.is_null()) continue;
      old = json_of(value);
      is_new = true;
    }
    if (!is_new) throw InputError(place, fmt::format("all rows say their {}", column));
  }
}

// "owner/name path @55ab91f", a title, or a text as it is; else the file.
std::string source_of(const JsonReader& json, const std::string& file) {
  const auto source = json.find("source");
  if (!source) return file;
  if (source->is_string()) return source->string();
  constexpr std::size_t short_commit = 7;
  std::string text;
  for (const char* key : {"repo", "title", "path", "commit"}) {
    const auto part = source->find(key);
    if (!part) continue;
    const bool is_commit = std::string_view(key) == "commit";
    const std::string said =
        is_commit ? "@" + part->string().substr(0, short_commit) : part->string();
    text += (text.empty() ? "" : " ") + said;
  }
  return text.empty() ? file : text;
}

bool is_chosen(const std::vector<ColumnValue>& where, const std::string& column) {
  return std::any_of(where.begin(), where.end(),
                     [&](const ColumnValue& one) { return one.column == column; });
}

void demand_one(const std::string& column, const std::vector<Row>& rows, const std::string& what,
                const std::vector<ColumnValue>& where, const Place& place) {
  const std::string first = value_in(rows.front().columns, column);
  const bool is_one = std::all_of(rows.begin(), rows.end(), [&](const Row& row) {
    return value_in(row.columns, column) == first;
  });
  if (is_one || is_chosen(where, column)) return;
  throw InputError(place, fmt::format("{} differ in {}: {}; choose with --where '{}={}'", what,
                                      column, values_text(rows, column), column, first));
}

struct KernelRows {
  std::vector<SweptKernel> kernels;
  std::vector<Row> rows;  // whose they are
  std::map<KernelClass, std::vector<Row>> by_class;
  std::map<std::string, std::int64_t> left_out;  // why, and how many
};

KernelRows kernels_of(std::vector<Row> rows, const std::string& file) {
  KernelRows read;
  for (Row& row : rows) {
    const KernelRow said = read_kernel_row({row.columns, place_of(file, row)});
    if (said.kernels.empty()) {
      ++read.left_out[said.why_not];
      continue;
    }
    read.kernels.insert(read.kernels.end(), said.kernels.begin(), said.kernels.end());
    read.by_class[said.kernels.front().kernel.kernel_class].push_back(row);
    read.rows.push_back(std::move(row));
  }
  return read;
}

// What is left out, and how often.
std::vector<std::string> left_out_notes(const std::map<std::string, std::int64_t>& left_out) {
  std::vector<std::string> notes;
  for (const auto& [why, rows] : left_out) {
    notes.push_back(fmt::format("{} left out: {}", counted(rows, "row"), why));
  }
  return notes;
}

}  // namespace

std::vector<ColumnValue> read_column_values(const std::vector<std::string>& words,
                                            const std::string& flag) {
  std::vector<ColumnValue> values;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw InputError({"command line", "/" + flag},
                       fmt::format("\"{}\" is not COLUMN=VALUE", word));
    }
    values.push_back({word.substr(0, equals), word.substr(equals + 1)});
  }
  return values;
}

bool is_kernel_table(const Json& document) {
  if (!document.is_object() || document.contains("collective")) return false;
  const auto rows = document.find("rows");
  if (rows == document.end() || !rows->is_array() || rows->empty()) return false;
  return std::none_of(rows->begin(), rows->end(),
                      [](const Json& row) { return row.is_object() && row.contains("bytes"); });
}

KernelTable read_kernel_table(const Json& document, const std::string& file,
                              const KernelTableChoice& choice) {
  const JsonReader json(document, {file, ""});
  std::vector<Row> rows = chosen_rows(read_rows(json), choice.where);
  set_columns(rows, choice.set);
  KernelTable table;
  DeviceSweep& sweep = table.sweep;
  sweep.file = file;
  sweep.source = source_of(json, file);
  sweep.date = choice.date;
  sweep.profile = choice.machine;
  sweep.on = {"published", "as published", 1, {"published"}};
  sweep.processor = "not stated";
  KernelRows read = kernels_of(std::move(rows), file);
  const std::vector<std::string> left_out = left_out_notes(read.left_out);
  const Place place{file, "/rows"};
  if (read.kernels.empty()) {
    throw InputError(place, fmt::format("no row is a kernel's: {}", fmt::join(left_out, "; ")));
  }
  demand_one("device", read.rows, "rows", choice.where, place);
  for (const auto& [kernel_class, of_it] : read.by_class) {
    const std::string what = fmt::format("rows of class {}", name_of(kernel_class));
    for (const char* column : of_one_kind) demand_one(column, of_it, what, choice.where, place);
  }
  sweep.kernels = std::move(read.kernels);
  if (const auto notes = json.find("notes"); notes && notes->is_array()) {
    for (const JsonReader& note : notes->elements()) table.notes.push_back(note.string());
  }
  table.notes.insert(table.notes.end(), left_out.begin(), left_out.end());
  return table;
}

}  // namespace shardsim
