#include "measurements/nccl_tests_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/json.hpp"

namespace shardsim {
namespace {

constexpr std::string_view perf = "_perf";

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  constexpr std::string_view spaces = " \t\r";
  Words words;
  for (std::size_t at = line.find_first_not_of(spaces); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(spaces, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(spaces, end);
  }
  return words;
}

template <class Number>
std::optional<Number> number_of(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

// "[1,0]<stdout>:" of mpirun --tag-output.
std::string_view without_tag(std::string_view line) {
  constexpr std::string_view tag = "<stdout>:";
  const std::size_t at = line.find(tag);
  return line.starts_with('[') && at != std::string_view::npos ? line.substr(at + tag.size())
                                                               : line;
}

// "all_reduce" of "./build/all_reduce_perf -b 8" and "all_reduce_perf_mpi".
std::string name_before_perf(std::string_view line) {
  const std::size_t end = line.find(perf);
  if (end == std::string_view::npos) return {};
  std::size_t begin = end;
  const auto is_of_name = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  while (begin > 0 && is_of_name(line[begin - 1])) --begin;
  return std::string(line.substr(begin, end - begin));
}

// What was counted so far, to be told apart from a table that is whole.
struct Health {
  std::size_t wrong_rows = 0;
  bool is_complete = false;
};

void add_health(const Health& health, Json& table) {
  if (health.wrong_rows > 0) {
    table["healthy"] = false;
    table["healthy_reason"] = fmt::format("{} rows have wrong results", health.wrong_rows);
  } else if (!health.is_complete) {
    table["healthy"] = "unknown";
    table["healthy_reason"] = "the end of the test is missing";
  }
}

class LogReader {
 public:
  explicit LogReader(const std::string& file) : file_(file) {}

  void read(std::string_view line) {
    ++number_;
    line = without_tag(line);
    const Words words = words_of(line);
    if (words.empty()) return;
    const std::string name = name_before_perf(line);
    if (!name.empty()) mentioned_.insert(name);
    if (words[0].starts_with('#')) {
      read_remark(line, words);
      return;
    }
    if (!columns_.empty() && !health_.is_complete) read_row(words);
  }

  [[nodiscard]] Json table() const {
    if (columns_.empty()) {
      throw InputError({file_, ""}, "is neither a measured table nor what nccl-tests print");
    }
    if (rows_.empty()) fail(heading_, "no row follows this heading");
    Json table;
    const bool is_known = started_.empty() && mentioned_.size() == 1;
    const std::string kind = is_known ? *mentioned_.begin() : started_;
    table["collective"] = kind.empty() ? "unknown" : kind;
    if (ranks_ > 0) {
      table["ranks"] = ranks_;
      table["nodes"] = hosts_.size();
    }
    table["rows"] = rows_;
    add_health(health_, table);
    return table;
  }

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& what) const {
    throw InputError({file_, fmt::format("line {}", line)}, what);
  }

  void read_remark(std::string_view line, const Words& words) {
    if (line.find("Collective test starting:") != std::string_view::npos) {
      started_ = name_before_perf(line);
    }
    if (line.find("Out of bounds values") != std::string_view::npos) health_.is_complete = true;
    if (words.size() > 1 && words[1] == "Rank") read_device(words);
    if (words.size() > 1 && words[1] == "size") read_heading({words.begin() + 1, words.end()});
  }

  // # Rank 0 Group 0 Pid 14010 on HOST device 0 [..] NAME; before 2.11 without Group. Those of
  // other groups have tables of their own, which are not printed.
  void read_device(const Words& words) {
    const auto after = [&](std::string_view word) -> std::string_view {
      const auto found = std::find(words.begin(), words.end(), word);
      return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
    };
    const std::string_view group = after("Group");
    if (!group.empty() && group != "0") return;
    ++ranks_;
    hosts_.emplace(after("on"));
  }

  void read_heading(Words columns) {
    if (!columns_.empty()) {
      fail(number_,
           fmt::format("is the second table, the first is at line {}; give them apart", heading_));
    }
    heading_ = number_;
    if (std::find(columns.begin(), columns.end(), "cputime") != columns.end()) {
      fail(number_, "times are the CPU's (-C), not the collective's");
    }
    std::vector<std::size_t> times;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i] == "time") times.push_back(i);
      if (columns[i] == "#wrong") wrong_.push_back(i);
    }
    if (times.empty()) fail(number_, "has no column \"time\"");
    time_ = times[0];
    if (times.size() > 1) in_place_ = times[1];
    has_timestamps_ = columns.back() == "timestamp";
    for (const std::string_view column : columns) columns_.emplace_back(column);
  }

  // Other lines of a log do not begin with two numbers.
  void read_row(const Words& words) {
    const auto bytes = number_of<std::int64_t>(words[0]);
    if (!bytes || words.size() < 2 || !number_of<std::int64_t>(words[1])) return;
    const std::size_t expected = columns_.size() + (has_timestamps_ ? 1 : 0);
    if (words.size() != expected) {
      fail(number_, fmt::format("has {} figures, the heading at line {} names {}", words.size(),
                                heading_, expected));
    }
    if (*bytes == 0) return;
    Json row = {{"bytes", *bytes}, {"time_us", time_at(words, time_)}};
    if (in_place_) row["inplace_time_us"] = time_at(words, *in_place_);
    const bool is_wrong = std::any_of(wrong_.begin(), wrong_.end(), [&](std::size_t column) {
      return number_of<double>(words[column]).value_or(0) > 0;
    });
    health_.wrong_rows += is_wrong ? 1 : 0;
    rows_.push_back(std::move(row));
  }

  [[nodiscard]] double time_at(const Words& words, std::size_t column) const {
    const auto time = number_of<double>(words[column]);
    if (!time || !(*time > 0)) fail(number_, fmt::format("\"{}\" is no time", words[column]));
    return *time;
  }

  std::string file_;
  std::size_t number_ = 0;
  std::string started_;
  std::set<std::string> mentioned_;
  std::int64_t ranks_ = 0;
  std::set<std::string> hosts_;
  std::size_t heading_ = 0;
  std::vector<std::string> columns_;
  std::size_t time_ = 0;
  std::optional<std::size_t> in_place_;
  std::vector<std::size_t> wrong_;
  bool has_timestamps_ = false;
  Health health_;
  Json rows_ = Json::array();
};

