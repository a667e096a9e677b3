#include "base/pattern.hpp"

#include <catch2/catch.hpp>

using namespace shardsim;

TEST_CASE("Patterns are searched, as re.search") {
  CHECK(Pattern("(gate|up)_proj", {}).search("model.layers.0.mlp.up_proj.weight"));
  CHECK(Pattern(R"(layers\.\d+\.mlp)", {}).search("model.layers.31.mlp.down_proj.weight"));
  CHECK_FALSE(Pattern("^layers", {}).search("model.layers.0"));
  CHECK(Pattern("", {}).search("anything"));
}

namespace {

struct Answer {
  std::string pattern;
  std::string text;
  bool search;
  bool full_match;
};

// What CPython 3.11.7 answers to re.search and re.fullmatch.
const std::vector<Answer> answers = {
    {"embedding", "img/embedding/kernel", true, false},
    {"img/.*", "img/embedding/kernel", true, true},
    {".*/kernel", "a/kernel\n", true, false},
    {"kernel$", "a/kernel\n", true, false},
    {R"(kernel\Z)", "a/kernel\n", false, false},
    {"^b", "a\nb", false, false},
    {"(?m)^b", "a\nb", true, false},
    {"(?m)a$", "a\nb", true, false},
    {"(?m)^", "a\n", true, false},
    {".*", "a\nb", true, false},
    {"(?s).*", "a\nb", true, true},
    {"a|ab", "ab", true, true},
    {"(?>a|ab)", "ab", true, false},
    {"a*?", "aaa", true, true},
    {"a*+a", "aaa", false, false},
    {"x{,2}", "xx", true, true},
    {"y{,}", "yyyy", true, true},
    {"x{}", "x{}", true, true},
    {"x{1", "x{1", true, true},
    {"a{,b}", "a{,b}", true, true},
    {"[]a]", "]", true, true},
    {"[^]a]", "b", true, true},
    {"[a-]", "-", true, true},
    {"[[:alpha:]]", "a]", true, true},
    {"[[:alpha:]]", "b", false, false},
    {R"(\d)", "\331\243", true, true},
    {R"((?a)\d)", "\331\243", false, false},
    {R"(\w)", "\303\251", true, true},
    {R"((?a)\w)", "\303\251", false, false},
    {R"(\w)", "\314\201", false, false},
    {R"(\s)", "\034", true, true},
    {R"(\s)", "\302\205", true, true},
    {R"(\bmlp\b)", "a/mlp/b", true, false},
    {R"(\bmlp\b)", "a_mlp", false, false},
    {R"(\B)", "", false, false},
    {R"(\b)", "", false, false},
    {"(?P<n>a|b)/(?P=n)", "b/b", true, true},
    {R"((a)|b\1)", "b", false, false},
    {"(a)?(?(1)b|c)", "ab", true, true},
    {"(a)?(?(1)b|c)", "c", true, true},
    {"(?<=/)w", "a/w", true, false},
    {"(?<!/)w", "a/w", false, false},
    {"(?i)KERNEL", "kernel", true, true},
    {"(?i)k", "\342\204\252", true, true},
    {"(?ai)k", "\342\204\252", false, false},
    {"(?i)i", "\304\260", true, true},
    {"(?i)s", "\305\277", true, true},
    {"(?i:A)b", "aB", false, false},
    {"(?x) a b # c", "ab", true, true},
    {R"((?x:a\ )b)", "a b", true, true},
    {R"(\x41\101\u0041)", "AAA", true, true},
    {R"(\0)", std::string("\0", 1), true, true},
    {R"([\b])", "\010", true, true},
    {R"(a\.b)", "a.b", true, true},
    {"\303\251.", "\303\251\303\274", true, true},
    {"layers/1", "layers/10", true, false},
    {"", "a", true, false},
    {"()*", "", true, true},
    {"(?#x)a", "a", true, true},
    {"(?-s:.)", "\n", false, false},
    {"(?s-m:.)", "\n", true, true},
    {"a*", "aa", true, true},
    {"a\nb", "a\nb", true, true},
    {"}", "}", true, true},
    {"]", "]", true, true},
    {R"(\-\/\_\%)", "-/_%", true, true},
};

// What CPython 3.11.7 refuses to compile. Most of it means something to PCRE2.
const std::vector<std::string> refused = {"*",
                                          "a**",
                                          "a*{2}",
                                          "^*",
                                          "(",
                                          "a)",
                                          "[a",
                                          "[z-a]",
                                          R"([\d-z])",
                                          R"(\K)",
                                          R"(\G)",
                                          R"(\Q)",
                                          R"(\h)",
                                          R"(\R)",
                                          R"(\X)",
                                          R"(\p{L})",
                                          R"(\z)",
                                          R"(\e)",
                                          R"(\1)",
                                          R"((\1))",
                                          "(?R)",
                                          "(?1)",
                                          "(?|a)",
                                          "(*UTF)",
                                          "(?<n>a)",
                                          "(?&n)",
                                          "(?P>n)",
                                          "(?C1)",
                                          "a(?i)",
                                          "(?i",
                                          "(?z)",
                                          "(?)",
                                          "(?-a:b)",
                                          "(?au)",
                                          "(?L)",
                                          "(?P<1>a)",
                                          "(?P<n>a)(?P<n>b)",
                                          "(?P=n)",
                                          "(?<=a*)b",
                                          "(?<=a|bc)",
                                          "(?(1)a)",
                                          "(?(0)a)",
                                          "(a)(?(1)b|c|d)",
                                          "a{2,1}",
                                          R"(\)",
                                          R"(\x4)",
                                          R"(\u12)",
                                          R"(\400)",
                                          "(?#",
                                          "(?(n)a)",
                                          "(?i-i:a)"};

}  // namespace

