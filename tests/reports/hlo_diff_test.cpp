// The two programs of examples/programs: x @ w on a mesh of 2 x 4. Before, w is gathered over x and
// the result summed over y; after, w lies whole over x and the result is scattered over y.
//
//   gather        4 MiB in groups of 2: 2 MiB sent
//   all-reduce    512 KiB in groups of 4: 2 * 3/4 = 768 KiB
//   scatter       512 KiB in groups of 4: 384 KiB
//   arguments     w 2 MiB, then 4 MiB, and x 256 KiB
#include <catch2/catch.hpp>

#include "base/gzip.hpp"
#include "base/json.hpp"
#include "reports/hlo/hlo_diff_report.hpp"

namespace shardsim {
namespace {

HloSummary example(const std::string& name) {
  const std::string path = std::string(SHARDSIM_SOURCE_DIR "/examples/programs/") + name;
  return summarize_hlo(HloModule::parse(read_maybe_gzip(path), name), {Mesh({{"x", 2}, {"y", 4}})});
}

HloDiff examples() { return diff_hlo(example("fsdp-matmul.hlo"), example("tp-matmul.hlo")); }

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the difference of two programs as JSON") {
  const Json json = parse_json(hlo_diff_json(examples()), "diff");
  CHECK(json["schema"] == "shardsim/hlo-diff/1");
  CHECK(json["equal_collectives"] == 0);
  REQUIRE(json["collectives"].size() == 2);
  const Json& removed = json["collectives"][0];
  CHECK(removed["change"] == "removed");
  CHECK(removed["wire_bytes_per_device_difference"] == -2 * MiB);
  CHECK(removed["before"][0]["over"] == "x");
  CHECK(removed["after"].empty());
  CHECK(removed["reasons"][0] == "jit(step)/dot_general");
  const Json& changed = json["collectives"][1];
  CHECK(changed["change"] == "changed");
  CHECK(changed["after"][0]["kind"] == "reduce-scatter");
  CHECK(changed["wire_bytes_per_device_difference"] == -384 * KiB);
  const Json& total = json["communication"].back();
  CHECK(total["kind"] == "total");
  CHECK(total["wire_bytes_per_device"]["before"] == 2 * MiB + 768 * KiB);
  CHECK(total["wire_bytes_per_device"]["after"] == 384 * KiB);
  CHECK(json["memory"]["before"]["argument_bytes"] == 2 * MiB + 256 * KiB);
  CHECK(json["memory"]["after"]["argument_bytes"] == 4 * MiB + 256 * KiB);
  CHECK(json["work"]["matmuls"]["before"]["flops"] == 2.0 * 128 * 1024 * 2048);
}

TEST_CASE("the difference of two programs as text, Markdown and CSV") {
  const HloDiff diff = examples();
  for (const std::string& text : {hlo_diff_text(diff), hlo_diff_markdown(diff)}) {
    CHECK(holds(text, "all-gather over x, bf16, 4.0 MiB"));
    CHECK(holds(text, "arguments"));
  }
  CHECK(holds(hlo_diff_text(diff), "all-reduce -> reduce-scatter over y, bf16, 512.0 KiB"));
  CHECK(holds(hlo_diff_text(diff), "2.8 MiB -> 384.0 KiB"));
  CHECK(holds(hlo_diff_text(diff), "-2.4 MiB"));  // 384 KiB less 2.75 MiB
  const std::string csv = hlo_diff_csv(diff);
  CHECK(holds(csv, "\nwire bytes per device,total,2883584,393216,-2490368,\n"));
  CHECK(holds(csv, "\nmemory bytes,arguments,2359296,4456448,2097152,\n"));
  CHECK(holds(csv, "\ninstructions,reduce-scatter,0,1,1,\n"));
  // 2 MiB less; 768 KiB and then half of them.
  CHECK(holds(csv, ",2097152,0,-2097152,"));
  CHECK(holds(csv, ",786432,393216,-393216,"));
}

TEST_CASE("what stays of a removed collective is executed before and after") {
  HloDiff diff = examples();
  diff.collectives[0].staying = 2;
  CHECK(holds(hlo_diff_text(diff), "3 -> 2"));
}

TEST_CASE("a program beside itself") {
  const HloDiff diff = diff_hlo(example("tp-matmul.hlo"), example("tp-matmul.hlo"));
  const std::string text = hlo_diff_text(diff);
  CHECK(holds(text, "The collectives are the same."));
  CHECK(holds(text, "Instructions and their work are the same."));
  // Other instructions, as much work.
  REQUIRE_FALSE(examples().opcodes.empty());
  REQUIRE(examples().work.empty());
  CHECK_FALSE(holds(hlo_diff_text(examples()), "their work are the same"));
}

}  // namespace shardsim
