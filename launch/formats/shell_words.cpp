#include "launch/formats/shell_words.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <optional>

#include "base/error.hpp"

namespace shardsim {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::vector<ShellToken> tokens() {
    std::vector<ShellToken> tokens;
    while (true) {
      skip_blanks();
      if (at_ >= text_.size()) break;
      const char c = text_[at_];
      if (c == '\n') {
        tokens.push_back({ShellToken::Kind::newline, "\n", line_});
        ++line_;
        ++at_;
        skip_document();
      } else if (std::string_view(";&|<>()").find(c) != std::string_view::npos) {
        tokens.push_back(operation());
        if (tokens.back().text == "<<") skip_until_ = end_of_document();
      } else {
        tokens.push_back(word());
      }
    }
    return tokens;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size()) {
      if (is_space(text_[at_])) {
        ++at_;
      } else if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        at_ += 2;
        ++line_;
      } else if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  // Of <<EOF its word, without quotes.
  std::string end_of_document() {
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    skip_blanks();
    std::string end;
    for (const char c : word().text) {
      if (c != '\'' && c != '"') end += c;
    }
    return end;
  }

  // What a line begins with <<EOF: it is somebody's input.
  void skip_document() {
    if (skip_until_.empty()) return;
    const int first = line_;
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = text_.substr(at_, end - at_);
      while (line.starts_with('\t')) line.remove_prefix(1);
      at_ = std::min(end + 1, text_.size());
      ++line_;
      if (line == skip_until_) {
        skip_until_.clear();
        return;
      }
    }
    fail(first, fmt::format("a text that begins here does not end, with {}", skip_until_));
  }

  ShellToken operation() {
    const char c = text_[at_];
    std::size_t length = 1;
    while (at_ + length < text_.size() && text_[at_ + length] == c && c != '(' && c != ')') {
      ++length;
    }
    ShellToken token{ShellToken::Kind::operation, std::string(text_.substr(at_, length)), line_};
    at_ += length;
    return token;
  }

  ShellToken word() {
    ShellToken token{ShellToken::Kind::word, "", line_};
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_space(c) || c == '\n' ||
          std::string_view(";&|<>)").find(c) != std::string_view::npos) {
        break;
      }
      if (c == '(') {
        if (!token.text.ends_with('=')) break;
        return array(std::move(token));
      }
      take_part(token.text);
    }
    return token;
  }

  ShellToken array(ShellToken token) {
    token.kind = ShellToken::Kind::array;
    ++at_;
    while (true) {
      skip_blanks();
      if (at_ >= text_.size()) fail(token.line, "a list that begins here is not closed");
      if (text_[at_] == '\n') {
        ++line_;
        ++at_;
      } else if (text_[at_] == ')') {
        ++at_;
        return token;
      } else {
        const std::size_t before = at_;
        token.elements.push_back(word());
        if (at_ == before) fail(line_, fmt::format("'{}' is not understood in a list", text_[at_]));
      }
    }
  }

  // A character, or what a quote or bracket holds together.
  void take_part(std::string& out) {
    const char c = text_[at_];
    if (c == '\\' && at_ + 1 < text_.size()) {
      if (text_[at_ + 1] == '\n') {
        ++line_;
      } else {
        out += text_.substr(at_, 2);
      }
      at_ += 2;
    } else if (c == '\'') {
      take_until("'", "'", out);
    } else if (c == '"' || c == '`') {
      take_quoted(c, out);
    } else if (c == '$' && at_ + 1 < text_.size() &&
               (text_[at_ + 1] == '(' || text_[at_ + 1] == '{')) {
      take_brackets(out);
    } else {
      out += c;
      ++at_;
    }
  }

  void take_until(std::string_view open, std::string_view close, std::string& out) {
    const int first = line_;
    out += text_.substr(at_, open.size());
    at_ += open.size();
    while (at_ < text_.size() && text_.substr(at_, close.size()) != close) take_one(out);
    if (at_ >= text_.size()) fail(first, fmt::format("{} is not closed", open));
    out += text_.substr(at_, close.size());
    at_ += close.size();
  }

  void take_one(std::string& out) {
    if (text_[at_] == '\n') ++line_;
    out += text_[at_++];
  }

  void take_quoted(char quote, std::string& out) {
    const int first = line_;
    out += text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        if (text_[at_ + 1] == '\n') {
          ++line_;
          at_ += 2;
          continue;
        }
        take_one(out);
        take_one(out);
      } else if (quote == '"' && text_[at_] == '$' && at_ + 1 < text_.size() &&
                 (text_[at_ + 1] == '(' || text_[at_ + 1] == '{')) {
        take_brackets(out);
      } else {
        take_one(out);
      }
    }
    if (at_ >= text_.size()) fail(first, fmt::format("{} is not closed", quote));
    out += text_[at_++];
  }

  void take_brackets(std::string& out) {
    const int first = line_;
    const char open = text_[at_ + 1], close = open == '(' ? ')' : '}';
    out += text_[at_++];
    int depth = 0;
    do {
      if (at_ >= text_.size()) fail(first, fmt::format("${} is not closed", open));
      if (text_[at_] == open) ++depth;
      if (text_[at_] == close) --depth;
      take_one(out);
    } while (depth > 0);
  }

  [[noreturn]] void fail(int line, const std::string& message) const {
    throw InputError({file_, fmt::format("line {}", line)}, message);
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::string skip_until_;
};

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

std::vector<ShellToken> shell_tokens(std::string_view text, const std::string& file) {
  return Lexer(text, file).tokens();
}

std::vector<ShellWord> expand(const ShellToken& word, const ShellScript& script, bool keeps_unset) {
  return Expansion(script, word.line, keeps_unset).words(word.text);
}

}  // namespace shardsim
