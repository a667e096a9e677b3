#include "strategies/rules/python_expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

using ExpressionKind = PythonExpression::Kind;
using TokenKind = PythonToken::Kind;
using ValueKind = PythonValue::Kind;

constexpr int deepest = 1000;  // of signs, lambdas and the like; brackets have their own limit

class Parser {
 public:
  Parser(std::string_view text, const Place& place)
      : text_(text), place_(place), tokens_(read_python_tokens(text, place)) {}

  PythonExpression run() {
    PythonExpression result = expression();
    if (is(",")) {
      result = {ExpressionKind::tuple, "", {}, {std::move(result)}, {}};
      while (accept(",") && !at_end()) result.children.push_back(expression());
    }
    if (!at_end()) fail();
    return result;
  }

 private:
  // -- tokens -------------------------------------------------------------------------------------

  [[nodiscard]] const PythonToken& token() const { return tokens_[next_]; }
  [[nodiscard]] bool at_end() const { return token().kind == TokenKind::end; }
  [[nodiscard]] static bool is_word(const PythonToken& token, std::string_view text) {
    return (token.kind == TokenKind::symbol || token.kind == TokenKind::keyword) &&
           token.text == text;
  }
  [[nodiscard]] bool is(std::string_view text) const { return is_word(token(), text); }
  [[nodiscard]] bool is_next(std::string_view text) const {
    return next_ + 1 < tokens_.size() && is_word(tokens_[next_ + 1], text);
  }
  bool accept(std::string_view text) {
    if (!is(text)) return false;
    ++next_;
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail();
  }
  [[noreturn]] void fail() const { fail(fmt::format("unexpected {}", token().text)); }
  [[noreturn]] void fail(const std::string& message) const {
    throw_syntax_error(place_, message, token().at, text_);
  }
  std::string name() {
    if (token().kind != TokenKind::name) fail();
    return tokens_[next_++].text;
  }

  // -- operators ----------------------------------------------------------------------------------

