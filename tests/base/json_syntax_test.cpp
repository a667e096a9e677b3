// What is wrong with JSON, as people write it: mistakes, each with its place and reason.
#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "base/json_syntax.hpp"
#include "tests/base/mistake.hpp"

namespace shardsim {
namespace {

struct Mistake {
  const char* text;
  const char* message;  // behind the file
};

constexpr Mistake mistakes[] = {
    {R"({"a": 1,})", R"(column 8: not valid JSON: a comma before the closing "}": remove it)"},
    {R"([1, 2, ])", R"(column 6: not valid JSON: a comma before the closing "]": remove it)"},
    {R"({"a": 1, /* b */ })",
     R"(column 8: not valid JSON: a comma before the closing "}": remove it)"},
    {R"({a: 1})", R"(column 2: not valid JSON: keys are in double quotes: "a")"},
    {R"({'a': 1})", "column 2: not valid JSON: text is in double quotes, not in single ones"},
    {R"({"a": True})", R"(column 7: not valid JSON: "True" is Python's: write true)"},
    {R"({"a": None})", R"(column 7: not valid JSON: "None" is Python's: write null)"},
    {R"({"a": NaN})", R"(column 7: not valid JSON: "NaN" is no number in JSON)"},
    {R"({"a": +1})", R"(column 7: not valid JSON: "+1" is no number in JSON)"},
    {R"({"a": 01})", R"(column 7: not valid JSON: "01" is no number in JSON)"},
    {R"({"a": 80GB})", R"(column 7: not valid JSON: text is in double quotes: "80GB")"},
    {R"({"a": 1 # one)",
     R"(column 9: not valid JSON: "#" begins no comment: comments begin with //)"},
    {R"({"a": tru})", R"(column 7: not valid JSON: text is in double quotes: "tru")"},
    {R"({"a": nul, "b": 1})", R"(column 7: not valid JSON: text is in double quotes: "nul")"},
    {R"({"a": [fals ]})", R"(column 8: not valid JSON: text is in double quotes: "fals")"},
    {R"({"a": 1.})", R"(column 7: not valid JSON: "1." is no number in JSON)"},
    {R"({"a": 64., "b": 1})", R"(column 7: not valid JSON: "64." is no number in JSON)"},
    {R"({"a": -})", R"(column 7: not valid JSON: "-" is no number in JSON)"},
    {R"([1e+])", R"(column 2: not valid JSON: text is in double quotes: "1e+")"},
    {R"([1.)", R"(column 4: JSON ends too early: the "[" of line 1 is not closed)"},
    {R"({nul: 1})", R"(column 2: not valid JSON: keys are in double quotes: "nul")"},
    // A value that is one is not what is wrong.
    {R"({"a": true]})", R"(column 11: not valid JSON: "]" cannot close the "{" of line 1)"},
    {R"({"a": -1.5e3]})", R"(column 13: not valid JSON: "]" cannot close the "{" of line 1)"},
    {R"({"a" 1})", R"(column 6: not valid JSON: a colon is missing after the key "a")"},
    {R"({"a" = 1})",
     R"(column 6: not valid JSON: "=" is not JSON's: a key and its value have a colon between)"},
    {R"({"a": })", R"(column 7: not valid JSON: the key "a" has no value)"},
    {R"({"a": 1 "b": 2})", "column 9: not valid JSON: a comma is missing before this"},
    {R"([1 2])", "column 4: not valid JSON: a comma is missing before this"},
    {R"([1,, 2])", "column 4: not valid JSON: a value is missing before this comma"},
    {R"({"a": [1, 2})", R"(column 12: not valid JSON: "}" cannot close the "[" of line 1)"},
    {R"(])", R"(column 1: not valid JSON: "]" closes nothing)"},
    {R"({[1]})", "column 2: not valid JSON: a key in double quotes and a colon belong before this"},
    {R"(["a": 1])", "column 5: not valid JSON: a colon belongs behind a key, within {}"},
    {R"({} {})", "column 4: not valid JSON: something follows the end of the document"},
    {R"({"a": "\d"})",
     R"(column 8: not valid JSON: "\d" is no escape: a backslash in a string is written twice, "\\d")"},
    {R"({"a": "x\u12G4"})",
     R"(column 9: not valid JSON: four hexadecimal digits belong behind "\u"; a backslash in a string is written twice, "\\u")"},
    {R"({"a": "\u12"})",
     R"(column 8: not valid JSON: four hexadecimal digits belong behind "\u"; a backslash in a string is written twice, "\\u")"},
    {R"({"a": "\ud800"})",
     R"(column 8: not valid JSON: "\ud800" is the first half of a pair: the second, "\udc00" to "\udfff", belongs behind it)"},
    {R"({"a": "\ud83d\u0041"})",
     R"(column 8: not valid JSON: "\ud83d" is the first half of a pair: the second, "\udc00" to "\udfff", belongs behind it)"},
    {R"({"a": "\ud83d\ude00\uDE00"})",
     R"(column 20: not valid JSON: "\uDE00" is the second half of a pair without the first)"},
    {R"({"a": 1 "\ud83d\ude00": 2})", "column 9: not valid JSON: a comma is missing before this"},
    {"{\"a\": \"x\n\"}", "column 7: not valid JSON: a string without its closing quote"},
    {"{\"a\": \"x\t\"}",
     "column 9: not valid JSON: a control character in a string: write it with a backslash"},
    {"{\"a\": \"\xff\"}", "column 8: not valid JSON: text that is not UTF-8"},
    {"\x01", "column 1: not valid JSON: the byte 0x01, which is no text"},
    {"", "column 1: JSON ends too early: there is nothing in it"},
    {"// nothing", "column 11: JSON ends too early: there is nothing in it"},
    {R"({"a": [1, )", R"(column 11: JSON ends too early: the "[" of line 1 is not closed)"},
};

}  // namespace

TEST_CASE("each mistake has its place and reason") {
  for (const Mistake& mistake : mistakes) {
    CAPTURE(mistake.text);
    const auto read = [&] { (void)parse_json(mistake.text, "a.json"); };
    CHECK_THROWS_WITH(read(), std::string("a.json: line 1, ") + mistake.message);
  }
}

TEST_CASE("lines are counted over comments and strings") {
  const auto read = [] { (void)parse_json("// one,}\n{\n  \"a,}\": [1],\n}", "a.json"); };
  CHECK_THROWS_WITH(read(),
                    "a.json: line 3, column 13: not valid JSON: a comma before the closing \"}\": "
                    "remove it");
}

}  // namespace shardsim
