#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "checks/check_report.hpp"
#include "tests/checks/fixture.hpp"

namespace shardsim {
namespace {

using Catch::Contains;

CheckReport one_worse(const std::string& name = "fsdp") {
  CheckReport report;
  report.baseline = "ci/baseline.json";
  report.experiments.push_back(fixture::check_against_before(fixture::measured_worse()));
  report.experiments.back().name = name;
  report.experiments.back().file = "ci/toy.json";
  report.experiments.push_back(fixture::check_against_before(fixture::measured_before()));
  report.experiments.back().name = "same";
  return report;
}

TEST_CASE("JSON has every violation with its numbers and cause") {
  const Json json = Json::parse(check_json(one_worse()));
  CHECK(json["schema"] == "shardsim/check/1");
  CHECK(json["checked"] == 2);
  REQUIRE(json["violations"].size() == 6);
  const Json& calls = json["violations"][5];
  CHECK(calls["experiment"] == "fsdp");
  CHECK(calls["metric"] == "calls.all-gather over fsdp");
  CHECK(calls["baseline"] == 32);
  CHECK(calls["now"] == 64);
  CHECK(calls["limit"] == "+0");
  CHECK_THAT(calls["cause"].get<std::string>(),
             Contains("strategy.reshard_after_forward false -> true"));
  CHECK(json["improvements"].empty());
}

TEST_CASE("text tells what became worse, why, and how to accept it") {
  const std::string text = check_text(one_worse());
  CHECK_THAT(text,
             Contains("ci/baseline.json: 1 of 2 experiments over their limits: 6 violations"));
  CHECK_THAT(text, Contains("+100.00 ms (+10.0 %)"));
  CHECK_THAT(text, Contains("within limits: same"));
  CHECK_THAT(text, Contains("shardsim check ci/baseline.json --update=fsdp\n"));
}

// GitHub's limit is 65,536; the issue asks for 60 kB whatever there is to tell.
TEST_CASE("Markdown stays below 60,000 bytes and says what it leaves out") {
  CheckReport report;
  report.baseline = "b.json";
  const std::string long_name(5000, 'x');
  for (int i = 0; i < 500; ++i) {
    CheckedExperiment one = fixture::check_against_before(fixture::measured_worse());
    one.name = std::to_string(i) + long_name;
    report.gone.push_back(one.name);
    report.experiments.push_back(std::move(one));
  }
  const std::string markdown = check_markdown(report);
  CHECK(markdown.size() < 60000);
  CHECK_THAT(markdown, Contains("2900 more are left out here"));  // 500 * 6 - 100
  CHECK_THAT(markdown, Contains("left out here; the other formats have them"));
}

TEST_CASE("what names hold cannot leave its place") {
  const std::string hostile = "a|b<script>&\"]]>%0A\n::error::x,y:z";
  const CheckReport report = one_worse(hostile);
  CHECK(check_junit(report).find("<script") == std::string::npos);
  CHECK(check_html(report).find("b<script>&") == std::string::npos);
  CHECK(check_markdown(report).find("b<script") == std::string::npos);  // "\\<" it is
  const std::string commands = check_annotations(report);
  // One violation, one line.
  CHECK(std::count(commands.begin(), commands.end(), '\n') == 1);
  CHECK_THAT(commands, Contains("title=shardsim%3A a|b<script>&\"]]>%250A%0A%3A%3Aerror"));
}

// The fixture's baseline has no time of contention, as those from before there was one.
TEST_CASE("a baseline that is older than a part of the step's time shows the others") {
  CheckReport report = one_worse();
  REQUIRE_FALSE(report.experiments[0].before->values.contains("contention_time_s"));
  CHECK_THAT(check_html(report), Contains("\"times_s\":[0.8,0.0,0.15,0.05]"));
  for (CheckedExperiment& one : report.experiments) {
    one.before->values = {{"peak_bytes", 1}};
    one.now.values = {{"peak_bytes", 1}};
  }
  CHECK_THAT(check_html(report), Contains("\"times_s\":null"));
  CHECK_THAT(check_html(report), !Contains("\"times_s\":["));
}

TEST_CASE("JUnit has a test case to an experiment, GitLab an issue to a violation") {
  const std::string junit = check_junit(one_worse());
  CHECK_THAT(junit, Contains("<testsuites tests=\"2\" failures=\"1\">"));
  CHECK_THAT(junit, Contains("<testcase classname=\"ci/toy.json\" name=\"fsdp\">"));
  const Json issues = Json::parse(check_gitlab(one_worse()));
  REQUIRE(issues.size() == 6);
  CHECK(issues[0]["location"]["path"] == "ci/toy.json");
  CHECK(issues[0]["severity"] == "major");
  CHECK(issues[0]["fingerprint"] != issues[1]["fingerprint"]);
  // The same violation has the same fingerprint in the next run.
  CHECK(Json::parse(check_gitlab(one_worse()))[0]["fingerprint"] == issues[0]["fingerprint"]);
}

TEST_CASE("annotations are warnings where only warnings are asked for") {
  CheckReport report = one_worse();
  CHECK(check_annotations(report).starts_with("::error file=ci/toy.json,line=1,"));
  report.warn_only = true;
  CHECK(check_annotations(report).starts_with("::warning file=ci/toy.json,line=1,"));
}

}  // namespace
}  // namespace shardsim
