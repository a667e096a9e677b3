#include "base/regex_syntax.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/regex_reader.hpp"
#include "base/regex_set.hpp"

namespace shardsim {
namespace {

constexpr int deepest_group = 200;
constexpr std::int64_t most_repetitions = 65535;  // PCRE2's
constexpr std::int64_t unlimited = std::int64_t{1} << 40;

// Characters that an item takes, at least and at most. Sums and products stay below unlimited.
struct Width {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

std::int64_t times(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a > unlimited / b ? unlimited : a * b;
}

Width operator+(const Width& a, const Width& b) {
  return {std::min(a.min + b.min, unlimited), std::min(a.max + b.max, unlimited)};
}

enum class Kind { atom, anchor, repeat };
enum class Role { other, literal, anything, start, end };  // for globs

struct Item {
  Kind kind = Kind::atom;
  std::string text;
  Width width{1, 1};
  Role role = Role::other;
  char32_t literal = 0;
  bool is_dot = false;  // "." without DOTALL
};

using Sequence = std::vector<Item>;

std::string text_of(const Sequence& items) {
  std::string text;
  for (const Item& item : items) text += item.text;
  return text;
}

Width width_of(const Sequence& items) {
  Width width;
  for (const Item& item : items) width = width + item.width;
  return width;
}

bool is_identifier(std::string_view name) {
  const auto is_letter = [](char c) {
    return c == '_' || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z');
  };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || ('0' <= c && c <= '9'); });
}

// \b and \B hold between a word's character and another; in an empty text neither does.
std::string word_boundary(const RegexFlags& flags, bool is_boundary) {
  const std::string word = category_atom('w', flags);
  if (is_boundary) return fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word);
  return fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0})(?!\\A\\z))", word);
}

class Translator {
 public:
  explicit Translator(std::string_view expression) : reader_(expression) {}

  TranslatedRegex run() {
    const std::vector<Sequence> alternatives = parse_alternatives({}, /*outermost=*/true);
    if (reader_.peek()) reader_.fail("unbalanced parenthesis");
    if (last_condition_ >= group_widths_.size()) {
      reader_.fail(fmt::format("there is no group {}", last_condition_));
    }
    TranslatedRegex result;
    result.text = joined(alternatives);
    add_globs(alternatives, result);
    return result;
  }

 private:
  static std::string joined(const std::vector<Sequence>& alternatives) {
    std::vector<std::string> texts;
    texts.reserve(alternatives.size());
    for (const Sequence& items : alternatives) texts.push_back(text_of(items));
    return fmt::format("{}", fmt::join(texts, "|"));
  }

  static Width width_of_alternatives(const std::vector<Sequence>& alternatives) {
    Width width{unlimited, 0};
    for (const Sequence& items : alternatives) {
      const Width one = width_of(items);
      width = {std::min(width.min, one.min), std::max(width.max, one.max)};
    }
    return width;
  }

  static void add_globs(const std::vector<Sequence>& alternatives, TranslatedRegex& result) {
    std::vector<std::string> pieces{""};
    bool suffice = alternatives.size() == 1;
    Sequence items = suffice ? alternatives.front() : Sequence{{}};
    const bool at_start = !items.empty() && items.front().role == Role::start;
    const bool at_end = !items.empty() && items.back().role == Role::end;
    if (at_start) items.erase(items.begin());
    if (at_end) items.pop_back();
    for (const Item& item : items) {
      if (item.role == Role::literal) {
        pieces.back() += utf8(item.literal);
      } else {
        suffice = suffice && item.role == Role::anything;
        pieces.emplace_back();
      }
    }
    result.full_match.pieces = pieces;
    if (!at_start) pieces.insert(pieces.begin(), "");
    if (!at_end) pieces.emplace_back();
    result.search.pieces = std::move(pieces);
    result.globs_suffice = suffice;
  }

  // `flags` is changed by (?i) and its like, which may stand at the start of everything only.
  std::vector<Sequence> parse_alternatives(RegexFlags flags, bool outermost) {
    if (++depth_ > deepest_group) {
      reader_.fail(fmt::format("groups are nested deeper than {}", deepest_group));
    }
    std::vector<Sequence> alternatives;
    do {
      alternatives.push_back(parse_sequence(flags, outermost && alternatives.empty()));
    } while (reader_.accept('|'));
    --depth_;
    return alternatives;
  }

  Sequence parse_sequence(RegexFlags& flags, bool at_start) {
    Sequence items;
    while (const auto token = reader_.peek()) {
      if (token->is_any_of(U"|)")) break;
      reader_.take();
      if (flags.verbose && skip_layout(*token)) continue;
      if (token->escaped) {
        items.push_back(parse_escape(*token, flags));
      } else if (token->is_any_of(U"*+?{")) {
        parse_repeat(*token, flags, items);
      } else if (*token == '(') {
        parse_group(flags, at_start && items.empty(), items);
      } else {
        items.push_back(parse_character(*token, flags));
      }
    }
    return items;
  }

