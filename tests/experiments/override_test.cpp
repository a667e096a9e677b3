#include <catch2/catch.hpp>

#include "experiments/experiment.hpp"

#include "base/json.hpp"

namespace shardsim {
namespace {

Json after(const char* document, const char* path, const char* value) {
  Json json = Json::parse(document);
  apply_override(json, path, value);
  return json;
}

TEST_CASE("an override is JSON, or else the text itself") {
  CHECK(after("{}", "a", "3") == Json::parse(R"({"a": 3})"));
  CHECK(after("{}", "a", "dgx-h100") == Json::parse(R"({"a": "dgx-h100"})"));
  CHECK(after("{}", "a", "data=2,fsdp=4") == Json::parse(R"({"a": "data=2,fsdp=4"})"));
  CHECK(after("{}", "a", R"({"b": [1]})") == Json::parse(R"({"a": {"b": [1]}})"));
  CHECK(after("{}", "a", "") == Json::parse(R"({"a": ""})"));
  CHECK(after("{}", "a", "1e999") == Json::parse(R"({"a": "1e999"})"));  // no number of JSON
}

TEST_CASE("objects on the way are made, numbers step into lists") {
  CHECK(after("{}", "a.b.c", "1") == Json::parse(R"({"a": {"b": {"c": 1}}})"));
  CHECK(after(R"({"a": {"x": 0}})", "a.b", "1") == Json::parse(R"({"a": {"x": 0, "b": 1}})"));
  CHECK(after(R"({"l": [1, {"a": 2}]})", "l.1.a", "3") == Json::parse(R"({"l": [1, {"a": 3}]})"));
  CHECK(after(R"({"strategy": "fsdp"})", "strategy.prefetch", "2") ==
        Json::parse(R"({"strategy": {"name": "fsdp", "prefetch": 2}})"));
}

TEST_CASE("an override holds for every variant") {
  CHECK(after(R"({"batch": 1, "variants": [{"name": "x"}, {"name": "y", "batch": 2}]})", "batch",
              "3") ==
        Json::parse(R"({"batch": 3, "variants": [{"name": "x"}, {"name": "y", "batch": 3}]})"));
  // The names are what tells variants apart.
  CHECK(after(R"({"variants": [{"name": "x"}]})", "name", "z") ==
        Json::parse(R"({"variants": [{"name": "x"}], "name": "z"})"));
  CHECK(after(R"({"variants": [{"name": "x"}]})", "variants.0.mesh.data", "4") ==
        Json::parse(R"({"variants": [{"name": "x", "mesh": {"data": 4}}]})"));
}

// Both once ended in a stack overflow.
TEST_CASE("an override nests no deeper than a file") {
  const std::string deep = std::string(60'000, '[') + std::string(60'000, ']');
  CHECK_THROWS_WITH(after("{}", "a", deep.c_str()), "--set: a: nested deeper than 100 levels");
  std::string path = "a";
  for (int i = 0; i < 50'000; ++i) path += ".a";
  CHECK_THROWS_WITH(after("{}", path.c_str(), "1"),
                    Catch::EndsWith("more than 32 names with dots between"));
  CHECK_THROWS_WITH(after("{}", "a", R"({"b": 1, "b": 2})"), Catch::Contains("--set: a: "));
}

TEST_CASE("impossible paths are errors") {
  CHECK_THROWS_WITH(after("{}", "a..b", "1"),
                    "--set: a..b: expected names with dots between, for example workload.batch");
  CHECK_THROWS_WITH(after(R"({"a": 3})", "a.b", "1"), "--set: a.b: nothing lies inside 3");
  CHECK_THROWS_WITH(after(R"({"l": [1]})", "l.1", "1"),
                    "--set: l.1: \"1\" is no index into a list of 1");
  CHECK_THROWS_WITH(after("{}", "a", "\xff"), "--set: a: the value is not valid UTF-8");
  CHECK_THROWS_WITH(after("{}", "a.\xff", "1"), "--set: a.\xff: the path is not valid UTF-8");
}

}  // namespace
}  // namespace shardsim
