// Text and Markdown: the tables hold the fixture's figures, formatted by base/text.hpp.
#include <catch2/catch.hpp>
#include <string>

#include "fixture.hpp"
#include "reports/format/tables.hpp"

namespace shardsim {
namespace {

using Catch::Contains;

TEST_CASE("A run in text shows the verdict, the tables and the remarks") {
  const std::string text = report_run(fixture::fsdp(), Format::text);
  CHECK_THAT(text, Contains("fsdp: toy train step, fsdp on data=2\n"));
  CHECK_THAT(text, Contains("fits: 7.0 GiB of 10.0 GiB"));
  CHECK_THAT(text, Contains("750.00 ms, of which 400.00 ms exposed (32.0 % of the step)"));
  CHECK_THAT(text, Contains("(800.00 ms into the step, during layers.0)"));
  CHECK_THAT(text, Contains("40.0 %, with full attention 60.0 %"));
  CHECK_THAT(text, Contains("mean over maximum across devices"));
  CHECK_THAT(text, Contains("all-gather"));
  CHECK_THAT(text, Contains("embed.weight"));
  CHECK_THAT(text, Contains("  - attention counted without its mask\n"));
  CHECK_THAT(text, !Contains("Warnings"));
  CHECK_THAT(text, !Contains("Device classes"));
}

TEST_CASE("A configuration without padding has no table of it") {
  CHECK_THAT(report_run(fixture::dp(), Format::text), !Contains("adding"));
}

TEST_CASE("Memory shares are of the peak") {
  const Table table = memory_table(figures_of(fixture::dp()));
  // optimizer: 6 of 12 GiB
  REQUIRE(table.rows.size() == 5);
  CHECK(table.rows[2][0].text == "optimizer");
  CHECK(table.rows[2][1].text == "6.0 GiB");
  CHECK(table.rows[2][2].text == "50.0 %");
  CHECK(table.rows[4][1].text == "12.0 GiB");
}

TEST_CASE("Buffers beyond the limit are summed up, so that the column still adds up") {
  const Table table = peak_buffer_table(figures_of(fixture::dp()), 2);
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[2][0].text == "all others");
  CHECK(table.rows[2][2].value == "4");  // 2 + 2 buffers
  CHECK(table.rows[2][3].text == "3.0 GiB");
}

TEST_CASE("Paddings beyond the limit are summed up") {
  Figures figures = figures_of(fixture::fsdp());
  figures.padding.push_back(figures.padding[0]);
  figures.padding.push_back(figures.padding[0]);
  figures.padding_per_device = Bytes(3 * 1024);
  const Table table = padding_table(figures, 1);
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[1].back().text == "2.0 KiB");
  CHECK(table.rows[2].back().text == "3.0 KiB");
}

TEST_CASE("A comparison in text has one row per configuration, then the best and why") {
  const std::string text = report_comparison({fixture::dp(), fixture::fsdp()}, Format::text);
  CHECK_THAT(text, Contains("name  strategy  mesh"));
  CHECK_THAT(text, Contains("\nknown error: measured steps took 1.31 times the predicted time"));
  CHECK_THAT(text, Contains("\nbest: fsdp: the only one of 2 that fits"));
  CHECK_THAT(text, Contains("\ndp does not fit: needs 12.0 GiB, 2.0 GiB more"));
  CHECK_THAT(text, Contains("  - dp: large tensor replicated: embed.weight\n"));
  // Said by both: once, without names.
  CHECK_THAT(text, Contains("  - links of one node are not shared\n"));
}

TEST_CASE("No line of a report is longer than the text is wide") {
  Prediction prediction = fixture::fsdp();
  prediction.result.communication[0].what =
      "parameters of layers.{} are stored over data (fsdp: dimension 0 over data) and needed whole";
  prediction.result.notes.push_back(prediction.result.communication[0].what);
  for (const std::size_t width : {80, 100, 120, 250}) {
    for (const std::string& text :
         {report_run(prediction, Format::text, width),
          report_comparison({fixture::dp(), prediction}, Format::text, width)}) {
      for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
        CHECK(text.find('\n', begin) - begin <= width);
      }
    }
  }
}

TEST_CASE("What differs between workloads has a column, the rest does not") {
  Prediction small = fixture::fsdp();
  Prediction large = fixture::fsdp();
  (*small.experiment.resolved)["workload"] = {{"batch", 8}, {"rematerialization", "none"}};
  (*large.experiment.resolved)["workload"] = {{"batch", 4096}, {"rematerialization", "none"}};
  const Table table = comparison_table(figures_of(std::vector{small, large}));
  REQUIRE(table.columns.size() == 11);
  CHECK(table.columns[3].title == "batch");
  CHECK(table.rows[0][3].text == "8");
  CHECK(table.rows[1][3].text == "4,096");
  CHECK(workload_line(figures_of(large)) == "batch 4,096, rematerialization none");
  CHECK_THAT(report_run(large, Format::html), Contains("batch 4,096, rematerialization none"));
}

TEST_CASE("Remarks are listed once with the names they concern") {
  Figures a = figures_of(fixture::dp());
  Figures b = figures_of(fixture::fsdp());
  Figures c = b;
  c.name = "c";
  b.warnings = c.warnings = {"odd"};
  a.warnings = {};
  CHECK(remarks_of({a, b, c}, &Figures::warnings) == std::vector<std::string>{"fsdp, c: odd"});
  a.warnings = {"odd"};
  CHECK(remarks_of({a, b, c}, &Figures::warnings) == std::vector<std::string>{"odd"});
}

TEST_CASE("Markdown has the same tables") {
  const std::string run = report_run(fixture::fsdp(), Format::markdown);
  CHECK_THAT(run, Contains("## fsdp: toy train step, fsdp on data=2"));
  CHECK_THAT(run, Contains("- **memory**: fits: 7.0 GiB of 10.0 GiB"));
  CHECK_THAT(run, Contains("| all-gather | data | 2 | 4 | 4.0 GiB | 2.0 GiB |"));
  const std::string both = report_comparison({fixture::dp(), fixture::fsdp()}, Format::markdown);
  CHECK_THAT(both, Contains("| dp | dp | data=2 | 1.000 s | 1,000 | 50.0 % | 12.0 GiB | no |"));
  CHECK_THAT(both, Contains("**Best**: fsdp: the only one of 2"));
}

TEST_CASE("Markdown shows user text as it is") {
  // GitHub-flavoured Markdown: | ends a cell, < opens HTML, underscores at a word's edge emphasize.
  CHECK(markdown_escape("a|b") == "a\\|b");
  CHECK(markdown_escape("<b>*x*") == "\\<b\\>\\*x\\*");
  CHECK(markdown_escape("self_attn.q_proj") == "self_attn.q_proj");
  CHECK(markdown_escape("_x_") == "\\_x\\_");
  CHECK(markdown_escape("two\nlines") == "two lines");
}

}  // namespace
}  // namespace shardsim