  static PythonExpression other(const PythonExpression& part = {}) {
    static_cast<void>(part);
    return {};
  }

  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > deepest) parser_.fail("nested too deeply");
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --parser_.depth_; }

   private:
    Parser& parser_;
  };

  PythonExpression expression() {
    const Level level(*this);
    if (is("lambda")) return lambda();
    PythonExpression result = disjunction();
    if (!accept("if")) return result;
    static_cast<void>(disjunction());
    expect("else");
    static_cast<void>(expression());
    return other();
  }

  PythonExpression lambda() {
    expect("lambda");
    while (!is(":")) {
      if (!accept("*") && !accept("**") && !accept("/")) {
        static_cast<void>(name());
        if (accept("=")) static_cast<void>(expression());
      } else if (token().kind == TokenKind::name) {
        ++next_;
      }
      if (!accept(",") && !is(":")) fail();
    }
    expect(":");
    static_cast<void>(expression());
    return other();
  }

  // "or", "and", "not" and comparisons: their order does not matter, where "not" may stand does.
  PythonExpression disjunction() {
    PythonExpression result = inversion();
    while (accept("or") || accept("and")) result = other(inversion());
    return result;
  }

  PythonExpression inversion() {
    const Level level(*this);
    if (accept("not")) return other(inversion());
    PythonExpression result = operation();
    while (accept_comparison()) result = other(operation());
    return result;
  }

  bool accept_comparison() {
    if (is("not") && is_next("in")) {
      next_ += 2;
      return true;
    }
    if (accept("is")) {
      accept("not");
      return true;
    }
    constexpr std::array<std::string_view, 7> symbols{"==", "!=", "<=", "<", ">=", ">", "in"};
    return std::any_of(symbols.begin(), symbols.end(),
                       [&](std::string_view symbol) { return accept(symbol); });
  }

  PythonExpression operation() {
    PythonExpression result = factor();
    constexpr std::array<std::string_view, 12> symbols{"+", "-", "*", "/", "//", "%",
                                                       "@", "&", "|", "^", "<<", ">>"};
    while (std::any_of(symbols.begin(), symbols.end(),
                       [&](std::string_view symbol) { return accept(symbol); })) {
      result = other(factor());
    }
    return result;
  }

  PythonExpression factor() {
    const Level level(*this);
    for (const char* sign : {"+", "-"}) {
      if (accept(sign)) return {ExpressionKind::sign, sign, {}, {factor()}, {}};
    }
    if (accept("~")) return other(factor());
    const bool awaits = accept("await");
    PythonExpression result = primary();
    if (accept("**")) return other(factor());
    return awaits ? other() : result;
  }

  // -- names, calls, atoms ------------------------------------------------------------------------

  PythonExpression primary() {
    PythonExpression result = atom();
    while (true) {
      if (accept(".")) {
        result = {ExpressionKind::attribute, name(), {}, {std::move(result)}, {}};
      } else if (accept("(")) {
        result = {ExpressionKind::call, "", {}, {std::move(result)}, {}};
        arguments(result);
      } else if (accept("[")) {
        slices();
        result = {ExpressionKind::indexing, "", {}, {}, {}};
      } else {
        return result;
      }
    }
  }

  void arguments(PythonExpression& call) {
    bool has_keyword = false;
    bool has_mapping = false;
    while (!accept(")")) {
      if (accept("**")) {
        has_mapping = true;
        call.keywords.push_back({"", expression()});
      } else if (accept("*")) {
        if (has_mapping) fail("an unpacked argument after an unpacked mapping");
        call.children.push_back(other(expression()));
      } else if (token().kind == TokenKind::name && is_next("=")) {
        const std::string key = name();
        expect("=");
        has_keyword = true;
        call.keywords.push_back({key, expression()});
      } else {
        if (has_keyword || has_mapping) fail("a positional argument after a keyword");
        const bool is_first = call.children.size() == 1;
        call.children.push_back(named_expression());
        if (is("for") || is("async")) {
          comprehension();
          call.children.back() = other();
          if (!is_first || !is(")")) fail("a generator among arguments needs parentheses");
        }
      }
      if (!accept(",") && !is(")")) fail();
    }
  }

  void slices() {
    if (is("]")) fail();
    do {
      if (is("]")) break;
      if (accept("*")) {
        static_cast<void>(operation());
        continue;
      }
      const bool has_start = !is(":");
      if (has_start) static_cast<void>(named_expression());
      for (int colons = 0; colons < 2 && accept(":"); ++colons) {
        if (!is(":") && !is(",") && !is("]")) static_cast<void>(expression());
      }
    } while (accept(","));
    expect("]");
  }

  PythonExpression atom() {
    const PythonToken& first = token();
    if (first.kind == TokenKind::literal || first.kind == TokenKind::formatted) return literal();
    if (first.kind == TokenKind::name) return {ExpressionKind::name, name(), {}, {}, {}};
    if (accept("(")) return parenthesized();
    if (accept("[")) return elements(ExpressionKind::list, "]");
    if (accept("{")) return braces();
    PythonValue value;
    if (accept("None")) return {ExpressionKind::constant, "", value, {}, {}};
    if (is("True") || is("False")) {
      value.kind = ValueKind::boolean;
      value.integer = is("True") ? 1 : 0;
    } else if (is("...")) {
      value.kind = ValueKind::other;
      value.text = "Ellipsis";
    } else {
      fail();
    }
    ++next_;
    return {ExpressionKind::constant, "", value, {}, {}};
  }

  // A number, or strings side by side.
  PythonExpression literal() {
    PythonExpression result{ExpressionKind::constant, "", token().value, {}, {}};
    const auto is_string = [](const PythonValue& value) {
      return value.kind == ValueKind::string || value.kind == ValueKind::bytes;
    };
    const auto is_piece = [&]() {
      return token().kind == TokenKind::formatted ||
             (token().kind == TokenKind::literal && is_string(token().value));
    };
    bool is_formatted = token().kind == TokenKind::formatted;
    ++next_;
    if (!is_string(result.value)) return result;
    for (; is_piece(); ++next_) {
      if (token().value.kind != result.value.kind) fail("bytes and text side by side");
      is_formatted = is_formatted || token().kind == TokenKind::formatted;
      result.value.text += token().value.text;
    }
    return is_formatted ? other() : result;
  }

  PythonExpression named_expression() {
    if (token().kind == TokenKind::name && is_next(":=")) {
      next_ += 2;
      return other(expression());
    }
    return expression();
  }

  PythonExpression element() {
    if (!accept("*")) return named_expression();
    return {ExpressionKind::starred, "", {}, {operation()}, {}};
  }

  PythonExpression parenthesized() {
    if (accept("yield")) {
      if (accept("from")) {
        static_cast<void>(expression());
      } else if (!is(")")) {
        static_cast<void>(element());
        while (accept(",") && !is(")")) static_cast<void>(element());
      }
      expect(")");
      return other();
    }
    const bool is_single_start = !is(")");
    PythonExpression result = elements(ExpressionKind::tuple, ")");
    const bool has_comma = is_word(tokens_[next_ - 2], ",");
    if (!is_single_start || has_comma || result.children.size() != 1) return result;
    if (result.children.front().kind == ExpressionKind::starred)
      fail("an unpacking alone in parentheses");
    PythonExpression only = std::move(result.children.front());
    return only;
  }

  // Up to and with `end`; a comprehension is `other`.
  PythonExpression elements(ExpressionKind kind, std::string_view end) {
    PythonExpression result{kind, "", {}, {}, {}};
    while (!accept(end)) {
      result.children.push_back(element());
      if (is("for") || is("async")) {
        if (result.children.size() > 1 || result.children.front().kind == ExpressionKind::starred)
          fail();
        comprehension();
        expect(end);
        return other();
      }
      if (!accept(",") && !is(end)) fail();
    }
    return result;
  }

  void comprehension() {
    while (is("for") || is("async")) {
      accept("async");
      expect("for");
      do {
        if (is("in")) break;
        accept("*");
        const PythonExpression target = operation();
        if (!is_assignable(target)) fail("a target that cannot be assigned to");
      } while (accept(","));
      expect("in");
      static_cast<void>(disjunction());
      while (accept("if")) static_cast<void>(disjunction());
    }
  }

  static bool is_assignable(const PythonExpression& target) {
    if (target.kind == ExpressionKind::tuple || target.kind == ExpressionKind::list ||
        target.kind == ExpressionKind::starred) {
      return std::all_of(target.children.begin(), target.children.end(), is_assignable);
    }
    return target.kind == ExpressionKind::name || target.kind == ExpressionKind::attribute ||
           target.kind == ExpressionKind::indexing;
  }

  PythonExpression braces() {
    const std::size_t start = next_;
    if (accept("}")) return {ExpressionKind::dict, "", {}, {}, {}};
    if (!is("**")) {
      static_cast<void>(element());
      if (!is(":")) {
        next_ = start;
        return elements(ExpressionKind::set, "}");
      }
      next_ = start;
    }
    PythonExpression result{ExpressionKind::dict, "", {}, {}, {}};
    while (!accept("}")) {
      if (accept("**")) {
        result.children.push_back(other());
        result.children.push_back(operation());
      } else {
        result.children.push_back(expression());
        expect(":");
        result.children.push_back(expression());
        if (result.children.size() == 2 && (is("for") || is("async"))) {
          comprehension();
          expect("}");
          return other();
        }
      }
      if (!accept(",") && !is("}")) fail();
    }
    return result;
  }

  std::string_view text_;
  const Place& place_;
  std::vector<PythonToken> tokens_;
  std::size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace

PythonExpression parse_python_expression(std::string_view text, const Place& place) {
  return Parser(text, place).run();
}

}  // namespace shardsim
