#include "checks/member_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/functional/hash.hpp>
#include <cstdint>
#include <unordered_map>
#include <utility>
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

// What is behind so many numbers of a name is one text, and not folded.
constexpr std::size_t most_numbers = 8;

// Numbers as they are printed alone: not 007, which is text.
bool is_plain_number(std::string_view run) {
  return run.size() <= most_digits && (run.size() == 1 || run.front() != '0');
}

Pieces pieces_of(const std::string& name) {
  Pieces pieces(1);
  std::size_t at = 0;
  while (at < name.size() && pieces.size() / 2 < most_numbers) {
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
  pieces.back() += name.substr(at);
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

// Lines hold the numbers of their texts, so that they are compared as numbers.
class Texts {
 public:
  int number_of(const std::string& text) {
    const auto [known, is_new] = numbers_.emplace(text, static_cast<int>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return known->second;
  }
  [[nodiscard]] const std::string& operator[](int number) const {
    return texts_[static_cast<std::size_t>(number)];
  }

 private:
  std::unordered_map<std::string, int> numbers_;
  std::vector<std::string> texts_;
};

struct Line {
  std::vector<int> pieces;
  int value = 0;
};

// Lines that differ in the number at `place` alone become one.
std::vector<Line> folded_at(std::size_t place, const std::vector<Line>& lines, Texts& texts) {
  using Key = std::pair<std::vector<int>, int>;  // a line without that number
  std::unordered_map<Key, std::size_t, boost::hash<Key>> group_of;
  std::vector<Line> groups;
  std::vector<std::vector<std::int64_t>> numbers;  // by group
  std::vector<Line> shorter;
  for (const Line& line : lines) {
    if (place >= line.pieces.size()) {
      shorter.push_back(line);
      continue;
    }
    Key key{line.pieces, line.value};
    key.first[place] = -1;
    const auto [group, is_new] = group_of.emplace(std::move(key), groups.size());
    if (is_new) groups.push_back(line);
    numbers.resize(groups.size());
    numbers[group->second].push_back(std::stoll(texts[line.pieces[place]]));
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::sort(numbers[g].begin(), numbers[g].end());
    groups[g].pieces[place] = texts.number_of(text_of(numbers[g]));
  }
  groups.insert(groups.end(), shorter.begin(), shorter.end());
  return groups;
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
  Texts texts;
  std::vector<Line> lines;
  std::size_t most_pieces = 1;
  for (const auto& [name, value] : values) {
    Line line{{}, texts.number_of(value)};
    for (const std::string& piece : pieces_of(with_marked_braces(name))) {
      line.pieces.push_back(texts.number_of(piece));
    }
    most_pieces = std::max(most_pieces, line.pieces.size());
    lines.push_back(std::move(line));
  }
  // Numbers are the odd pieces; the last first, so that those before it are still plain.
  for (std::size_t place = most_pieces; place-- > 0;) {
    if (place % 2 == 1) lines = folded_at(place, lines, texts);
  }
  ValuesByName folded;
  for (const Line& line : lines) {
    std::string name;
    for (const int piece : line.pieces) name += texts[piece];
    folded[name] = texts[line.value];
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
