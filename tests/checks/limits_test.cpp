#include "checks/limits.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "tests/base/mistake.hpp"

namespace shardsim {
namespace {

Limits limits_of(const std::string& text) {
  const Json document = parse_json(text, "limits.json");
  return read_limits(JsonReader(document, {"limits.json", "/limits"}));
}

TEST_CASE("of several growths the largest is allowed") {
  const Limit limit =
      limits_of(R"({"*": {"step_time_s": "+10 % or +1 ms"}})").of("a", "step_time_s");
  // 10 % of 100 ms are 10 ms; of 1 ms 0.1 ms, less than 1 ms.
  CHECK(limit.allowed_growth(0.1) == Approx(0.01));
  CHECK(limit.allowed_growth(0.001) == Approx(0.001));
  CHECK_FALSE(limit.budget);
}

TEST_CASE("a growth and a budget stand side by side and are replaced each by its own") {
  const Limits limits = limits_of(
      R"({"*": {"peak_bytes": "+3 %, <= 72GiB"}, "a*": {"peak_bytes": "<= 1 GiB"},
          "ab": {"peak_bytes": "any"}})");
  CHECK(limits.of("x", "peak_bytes").growth->relative == Approx(0.03));
  CHECK(limits.of("x", "peak_bytes").budget->most == 72.0 * GiB);
  CHECK(limits.of("ax", "peak_bytes").growth->relative == Approx(0.03));
  CHECK(limits.of("ax", "peak_bytes").budget->most == 1.0 * GiB);
  CHECK_FALSE(limits.of("ab", "peak_bytes").growth);
  CHECK_FALSE(limits.of("ab", "peak_bytes").budget);
}

TEST_CASE("a family holds for its parts, a part for itself, a kind for the sum over all axes") {
  const Limits limits = limits_of(R"({"*": {"calls": "+2"},
                    "b": {"calls": {"all-gather": "<= 66", "all-reduce over tp": "+1"}}})");
  CHECK(limits.of("a", "calls.all-reduce over tp").growth->absolute == 2);
  CHECK(limits.of("b", "calls.all-reduce over tp").growth->absolute == 1);
  CHECK(limits.of("b", "calls.all-gather over fsdp").growth->absolute == 2);
  CHECK(limits.of("b", "calls.all-gather").budget->most == 66);
  CHECK_FALSE(limits.of("b", "calls.all-gather").growth);
  CHECK(limits.named_parts("b") ==
        std::vector<std::string>{"calls.all-gather", "calls.all-reduce over tp"});
  CHECK(limits.named_parts("a").empty());
}

TEST_CASE("axes of a limit are a set") {
  const Limits limits = limits_of(
      R"({"*": {"calls": {"all-gather over b, a": "<= 66", "all-reduce over a,b": "+1"}}})");
  CHECK(limits.of("x", "calls.all-gather over a,b").budget->most == 66);
  CHECK(limits.of("x", "calls.all-gather over b,a").budget->most == 66);
  CHECK(limits.of("x", "calls.all-reduce over b,a").growth->absolute == 1);
  CHECK_FALSE(limits.of("x", "calls.all-gather over a").budget);
  CHECK_FALSE(limits.of("x", "wire_bytes.all-gather over a,b").budget);
}

TEST_CASE("what is allowed where nothing is said") {
  const Limits none;
  CHECK(none.of("a", "step_time_s").growth->text == "+2 %");
  CHECK(none.of("a", "exposed_communication_s").growth->text == "+10 % or +1 ms");
  CHECK(none.of("a", "peak_bytes").growth->text == "+1 %");
  CHECK(none.of("a", "wire_bytes").growth->text == "+1 %");
  CHECK(none.of("a", "wire_bytes.all-gather over x").growth->text == "+1 %");
  CHECK(none.of("a", "calls.all-gather over x").growth->text == "+0");
  CHECK(none.of("a", "fits").growth);
  CHECK_FALSE(none.of("a", "by_category.activations").growth);
  CHECK_FALSE(none.of("a", "replicated_parameters").growth);
}

TEST_CASE("mistakes in limits say where and what is expected") {
  const auto mistake = [](const std::string& text) {
    return testing::mistake_of([&] { return limits_of(text); });
  };
  CHECK(mistake(R"({"*": {"step_times": "+2 %"}})") ==
        "limits.json: /limits/*: unknown key \"step_times\", did you mean \"step_time_s\"?");
  CHECK(mistake(R"({"*": {"step_time_s": "2 %"}})") ==
        "limits.json: /limits/*/step_time_s: \"2 %\" is no limit: expected for example \"+2 %\", "
        "\"+10 % or +1 ms\", \"<= 72 GiB\", \"+1 %, <= 66\" or \"any\"");
  CHECK(mistake(R"({"*": {"step_time_s": 2}})").find("expected for example") != std::string::npos);
  CHECK(mistake(R"({"*": {"peak_bytes": "<= 72"}})") ==
        "limits.json: /limits/*/peak_bytes: \"72\" has no unit, expected for example \"80 GB\"");
  CHECK(mistake(R"({"*": {"peak_bytes": "<= 1 GiB, <= 2 GiB"}})") ==
        "limits.json: /limits/*/peak_bytes: two budgets for one metric");
  CHECK(mistake(R"({"*": {"calls": {"all-gahter": "<= 66"}}})") ==
        "limits.json: /limits/*/calls/all-gahter: no kind of collective \"all-gahter\", did you "
        "mean \"all-gather\"?");
  CHECK(mistake(R"({"*": {"calls": {"all-gather": "<= many"}}})") ==
        "limits.json: /limits/*/calls/all-gather: \"many\" is not a number of calls or tensors");
  CHECK(
      mistake(R"({"*": {"calls": {"all-gather over a,b": "+1", "all-gather over b,a": "+2"}}})") ==
      "limits.json: /limits/*/calls/all-gather over b,a: is for axes that another limit is for, "
      "in another order");
  CHECK(mistake(R"({"*": {"fits": "maybe"}})") ==
        "limits.json: /limits/*/fits: expected true, false or \"any\"");
  CHECK(testing::mistake_of([] {
          limits_of(R"({"fsdpp": {"fits": true}})").require_matches({"dp", "fsdp"});
          return 0;
        }) ==
        "limits.json: /limits/fsdpp: no experiment is called \"fsdpp\", did you mean \"fsdp\"?");
}

}  // namespace
}  // namespace shardsim
