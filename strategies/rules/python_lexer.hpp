// Python's tokens and literals, as far as an expression in one string needs them: what
// `ast.parse(text, mode="eval")` of Python 3.11 reads.
//
//   fsdp(axis=("replica", 'fsdp'), min_size_to_shard_mb=0x10)   # a comment
//
// Not supported, a SyntaxError: names that are not ASCII, \N{...} and surrogates in strings. Not
// supported, a ValueError where a literal is needed: 1+2j.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json_reader.hpp"

namespace shardsim {

struct PythonValue {
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,
    real,  // and integers beyond 64 bits
    string,
    bytes,
    tuple,
    list,
    set,
    dict,
    other  // complex, Ellipsis: `text` as written
  };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  // of booleans too
  double real = 0;
  std::string text = {};
  std::vector<PythonValue> items = {};  // of a dict: key, value, key, value

  [[nodiscard]] bool is_number() const;      // bool, int, float
  [[nodiscard]] bool is_collection() const;  // tuple, list, set, dict
  [[nodiscard]] double as_real() const;      // of a number
  [[nodiscard]] bool is_true() const;        // as `if value:` takes it
  friend bool operator==(const PythonValue& a, const PythonValue& b);
};

// "('a', 4)", as Python's repr.
[[nodiscard]] std::string to_string(const PythonValue& value);
// Tuples and sets are arrays, keys of dicts become text.
[[nodiscard]] Json to_json(const PythonValue& value);

struct PythonToken {
  enum class Kind : std::uint8_t { name, keyword, literal, formatted, symbol, end };
  Kind kind = Kind::end;
  std::string text = {};
  PythonValue value;   // of a literal: a number or one piece of a string
  std::size_t at = 0;  // position of its first byte
};

// "message at position 7 of `text`", of a long text what is around the position.
[[noreturn]] void throw_syntax_error(const Place& place, const std::string& message,
                                     std::size_t position, std::string_view text);

// The last token is the end. Throws RuleError: SyntaxError, or IndentationError for leading
// spaces.
[[nodiscard]] std::vector<PythonToken> read_python_tokens(std::string_view text,
                                                          const Place& place);

}  // namespace shardsim
