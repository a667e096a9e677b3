#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "launch/formats/shell_words.hpp"

namespace shardsim {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// + - * / % and brackets over integers; nothing: it is no such thing.
class Arithmetic {
 public:
  explicit Arithmetic(std::string_view text) : text_(text) {}
  std::optional<std::int64_t> value() {
    const auto value = sum();
    skip();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (is_space(text_[at_]) || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::optional<std::int64_t> sum() {
    auto left = product();
    while (left) {
      const bool adds = take('+');
      if (!adds && !take('-')) break;
      const auto right = product();
      std::int64_t result = 0;
      if (!right || (adds ? __builtin_add_overflow(*left, *right, &result)
                          : __builtin_sub_overflow(*left, *right, &result))) {
        return std::nullopt;
      }
      left = result;
    }
    return left;
  }
  std::optional<std::int64_t> product() {
    auto left = atom();
    while (left) {
      const char c = take('*') ? '*' : take('/') ? '/' : take('%') ? '%' : ' ';
      if (c == ' ') break;
      const auto right = atom();
      if (!right || (c != '*' && *right <= 0)) return std::nullopt;
      std::int64_t result = 0;
      if (c == '*' && __builtin_mul_overflow(*left, *right, &result)) return std::nullopt;
      left = c == '*' ? result : c == '/' ? *left / *right : *left % *right;
    }
    return left;
  }
  std::optional<std::int64_t> atom() {
    if (++depth_ > 100) return std::nullopt;
    std::optional<std::int64_t> value;
    if (take('(')) {
      value = sum();
      if (!take(')')) value.reset();
    } else {
      skip();
      std::int64_t number = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
      if (error == std::errc()) {
        at_ = static_cast<std::size_t>(end - text_.data());
        value = number;
      }
    }
    --depth_;
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

class Expansion {
 public:
  Expansion(const ShellScript& script, int line, bool keeps_unset)
      : script_(script), line_(line), keeps_unset_(keeps_unset) {}

  std::vector<ShellWord> words(std::string_view raw) {
    for (std::size_t at = 0; at < raw.size();) at = part(raw, at, /*quoted=*/false);
    end_word();
    return std::move(words_);
  }

 private:
  // One character or variable; answers what follows it.
  std::size_t part(std::string_view raw, std::size_t at, bool quoted) {
    const char c = raw[at];
    if (c == '\\' && at + 1 < raw.size()) {
      add(raw.substr(at + 1, 1));
      return at + 2;
    }
    if (c == '\'' && !quoted) {
      const std::size_t end = raw.find('\'', at + 1);
      add(raw.substr(at + 1, end - at - 1));
      return end + 1;
    }
    if (c == '"' && !quoted) {
      open_ = true;
      ++at;
      while (at < raw.size() && raw[at] != '"') at = part(raw, at, /*quoted=*/true);
      return at + 1;
    }
    if (c == '`') {
      const std::size_t end = std::min(raw.find('`', at + 1), raw.size() - 1);
      add(raw.substr(at, end + 1 - at));
      return end + 1;
    }
    if (c == '$' && at + 1 < raw.size()) return variable(raw, at, quoted);
    add(raw.substr(at, 1));
    return at + 1;
  }

  std::size_t variable(std::string_view raw, std::size_t at, bool quoted) {
    if (raw.substr(at).starts_with("$((")) {
      const std::size_t end = raw.find("))", at);
      if (end == std::string_view::npos) return add_rest(raw, at);
      const std::string text = inside(raw.substr(at + 3, end - at - 3));
      const auto value = Arithmetic(text).value();
      add(value ? std::to_string(*value) : std::string(raw.substr(at, end + 2 - at)));
      return end + 2;
    }
    if (raw[at + 1] == '(') {
      const std::size_t end = closing(raw, at + 1, '(', ')');
      add(raw.substr(at, end + 1 - at));  // of a program that is not run
      return end + 1;
    }
    if (raw[at + 1] == '{') {
      const std::size_t end = closing(raw, at + 1, '{', '}');
      braces(raw.substr(at + 2, end - at - 2), quoted);
      return end + 1;
    }
    std::size_t end = at + 1;
    while (end < raw.size() && is_name(raw[end])) ++end;
    if (end == at + 1 &&
        (raw[end] == '@' || raw[end] == '*' || raw[end] == '?' || raw[end] == '#')) {
      return end + 1;  // $@: the script's own arguments, none
    }
    if (end == at + 1) return add_rest(raw, at);
    value_of(raw.substr(at + 1, end - at - 1), {}, quoted);
    return end;
  }

  std::size_t add_rest(std::string_view raw, std::size_t at) {
    add(raw.substr(at, 1));
    return at + 1;
  }

  static std::size_t closing(std::string_view raw, std::size_t at, char open, char close) {
    int depth = 0;
    for (; at < raw.size(); ++at) {
      if (raw[at] == open) ++depth;
      if (raw[at] == close && --depth == 0) return at;
    }
    return raw.size() - 1;
  }

  // NAME, NAME[@], NAME:-otherwise, NAME-otherwise
  void braces(std::string_view inner, bool quoted) {
    std::size_t end = 0;
    while (end < inner.size() && is_name(inner[end])) ++end;
    const std::string_view name = inner.substr(0, end);
    std::string_view rest = inner.substr(end);
    if (rest.starts_with("[@]") || rest.starts_with("[*]")) rest.remove_prefix(3);
    if (rest.starts_with(":-")) return value_of(name, rest.substr(2), quoted);
    if (rest.starts_with("-")) return value_of(name, rest.substr(1), quoted);
    if (rest.starts_with(":=")) return value_of(name, rest.substr(2), quoted);
    if (!rest.empty()) return add(fmt::format("${{{}}}", inner));  // of forms that are not followed
    value_of(name, {}, quoted);
  }

  void value_of(std::string_view name, std::string_view otherwise, bool quoted) {
    const auto found = script_.variables.find(name);
    const bool is_set = found != script_.variables.end() &&
                        !(found->second.size() == 1 && found->second[0].text.empty());
    if (!is_set) {
      if (!otherwise.empty()) return add(inside(otherwise));
      if (found == script_.variables.end() && keeps_unset_) add(fmt::format("${}", name));
      return;
    }
    const std::vector<ShellWord>& held = found->second;
    for (std::size_t i = 0; i < held.size(); ++i) {
      if (i > 0) end_word();
      line_ = held[i].line;
      if (quoted) {
        add(held[i].text);
      } else {
        add_split(held[i].text);
      }
    }
  }

  void add_split(const std::string& text) {
    for (const char c : text) {
      if (is_space(c) || c == '\n') {
        end_word();
      } else {
        add(std::string_view(&c, 1));
      }
    }
  }

  std::string inside(std::string_view raw) {
    if (++depth_ > 20) return std::string(raw);
    Expansion inner(script_, line_, keeps_unset_);
    inner.depth_ = depth_;
    std::string text;
    for (const ShellWord& word : inner.words(raw)) text += (text.empty() ? "" : " ") + word.text;
    --depth_;
    return text;
  }

  void add(std::string_view text) {
    open_ = true;
    if (word_.empty()) word_line_ = line_;
    word_ += text;
  }
  void end_word() {
    if (open_) words_.push_back({word_, word_line_ > 0 ? word_line_ : line_});
    word_.clear();
    word_line_ = 0;
    open_ = false;
  }

  const ShellScript& script_;
  int line_;
  bool keeps_unset_;
  std::vector<ShellWord> words_;
  std::string word_;
  int word_line_ = 0;
  bool open_ = false;
  int depth_ = 0;
};

}  // namespace

std::vector<ShellWord> expand(const ShellToken& word, const ShellScript& script, bool keeps_unset) {
  return Expansion(script, word.line, keeps_unset).words(word.text);
}

}  // namespace shardsim
