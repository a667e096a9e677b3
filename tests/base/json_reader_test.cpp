#include "base/json.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "base/json_list.hpp"

using namespace shardsim;  // NOLINT(google-build-using-namespace)

namespace {

// What `function` says about the document `text`, read as a.json; "" when it does not object.
template <class Function>
std::string error_of(std::string_view text, Function function) {
  try {
    const Json document = parse_json(text, "a.json");
    function(JsonReader(document, {"a.json", ""}));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a document is read through its cursor") {
  const Json document = parse_json(R"({
    // comments are allowed
    "name": "a", "size": 8, "ratio": 0.5, "on": true, "list": [1, 2], "nothing": null
  })",
                                   "a.json");
  const JsonReader reader(document, {"a.json", ""});
  CHECK(reader.at("name").string() == "a");
  CHECK(reader.at("size").integer(1, 8) == 8);
  CHECK(reader.at("ratio").number() == 0.5);
  CHECK(reader.at("on").boolean());
  CHECK(reader.at("list").elements().at(1).integer(0, 9) == 2);
  CHECK(reader.at("list").elements().at(1).place().pointer == "/list/1");
  CHECK(!reader.find("missing").has_value());
  CHECK(!reader.find("nothing").has_value());
  CHECK(reader.find("size").has_value());
}

TEST_CASE("members keep the order of the file") {
  const Json document = parse_json(R"({"model": 4, "data": 2})", "a.json");
  const auto members = JsonReader(document, {"a.json", ""}).members();
  REQUIRE(members.size() == 2);
  CHECK(members[0].first == "model");
  CHECK(members[1].first == "data");
}

TEST_CASE("keys: missing, unknown with and without a likely meaning") {
  CHECK(error_of(R"({"a": {}})", [](const JsonReader& r) { (void)r.at("a").at("b"); }) ==
        "a.json: /a: missing key \"b\"");
  CHECK(error_of(R"({"wrkload": 1})", [](const JsonReader& r) {
          r.only_keys({"workload", "mesh"});
        }) == "a.json: unknown key \"wrkload\", did you mean \"workload\"?");
  CHECK(error_of(R"({"zzzzzz": 1})", [](const JsonReader& r) {
          r.only_keys({"workload", "mesh"});
        }) == "a.json: unknown key \"zzzzzz\"; known are workload, mesh");
}

TEST_CASE("every kind of value says what it expected and found") {
  const std::string document = R"({"x": [1]})";
  CHECK(error_of(document, [](const JsonReader& r) { (void)r.at("x").string(); }) ==
        "a.json: /x: expected a string, found an array");
  CHECK(error_of(document, [](const JsonReader& r) { (void)r.at("x").number(); }) ==
        "a.json: /x: expected a number, found an array");
  CHECK(error_of(document, [](const JsonReader& r) { (void)r.at("x").boolean(); }) ==
        "a.json: /x: expected true or false, found an array");
  CHECK(error_of(document, [](const JsonReader& r) { (void)r.at("x").integer(0, 1); }) ==
        "a.json: /x: expected an integer, found an array");
  CHECK(error_of(document, [](const JsonReader& r) { (void)r.at("x").members(); }) ==
        "a.json: /x: expected an object, found an array");
  CHECK(error_of(R"({"x": "y"})", [](const JsonReader& r) { (void)r.at("x").elements(); }) ==
        "a.json: /x: expected an array, found a string");
}

TEST_CASE("integers: fractions, bounds, and numbers that no int64 holds") {
  const auto read = [](const JsonReader& r) { (void)r.at("x").integer(1, 100); };
  CHECK(error_of(R"({"x": 100})", read).empty());
  CHECK(error_of(R"({"x": 0})", read) == "a.json: /x: 0 is out of range, must be from 1 to 100");
  CHECK(error_of(R"({"x": -3})", read) == "a.json: /x: -3 is out of range, must be from 1 to 100");
  CHECK(error_of(R"({"x": 1.5})", read) == "a.json: /x: expected an integer, found 1.5");
  CHECK(error_of(R"({"x": 9223372036854775808})", read) ==
        "a.json: /x: 9223372036854775808 is out of range, must be from 1 to 100");
  const auto any = [](const JsonReader& r) {
    (void)r.at("x").integer(std::numeric_limits<std::int64_t>::min(),
                            std::numeric_limits<std::int64_t>::max());
  };
  CHECK(error_of(R"({"x": 9223372036854775807})", any).empty());
  CHECK(error_of(R"({"x": -9223372036854775808})", any).empty());
  CHECK(error_of(R"({"x": 0})", any).empty());
  CHECK(error_of(R"({"x": 9223372036854775808})", any) ==
        "a.json: /x: 9223372036854775808 is out of range, must be from -9223372036854775808 to "
        "9223372036854775807");
}