TEST_CASE("Patterns mean what they mean in Python") {
  for (const Answer& answer : answers) {
    CAPTURE(answer.pattern, answer.text);
    const Pattern pattern(answer.pattern, {});
    CHECK(pattern.search(answer.text) == answer.search);
    CHECK(pattern.full_match(answer.text) == answer.full_match);
  }
}

TEST_CASE("What Python refuses is refused") {
  for (const std::string& pattern : refused) {
    CAPTURE(pattern);
    CHECK_THROWS_AS(Pattern(pattern, {}), PatternError);
  }
}

TEST_CASE("What PCRE2 would answer differently is refused though Python takes it") {
  for (const char* pattern : {R"(\N{DASH})", R"((?i)(a)\1)", R"(\ud800)", "a{70000}"}) {
    CAPTURE(pattern);
    CHECK_THROWS_AS(Pattern(pattern, {}), PatternError);
  }
}

TEST_CASE("An invalid pattern says what and where") {
  REQUIRE_THROWS_WITH(
      Pattern("(gate", {"a.json", "/strategy/rules/0"}),
      "a.json: /strategy/rules/0: pattern \"(gate\" is not a regular expression: missing closing "
      "parenthesis at position 5");
  // The position counts characters.
  REQUIRE_THROWS_WITH(Pattern("\303\251*+*", {}),
                      Catch::Matchers::EndsWith("multiple repeat at position 4"));
}

TEST_CASE("Patterns that take exponential time end in an error") {
  const std::string text = std::string(60, 'a') + "!";
  // ASCII text goes straight to the compiled code, other text is checked first.
  for (const std::string& end : {std::string(), std::string("\303\251")}) {
    for (const char* expression : {"(a+)+$", "(a|aa)+$", R"((\w+)*\d)", "(?:a+){2,}$"}) {
      CAPTURE(expression);
      const Pattern pattern(expression, {"a.json", "/rules/0"});
      CHECK_THROWS_WITH(static_cast<void>(pattern.search(text + end)),
                        Catch::Matchers::StartsWith("a.json: /rules/0: pattern") &&
                            Catch::Matchers::Contains("takes too many steps"));
      CHECK_THROWS_AS(static_cast<void>(pattern.full_match(text + end)), InputError);
    }
  }
  // Python takes as long; that there is no x is seen before the engine starts.
  CHECK_FALSE(Pattern("(.*)*x", {}).search(text));
}

TEST_CASE("Huge and deep patterns end in an error or work") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '(') + "a" + std::string(depth, ')');
  };
  CHECK(Pattern(nested(100), {}).full_match("a"));
  CHECK_THROWS_AS(Pattern(nested(100'000), {}), PatternError);
  CHECK_THROWS_AS(Pattern("((a{1000}){1000}){1000}", {}), PatternError);
  CHECK_THROWS_AS(Pattern(std::string(1'000'000, 'a'), {}), PatternError);
  CHECK_THROWS_AS(static_cast<void>(Pattern("[ab]*", {}).search(std::string(100'000, 'a'))),
                  InputError);
}

TEST_CASE("Text that is not UTF-8 is an error where it meets the engine") {
  CHECK_THROWS_AS(Pattern("a\377", {}), PatternError);
  CHECK_THROWS_AS(static_cast<void>(Pattern("[ab]", {}).search("a\377")), InputError);
}
