#include "base/text.hpp"

#include <catch2/catch.hpp>

using namespace shardsim;  // NOLINT(google-build-using-namespace)

namespace {

const Place place{"a.json", "/x"};

template <class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

// Decimal prefixes are powers of 1000, binary ones of 1024 (IEC 80000-13); a bit is an eighth of a
// byte.
TEST_CASE("quantities are read with their units") {
  CHECK(parse_bytes("80 GB", place) == Bytes(80'000'000'000));
  CHECK(parse_bytes("80GiB", place) == Bytes(80 * GiB));
  CHECK(parse_bytes("1.5 KiB", place) == Bytes(1536));
  CHECK(parse_bytes("0 B", place) == Bytes(0));
  CHECK(parse_bandwidth("450 GB/s", place) == Bandwidth(450e9));
  CHECK(parse_bandwidth("400 Gb/s", place) == Bandwidth(50e9));
  CHECK(parse_bandwidth("1 MiB/s", place) == Bandwidth(1048576));
  CHECK(parse_flop_rate("989.4 TFLOP/s", place).count() == Approx(989.4e12));
  CHECK(parse_seconds("2 us", place).count() == Approx(2e-6));
  CHECK(parse_seconds("1e3 ps", place).count() == Approx(1e-9));
}

TEST_CASE("a quantity without a unit, or with a wrong one, is an error") {
  CHECK(error_of([] { (void)parse_bandwidth("450", place); }) ==
        "a.json: /x: \"450\" has no unit, expected for example \"450 GB/s\"");
  CHECK(error_of([] { (void)parse_bytes("fast", place); }) ==
        "a.json: /x: \"fast\" is not a size, expected for example \"80 GB\"");
  CHECK(error_of([] { (void)parse_bytes("80 Gib", place); }) ==
        "a.json: /x: unknown unit \"Gib\" of a size, did you mean \"GiB\"?");
  CHECK(error_of([] { (void)parse_seconds("3 hours", place); }) ==
        "a.json: /x: unknown unit \"hours\" of a duration");
  CHECK(error_of([] { (void)parse_seconds("", place); }) ==
        "a.json: /x: \"\" is not a duration, expected for example \"2 us\"");
}

TEST_CASE("a quantity that cannot be is an error") {
  CHECK(error_of([] { (void)parse_seconds("-2 us", place); }) ==
        "a.json: /x: \"-2 us\" is not a possible duration");
  CHECK(error_of([] { (void)parse_bandwidth("nan GB/s", place); }) ==
        "a.json: /x: \"nan GB/s\" is not a possible bandwidth");
  CHECK(error_of([] { (void)parse_bandwidth("inf GB/s", place); }) ==
        "a.json: /x: \"inf GB/s\" is not a possible bandwidth");
  CHECK(error_of([] { (void)parse_bytes("9223372036854775808 B", place); }) ==
        "a.json: /x: \"9223372036854775808 B\" is too large");
  CHECK(error_of([] { (void)parse_bytes("1e300 TiB", place); }) ==
        "a.json: /x: \"1e300 TiB\" is too large");
}

// 436,207,616 / 2^20 = 416; 8,030,261,248 has its digits in threes.
TEST_CASE("quantities are printed as people read them") {
  CHECK(format_bytes(Bytes(436'207'616)) == "416.0 MiB");
  CHECK(format_bytes(Bytes(512)) == "512 B");
  CHECK(format_bytes(Bytes(1024)) == "1.0 KiB");
  CHECK(format_bytes(Bytes(0)) == "0 B");
  CHECK(format_bandwidth(Bandwidth(450e9)) == "450.0 GB/s");
  CHECK(format_flop_rate(FlopRate(989.4e12)) == "989.4 TFLOP/s");
  CHECK(format_flops(Flops(1.5e15)) == "1.50 PFLOP");
  CHECK(format_seconds(Seconds(0)) == "0 s");
  CHECK(format_seconds(Seconds(1.2344)) == "1.234 s");
  CHECK(format_seconds(Seconds(0.0567)) == "56.70 ms");
  CHECK(format_seconds(Seconds(8.9e-6)) == "8.900 us");
  CHECK(format_percent(0.4134) == "41.3 %");
}

TEST_CASE("counts have their thousands apart") {
  CHECK(counted(1, "process") == "1 process");
  CHECK(counted(8, "process") == "8 processes");
  CHECK(counted(1000, "node") == "1,000 nodes");
  CHECK(format_count(0) == "0");
  CHECK(format_count(999) == "999");
  CHECK(format_count(1000) == "1,000");
  CHECK(format_count(8'030'261'248) == "8,030,261,248");
  CHECK(format_count(-123'456) == "-123,456");
}

TEST_CASE("a table aligns its columns, in text and Markdown") {
  TextTable table({{"name"}, {"size", TextTable::Align::right}, {"why"}});
  table.add_row({"a", "1", "x"});
  table.add_row({"longer", "1,000", ""});
  CHECK(table.text("  ") ==
        "  name     size  why\n"
        "  ------  -----  ---\n"
        "  a           1  x\n"
        "  longer  1,000\n");
  CHECK(table.markdown() ==
        "| name | size | why |\n"
        "| --- | ---: | --- |\n"
        "| a | 1 | x |\n"
        "| longer | 1,000 |  |\n");
}

namespace {

TextTable three_columns() {
  TextTable table({{"kind"}, {"time taken", TextTable::Align::right}, {"why"}});
  table.add_row({"all-gather", "5.64 ms", "parameters of layers.{} are stored over fsdp"});
  table.add_row({"all-reduce", "1.20 s", "sums"});
  return table;
}

}  // namespace

// 10 + 2 + 10 + 2 + 44 characters side by side.
TEST_CASE("a table that fits is not touched") {
  CHECK(three_columns().text("", 68) ==
        "kind        time taken  why\n"
        "----------  ----------  --------------------------------------------\n"
        "all-gather     5.64 ms  parameters of layers.{} are stored over fsdp\n"
        "all-reduce      1.20 s  sums\n");
}

// 50 - 24 leaves 26 of 44; beneath 24 for text it would go beneath its row.
TEST_CASE("of a table that is too wide the widest text is wrapped first") {
  CHECK(three_columns().text("", 50) ==
        "kind        time taken  why\n"
        "----------  ----------  --------------------------\n"
        "all-gather     5.64 ms  parameters of layers.{}\n"
        "                        are stored over fsdp\n"
        "all-reduce      1.20 s  sums\n");
}

// 45: 10 + 2 + 7 + 2 + 24, of which the title gives three, where it is broken.
TEST_CASE("then titles are") {
  CHECK(three_columns().text("", 45) ==
        "kind           time  why\n"
        "              taken\n"
        "----------  -------  ------------------------\n"
        "all-gather  5.64 ms  parameters of layers.{}\n"
        "                     are stored over fsdp\n"
        "all-reduce   1.20 s  sums\n");
}

TEST_CASE("what has no place side by side stands beneath its row, with its title") {
  CHECK(three_columns().text("  ", 40) ==
        "  kind        time taken\n"
        "  ----------  ----------\n"
        "  all-gather     5.64 ms\n"
        "      why: parameters of layers.{} are\n"
        "      stored over fsdp\n"
        "  all-reduce      1.20 s\n"
        "      why: sums\n");
  TextTable numbers(
      {{"name"}, {"first", TextTable::Align::right}, {"second", TextTable::Align::right}});
  numbers.add_row({"a", "1", "22"});
  numbers.add_row({"b", "2", ""});
  CHECK(numbers.text("", 12) ==
        "name  first\n"
        "----  -----\n"
        "a         1\n"
        "    second 22\n"
        "b         2\n");
}

// The law of the layout: whatever the width, every word of every cell is in the text.
TEST_CASE("no width cuts anything off") {
  for (std::size_t width = 1; width < 90; ++width) {
    std::string text = three_columns().text("", width);
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    for (const char* word : {"all-gather", "5.64ms", "all-reduce", "1.20s"}) {
      CHECK(text.find(word) != std::string::npos);
    }
    for (const char* word : {"parameters", "layers.{}", "stored", "fsdp", "sums"}) {
      CHECK(text.find(word) != std::string::npos);
    }
  }
}

TEST_CASE("text is broken at spaces, long words behind punctuation") {
  CHECK(wrapped("one two three", 0, 80) == "one two three");
  CHECK(wrapped("one two three four five six seven", 4, 28) ==
        "one two three four five\n"
        "    six seven");
  CHECK(wrapped("see model.layers.{}.post_attention_layernorm.weight", 0, 24) ==
        "see\n"
        "model.layers.{}.post_\n"
        "attention_layernorm.\n"
        "weight");
  // Characters, not bytes: 24 of them in 48 bytes.
  const std::string umlauts =
      "\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3"
      "\xA4";
  CHECK(wrapped(umlauts + umlauts, 0, 24) == umlauts + umlauts);
  CHECK(wrapped("two\nlines", 2, 80) == "two\n  lines");
}

// RFC 4180, section 2, rules 5 to 7.
TEST_CASE("CSV fields are quoted where they must be") {
  CHECK(csv_field("plain text") == "plain text");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("say \"hi\"") == "\"say \"\"hi\"\"\"");
  CHECK(csv_field("two\nlines") == "\"two\nlines\"");
  CHECK(csv_field("").empty());
}