  // Whitespace and comments under VERBOSE.
  bool skip_layout(const RegexToken& token) {
    if (token == '#') {
      for (auto next = reader_.peek(); next; next = reader_.peek()) {
        reader_.take();
        if (*next == '\n') break;
      }
      return true;
    }
    return !token.escaped && (token.c == ' ' || ('\t' <= token.c && token.c <= '\r'));
  }

  static Item literal(char32_t c, const RegexFlags& flags) {
    Item item{Kind::atom, literal_atom(c, flags)};
    item.literal = c;
    if (!flags.ignore_case && c != '\n') item.role = Role::literal;
    return item;
  }

  Item parse_character(const RegexToken& token, const RegexFlags& flags) {
    switch (token.c) {
      case '[':
        return {Kind::atom, reader_.set(flags)};
      case '.': {
        Item item{Kind::atom, flags.dot_all ? "(?s:.)" : "."};
        item.is_dot = true;
        return item;
      }
      case '^':
        if (flags.multiline) return {Kind::anchor, R"((?:\A|(?<=\n)))", {}};
        return {Kind::anchor, R"(\A)", {}, Role::start};
      case '$':
        if (flags.multiline) return {Kind::anchor, R"((?=\n|\z))", {}};
        return {Kind::anchor, R"(\Z)", {}, Role::end};
      default:
        return literal(token.c, flags);
    }
  }

  Item parse_escape(const RegexToken& token, const RegexFlags& flags) {
    switch (token.c) {
      case 'A':
        return {Kind::anchor, R"(\A)", {}, Role::start};
      case 'Z':
        return {Kind::anchor, R"(\z)", {}, Role::end};
      case 'b':
      case 'B':
        return {Kind::anchor, word_boundary(flags, token.c == 'b'), {}};
      case 'd':
      case 'D':
      case 's':
      case 'S':
      case 'w':
      case 'W':
        return {Kind::atom, category_atom(token.c, flags)};
      default:
        break;
    }
    if ('1' <= token.c && token.c <= '9') {
      const auto [value, is_octal] = reader_.octal_or_group(token.c);
      return is_octal ? literal(value, flags) : reference(value, flags);
    }
    return literal(reader_.escaped_character(token.c), flags);
  }

  Item reference(std::size_t group, const RegexFlags& flags) {
    if (group >= group_widths_.size()) reader_.fail(fmt::format("there is no group {}", group));
    if (!group_widths_[group]) reader_.fail("reference to a group that is still open");
    check_lookbehind(group);
    if (flags.ignore_case) reader_.fail("a backreference under IGNORECASE is not supported");
    return {Kind::atom, fmt::format("\\g{{{}}}", group), *group_widths_[group]};
  }

  void check_lookbehind(std::size_t group) const {
    if (!lookbehind_groups_) return;
    if (group < group_widths_.size() && !group_widths_[group]) {
      reader_.fail("reference to a group that is still open");
    }
    if (group >= *lookbehind_groups_) {
      reader_.fail("a lookbehind cannot refer to a group inside itself");
    }
  }

  void parse_repeat(const RegexToken& token, const RegexFlags& flags, Sequence& items) {
    std::int64_t min = token == '+' ? 1 : 0;
    std::int64_t max = token == '?' ? 1 : unlimited;
    if (token == '{' && !reader_.bounds(min, max)) {
      items.push_back(literal('{', flags));
      return;
    }
    if (max < unlimited && max < min) reader_.fail("the least repetitions exceed the most");
    if (min > most_repetitions || (max < unlimited && max > most_repetitions)) {
      reader_.fail(fmt::format("more than {} repetitions are not supported", most_repetitions));
    }
    if (items.empty() || items.back().kind == Kind::anchor) reader_.fail("nothing to repeat");
    Item& item = items.back();
    if (item.kind == Kind::repeat) reader_.fail("multiple repeat");
    item.kind = Kind::repeat;
    item.role = Role::other;
    const std::string eagerness = reader_.accept('?') ? "?" : reader_.accept('+') ? "+" : "";
    if (item.width.max == 0 && max > 0) {
      item.text = repeated_nothing(item.text, min == 0, eagerness);
    } else {
      item.text += quantifier(min, max) + eagerness;
    }
    item.width = {times(item.width.min, min), times(item.width.max, max)};
    if (eagerness == "+") return;
    if (item.is_dot && min == 0 && max == unlimited) item.role = Role::anything;
  }

  // Of what takes no characters, once is as good as often; PCRE2 wants it so inside a lookbehind.
  static std::string repeated_nothing(const std::string& text, bool may_be_left_out,
                                      std::string_view eagerness) {
    if (!may_be_left_out) return fmt::format("(?:{})", text);
    if (eagerness == "?") return fmt::format("(?:|{})", text);
    return fmt::format("({}{}|)", eagerness == "+" ? "?>" : "?:", text);
  }

