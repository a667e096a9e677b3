// The syntax of Python's expressions: enough of a tree to tell names, calls and literals, and to
// tell what Python refuses to parse from what it parses but is none of these.
//
// Not looked into: the parameters of a lambda and what an f-string holds between braces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "strategies/rules/python_lexer.hpp"

namespace shardsim {

struct PythonKeyword;

struct PythonExpression {
  enum class Kind : std::uint8_t {
    name,       // text
    attribute,  // children[0].text
    call,       // children[0](children[1..], keywords)
    constant,   // value
    sign,       // +children[0] or -children[0], in text
    tuple,
    list,
    set,
    dict,      // key, value, key, value; a `**mapping` is a key of kind `other`
    indexing,  // may be assigned to
    starred,
    other  // operators, comprehensions, f-strings, ...
  };
  Kind kind = Kind::other;
  std::string text;
  PythonValue value;
  std::vector<PythonExpression> children;
  std::vector<PythonKeyword> keywords;
};

struct PythonKeyword {
  std::string name;  // "" is `**mapping`
  PythonExpression value;
};

// What ast.parse(text, mode="eval") reads. Throws RuleError as read_python_tokens does.
[[nodiscard]] PythonExpression parse_python_expression(std::string_view text, const Place& place);

}  // namespace shardsim