TEST_CASE("a choice lists what is known and suggests what is near") {
  const auto read = [](const JsonReader& r) { (void)r.at("x").choice({"none", "full"}); };
  CHECK(error_of(R"({"x": "full"})", read).empty());
  CHECK(error_of(R"({"x": "ful"})", read) ==
        "a.json: /x: unknown value \"ful\"; known are none, full, did you mean \"full\"?");
  CHECK(error_of(R"({"x": "sometimes"})", read) ==
        "a.json: /x: unknown value \"sometimes\"; known are none, full");
  CHECK(error_of(R"({"x": true})", read) ==
        "a.json: /x: expected one of none, full, found true or false");
}

// RFC 6901: "~" is "~0" and "/" is "~1" in a pointer.
TEST_CASE("pointers escape what they must") {
  CHECK(error_of(R"({"a/b": {"c~d": 1}})", [](const JsonReader& r) {
          (void)r.at("a/b").at("c~d").string();
        }) == "a.json: /a~1b/c~0d: expected a string, found a number");
}

TEST_CASE("text that is no JSON says where") {
  const auto nothing = [](const JsonReader&) {};
  CHECK(error_of("{\n  \"a\": 1,\n", nothing) ==
        "a.json: line 3, column 1: JSON ends too early: the \"{\" of line 1 is not closed");
  CHECK(error_of("{\n  \"a\": nope\n}", nothing) ==
        "a.json: line 2, column 8: not valid JSON: text is in double quotes: \"nope\"");
}

// RFC 8259 lets a parser keep either value: a reader who meant the other would never know.
TEST_CASE("a key given twice is an error, in the same object only") {
  const auto nothing = [](const JsonReader&) {};
  CHECK(error_of(R"({"x": {"a": 1, "b": {}, "a": 2}})", nothing) ==
        "a.json: key \"a\" is given twice");
  CHECK(error_of(R"({"a": {"a": 1}, "b": {"a": 1}})", nothing).empty());
}

TEST_CASE("nesting and numbers have limits") {
  const auto nothing = [](const JsonReader&) {};
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(error_of(nested(100), nothing).empty());
  CHECK(error_of(nested(102), nothing) == "a.json: nested deeper than 100 levels");
  CHECK(error_of(nested(1'000'000), nothing) == "a.json: nested deeper than 100 levels");
  CHECK(error_of(R"({"x": 1e400})", nothing) == "a.json: not valid JSON: a number is out of range");
}

TEST_CASE("a file that is not there says so") {
  CHECK_THROWS_WITH(load_json("/nonexistent/a.json"),
                    "/nonexistent/a.json: cannot be read: No such file or directory");
}

TEST_CASE("a member is added without a search") {
  Json object = Json::object();
  append_member(object, "b", 1);
  append_member(object, "a", Json::array({2}));
  CHECK(object.dump() == R"({"b":1,"a":[2]})");
  CHECK(object.at("a")[0] == 2);
}

// An order that the keys do not have by themselves, types at every level.
TEST_CASE("a document is built as it is written") {
  const std::string text =
      R"({"z":[{},[],[[1,-2]],{"y":{"x":null}}],"a":true,"m":1.5,"":"","s":"\u00e9"})";
  CHECK(parse_json(text, "a.json").dump(-1, ' ', /*ensure_ascii=*/true) == text);
  CHECK(parse_json("7", "a.json") == Json(7));
}

TEST_CASE("a long list is handed over element by element") {
  std::vector<std::string> taken;
  const auto take = [&](const Json& element, std::size_t number) {
    taken.push_back(std::to_string(number) + " " + element.dump());
  };
  const std::string text =
      R"({"a": [[1], 2], "list": [{"b": 1}, [3, {"list": [4]}], 5], "c": {"list": [6]}})";
  const Json rest = parse_json_list(text, "a.json", "list", take);
  CHECK(taken == std::vector<std::string>{R"(0 {"b":1})", R"(1 [3,{"list":[4]}])", "2 5"});
  CHECK(rest == parse_json(R"({"a": [[1], 2], "list": [], "c": {"list": [6]}})", "a.json"));
  const Json twice = parse_json_list(R"({"b": 1, "b": 2})", "a.json", "list", take);
  CHECK(JsonReader(twice, {"a.json", ""}).at("b").integer(0, 9) == 1);
  const auto cut = [&] { return parse_json_list("{\"list\": [1,\n2", "a.json", "list", take); };
  CHECK_THROWS_WITH(
      cut(), "a.json: line 2, column 2: JSON ends too early: the \"[\" of line 1 is not closed");
}