  static std::string quantifier(std::int64_t min, std::int64_t max) {
    if (max == unlimited) return min == 0 ? "*" : min == 1 ? "+" : fmt::format("{{{},}}", min);
    return fmt::format("{{{},{}}}", min, max);
  }

  // What follows "(".
  void parse_group(RegexFlags& flags, bool at_start, Sequence& items) {
    if (!reader_.accept('?')) return items.push_back(capture(flags, ""));
    const RegexToken kind = reader_.take_or_fail();
    if (kind == 'P') {
      if (reader_.accept('<')) return items.push_back(capture(flags, reader_.until('>')));
      if (!reader_.accept('=')) reader_.fail("unknown extension after (?P");
      return items.push_back(reference(group_named(reader_.until(')')), flags));
    }
    if (kind == '#') return reader_.skip_comment();
    if (kind.is_any_of(U"=!")) return items.push_back(lookaround(kind.c, "", flags));
    if (kind == '<') {
      const RegexToken sign = reader_.take_or_fail();
      if (!sign.is_any_of(U"=!")) reader_.fail("unknown extension after (?<");
      return items.push_back(lookaround(sign.c, "<", flags));
    }
    if (kind == '(') return items.push_back(conditional(flags));
    if (kind.is_any_of(U":>")) {
      return items.push_back(group(kind == ':' ? "(?:" : "(?>", flags));
    }
    RegexFlags inner = flags;
    if (reader_.flags(kind, inner)) return items.push_back(group("(?:", inner));
    if (!at_start) reader_.fail("flags for all stand elsewhere than at the start");
    flags = inner;
  }

  Item group(const std::string& open, const RegexFlags& flags) {
    const std::vector<Sequence> inside = parse_alternatives(flags, /*outermost=*/false);
    close();
    return {Kind::atom, open + joined(inside) + ")", width_of_alternatives(inside)};
  }

  void close() {
    if (!reader_.accept(')')) reader_.fail("missing closing parenthesis");
  }

  Item capture(const RegexFlags& flags, const std::string& name) {
    const std::size_t number = group_widths_.size();
    group_widths_.emplace_back();
    if (!name.empty()) {
      check_name(name);
      if (!names_.emplace(name, number).second) {
        reader_.fail(fmt::format("group name \"{}\" is given twice", name));
      }
    }
    Item item = group("(", flags);
    group_widths_[number] = item.width;
    return item;
  }

  void check_name(const std::string& name) const {
    if (!is_identifier(name)) reader_.fail(fmt::format("bad group name \"{}\"", name));
  }

  std::size_t group_named(const std::string& name) const {
    check_name(name);
    const auto found = names_.find(name);
    if (found == names_.end()) reader_.fail(fmt::format("unknown group name \"{}\"", name));
    return found->second;
  }

  Item lookaround(char32_t sign, const std::string& behind, const RegexFlags& flags) {
    const std::optional<std::size_t> outer = lookbehind_groups_;
    if (!behind.empty() && !outer) lookbehind_groups_ = group_widths_.size();
    Item item = group(fmt::format("(?{}{}", behind, static_cast<char>(sign)), flags);
    lookbehind_groups_ = outer;
    if (!behind.empty() && item.width.min != item.width.max) {
      reader_.fail("a lookbehind needs a fixed width");
    }
    return {Kind::atom, item.text, {}};
  }

  Item conditional(RegexFlags flags) {
    const std::string name = reader_.until(')');
    const bool is_number =
        std::all_of(name.begin(), name.end(), [](char c) { return '0' <= c && c <= '9'; });
    if (is_number && (name.size() > 5 || std::stoul(name) == 0)) reader_.fail("bad group number");
    const std::size_t number = is_number ? std::stoul(name) : group_named(name);
    last_condition_ = std::max(last_condition_, number);
    check_lookbehind(number);
    std::vector<Sequence> branches{parse_sequence(flags, /*at_start=*/false)};
    branches.push_back(reader_.accept('|') ? parse_sequence(flags, /*at_start=*/false)
                                           : Sequence{});
    if (reader_.peek() && *reader_.peek() == '|') reader_.fail("a condition has two branches");
    close();
    return {Kind::atom, fmt::format("(?({}){})", number, joined(branches)),
            width_of_alternatives(branches)};
  }

  RegexReader reader_;
  int depth_ = 0;
  std::vector<std::optional<Width>> group_widths_{std::nullopt};  // none while the group is open
  std::map<std::string, std::size_t> names_;
  std::optional<std::size_t> lookbehind_groups_;  // groups opened before the lookbehind
  std::size_t last_condition_ = 0;
};

}  // namespace

TranslatedRegex translate_python_regex(std::string_view expression) {
  return Translator(expression).run();
}

}  // namespace shardsim
