#include "golden.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/json.hpp"
#include "base/pattern.hpp"
#include "sharding/rule_error.hpp"

namespace shardsim::test {
namespace {

// Where `actual` lacks something that `expected` holds; empty when it does not.
std::string difference(const Json& expected, const Json& actual, double tolerance,
                       const std::string& at) {
  if (expected.is_object() && actual.is_object()) {
    for (const auto& [key, value] : expected.items()) {
      if (!actual.contains(key)) return fmt::format("{}/{} is missing", at, key);
      const std::string inner = difference(value, actual[key], tolerance, at + "/" + key);
      if (!inner.empty()) return inner;
    }
    return "";
  }
  if (expected.is_array() && actual.is_array() && expected.size() == actual.size()) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::string inner =
          difference(expected[i], actual[i], tolerance, fmt::format("{}/{}", at, i));
      if (!inner.empty()) return inner;
    }
    return "";
  }
  if (expected.is_number_float() && actual.is_number()) {
    const double wanted = expected.get<double>();
    if (std::abs(actual.get<double>() - wanted) <= tolerance * std::max(1.0, std::abs(wanted)))
      return "";
  }
  if (expected == actual) return "";
  return fmt::format("{}: expected {}, actual {}", at, expected.dump(), actual.dump());
}

// Sets of leaves, specs and the like must not only include what is expected.
std::string size_difference(const Json& expected, const Json& actual, const std::string& at) {
  if (!expected.is_object() || !actual.is_object()) return "";
  for (const auto& [key, value] : expected.items()) {
    if (value.is_object() && value.size() != actual[key].size()) {
      return fmt::format("{}/{}: expected {} entries, actual {}", at, key, value.size(),
                         actual[key].size());
    }
  }
  return "";
}

}  // namespace

void GoldenFunctions::add(const std::string& name, GoldenFunction function,
                          const std::set<std::string>& prose, double tolerance) {
  rows_[name] = {std::move(function), prose, tolerance, /*whole_case=*/false};
}

void GoldenFunctions::add_for_case(const std::string& name, GoldenFunction function) {
  rows_[name] = {std::move(function), {}, default_tolerance, /*whole_case=*/true};
}

std::string GoldenFunctions::compare(const JsonReader& test_case, const std::string& function,
                                     const std::string& expected_key) const {
  const auto row = rows_.find(function);
  if (row == rows_.end()) return fmt::format("no function \"{}\"", function);
  Json expected = test_case.json()[expected_key];
  const bool wants_error = expected_key == "error";
  Json actual;
  try {
    actual = row->second.function(row->second.whole_case ? test_case : test_case.at("input"));
  } catch (const RuleError& error) {
    if (!wants_error) return fmt::format("refused: {}", error.what());
    const std::string type = expected["type"];
    // Python names a class without its module: re.error is "error".
    const bool same = error.type().substr(error.type().rfind('.') + 1) == type;
    return same || error.type() == type ? ""
                                        : fmt::format("expected {}, actual {}", type, error.what());
  } catch (const PatternError& error) {
    return wants_error && expected["type"] == "error" ? ""
                                                      : fmt::format("refused: {}", error.what());
  } catch (const std::exception& error) {
    return fmt::format("failed: {}", error.what());
  }
  if (wants_error) return fmt::format("expected {}, actual {}", expected.dump(), actual.dump());
  for (const std::string& key : row->second.prose) {
    if (expected.is_object()) expected.erase(key);
  }
  const std::string found = difference(expected, actual, row->second.tolerance, "");
  return found.empty() ? size_difference(expected, actual, "") : found;
}

std::string GoldenFunctions::failure(const JsonReader& test_case) const {
  const std::string function = test_case.at("function").string();
  const bool is_error = test_case.json().contains("error");
  std::string found = compare(test_case, function, is_error ? "error" : "expected");
  if (found.empty() && test_case.json().contains("corrected")) {
    found = compare(test_case, function + "/corrected", "corrected");
  }
  return found;
}

std::vector<std::string> golden_files(const std::string& name) {
  const char* set = std::getenv("SHARDSIM_GOLDEN_DIR");
  const std::filesystem::path folder =
      std::filesystem::path(set != nullptr ? set : SHARDSIM_SOURCE_DIR "/tests/golden") / name;
  std::vector<std::string> files;
  if (!std::filesystem::exists(folder)) {
    std::cout << folder.string() << ": not there, skipped\n";
    return files;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> run_golden_folder(const std::string& name,
                                           const GoldenFunctions& functions) {
  std::vector<std::string> all_failed;
  for (const std::string& file : golden_files(name)) {
    const Json document = load_json(file);
    const JsonReader reader(document, {file, ""});
    int passed = 0;
    int failed = 0;
    std::string report;
    for (const JsonReader& test_case : reader.at("cases").elements()) {
      const std::string why = functions.failure(test_case);
      ++(why.empty() ? passed : failed);
      if (!why.empty()) all_failed.push_back(test_case.at("name").string());
      if (!why.empty()) report += fmt::format("  {}: {}\n", test_case.at("name").string(), why);
    }
    std::cout << std::filesystem::path(file).filename().string() << ": " << passed << " passed, "
              << failed << " failed\n"
              << report;
  }
  return all_failed;
}

Mesh read_golden_mesh(const JsonReader& json) {
  std::vector<MeshAxis> axes;
  if (json.is_object()) {
    for (const auto& [name, size] : json.members())
      axes.push_back({name, size.integer(1, 1 << 20)});
  } else {
    for (const JsonReader& axis : json.elements()) {
      const std::vector<JsonReader> pair = axis.elements();
      axes.push_back({pair.at(0).string(), pair.at(1).integer(1, 1 << 20)});
    }
  }
  return Mesh(std::move(axes));
}

ParameterTree read_golden_tree(const JsonReader& params) {
  return {"golden", read_parameter_leaves(params)};
}

Json specs_to_json(const ParameterTree& tree, const std::vector<Json>& specs) {
  Json json = Json::object();
  for (std::size_t i = 0; i < tree.leaves.size(); ++i) json[tree.leaves[i].name] = specs[i];
  return json;
}

}  // namespace shardsim::test