// The ranks of a process are alike.
void add_ranks(const JsonReader& config, Json& table) {
  const auto devices = config.find("devices");
  if (!devices) return;
  constexpr std::int64_t most = 1 << 16;
  const std::int64_t of_a_process =
      config.at("nthreads").integer(1, most) * config.at("ngpus").integer(1, most);
  std::set<std::string> hosts;
  std::int64_t processes = 0;
  for (const JsonReader& device : devices->elements()) {
    if (device.at("group").integer(0, most) != 0) continue;
    ++processes;
    hosts.insert(device.at("hostname").string());
  }
  if (processes == 0) devices->fail("no device is of group 0");
  table["ranks"] = processes * of_a_process;
  table["nodes"] = hosts.size();
}

}  // namespace

bool is_of_nccl_tests(const Json& document) {
  return document.is_object() && document.contains("config") && document.contains("results");
}

Json table_of_log(std::string_view text, const std::string& file) {
  LogReader reader(file);
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    reader.read(text.substr(at, end - at));
    at = end + 1;
  }
  return reader.table();
}

Json table_of_json(const Json& document, const std::string& file) {
  const JsonReader json(document, {file, ""});
  Json table;
  const std::vector<JsonReader> arguments = json.at("args").elements();
  const std::string kind = arguments.empty() ? "" : name_before_perf(arguments[0].string());
  table["collective"] = kind.empty() ? "unknown" : kind;
  add_ranks(json.at("config"), table);
  Health health;
  health.is_complete = json.find("out_of_bounds").has_value();
  Json rows = Json::array();
  for (const JsonReader& result : json.at("results").elements()) {
    constexpr std::int64_t largest = std::int64_t{1} << 60;
    const std::int64_t bytes = result.at("size").integer(0, largest);
    if (bytes == 0) continue;
    Json row = {{"bytes", bytes}};
    bool is_wrong = false;
    for (const auto& [key, name] :
         {std::pair{"out_of_place", "time_us"}, std::pair{"in_place", "inplace_time_us"}}) {
      const auto body = result.find(key);
      if (!body) continue;
      if (const auto cpu = body->find("cpu_time")) {
        cpu->fail("times are the CPU's (-C), not the collective's");
      }
      row[name] = body->at("time").number();
      const auto wrong = body->find("nwrong");
      is_wrong = is_wrong || (wrong && wrong->number() > 0);
    }
    health.wrong_rows += is_wrong ? 1 : 0;
    rows.push_back(std::move(row));
  }
  if (rows.empty()) json.at("results").fail("no row was measured");
  table["rows"] = std::move(rows);
  add_health(health, table);
  return table;
}

}  // namespace shardsim
