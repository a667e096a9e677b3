// Op strings: a name, a dotted name or a call with literal arguments, as big_vision's registry
// reads them (big_vision/pp/registry.py: ast.parse in "eval" mode, then ast.literal_eval).
//
//   parse_op("shardings.fsdp(axis=('a', 'b'))", place)
//     -> name "shardings.fsdp", kwargs {axis: ('a', 'b')}
//
// A name without parentheses stays as it was written, spaces included: "f " is the name "f ".
// Errors are RuleErrors under Python's types:
//   SyntaxError  not an expression of Python 3.11. The whole string counts, whatever it would mean:
//                "f(a=0, b==1)" has an argument after a keyword.
//   ValueError   an expression, but no name or call: "f + 1"; an argument that is no literal:
//                "f(x)", "f(1 + 1)"; a call of something unnamed: "f()()"
//   TypeError    a list, set or dict as a set's member or a dict's key; "f(**{...})"
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "strategies/rules/python_lexer.hpp"

namespace shardsim {

struct OpCall {
  std::string name;
  std::vector<PythonValue> args;
  std::vector<std::pair<std::string, PythonValue>> kwargs;  // in order
};

[[nodiscard]] OpCall parse_op(std::string_view text, const Place& place);

// The arguments of `call` in the order of `parameters`, of which the first `required` must be
// given; those left out are nullopt. Throws TypeError as a Python function called so does.
[[nodiscard]] std::vector<std::optional<PythonValue>> bind_arguments(
    const OpCall& call, const std::vector<std::string>& parameters, std::size_t required,
    const Place& place);

}  // namespace shardsim
