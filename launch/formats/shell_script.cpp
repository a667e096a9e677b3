#include "launch/formats/shell_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.hpp"
#include "launch/formats/shell_words.hpp"

namespace shardsim {
namespace {

using Kind = ShellToken::Kind;
using Statement = std::vector<ShellToken>;

bool is_word(const ShellToken& token, std::string_view text) {
  return token.kind == Kind::word && token.text == text;
}

// "NAME=" or "NAME+=" at the beginning of a word; 0: none.
std::size_t assigned_name(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) {
    ++end;
  }
  const bool named = end > 0 && std::isdigit(static_cast<unsigned char>(text[0])) == 0;
  return named && (text.substr(end).starts_with("=") || text.substr(end).starts_with("+=")) ? end
                                                                                            : 0;
}

std::optional<std::int64_t> number_of(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

class Interpreter {
 public:
  Interpreter(std::vector<ShellToken> tokens, const std::string& file,
              const std::map<std::string, std::string, std::less<>>& given)
      : tokens_(std::move(tokens)), file_(file) {
    for (const auto& [name, value] : given) script_.variables[name] = {{value, 1}};
  }

  ShellScript run() {
    while (at_ < tokens_.size()) {
      if (tokens_[at_].text == ";;" && !cases_.empty()) {
        ++at_;
        next_pattern();
      } else if (ends_statement(tokens_[at_])) {
        ++at_;
      } else {
        step();
      }
    }
    if (!branches_.empty()) fail(branches_.back().line, "this has no end, fi or esac");
    return std::move(script_);
  }

 private:
  struct Branch {
    int line;
    bool runs;   // the part that is being read
    bool taken;  // one of its parts has run
    bool outer;  // it is itself in a part that runs
  };

  static bool ends_statement(const ShellToken& token) {
    return token.kind == Kind::newline || (token.kind == Kind::operation && token.text != ">" &&
                                           token.text != ">>" && token.text != "<");
  }

  [[nodiscard]] bool runs() const { return branches_.empty() || branches_.back().runs; }

  void step() {
    const ShellToken first = tokens_[at_];
    if (is_word(first, "if") || is_word(first, "elif")) {
      ++at_;
      const bool holds = condition(first.line);
      if (first.text == "if") {
        branches_.push_back({first.line, runs() && holds, holds, runs()});
      } else {
        Branch& branch = innermost(first);
        branch.runs = branch.outer && !branch.taken && holds;
        branch.taken |= holds;
      }
    } else if (is_word(first, "else")) {
      ++at_;
      Branch& branch = innermost(first);
      branch.runs = branch.outer && !branch.taken;
      branch.taken = true;
    } else if (is_word(first, "fi")) {
      ++at_;
      (void)innermost(first);
      branches_.pop_back();
    } else if (is_word(first, "case")) {
      begin_case(first);
    } else if (is_word(first, "esac") && !cases_.empty()) {
      ++at_;
      cases_.pop_back();
      branches_.pop_back();
    } else if (first.kind == Kind::word && refuses(first)) {
      fail(first.line,
           fmt::format("\"{}\" is not followed in a launch script: write the arguments that it "
                       "comes to into a file of their own, --key value on each line",
                       first.text));
    } else {
      command();
    }
  }

  [[nodiscard]] bool refuses(const ShellToken& first) const {
    for (const std::string_view word : {"for", "while", "until", "select", "function"}) {
      if (first.text == word) return true;
    }
    return at_ + 2 < tokens_.size() && tokens_[at_ + 1].text == "(" && tokens_[at_ + 2].text == ")";
  }

  Branch& innermost(const ShellToken& word) {
    if (branches_.empty()) fail(word.line, fmt::format("\"{}\" without an if", word.text));
    return branches_.back();
  }

  // case "$SIZE" in 8B) ... ;; *) ... ;; esac: the first pattern that is the word, or *.
  void begin_case(const ShellToken& first) {
    ++at_;
    std::string word;
    if (at_ < tokens_.size()) {
      for (const ShellWord& part : expand(tokens_[at_], script_, /*keeps_unset=*/false)) {
        word += part.text;
      }
    }
    while (at_ < tokens_.size() && !is_word(tokens_[at_], "in")) ++at_;
    if (at_ >= tokens_.size()) fail(first.line, "this case has no in");
    ++at_;
    cases_.push_back(word);
    branches_.push_back({first.line, false, false, runs()});
    next_pattern();
  }

  void next_pattern() {
    Branch& branch = branches_.back();
    branch.runs = false;
    while (at_ < tokens_.size() && tokens_[at_].kind == Kind::newline) ++at_;
    if (at_ >= tokens_.size()) fail(branch.line, "this case has no esac");
    if (is_word(tokens_[at_], "esac")) return;
    bool matches = false;
    while (at_ < tokens_.size() && tokens_[at_].text != ")") {
      for (const ShellWord& pattern : expand(tokens_[at_], script_, /*keeps_unset=*/false)) {
        matches |= pattern.text == "*" || pattern.text == cases_.back();
      }
      ++at_;
    }
    if (at_ >= tokens_.size()) fail(branch.line, "this case has no esac");
    ++at_;
    branch.runs = branch.outer && !branch.taken && matches;
    branch.taken |= matches;
  }

  // Tests joined by && and ||, until "then".
  bool condition(int line) {
    bool holds = true, ands = true;
    while (true) {
      Statement test;
      while (at_ < tokens_.size() && !ends_statement(tokens_[at_])) test.push_back(tokens_[at_++]);
      bool one = !test.empty() && !is_word(test[0], "then") && this->test(test);
      if (!test.empty() && is_word(test[0], "then")) {  // of one line: "; then ARGS+=(...)"
        at_ -= test.size() - 1;
        return holds;
      }
      if (!test.empty()) holds = ands ? holds && one : holds || one;
      if (at_ >= tokens_.size()) fail(line, "this if has no then");
      if (tokens_[at_].text == "&&") ands = true;
      if (tokens_[at_].text == "||") ands = false;
      ++at_;
    }
  }

  // [ "$A" = b ], [[ -z $A ]], [ $N -gt 1 ]. Of files none is there; programs are not run.
  bool test(const Statement& words) {
    std::vector<std::string> parts;
    for (const ShellToken& token : words) {
      std::string text;
      for (const ShellWord& word : expand(token, script_, /*keeps_unset=*/false)) text += word.text;
      parts.push_back(text);
    }
    const bool negated = parts.front() == "!";
    if (negated) parts.erase(parts.begin());
    if (parts.size() < 3 || (parts.front() != "[" && parts.front() != "[[")) return negated;
    parts.erase(parts.begin());
    parts.pop_back();
    const bool inner = parts.front() == "!";
    if (inner) parts.erase(parts.begin());
    return simple_test(parts) != (negated != inner);
  }

  static bool simple_test(const std::vector<std::string>& parts) {
    if (parts.size() == 1) return !parts[0].empty();
    if (parts.size() == 2)
      return parts[0] == "-n" ? !parts[1].empty() : parts[0] == "-z" && parts[1].empty();
    if (parts.size() != 3) return false;
    const std::string& compares = parts[1];
    if (compares == "=" || compares == "==") return parts[0] == parts[2];
    if (compares == "!=") return parts[0] != parts[2];
    const auto left = number_of(parts[0]), right = number_of(parts[2]);
    if (!left || !right) return false;
    return (compares == "-eq" && *left == *right) || (compares == "-ne" && *left != *right) ||
           (compares == "-gt" && *left > *right) || (compares == "-ge" && *left >= *right) ||
           (compares == "-lt" && *left < *right) || (compares == "-le" && *left <= *right);
  }

  void command() {
    Statement words;
    while (at_ < tokens_.size() && !ends_statement(tokens_[at_])) words.push_back(tokens_[at_++]);
    if (words.empty() || !runs()) {
      if (words.empty()) ++at_;
      return;
    }
    std::size_t first = 0;
    for (const std::string_view word : {"export", "declare", "local", "readonly"}) {
      if (is_word(words[first], word) && words.size() > 1) {
        ++first;
        break;
      }
    }
    while (first < words.size() && assigns(words[first])) ++first;
    if (first >= words.size()) return;
    ShellCommand command;
    for (; first < words.size(); ++first) {
      for (ShellWord& word : expand(words[first], script_, /*keeps_unset=*/true)) {
        command.push_back(std::move(word));
      }
    }
    script_.commands.push_back(std::move(command));
  }

  bool assigns(const ShellToken& word) {
    const std::size_t end = assigned_name(word.text);
    if (end == 0) return false;
    const std::string name = word.text.substr(0, end);
    const bool adds = word.text[end] == '+';
    std::vector<ShellWord> value;
    if (word.kind == Kind::array) {
      for (const ShellToken& element : word.elements) {
        for (ShellWord& one : expand(element, script_, /*keeps_unset=*/true)) {
          value.push_back(std::move(one));
        }
      }
    } else {
      ShellToken rest = word;
      rest.text = word.text.substr(end + (adds ? 2 : 1));
      std::string text;
      for (const ShellWord& one : expand(rest, script_, /*keeps_unset=*/true)) {
        text += (text.empty() ? "" : " ") + one.text;
      }
      value.push_back({text, word.line});
    }
    std::vector<ShellWord>& held = script_.variables[name];
    if (!adds || held.empty()) {
      held = std::move(value);
    } else if (word.kind == Kind::array) {
      held.insert(held.end(), value.begin(), value.end());
    } else {
      held.back().text += value.front().text;
    }
    return true;
  }

  [[noreturn]] void fail(int line, const std::string& message) const {
    throw InputError({file_, fmt::format("line {}", line)}, message);
  }

  std::vector<ShellToken> tokens_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::vector<Branch> branches_;
  std::vector<std::string> cases_;  // words that are looked for, of cases that are open
  ShellScript script_;
};

}  // namespace

ShellScript read_shell_script(std::string_view text, const std::string& file,
                              const std::map<std::string, std::string, std::less<>>& given) {
  return Interpreter(shell_tokens(text, file), file, given).run();
}

}  // namespace shardsim
