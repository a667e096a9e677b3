// Programs as jax prints them (tests/golden/xla/programs), with Shardy's or with GSPMD's
// annotations, are read without loss: an independent count of what begins like an op agrees, so
// does every sharding, and no op is unknown.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "base/gzip.hpp"
#include "stablehlo/flops.hpp"
#include "stablehlo/op_rules.hpp"
#include "tests/base/golden_files.hpp"

namespace {
using namespace shardsim::stablehlo;  // NOLINT(google-build-using-namespace)

using Counts = std::map<std::string, int>;

// Ops by name as the lines of the text begin: each stands on a line of its own, after its results.
Counts count_in_text(const std::string& text) {
  static const std::regex begin(
      R"re(^\s*(?:%[\w:#, %]+ = )?"?((?:stablehlo|chlo|mhlo|sdy|func)\.[a-z_0-9]+|call|return)"?[ (<]?.*)re");
  Counts counts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    // Constants can be long; what counts is at the beginning.
    const std::string head = line.substr(0, 200);
    if (!std::regex_match(head, match, begin)) continue;
    std::string name = match[1];
    if (name == "func.func" || name == "sdy.mesh") continue;
    if (name == "call" || name == "return") name.insert(0, "func.");
    ++counts[name];
  }
  return counts;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

Counts count_parsed(const Module& module) {
  Counts counts;
  for (const Function& function : module.functions) {
    for (const Op& op : function.ops) ++counts[op.name];
  }
  return counts;
}

// Shardings are printed back to the letter, so each of them must be found in the text, and as many.
void check_shardings(const Module& module, const std::string& text,
                     std::vector<std::string>& failures) {
  Counts found;
  const auto note = [&](const ValueSharding& sharding) {
    if (sharding.axes) ++found[text_of(*sharding.axes)];
    if (sharding.tiles) ++found[fmt::format("mhlo.sharding = \"{}\"", text_of(*sharding.tiles))];
  };
  for (const Function& function : module.functions) {
    for (const Value& value : function.values) note(value.sharding);
    for (const FunctionResult& result : function.results) note(result.sharding);
    for (const Op& op : function.ops) {
      for (const char* name : {"in_shardings", "out_shardings"}) {
        const Attribute* list = find(op.attributes, name);
        if (list == nullptr) continue;
        for (const Attribute& item : list->items) ++found[fmt::format("<{}>", item.text)];
      }
    }
  }
  for (const auto& [sharding, count] : found) {
    const int expected = count_of(text, sharding);
    if (count != expected) {
      failures.push_back(fmt::format("{}: {} times, not {}", sharding, count, expected));
    }
  }
  int all = 0;
  for (const auto& [sharding, count] : found) all += count;
  const int expected = count_of(text, "<@") + count_of(text, "mhlo.sharding = ");
  if (all != expected) failures.push_back(fmt::format("{} shardings, not {}", all, expected));
}

}  // namespace

TEST_CASE("programs are read without loss") {
  for (const std::string& file : shardsim::test::golden_programs("xla/programs")) {
    shardsim::test::Comparison result;
    std::vector<std::string>& failures = result.failures;
    try {
      const std::string text = shardsim::read_maybe_gzip(file);
      const Module module = parse_module(text, file);
      const Counts expected = count_in_text(text);
      const Counts actual = count_parsed(module);
      for (const auto& [name, count] : expected) {
        const auto found = actual.find(name);
        const int parsed = found == actual.end() ? 0 : found->second;
        if (parsed != count) failures.push_back(fmt::format("{}: {} of {}", name, parsed, count));
      }
      if (actual.size() != expected.size()) failures.emplace_back("other ops than in the text");
      check_shardings(module, text, failures);
      for (const auto& [name, count] : unknown_ops(module)) {
        failures.push_back(fmt::format("{} unknown {}", count, name));
      }
      if (failures.empty()) result.passed = static_cast<int>(module.op_count());
    } catch (const std::exception& error) {
      failures.emplace_back(error.what());
    }
    shardsim::test::report(file, result);
    CHECK(failures.empty());
  }
}

TEST_CASE("matmuls of whole steps have the operations that were counted elsewhere") {
  shardsim::test::Comparison result;
  const auto folder = shardsim::test::golden_folder("xla_models");
  for (const std::string& file : shardsim::test::golden_files(folder / "records", ".json")) {
    const shardsim::Json document = shardsim::load_json(file);
    const double expected = document.at("program_dot_flops_global").get<double>();
    const std::string name = document.at("id").get<std::string>() + ".mlir";
    const auto program = shardsim::test::plain_or_gzip(folder / "programs" / name);
    REQUIRE(program);
    const Module module = read_module(*program);
    const double actual = work_of(module, *module.find_function("main")).work.matmul.count();
    if (actual == expected) {
      ++result.passed;
    } else {
      result.failures.push_back(fmt::format("{}: {} operations, not {}", name, actual, expected));
    }
  }
  shardsim::test::report("xla_models/records", result);
  CHECK(result.failures.empty());
}
