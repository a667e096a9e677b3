// What CPython 3.11.7 makes of op strings: ast.parse(text, mode="eval"), ast.literal_eval of the
// arguments. The rows were compared with it, as were 300,000 random strings by hand.
#include "strategies/rules/op_string.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

Json parsed(const std::string& text) {
  const OpCall call = parse_op(text, {});
  Json args = Json::array();
  Json kwargs = Json::object();
  for (const PythonValue& value : call.args) args.push_back(to_json(value));
  for (const auto& [key, value] : call.kwargs) kwargs[key] = to_json(value);
  return {call.name, args, kwargs};
}

std::string error_type(const std::string& text) {
  try {
    static_cast<void>(parse_op(text, {}));
  } catch (const RuleError& error) {
    return error.type();
  }
  return "none";
}

// The only argument of "f(text)".
Json literal(const std::string& text) { return parsed("f(" + text + ")")[1][0]; }

}  // namespace

TEST_CASE("Names are as they were written, calls are not") {
  CHECK(parsed("a.b")[0] == "a.b");
  CHECK(parsed("a. b # c")[0] == "a. b # c");
  CHECK(parsed("a. b()")[0] == "a.b");
  CHECK(parsed("(f)(1)")[0] == "f");
}

TEST_CASE("Arguments are Python's literals") {
  CHECK(parsed("f(1, b='x', )") == Json::parse(R"(["f", [1], {"b": "x"}])"));
  CHECK(literal("0x1F") == 31);
  CHECK(literal("0o17") == 15);
  CHECK(literal("0b101") == 5);
  CHECK(literal("1_000") == 1000);
  CHECK(literal("00") == 0);
  CHECK(literal("-3") == -3);
  CHECK(literal("+.5") == 0.5);
  CHECK(literal("1e-2") == 0.01);
  CHECK(literal("99999999999999999999") == 99999999999999999999.0);
  CHECK(literal("None").is_null());
  CHECK(literal("True") == true);
  CHECK(literal("('a',)") == Json::parse(R"(["a"])"));
  CHECK(literal("('a')") == "a");
  CHECK(literal("[1, (2, {3})]") == Json::parse("[1, [2, [3]]]"));
  CHECK(literal("{'a': {1: None}, 'a': 2}") == Json::parse(R"({"a": 2})"));
  CHECK(literal("set()") == Json::array());
}

TEST_CASE("Strings have Python's prefixes and escapes") {
  CHECK(literal(R"('it''s' " \"a\"")") == "its \"a\"");
  CHECK(literal(R"("\x41\101\u00e9\n\q\
")") == "AA\303\251\n\\q");
  CHECK(literal(R"(r'\n')") == "\\n");
  CHECK(literal(R"(R"\"")") == "\\\"");
  CHECK(literal("'''a\nb'c'''") == "a\nb'c");
  CHECK(literal("u'a'") == "a");
  CHECK(literal(R"(b'\x41\u')") == "A\\u");
}

TEST_CASE("What is no expression is a SyntaxError") {
  for (const char* text : {"",          "f(",          "f)",          "f(]",
                           "f(1 2)",    "f(,)",        "f(a=0,,b=0)", "f(a=0, b==1)",
                           "f(a=1, 2)", "f.if",        "f(None=1)",   "f 1",
                           "f\ng",      "f;",          "f(012)",      "f(1_)",
                           "f(1__0)",   "f(0x)",       "f(1a)",       "f('a)",
                           "f('a\nb')", R"(f('\x4'))", "f('a' b'b')", "f(x for x in y, 1)",
                           "f(not)",    "f(- not 1)",  "f(x if y)",   "f(a:=)",
                           "f(*)",      "f(**k, *a)",  "f((*a))",     "f({1: 2, 3})",
                           "f(a[])",    "f($)"}) {
    CAPTURE(text);
    CHECK(error_type(text) == "SyntaxError");
  }
  CHECK(error_type(" f") == "IndentationError");
  CHECK(error_type("f(" + std::string(300, '[')) == "SyntaxError");
}

TEST_CASE("An expression that is no call of literals is a ValueError") {
  for (const char* text : {"1",
                           "f + 1",
                           "f, g",
                           "f if g else h",
                           "lambda: 0",
                           "f()()",
                           "f[0]()",
                           "f(x)",
                           "f(1 + 1)",
                           "f(not 1)",
                           "f(b==1)",
                           "f(- -1)",
                           "f(-True)",
                           "f(-'a')",
                           "f(*[1])",
                           "f({**{}})",
                           "f(f'a')",
                           "f(x for x in y)",
                           "f([x for x in y])",
                           "f(set([1]))",
                           "f((yield))",
                           "f(x := 1)"}) {
    CAPTURE(text);
    CHECK(error_type(text) == "ValueError");
  }
}

TEST_CASE("What cannot be hashed or bound is a TypeError") {
  CHECK(error_type("f({[1]})") == "TypeError");
  // Names of characters are not looked up; bytes have none.
  CHECK(error_type(R"(f('\N{DASH}'))") == "SyntaxError");
  CHECK(error_type(R"(f(b'\N'))") == "none");
  CHECK(error_type("f({(1, [2]): 3})") == "TypeError");
  CHECK(error_type("f(**{'a': 1})") == "TypeError");
  const auto bind = [](const std::string& text) {
    return bind_arguments(parse_op(text, {}), {"axis", "dim"}, 1, {});
  };
  CHECK(bind("f(1)")[0]->integer == 1);
  CHECK_FALSE(bind("f(axis=1)")[1].has_value());
  CHECK_THROWS_WITH(bind("f()"), Catch::Matchers::EndsWith("f() needs argument \"axis\""));
  CHECK_THROWS_WITH(bind("f(1, 2, 3)"),
                    Catch::Matchers::EndsWith("f() takes at most 2 arguments, 3 are given"));
  CHECK_THROWS_WITH(bind("f(1, axis=1)"),
                    Catch::Matchers::EndsWith("f() is given argument \"axis\" twice"));
  CHECK_THROWS_WITH(bind("f(1, dmi=1)"),
                    Catch::Matchers::EndsWith("no argument \"dmi\", did you mean \"dim\"?"));
}

TEST_CASE("Values print as Python prints them") {
  CHECK(to_string(parse_op("f((1, 'a', 0.25, True, None, [b'x'], {'k': {2}}, ()))", {}).args[0]) ==
        "(1, 'a', 0.25, True, None, [b'x'], {'k': {2}}, ())");
  CHECK(to_string(parse_op("f(('a',))", {}).args[0]) == "('a',)");
  CHECK(to_string(parse_op("f(4.0)", {}).args[0]) == "4.0");
}

}  // namespace shardsim
