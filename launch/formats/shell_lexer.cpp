#include "launch/formats/shell_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace shardsim {
namespace {

bool is_shell_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

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
      if (is_shell_blank(text_[at_])) {
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
      if (is_shell_blank(c) || c == '\n' ||
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

}  // namespace

std::vector<ShellToken> shell_tokens(std::string_view text, const std::string& file) {
  return Lexer(text, file).tokens();
}

}  // namespace shardsim
