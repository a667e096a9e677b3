#include "checks/member_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <vector>

#include "base/json.hpp"

namespace shardsim {
namespace {

constexpr std::string_view digits = "0123456789";
constexpr std::size_t most_digits = 9;
constexpr std::size_t most_members = 1'000'000;
constexpr std::size_t most_characters = std::size_t{1} << 24U;

constexpr std::string_view own_brace = "{{}";  // one of the name's, as it is marked

std::string with_marked_braces(std::string_view name) {
  std::string marked;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const std::string_view rest = name.substr(at + 1);
    const bool is_mistaken = rest.starts_with("{}") || rest.find_first_of(digits) == 0;
    if (name[at] == '{' && is_mistaken) {
      marked += own_brace;
    } else {
      marked += name[at];
    }
  }
  return marked;
}

// Texts and numbers in turn, beginning and ending with a text: "w", "0", "".
using Pieces = std::vector<std::string>;

// Numbers as they are printed alone: not 007, which is text.
bool is_plain_number(std::string_view run) {
  return run.size() <= most_digits && (run.size() == 1 || run.front() != '0');
}

Pieces pieces_of(const std::string& name) {
  Pieces pieces(1);
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t begin = std::min(name.find_first_of(digits, at), name.size());
    const std::size_t end = std::min(name.find_first_not_of(digits, begin), name.size());
    pieces.back() += name.substr(at, begin - at);
    const std::string run = name.substr(begin, end - begin);
    if (run.empty() || !is_plain_number(run)) {
      pieces.back() += run;
    } else {
      pieces.push_back(run);
      pieces.emplace_back();
    }
    at = end;
  }
  return pieces;
}

// "{0-7,9}" of ascending numbers, "5" of one.
std::string text_of(const std::vector<std::int64_t>& numbers) {
  if (numbers.size() == 1) return std::to_string(numbers.front());
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ",";
    text += std::to_string(numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
    first = last + 1;
  }
  return "{" + text + "}";
}

struct Line {
  Pieces pieces;
  std::string value;
};

// The same for the same pieces and value alone: it says how many there are and how long each is.
std::string line_text(const Line& line) {
  std::string text = fmt::format("{}:", line.pieces.size());
  for (const std::string& piece : line.pieces) text += fmt::format("{}:{}", piece.size(), piece);
  return text + line.value;
}

// Lines that differ in the number at `place` alone become one.
std::vector<Line> folded_at(std::size_t place, std::vector<Line> lines) {
  std::unordered_map<std::string, std::size_t> group_of;  // by all else of a line, as one text
  std::vector<std::vector<std::int64_t>> numbers;         // by group
  std::vector<Line> result;                               // groups first, in the order of lines
  std::vector<Line> shorter;
  for (Line& line : lines) {
    if (place >= line.pieces.size()) {
      shorter.push_back(std::move(line));
      continue;
    }
    const std::int64_t number = std::stoll(line.pieces[place]);
    line.pieces[place].clear();
    const auto [group, is_new] = group_of.emplace(line_text(line), result.size());
    if (is_new) result.push_back(std::move(line));
    numbers.resize(result.size());
    numbers[group->second].push_back(number);
  }
  for (std::size_t g = 0; g < numbers.size(); ++g) {
    std::sort(numbers[g].begin(), numbers[g].end());
    result[g].pieces[place] = text_of(numbers[g]);
  }
  std::move(shorter.begin(), shorter.end(), std::back_inserter(result));
  return result;
}

// The numbers of "{0-7,9}" at the beginning of `text`, which becomes what is behind it; none: it
// begins with something else.
std::vector<std::int64_t> take_numbers(std::string_view& text, const JsonReader& json) {
  const std::size_t end = text.find('}');
  if (!text.starts_with('{') || end == std::string_view::npos) return {};
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 1; at < end;) {
    const std::size_t comma = std::min(text.find(',', at), end);
    const std::string_view range = text.substr(at, comma - at);
    const std::size_t dash = std::min(range.find('-'), range.size());
    const std::string_view first = range.substr(0, dash);
    const std::string_view last = dash < range.size() ? range.substr(dash + 1) : first;
    for (const std::string_view one : {first, last}) {
      const bool is_number =
          !one.empty() && one.find_first_not_of(digits) == std::string_view::npos;
      if (!is_number || !is_plain_number(one)) return {};
    }
    const std::int64_t end_of_range = std::stoll(std::string(last));
    for (std::int64_t i = std::stoll(std::string(first)); i <= end_of_range; ++i) {
      numbers.push_back(i);
      if (numbers.size() > most_members) json.fail("stands for more than 1,000,000 names");
    }
    at = comma + 1;
  }
  if (!numbers.empty()) text.remove_prefix(end + 1);
  return numbers;
}

void check_size(const std::vector<std::string>& members, const JsonReader& json) {
  if (members.size() * members.front().size() > most_characters) {
    json.fail("stands for names of more than 16 MiB");
  }
}

std::vector<std::string> members_of(std::string_view name, const JsonReader& json) {
  std::vector<std::string> members(1);
  while (!name.empty()) {
    check_size(members, json);
    const std::vector<std::int64_t> numbers = take_numbers(name, json);
    if (numbers.empty()) {
      for (std::string& member : members) member += name.front();
      name.remove_prefix(name.starts_with(own_brace) ? own_brace.size() : 1);
      continue;
    }
    if (members.size() * numbers.size() > most_members) {
      json.fail("stands for more than 1,000,000 names");
    }
    std::vector<std::string> longer;
    for (const std::string& member : members) {
      for (const std::int64_t number : numbers) longer.push_back(member + std::to_string(number));
    }
    members = std::move(longer);
  }
  check_size(members, json);
  return members;
}

}  // namespace

ValuesByName fold_members(const ValuesByName& values) {
  std::vector<Line> lines;
  std::size_t most_pieces = 1;
  for (const auto& [name, value] : values) {
    lines.push_back({pieces_of(with_marked_braces(name)), value});
    most_pieces = std::max(most_pieces, lines.back().pieces.size());
  }
  // Numbers are the odd pieces; the last first, so that those before it are still plain.
  for (std::size_t place = most_pieces; place-- > 0;) {
    if (place % 2 == 1) lines = folded_at(place, std::move(lines));
  }
  ValuesByName folded;
  for (Line& line : lines) {
    std::string name;
    for (const std::string& piece : line.pieces) name += piece;
    folded[name] = std::move(line.value);
  }
  return folded;
}

ValuesByName read_members(const JsonReader& json) {
  ValuesByName values;
  std::size_t characters = 0;
  for (const auto& [name, value] : json.members()) {
    for (std::string& member : members_of(name, value)) {
      characters += member.size();
      if (!values.emplace(std::move(member), value.string()).second) {
        value.fail("is for a name that another line has, too");
      }
      if (values.size() > most_members) value.fail("more than 1,000,000 names in all");
      if (characters > most_characters) value.fail("names of more than 16 MiB in all");
    }
  }
  return values;
}

}  // namespace shardsim
