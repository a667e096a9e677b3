// The page: safe with any text, complete, from no network, and the same bytes each time.
#include "reports/format/html.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "base/json.hpp"
#include "fixture.hpp"

namespace shardsim {
namespace {

using Catch::Contains;

constexpr const char* hostile = "</script><script>alert(1)</script>\"'&{{css}}";

std::string between(const std::string& text, const std::string& open, const std::string& close) {
  const auto begin = text.find(open);
  REQUIRE(begin != std::string::npos);
  const auto end = text.find(close, begin + open.size());
  REQUIRE(end != std::string::npos);
  return text.substr(begin + open.size(), end - begin - open.size());
}

Json data_of(const std::string& page) {
  return parse_json(
      between(page, "<script type=\"application/json\" id=\"shardsim-data\">", "</script>"),
      "data");
}

TEST_CASE("Text in HTML cannot become markup") {
  CHECK(html_escape("<a href=\"x\">'&'</a>") ==
        "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
}

TEST_CASE("Data in a script cannot end it") {
  const Json json = {{"name", "</script><!--"}};
  CHECK(script_json(json) == "{\"name\":\"\\u003c/script>\\u003c!--\"}");
  CHECK(parse_json(script_json(json), "data")["name"] == "</script><!--");
}

TEST_CASE("A skeleton is filled once: values are not searched for slots") {
  CHECK(fill("<{{a}}|{{b}}>", {{"a", "{{b}}"}, {"b", "x"}}) == "<{{b}}|x>");
  CHECK(fill("no slots", {}) == "no slots");
}

TEST_CASE("A table carries the exact numbers beside the readable ones") {
  const Table table{"T",
                    {{"name", TextTable::Align::left}, {"size", TextTable::Align::right}},
                    {{{"a<b", ""}, {"1.0 KiB", "1024"}}}};
  const std::string html = to_html(table, {0}, {"there"});
  CHECK_THAT(html, Contains("<caption>T</caption>"));
  CHECK_THAT(html, Contains("<th scope=\"col\">name</th>"));
  CHECK_THAT(html, Contains("<tr class=\"best\">"
                            "<th scope=\"row\" class=\"short\"><a href=\"#there\">a&lt;b</a></th>"
                            "<td class=\"number\" data-value=\"1024\">1.0 KiB</td></tr>"));
}

TEST_CASE("Names of users stay text wherever the page shows them") {
  Prediction prediction = fixture::fsdp();
  prediction.experiment.name = hostile;
  prediction.step.plan.subject.model = hostile;
  prediction.machine.profile.device.name = hostile;
  prediction.result.communication[0].what = hostile;
  prediction.result.programs[0].peak_buffers[0].name = hostile;
  prediction.result.programs[0].peak_task = hostile;
  prediction.step.plan.names[0] = hostile;
  prediction.step.warnings = {hostile};
  prediction.result.notes = {hostile};
  for (const std::string& page : {report_run(prediction, Format::html),
                                  report_comparison({prediction, fixture::dp()}, Format::html)}) {
    CHECK_THAT(page, !Contains("<script>alert"));
    CHECK_THAT(page, Contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
    CHECK(data_of(page)["configurations"][0]["name"] == hostile);
  }
}

TEST_CASE("A page loads nothing from anywhere") {
  const std::string page = report_comparison({fixture::dp(), fixture::fsdp()}, Format::html);
  CHECK_THAT(page, !Contains(" src="));
  CHECK_THAT(page, !Contains("<link rel=\"stylesheet\""));
  CHECK_THAT(page, !Contains("@import"));
  CHECK_THAT(page, !Contains("fetch("));
  CHECK_THAT(page, Contains("Released under the MIT License"));  // Chart.js keeps its banner
}

TEST_CASE("A page shows every figure of the CSV with the same digits") {
  const std::string page = report_run(fixture::fsdp(), Format::html);
  for (const char* value : {"1.25", "0.75", "0.4", "3221225472", "7516192768", "10737418240"}) {
    CHECK_THAT(page, Contains(std::string("data-value=\"") + value + "\""));
  }
}

TEST_CASE("The data that is drawn is the fixture's") {
  const Json data = data_of(report_comparison({fixture::dp(), fixture::fsdp()}, Format::html));
  const Json& dp = data["configurations"][0];
  CHECK(dp["fits"] == false);
  CHECK(dp["timeline"].is_null());
  const Json& fsdp = data["configurations"][1];
  // By cause: 400 ms forward, 400 backward, 400 of exposed data parallelism, 50 for the host.
  CHECK(data["parts"][6]["label"] == "exposed: data");
  const Json parts{0.4, 0, 0.4, 0, 0, 0, 0.4, 0, 0, 0, 0, 0, 0, 0.05, 0};
  CHECK(fsdp["parts_s"] == parts);
  CHECK(fsdp["classes"] == Json::array({{{"name", "all"}, {"parts_s", parts}}}));
  const Json& one = fsdp["timeline"]["classes"][0];
  // The all-gather: 400 ms to 800 ms on stream 1, kind 4, no layer, the first name used third.
  CHECK(one["segments"][3] == Json::array({400'000'000, 400'000'000, 1, 4, -1, 1, 1, 400'000'000}));
  CHECK(fsdp["timeline"]["names"][1] == "layers.{}.weight");
  CHECK(one["memory"].size() == 3);
  CHECK(one["memory"][1][0] == 800'000'000);
}

TEST_CASE("What a step takes of links is drawn where it was kept") {
  Prediction prediction = fixture::fsdp();
  CHECK_THAT(report_run(prediction, Format::html), !Contains("how much it takes of links"));
  prediction.result.programs[0].links = {
      {LinkLevel::scale_up, LinkDirection::both, {0, 0.5, 1, 0.25}},
      {LinkLevel::torus_y, LinkDirection::in, {0, 0, 0, 0.0004}},
      {LinkLevel::network, LinkDirection::out, {1, 1, 0, 0}, "device 0 -> leaf 0", 16}};
  const std::string page = report_run(prediction, Format::html);
  CHECK_THAT(page, Contains("One step over time, how much it takes of links, and the memory"));
  const Json links = data_of(page)["configurations"][0]["timeline"]["classes"][0]["links"];
  CHECK(links == Json::array({{{"name", "scale-up links"}, {"permille", {0, 500, 1000, 250}}},
                              {{"name", "y links, down"}, {"permille", {0, 0, 0, 0}}},
                              {{"name", "device 0 -> leaf 0, 16 links"},
                               {"permille", {1000, 1000, 0, 0}}}}));
}

TEST_CASE("Without a timeline the page says so and is otherwise whole") {
  const std::string page = report_run(fixture::dp(), Format::html);
  CHECK_THAT(page, Contains("kept no timeline"));
  CHECK_THAT(page, !Contains("class=\"step-view\""));
  CHECK_THAT(page, Contains("does not fit: needs 12.0 GiB"));
}

TEST_CASE("The best configuration is marked") {
  const std::string page = report_comparison({fixture::dp(), fixture::fsdp()}, Format::html);
  CHECK_THAT(
      page,
      Contains(
          "<tr class=\"best\"><th scope=\"row\" class=\"short\"><a href=\"#configuration-1\">"));
  CHECK_THAT(page, Contains("<h2>Best: fsdp</h2>"));
}

TEST_CASE("The same predictions give the same bytes in every format") {
  for (Format format : {Format::text, Format::json, Format::csv, Format::html, Format::markdown}) {
    CHECK(report_run(fixture::fsdp(), format) == report_run(fixture::fsdp(), format));
    CHECK(report_comparison({fixture::dp(), fixture::fsdp()}, format) ==
          report_comparison({fixture::dp(), fixture::fsdp()}, format));
  }
}

}  // namespace
}  // namespace shardsim
